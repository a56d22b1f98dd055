"""The monitor, with all bytes around it, against the definition: random commands, readings and restarts."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.records import Feed
from tests.oracle import Answer, Event, Oracle, Reading, broken_ledgers
from tests.pure_service import PureService
from tests.strategies import FEEDS, Batch, Delete, Put, cut_smaller, programs, programs_in_order

pytestmark = pytest.mark.property

SERVED = {
    name: Feed(name, topic=name, stream_id="id", dimensions=dimensions, event_time="ts")
    for name, dimensions in FEEDS.items()
}
n_shards = st.integers(1, 3)


def put(feed: str, lo: float, hi: float, initial: str = "emit") -> Put:
    return Put("q", {"kind": "border", "feed": feed, "region": {"box": {"x": [lo, hi]}}, "initial": initial})


def at(feed: str, event_time: int, x: float, stream: str = "a") -> tuple[str, Reading]:
    return feed, Reading(stream, event_time, (x,) + (0.0,) * (len(FEEDS[feed]) - 1))


# A stream of the same name in the query's old feed and in its new one, with equal event times.
MOVED_TO_ANOTHER_FEED = [
    Batch((put("plane", 0, 1),), (at("plane", 11, 0.0), at("line", 10, 0.0))),
    Batch((put("line", 0, 1),), (at("line", 11, 2.0),)),
]
# Silent in the old feed and in the new one: one name ends there and begins here, in one batch.
SILENT_IN_ANOTHER_FEED = [
    Batch((), (at("plane", 10, 0.0), at("line", 10, 0.0))),
    Batch((put("plane", 0, 1, "silent"),), ()),
    Batch((put("line", 0, 1, "silent"),), ()),
    Batch((), (at("line", 11, 2.0),), "replica"),
]
# A monitor that has answered a command follows another one: what it knew of the streams then is old.
FOLLOWED_AFTER_IT_LED = [
    Batch((), (at("line", 10, 5.0),)),
    Batch((put("line", 0, 1),), ()),
    Batch((), (at("line", 11, 0.0, "b"),), "replica"),
    Batch((Delete("q"),), (), "replica"),
]


def run(service: PureService, batches: Iterable[Batch]) -> None:
    for batch in batches:
        if batch.restart == "snapshot":
            service.restart_from_snapshot()
        elif batch.restart == "replica":
            service.restart_from_deltas()
        values: dict[str, list[bytes | None]] = defaultdict(list)
        for feed, reading in batch.readings:
            fields = {"id": reading.stream, "ts": reading.event_time}
            fields |= dict(zip(FEEDS[feed], reading.value, strict=True))
            values[feed].append(json.dumps(fields).encode())
        service.run_batch([(command.query_id, command.value) for command in batch.commands], values)
        service.check()


def tell(oracle: Oracle, batches: Iterable[Batch]) -> None:
    offset = 0
    for batch in batches:
        for command in batch.commands:
            command.tell(oracle, offset)
            offset += 1
        for feed in FEEDS:
            oracle.read(feed, [reading for name, reading in batch.readings if name == feed])


def by_stream(events: Iterable[Event]) -> dict[tuple[str, str], list[Event]]:
    """Return the events of each stream in their order; between streams the order is free."""
    lists = defaultdict(list)
    for event in events:
        lists[event.feed, event.stream].append(event)
    return lists


def as_event(message: dict[str, Any]) -> Event:
    previous = message.get("previous")
    return Event(
        sign=message["sign"],
        query_id=message["query_id"],
        version=message["query_version"],
        feed=message["feed"],
        stream=message["stream_id"],
        event_time=message["event_time"],
        reason=message["reason"],
        value=tuple(message["value"].values()),
        previous=previous and (previous["event_time"], tuple(previous["value"].values())),
    )


def as_answer(message: dict[str, Any]) -> Answer:
    code = message["error"]["code"] if "error" in message else None
    return Answer(message["control_offset"], message["query_id"], message["status"], code)


@given(program=programs(), n_shards=n_shards, silent_tombstones_before=st.integers(0, 2))
@example(program=SILENT_IN_ANOTHER_FEED, n_shards=1, silent_tombstones_before=0)
@example(program=FOLLOWED_AFTER_IT_LED, n_shards=1, silent_tombstones_before=0)
def test_the_service_says_what_the_definition_says(
    program: Sequence[Batch], n_shards: int, silent_tombstones_before: int
) -> None:
    oracle = Oracle(FEEDS, silent_tombstones_before)
    service = PureService(SERVED, n_shards, silent_tombstones_before)

    tell(oracle, program)
    run(service, program)

    assert by_stream(map(as_event, service.events)) == by_stream(oracle.events)
    assert list(map(as_answer, service.replies)) == oracle.answers
    assert service.n_late == oracle.late.total()
    assert service.dead == []


@given(program=programs(), n_shards=n_shards)
@example(program=MOVED_TO_ANOTHER_FEED, n_shards=1)
def test_signs_alternate_and_event_ids_are_unique(program: Sequence[Batch], n_shards: int) -> None:
    service = PureService(SERVED, n_shards)

    run(service, program)

    assert broken_ledgers(map(as_event, service.events)) == []
    assert len({event["event_id"] for event in service.events}) == len(service.events)


@given(data=st.data(), program=programs_in_order(), one=n_shards, other=n_shards)
def test_batches_shards_and_restarts_change_no_event_of_readings_in_order(
    data: st.DataObject, program: list[Batch], one: int, other: int
) -> None:
    smaller = data.draw(cut_smaller(program), label="smaller")
    at_once, piecemeal = PureService(SERVED, one), PureService(SERVED, other)

    run(at_once, program)
    run(piecemeal, smaller)

    # Event ids too: a replay with other batches must not look like other events.
    assert sorted(at_once.events, key=_key) == sorted(piecemeal.events, key=_key)
    assert by_stream(map(as_event, at_once.events)) == by_stream(map(as_event, piecemeal.events))
    assert at_once.replies == piecemeal.replies


def _key(event: dict[str, Any]) -> str:
    return str(event["event_id"])
