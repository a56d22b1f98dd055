"""Plays a file of scenarios against another system: what passes, what is wrong, what the system cannot express."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from bmq.conformance.adapter import Adapter
from bmq.conformance.adapter_backend import AdapterBackend
from bmq.conformance.play import play
from bmq.conformance.scenario import Scenario, all_feeds, parse
from bmq.errors import ConfigError


class Result(StrEnum):
    """What came of one scenario."""

    PASSED = "passed"
    WRONG = "wrong"  # the system took every step, and its answers differ
    CANNOT = "cannot"  # the system has no means to express a step


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one scenario.

    Attributes
    ----------
    details : what differs, or why the system cannot express the scenario; empty if it passed.
    """

    name: str
    rule: str
    result: Result
    details: tuple[str, ...]


def load_scenarios(path: Path) -> list[Scenario]:
    """Return the scenarios of a file under the names that they have there.

    Raises
    ------
    ConfigError
        The file cannot be read, has no scenario, or a line is no scenario.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}. Name a file of scenarios, one JSON object a line."
        ) from None
    numbered = {number: parse(line, "") for number, line in enumerate(lines, start=1) if line.strip()}
    for number, scenario in numbered.items():
        if scenario.broken:
            raise ConfigError(
                f"{path}, line {number}: {scenario.broken}. docs/conformance.md has the format; correct the line."
            )
    if not numbered:
        raise ConfigError(f"{path} has no scenario. Write one JSON object a line, as docs/conformance.md says.")
    return list(numbered.values())


def judge(scenarios: Iterable[Scenario], adapter: Adapter) -> Iterator[Verdict]:
    """Yield the verdict of each scenario; the system is started anew for each.

    Raises
    ------
    SystemFailed
        The system does not run.
    """
    for scenario in scenarios:
        reason = adapter.cannot(scenario)
        if reason is not None:
            yield Verdict(scenario.name, scenario.rule, Result.CANNOT, (reason,))
            continue
        try:
            adapter.start(all_feeds([scenario]))
            (outcome,) = play([scenario], AdapterBackend(adapter), adapter.lacks)
        finally:
            adapter.stop()
        result = Result.PASSED if outcome.passed else Result.WRONG
        yield Verdict(scenario.name, scenario.rule, result, outcome.differences)


def lines_of(verdict: Verdict) -> list[str]:
    """Return the lines of one scenario for a reader: the result and the name, and below them the details."""
    return [f"{verdict.result:<8}{verdict.name}", *(f"        {detail}" for detail in verdict.details)]


def sums(verdicts: Sequence[Verdict]) -> dict[Result, int]:
    """Return how many scenarios have each result."""
    counts = Counter(verdict.result for verdict in verdicts)
    return {result: counts[result] for result in Result}


def report(verdicts: Sequence[Verdict], adapter: str) -> str:
    """Return all verdicts as one JSON object."""
    counts = {str(result): count for result, count in sums(verdicts).items()}
    scenarios = [asdict(verdict) for verdict in verdicts]
    return json.dumps({"adapter": adapter, **counts, "scenarios": scenarios}, ensure_ascii=False)
