"""Measures every claim of `bounds.toml` and says which hold: `python -m bench.check [NAME ...]`.

Exit code 1 if a number fell below its bound, or behind what was reached where the bound never was.
"""

import argparse
import importlib
import sys
import time
import tomllib
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

BOUNDS = Path(__file__).with_name("bounds.toml")


class Bound(BaseModel):
    """One claim, as `bounds.toml` describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    claim: str
    measure: str
    at_least: float | None = None
    at_most: float | None = None
    noise: float
    reached: float | None = None
    reason: str | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("give at_least or at_most: one of the two")
        if (self.reached is None) != (self.reason is None):
            raise ValueError("reached and reason go together: a bound that is missed says why")
        if self.reached is not None and self.holds(self.reached):
            raise ValueError(f"reached = {self.reached} holds the bound: drop reached and reason")
        return self

    @property
    def limit(self) -> float:
        """The bound's number."""
        return self.at_least if self.at_least is not None else self.at_most or 0.0

    def holds(self, number: float) -> bool:
        """Return whether ``number`` is on the right side of the bound, noise aside."""
        return _reaches(number, self.limit, low=self.at_least is not None, noise=0.0)

    def verdict(self, number: float) -> str:
        """Return `ok`, `ok (noise)`, `missed` or `FAILED`."""
        low = self.at_least is not None
        if self.holds(number):
            return "ok"
        if self.reached is not None:
            return "missed" if _reaches(number, self.reached, low=low, noise=self.noise) else "FAILED"
        return "ok (noise)" if _reaches(number, self.limit, low=low, noise=self.noise) else "FAILED"


def _reaches(number: float, limit: float, *, low: bool, noise: float) -> bool:
    return number >= limit * (1 - noise) if low else number <= limit * (1 + noise)


def read_bounds(path: Path = BOUNDS) -> dict[str, Bound]:
    """Return the claims by name.

    Raises
    ------
    pydantic.ValidationError
        A claim is not what the head of the file says.
    """
    with path.open("rb") as file:
        return {name: Bound.model_validate(table) for name, table in tomllib.load(file).items()}


def measured(bound: Bound) -> float:
    """Return the number of a claim, by the function that measures it."""
    module, _, function = bound.measure.partition(":")
    return float(getattr(importlib.import_module(module), function)())


def main() -> None:
    """Print a line a claim, then the missed ones, and leave with 1 if one failed."""
    bounds = read_bounds()
    parser = argparse.ArgumentParser(prog="python -m bench.check", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(bounds)}; none: all")
    names = parser.parse_args().names or list(bounds)
    unknown = sorted(set(names) - set(bounds))
    if unknown:
        parser.error(f"there is no claim {unknown[0]!r}; there are: {', '.join(bounds)}")
    verdicts = {}
    for name in names:
        bound = bounds[name]
        start = time.monotonic()
        number = measured(bound)
        verdicts[name] = bound.verdict(number)
        sign = ">=" if bound.at_least is not None else "<="
        seconds = time.monotonic() - start
        print(
            f"{verdicts[name]}: {name} = {number:.4g} ({sign} {bound.limit:g}) {bound.claim} ({seconds:.0f} s)",
            flush=True,
        )
    for name in names:
        if verdicts[name] == "missed":
            print(f"  {name}: reached {bounds[name].reached:g}. {bounds[name].reason}")
    by_verdict = {word: [name for name in names if verdicts[name] == word] for word in ("missed", "FAILED")}
    n_held = len(names) - sum(map(len, by_verdict.values()))
    emitted = "; ".join(f"{word}: {', '.join(found) or 'none'}" for word, found in by_verdict.items())
    print(f"bench-check {n_held} of {len(names)} hold; {emitted}")
    sys.exit(1 if by_verdict["FAILED"] else 0)


if __name__ == "__main__":
    main()
