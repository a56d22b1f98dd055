"""Programs: what a service reads, batch after batch, and how the service and the definition are run with them.

Strategies draw them; a failure prints them as lines. Knows `PureService` and the oracle.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bmq.records import Feed as ServedFeed
from tests.oracle import Answer, Definition, Event, Feed, Oracle, PairEvent, Reading, Value
from tests.pure_service import RECORD_TIME, PureService

# Times are single milliseconds around 10, so that what is due meets readings.
LATENESS_MS = 2
STREAM_TTL_MS = 3
MAX_FUTURE_MS = 1_000
FEEDS = {
    "line": Feed(("x",)),
    "plane": Feed(("x", "y")),
    "cube": Feed(("x", "y", "z")),
    "globe": Feed(("lon", "lat"), lonlat=True),
    "tardy": Feed(("x",), max_lateness=LATENESS_MS),
    "brief": Feed(("x",), stream_ttl=STREAM_TTL_MS),
    "both": Feed(("x",), max_lateness=LATENESS_MS, stream_ttl=STREAM_TTL_MS),
}
TO_JOIN = ("group", "size")
JOIN_FEEDS = {
    "left": Feed(("price",), attributes=TO_JOIN, join=True),
    "right": Feed(("price", "depth"), attributes=TO_JOIN, join=True),
    "slow": Feed(("price",), max_lateness=LATENESS_MS, attributes=TO_JOIN, join=True),
    "quick": Feed(("price",), stream_ttl=STREAM_TTL_MS, attributes=TO_JOIN, join=True),
    "last": Feed(("price",), max_lateness=LATENESS_MS, stream_ttl=STREAM_TTL_MS, attributes=TO_JOIN, join=True),
}
ALL_FEEDS = FEEDS | JOIN_FEEDS


def _served(feeds: Mapping[str, Feed]) -> dict[str, ServedFeed]:
    return {
        name: ServedFeed(
            name,
            topic=f"topic-of-{name}",
            stream_id="id",
            event_time="ts",
            dimensions=feed.dimensions,
            attributes=feed.attributes,
            lonlat=feed.lonlat,
            max_lateness_ms=feed.max_lateness,
            stream_ttl_ms=feed.stream_ttl,
            max_future_ms=MAX_FUTURE_MS,
            join=feed.join,
        )
        for name, feed in feeds.items()
    }


SERVED = _served(FEEDS)
JOIN_SERVED = _served(JOIN_FEEDS)


@dataclass(frozen=True)
class Put:
    """Register or replace a query."""

    query_id: str
    definition: Definition

    @property
    def value(self) -> bytes:
        return json.dumps(self.definition).encode()

    def tell(self, oracle: Oracle, offset: int) -> None:
        oracle.put(offset, self.query_id, self.definition)

    def __str__(self) -> str:
        return f"put {self.query_id} {json.dumps(self.definition)}"


@dataclass(frozen=True)
class Delete:
    """Delete a query, known or not."""

    query_id: str
    value: None = None

    def tell(self, oracle: Oracle, offset: int) -> None:
        oracle.delete(offset, self.query_id)

    def __str__(self) -> str:
        return f"delete {self.query_id}"


@dataclass(frozen=True)
class Bad:
    """A definition that must be refused with ``code``."""

    query_id: str
    value: bytes
    code: str

    def tell(self, oracle: Oracle, offset: int) -> None:
        oracle.refuse(offset, self.query_id, self.code)

    def __str__(self) -> str:
        return f"put {self.query_id} {self.value.decode()}, refused as {self.code}"


@dataclass(frozen=True)
class Arrival:
    """A reading on its way: its feed and partition."""

    feed: str
    partition: int
    reading: Reading

    @property
    def value(self) -> bytes:
        reading = self.reading
        point = dict(zip(ALL_FEEDS[self.feed].dimensions, reading.value, strict=True))
        return json.dumps(
            {"id": reading.stream, "ts": reading.event_time, **point, **dict(reading.attributes)}
        ).encode()

    def __str__(self) -> str:
        reading = self.reading
        attributes = "".join(f" {name}={json.dumps(value)}" for name, value in reading.attributes)
        numbers = " ".join(f"{number:g}" for number in reading.value)
        return f"{self.feed}[{self.partition}] {reading.stream}@{reading.event_time} {numbers}{attributes}"


@dataclass(frozen=True)
class BadRecord:
    """A record that must become a dead letter with ``code``."""

    feed: str
    partition: int
    value: bytes
    code: str

    def __str__(self) -> str:
        return f"{self.feed}[{self.partition}] {self.value.decode()}, dead as {self.code}"


@dataclass(frozen=True)
class Mark:
    """How far the clock of a feed has come without readings."""

    feed: str
    time: int

    def __str__(self) -> str:
        return f"clock of {self.feed} at {self.time}"


Command = Put | Delete | Bad
Item = Arrival | BadRecord | Mark


@dataclass(frozen=True)
class Batch:
    """What one batch reads.

    ``restart`` : how the service came by its state before it; a number: by a rescale to so many shards; None: it went
        on.
    """

    commands: tuple[Command, ...]
    items: tuple[Item, ...]
    restart: str | int | None = None

    @property
    def arrived(self) -> dict[str, dict[int, list[Reading]]]:
        """Return feed -> partition -> readings."""
        arrived: dict[str, dict[int, list[Reading]]] = {}
        for item in self.items:
            if isinstance(item, Arrival):
                arrived.setdefault(item.feed, {}).setdefault(item.partition, []).append(item.reading)
        return arrived

    @property
    def marks(self) -> list[tuple[str, int]]:
        return [(item.feed, item.time) for item in self.items if isinstance(item, Mark)]


def lines_of(batches: Sequence[Batch]) -> str:
    """Return a program as text, one thing a line."""
    lines = []
    for number, batch in enumerate(batches):
        lines.append(f"batch {number}" + _restart_of(batch))
        lines += [f"  {part}" for part in (*batch.commands, *batch.items)]
    return "\n".join(lines)


def _restart_of(batch: Batch) -> str:
    if isinstance(batch.restart, int):
        return f", rescaled to {batch.restart} shards"
    return f", restarted from {batch.restart}" if batch.restart else ""


def run(service: PureService, batches: Iterable[Batch]) -> None:
    """Let the service process all batches; check its monitors after each, and its standbys at the end.

    The checks take half of the time. A standby that takes over is a monitor, and checked after the next batch.
    """
    for batch in batches:
        if batch.restart == "snapshot":
            service.restart_from_snapshot()
        elif batch.restart == "replica":
            service.restart_from_deltas()
        elif batch.restart == "upgrade":
            service.upgrade()
        elif isinstance(batch.restart, int):
            service.rescale(batch.restart)
        values: dict[str, dict[int, list[bytes | None]]] = defaultdict(dict)
        for item in batch.items:
            if not isinstance(item, Mark):
                values[item.feed].setdefault(item.partition, []).append(item.value)
        service.run_batch([(command.query_id, command.value) for command in batch.commands], values, batch.marks)
        service.check()
    service.check_standbys()


def tell(oracle: Oracle, batches: Iterable[Batch]) -> None:
    """Let the oracle take in all batches."""
    offset = 0
    for batch in batches:
        for command in batch.commands:
            command.tell(oracle, offset)
            offset += 1
        for feed in oracle.feeds:
            marks = [time for name, time in batch.marks if name == feed]
            oracle.advance(feed, batch.arrived.get(feed, {}), max(marks, default=None))
        oracle.join()


def dead_of(batches: Iterable[Batch]) -> list[tuple[str, str]]:
    """Return (topic, code) of every dead letter that there must be, sorted."""
    items = [item for batch in batches for item in batch.items]
    return sorted((f"topic-of-{item.feed}", item.code) for item in items if isinstance(item, BadRecord))


# Where a line meets a border is a quotient, which two ways of reckoning may round differently.
PASS_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Emitted:
    """An event as text, and its value, of which passes are equal that are nearly so."""

    text: str
    value: Value
    tolerance: float

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Emitted)
            and self.text == other.text
            and len(self.value) == len(other.value)
            and all(
                math.isclose(a, b, rel_tol=0.0, abs_tol=self.tolerance)
                for a, b in zip(self.value, other.value, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]  # nearly equal is not transitive

    def __str__(self) -> str:
        return f"{self.text}, at {self.value}"


def by_stream(events: Iterable[Event]) -> dict[str, list[Emitted]]:
    """Return what is emitted of each stream in its order; between streams the order is free."""
    lists = defaultdict(list)
    for event in events:
        before = event.previous and (event.previous[0], _written(event.previous[1]))
        text = f"{event} (version {event.version}, from {before})"
        emitted = Emitted(text, _written(event.value), PASS_TOLERANCE if event.is_pass else 0.0)
        lists[f"{event.feed} {event.stream}"].append(emitted)
    return dict(lists)


def by_pair(events: Iterable[PairEvent]) -> dict[str, list[str]]:
    """Return what is emitted of each pair, or of each stream that changed answers, in its order."""
    lists = defaultdict(list)
    for event in events:
        there = [
            (feed, one) for feed, one in zip(event.feeds, (event.left, event.right), strict=True) if one is not None
        ]
        at = [f"{feed} {one.stream}@{one.event_time} {_written(one.value)}" for feed, one in there]
        text = f"{event} {event.reason} (version {event.version}, of {' and '.join(at)})"
        lists[f"{event.pair} of {' and '.join(feed for feed, _ in there)}"].append(text)
    return dict(lists)


def differences(emitted: Mapping[str, Sequence[object]], expected: Mapping[str, Sequence[object]]) -> str:
    """Return what is emitted of a stream, or to a query, and what is expected, where they differ; "" where nowhere."""
    lines = []
    for name in sorted(emitted.keys() | expected.keys()):
        if emitted.get(name, []) != expected.get(name, []):
            lines += [f"{name} is emitted", *(f"  {one}" for one in emitted.get(name, []))]
            lines += ["and by the definition", *(f"  {one}" for one in expected.get(name, []))]
    return "\n".join(lines)


def _written(value: Value) -> Value:
    """Return a value so that equal ones are written alike: -0.0 equals 0.0."""
    return tuple(round(number, 15) + 0.0 for number in value)


def by_query(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    """Return the answers to each query in their order, the key of their topic."""
    lists = defaultdict(list)
    for answer in answers:
        lists[answer.query_id].append(answer)
    return dict(lists)


def as_event(message: dict[str, Any]) -> Event:
    """Return an event message as the oracle has it."""
    previous, level = message.get("previous"), message["kind"] in ("match", "select")
    assert level or message["kind"] == ("transition" if "pattern" in message else "border")
    assert ("pattern" in message) == ("began" in message) == (message["kind"] == "transition")
    assert ("sign" in message) == ("reason" in message) == (message["kind"] == "border")
    assert not (level and previous)
    return Event(
        sign=message.get("sign", ""),
        query_id=message["query_id"],
        version=message["query_version"],
        feed=message["feed"],
        stream=message["stream_id"],
        event_time=message["event_time"],
        reason=message.get("reason", ""),
        value=tuple(message["value"].values()),
        previous=previous and (previous["event_time"], tuple(previous["value"].values())),
        is_pass=message.get("pass", False),
        confirmed_time=message.get("confirmed_time"),
        pattern=message.get("pattern"),
        began=message.get("began"),
        level=message["kind"] if level else None,
    )


def is_of_pair(message: dict[str, Any]) -> bool:
    """Return whether an event message is of a join."""
    return message["kind"] in ("band_join", "window_join")


def as_pair_event(message: dict[str, Any]) -> PairEvent:
    """Return an event message of a join as the oracle has it, but for the attributes of the readings."""
    left, right = (message.get(side) for side in ("left", "right"))
    assert ("reason" in message) == (message["kind"] == "band_join")
    assert ("sign" in message) == (message["kind"] == "band_join" and None not in (left, right))
    return PairEvent(
        kind=message["kind"],
        sign=message.get("sign", ""),
        query_id=message["query_id"],
        version=message["query_version"],
        feeds=("" if left is None else left["feed"], "" if right is None else right["feed"]),
        left=left and Reading(left["stream_id"], left["event_time"], tuple(left["value"].values())),
        right=right and Reading(right["stream_id"], right["event_time"], tuple(right["value"].values())),
        event_time=message["event_time"],
        reason=message.get("reason", ""),
    )


def as_answer(message: dict[str, Any]) -> Answer:
    """Return a reply as the oracle has it."""
    code = message["error"]["code"] if "error" in message else None
    return Answer(message["control_offset"], message["query_id"], message["status"], code)


TOO_FAR_AHEAD = RECORD_TIME + MAX_FUTURE_MS + 1


def what_differs(service: PureService, oracle: Oracle) -> str:
    """Return what a service has emitted and answered, where it is not what the definition says; "" where it is."""
    pairs = [as_pair_event(message) for message in service.events if is_of_pair(message)]
    others = [as_event(message) for message in service.events if not is_of_pair(message)]
    return "\n".join(
        filter(
            None,
            [
                differences(by_pair(pairs), by_pair(oracle.pair_events)),
                differences(by_stream(others), by_stream(oracle.events)),
                differences(by_query(map(as_answer, service.replies)), by_query(oracle.answers)),
            ],
        )
    )
