"""The examples of docs/semantics.md are scenarios that run, word for word.

An example is a block of three lines: the scenario's name, what goes in, what comes out. `|` begins another batch, and
`(1)` stands where the events behind `(1)` have come. `python -m tests.docs.test_semantics` writes the two lines below
each name anew.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "semantics.md"
BLOCK = re.compile(r"^```\n# (?P<name>.+)\n(?P<lines>(?:.*\n)*?)```$", re.MULTILINE)

pytestmark = pytest.mark.docs


def scenarios() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in ("given.jsonl", "more.jsonl"):
        lines = (ROOT / "tests" / "scenarios" / name).read_text(encoding="utf-8").splitlines()
        found |= {scenario["name"]: scenario for scenario in map(json.loads, lines)}
    return found


def two_lines(scenario: dict[str, Any]) -> str:
    """Return what goes into a scenario and what comes out, a line each."""
    steps = scenario["steps"]
    expected = [" · ".join(step["expect"]) or "nothing" for step in steps if "expect" in step]
    numbers = (f"({number})" for number in range(1, len(expected) + 1))
    if len(expected) == 1:
        # All that came before the end needs no sign of its own.
        steps = [step for step in steps if "expect" not in step]
    else:
        expected = [f"({number}) {texts}" for number, texts in enumerate(expected, start=1)]
    batches = [next(numbers) if "expect" in step else " · ".join(_step(step)) for step in steps]
    return f"in   {' | '.join(batches)}\nout  {' '.join(expected)}\n"


def _step(step: dict[str, Any]) -> list[str]:
    reply = f" → {step['reply']}" if "reply" in step else ""
    feed = f"{_feed_name(step)}: ".removeprefix(": ")
    match step:
        case {"put": definitions}:
            return [f"put {query} {_definition(definition)}{reply}" for query, definition in definitions.items()]
        case {"delete": queries}:
            return [f"delete {' '.join(queries)}{reply}"]
        case {"read": readings}:
            first, *others = [_reading(*reading) for reading in readings]
            return [feed + first, *others]
        case {"clock": time}:
            return [f"{feed}clock@{time}"]
        case {"raw": texts}:
            return [f"raw {json.dumps(text)}" for text in texts]
        case {"dead": counts}:
            return [f"dead letters {json.dumps(counts)}"]
    return [f"restart ({step['restart']})"]


def _definition(definition: dict[str, Any]) -> str:
    shown = {
        name: value for name, value in definition.items() if name != "feed" and (name, value) != ("kind", "border")
    }
    feed = _feed_name(definition)
    return (f"on {feed} " if feed else "") + json.dumps(shown, ensure_ascii=False)


def _feed_name(emitted: dict[str, Any]) -> str:
    """Return the feed of a step or a definition; "" where the values show which it is. A join names its own."""
    name: str = emitted.get("feed", "line")
    return "" if name in ("line", "plane", "cube") else name


def _reading(stream: str, time: float, value: object, attributes: dict[str, Any] | None = None) -> str:
    return f"{stream}@{time} {json.dumps(value)}" + (f" {json.dumps(attributes)}" if attributes else "")


def test_every_example_is_a_scenario_that_runs() -> None:
    known = scenarios()
    examples = BLOCK.findall(DOCUMENT.read_text(encoding="utf-8"))
    assert len(examples) > 40
    for name, lines in examples:
        assert name in known, f"no scenario is called {name!r}"
        right = two_lines(known[name])
        assert lines == right, f"{name}: run python -m tests.docs.test_semantics, which writes\n{right}"


def test_every_rule_that_scenarios_are_about_is_named() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    rules = {scenario["rule"] for scenario in scenarios().values()}
    assert {rule for rule in rules if f"(*{rule}*)" not in text} == set()


if __name__ == "__main__":
    everything = scenarios()
    DOCUMENT.write_text(
        BLOCK.sub(
            lambda block: f"```\n# {block['name']}\n{two_lines(everything[block['name']])}```",
            DOCUMENT.read_text(encoding="utf-8"),
        ),
        encoding="utf-8",
    )
