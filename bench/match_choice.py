"""Match indexes: how much slower the chosen structure is than the best, and what the constants of its choice are.

Each structure searches the same values, on setups around those of the papers and beyond: few and many queries, all of
a size and of very different ones, even and in towns, small and large calls. Run `python -m bench.match_choice`: five
minutes on an idle core. It prints a row a setup, the worst choice, and the constants (`bmq.index.match.match_costs.NS`)
that fit the measured times: the smallest sum of squared relative errors, with no constant below zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import nnls

from bench.measure import race_stabs, registered
from bmq.index.match.adaptive_match import AdaptiveMatches, make_kind
from bmq.index.match.match_costs import NS, MatchKind, MatchWorkload, call_ns, terms
from bmq.records import Float64s

SEED = 20060509
MOST_MATCHES = 300  # a value; more are no work of an index
N_VALUES = 20_000  # searched by each structure and round, in one call or many
N_TOWNS, TOWN = 30, 0.01
N_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Setup:
    """Queries and values in a unit cube: ``width`` is the mean side, ``n_values`` the size of a call."""

    n_dims: int
    n_queries: int
    width: float
    spread: str
    n_values: int

    def queries(self, rng: np.random.Generator) -> tuple[Float64s, Float64s]:
        """Return lower and upper borders, float64[d, m]."""
        shape = self.n_dims, self.n_queries
        lo = self._places(rng, self.n_queries)
        sides = rng.lognormal(-0.5, 1, shape) if self.spread == "mixed" else rng.uniform(0.2, 1.8, shape)
        return lo, lo + self.width * sides

    def values(self, rng: np.random.Generator) -> Float64s:
        """Return the values of a call."""
        return self._places(rng, self.n_values)

    def _places(self, rng: np.random.Generator, n: int) -> Float64s:
        if self.spread != "towns":
            return rng.random((self.n_dims, n))
        towns = np.random.default_rng(SEED).random((self.n_dims, N_TOWNS))
        return towns[:, rng.integers(0, N_TOWNS, n)] + rng.normal(0, TOWN, (self.n_dims, n))


SETUPS = [
    Setup(n_dims, n_queries, width, spread, n_values)
    for n_dims, n_queries, width, spread, n_values in product(
        (1, 2, 3, 6),
        (10, 300, 10_000, 100_000),
        (0.0003, 0.003, 0.03, 0.3),
        ("even", "mixed", "towns"),
        (20, 300, 5_000),
    )
    if n_queries * width**n_dims <= MOST_MATCHES and not (n_dims > 2 and width < 0.01)
]


@dataclass(frozen=True, slots=True)
class Row:
    """One setup: what a value costs by structure, and what was chosen."""

    setup: Setup
    workload: MatchWorkload
    chosen: MatchKind
    ns: dict[MatchKind, float]

    @property
    def ratio(self) -> float:
        """How much slower the chosen structure is than the best."""
        return self.ns[self.chosen] / min(self.ns.values())


def measure() -> Iterator[Row]:
    """Yield one row a setup."""
    for setup in SETUPS:
        yield _measure(setup)


def worst_choice() -> float:
    """Return how much slower the chosen structure is than the best, at the setup where it is most."""
    return max(row.ratio for row in measure())


def _measure(setup: Setup) -> Row:
    rng = np.random.default_rng(SEED)
    regions = setup.queries(rng)
    indexes = {kind.value: make_kind(setup.n_dims, kind) for kind in MatchKind if kind.fits(setup.n_dims)}
    seen: list[MatchWorkload] = []

    def noted(kind: MatchKind, workload: MatchWorkload) -> float:
        seen.append(workload)
        return call_ns(kind, workload)

    auto = AdaptiveMatches(setup.n_dims, predicted_ns=noted)
    for index in (*indexes.values(), auto):
        registered(index, regions)
    auto.stab(setup.values(rng))
    n_rounds = max(N_ROUNDS, min(20, N_VALUES // setup.n_values))
    times = race_stabs(indexes, (setup.values(rng) for _ in range(n_rounds + 1)), regions)
    ns = {MatchKind(name): one.spread.median for name, one in times.items()}
    return Row(setup, seen[0], auto.kind, ns)


def fitted(kind: MatchKind, rows: list[Row]) -> list[float]:
    """Return the constants of ``kind`` that the rows show; print how far off they are as a comment."""
    rows = [row for row in rows if kind in row.ns and row.ns[kind] <= 8 * min(row.ns.values())]
    measured = np.array([row.ns[kind] * row.setup.n_values for row in rows])
    best = np.array([min(row.ns.values()) * row.setup.n_values for row in rows])
    counts = np.array([terms(kind, row.workload) for row in rows])
    weights = np.sqrt(best / measured)
    constants, _ = nnls(counts * (weights / measured)[:, None], weights)
    off, old = counts @ constants / measured, counts @ np.array(NS[kind]) / measured
    rms = float(np.sqrt(np.mean((off - 1) ** 2)))
    print(f"# {kind.value}: predicted / measured {off.min():.2f} to {off.max():.2f}, rms error {rms:.2f}", end="; ")
    print(f"with the constants in force {old.min():.2f} to {old.max():.2f}")
    return [float(constant) for constant in constants]


def main() -> None:
    """Measure, print the choices, fit and print the constants."""
    rows = []
    for row in measure():
        rows.append(row)
        ns = " ".join(f"{kind.value} {one:.0f}" for kind, one in row.ns.items())
        print(f"{row.setup}: {ns} ns a value, chosen {row.chosen.value}, {row.ratio:.2f} of the best", flush=True)
    print(f"worst {max(row.ratio for row in rows):.2f}, mean {np.mean([row.ratio for row in rows]):.2f}")
    print("NS: dict[MatchKind, tuple[float, ...]] = {")
    for kind in MatchKind:
        print(f"    MatchKind.{kind.name}: ({', '.join(f'{constant:.3g}' for constant in fitted(kind, rows))}),")
    print("}")


if __name__ == "__main__":
    main()
