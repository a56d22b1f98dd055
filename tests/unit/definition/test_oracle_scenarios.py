"""The scenarios against the oracle alone: what everything else is compared with must itself be right."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bmq.conformance.play import ControlRecord, Seen, play
from bmq.conformance.scenario import Commands, Scenario, load
from tests.oracle import Event, Feed, Oracle, PairEvent, Reading
from tests.oracle_queries import read_time

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parents[2] / "scenarios"
NOW = 1_800_000_000_000  # no scenario waits for 2027
SCENARIOS = [*load(FOLDER / "given.jsonl"), *load(FOLDER / "more.jsonl", "m")]


class OracleBackend:
    """One oracle for one scenario. What must be refused is not the oracle's to say: the scenario knows it."""

    def __init__(self, scenario: Scenario) -> None:
        self._feeds = {name: read_feed(options) for name, options in scenario.feeds.items()}
        self._oracle = Oracle(self._feeds)
        self._refusals = {
            record: step.reply.removeprefix("rejected:")
            for step in scenario.steps
            if isinstance(step, Commands) and step.reply.startswith("rejected:")
            for record in step.records
            if record[1] is not None
        }
        self._n_commands = 0
        self._n_events = 0
        self._n_pair_events = 0
        self._n_answers = 0
        self._arrived: dict[str, list[Reading]] = {}
        self._dead: list[tuple[str, str]] = []

    def restart(self, how: str) -> None:
        """A definition has no state to lose."""

    def command(self, records: Sequence[ControlRecord]) -> list[int]:
        """Apply commands; return their offsets."""
        first = self._n_commands
        for offset, (query_id, value) in enumerate(records, start=first):
            if (query_id, value) in self._refusals:
                self._oracle.refuse(offset, query_id, self._refusals[query_id, value])
            elif value is None:
                self._oracle.delete(offset, query_id)
            else:
                self._oracle.put(offset, query_id, json.loads(value))
        self._n_commands += len(records)
        return list(range(first, self._n_commands))

    def publish(self, feed: str, values: Sequence[bytes]) -> None:
        """Keep readings for the end of the batch, and dead letters."""
        for value in values:
            reading = read_reading(value, self._feeds[feed])
            if isinstance(reading, str):
                self._dead.append((feed, reading))
            else:
                self._arrived.setdefault(feed, []).append(reading)

    def settle(self) -> Seen:
        """End the batch; return what it says."""
        for feed in self._feeds:
            self._oracle.advance(feed, {0: self._arrived.get(feed, [])})
        self._oracle.join()
        replies = [
            {"query_id": answer.query_id, "status": answer.status, "control_offset": answer.offset}
            | ({"error": {"code": answer.code, "message": ""}} if answer.code else {})
            for answer in self._oracle.answers[self._n_answers :]
        ]
        numbered = list(enumerate(self._oracle.events))[self._n_events :]
        numbered_pairs = list(enumerate(self._oracle.pair_events))[self._n_pair_events :]
        self._n_answers, self._n_events = len(self._oracle.answers), len(self._oracle.events)
        self._n_pair_events = len(self._oracle.pair_events)
        dead, self._dead, self._arrived = self._dead, [], {}
        messages = [as_message(event, str(number)) for number, event in numbered]
        messages += [as_pair_message(event, f"pair {number}") for number, event in numbered_pairs]
        return Seen(replies, messages, dead)


def read_feed(options: dict[str, Any]) -> Feed:
    lateness, ttl = (int(options.get(name, "0s").removesuffix("s")) * 1000 for name in ("max_lateness", "stream_ttl"))
    return Feed(tuple(options["dimensions"]), options.get("space") == "lonlat", lateness, ttl or None)


def read_reading(value: bytes, feed: Feed) -> Reading | str:
    """Return the reading, or the code of a dead letter."""
    try:
        fields = json.loads(value.decode().removeprefix("\ufeff"))
    except ValueError:
        return "not_json"
    if not isinstance(fields, dict):
        return "not_json"
    needed: list[Any] = [fields.get(name) for name in ("id", "ts", *feed.dimensions)]
    if None in needed or needed[0] == "":
        return "missing_field"
    stream, event_time, *point = needed
    if isinstance(event_time, str):
        try:
            event_time = read_time(event_time)
        except ValueError:
            return "wrong_type"
    elif not 10**11 <= event_time <= 10**14:
        return "out_of_range"
    if not all(isinstance(number, int | float) for number in point):
        return "wrong_type"
    if event_time > NOW or (feed.lonlat and (abs(point[0]) > 180 or abs(point[1]) > 90)):
        return "out_of_range"
    attributes = {name: fields[name] for name in fields if name == "group"}
    return Reading(str(stream), event_time, tuple(map(float, point)), tuple(attributes.items()))


def as_message(event: Event, event_id: str) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "kind": event.level or ("border" if event.pattern is None else "transition"),
        "query_id": event.query_id,
        "stream_id": event.stream,
        "sign": event.sign,
        "reason": event.reason,
        "event_time": event.event_time,
        "pass": event.is_pass,
        "confirmed_time": event.confirmed_time,
        "pattern": event.pattern,
        "began": event.began,
    }


def as_pair_message(event: PairEvent, event_id: str) -> dict[str, Any]:
    sides = {"left": event.left, "right": event.right}
    return {
        "event_id": event_id,
        "kind": event.kind,
        "query_id": event.query_id,
        "event_time": event.event_time,
        **({"sign": event.sign} if event.sign else {}),
        **{side: {"stream_id": reading.stream} for side, reading in sides.items() if reading is not None},
    }


@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in SCENARIOS])
def test_the_oracle_meets_the_scenario(scenario: Scenario) -> None:
    (outcome,) = play([scenario], OracleBackend(scenario))

    assert outcome.differences == ()
