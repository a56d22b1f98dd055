"""Match and select queries in the engine of a feed, against a definition that asks every query about every reading.

Border queries are among them: they become level queries and are made of such, and come first at each reading.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.engines.feed import feed_tables
from bmq.engines.feed.feed_engine import FeedEngine
from bmq.engines.scope import where_index
from bmq.records import (
    NEVER,
    Attributes,
    Crossings,
    Feed,
    Installation,
    Kind,
    Readings,
    Reason,
    Region,
    RegionQuery,
    Shape,
    ShapeKind,
)
from bmq.wire.attributes import attribute_text, concat_attributes
from tests.crossings import make_ids

pytestmark = pytest.mark.property

DIMENSIONS, ATTRIBUTES = ("x", "y"), ("group", "size")
NO_NUMBER = -sys.float_info.max  # the least lower end of an interval of an attribute: what is no number is below
FIRST_TIME = 10

Intervals = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Reading:
    stream: str
    time: int
    value: tuple[float, float]
    attributes: tuple[Any, ...]


@dataclass(frozen=True)
class Standing:
    """A query, what it asks in plain terms, and when it ends."""

    query: RegionQuery
    conjunctions: tuple[Intervals, ...]
    due: int = NEVER


class Event(NamedTuple):
    sign: int
    query_id: str
    version: int
    time: int
    value: tuple[float, ...]
    reason: str


# -- the definition -----------------------------------------------------------------------------------------


def holds(standing: Standing, reading: Reading) -> bool:
    """Return whether region and scope of a query hold a reading."""
    query, named = standing.query, dict(zip(ATTRIBUTES, reading.attributes, strict=True))
    in_scope = query.enabled and (query.streams is None or reading.stream in query.streams)
    in_scope = in_scope and all(attribute_text(named[name]) in wanted for name, wanted in query.where)
    if query.kind is Kind.SELECT:
        numbers = dict(zip(DIMENSIONS, reading.value, strict=True))
        numbers |= {name: float(value) for name, value in named.items() if type(value) in (int, float)}
        return in_scope and any(
            all(name in numbers and lo <= numbers[name] < hi for name, (lo, hi) in conjunction.items())
            for conjunction in standing.conjunctions
        )
    x, y = reading.value
    if query.region.shape is not None:  # the only one that is drawn
        return in_scope and x * x + y * y <= query.region.shape.radius**2
    (lo_x, lo_y), (hi_x, hi_y) = query.region.lo, query.region.hi
    return in_scope and lo_x <= x < hi_x and lo_y <= y < hi_y


@dataclass
class Definition:
    standing: dict[str, Standing] = field(default_factory=dict)
    last: dict[str, Reading] = field(default_factory=dict)

    def members(self, query_id: str) -> set[str]:
        standing = self.standing.get(query_id)
        if standing is None or standing.query.is_level:
            return set()
        return {stream for stream, reading in self.last.items() if holds(standing, reading)}

    def put(self, new: Standing, reason: str) -> dict[str, list[Event]]:
        """Return the events of each stream; a kept membership has none."""
        query_id = new.query.query_id
        before = self.members(query_id)
        self.standing[query_id] = new
        now = self.members(query_id)
        return self._at_rest(new.query, before - now, -1, reason) | self._at_rest(new.query, now - before, 1, reason)

    def remove(self, query_id: str) -> dict[str, list[Event]]:
        members = self.members(query_id)
        return self._at_rest(self.standing.pop(query_id).query, members, -1, "query_deleted")

    def _at_rest(self, query: RegionQuery, streams: set[str], sign: int, reason: str) -> dict[str, list[Event]]:
        return {
            stream: [
                Event(sign, query.query_id, query.version, self.last[stream].time, self.last[stream].value, reason)
            ]
            for stream in streams
        }

    def advance(self, readings: list[Reading], settled: int) -> dict[str, list[Event]]:
        events: dict[str, list[Event]] = {}
        # A stream's readings of one batch apply in the order of their times.
        for reading in sorted(readings, key=lambda reading: reading.time):
            before = self.last.get(reading.stream)
            if before is None or reading.time >= before.time:
                events.setdefault(reading.stream, []).extend(self._events_of(before, reading))
                self.last[reading.stream] = reading
        for query_id, standing in list(self.standing.items()):
            if standing.due != NEVER and standing.due < settled:
                del self.standing[query_id]
        return {stream: of_stream for stream, of_stream in events.items() if of_stream}

    def _events_of(self, before: Reading | None, reading: Reading) -> Iterator[Event]:
        in_order = sorted(self.standing.values(), key=lambda standing: standing.query.query_id.encode())
        reason = "moved" if before is not None else "first_seen"
        for sign in (-1, 1):
            for one in in_order:
                changed = int(holds(one, reading)) - int(before is not None and holds(one, before))
                if not one.query.is_level and changed == sign:
                    yield _event(sign, one, reading, reason)
        for one in in_order:
            if one.query.is_level and holds(one, reading) and (one.due == NEVER or reading.time <= one.due):
                yield _event(0, one, reading, "moved")


def _event(sign: int, standing: Standing, reading: Reading, reason: str) -> Event:
    return Event(sign, standing.query.query_id, standing.query.version, reading.time, reading.value, reason)


# -- what is drawn ------------------------------------------------------------------------------------------

numbers = st.integers(-2, 3).map(float)
intervals = st.one_of(
    st.integers(-2, 2).flatmap(lambda lo: st.integers(lo + 1, 3).map(lambda hi: (float(lo), float(hi)))),
    st.just((-np.inf, 1.0)),
    st.just((0.0, np.inf)),
)
boxes = st.tuples(intervals, intervals).map(lambda box: Region((box[0][0], box[1][0]), (box[0][1], box[1][1])))
circles = st.just(Region((-1.5, -1.5), (1.5, 1.5), Shape(ShapeKind.CIRCLE, np.zeros(2).tobytes(), radius=1.5)))
sizes = st.sampled_from([1, 2.0, -0.0, "2", True, None, [2]])
wheres = st.sampled_from([(), (), (("group", ('"g"',)),), (("group", ('"g"', "null")), ("size", ("2.0",)))])
conjunctions = st.dictionaries(st.sampled_from(DIMENSIONS + ATTRIBUTES), intervals, min_size=1)


def box_of(conjunction: Intervals) -> Region:
    lo = [conjunction.get(name, (-np.inf,))[0] for name in DIMENSIONS + ATTRIBUTES]
    hi = [conjunction.get(name, (0, np.inf))[1] for name in DIMENSIONS + ATTRIBUTES]
    for column, name in enumerate(ATTRIBUTES, len(DIMENSIONS)):
        if name in conjunction:
            lo[column] = max(lo[column], NO_NUMBER)
    return Region(tuple(lo), tuple(hi))


@st.composite
def standings(draw: st.DrawFn, query_id: str, version: int, now: int) -> Standing:
    kind = draw(st.sampled_from([Kind.MATCH, Kind.MATCH, Kind.SELECT, Kind.SELECT, Kind.BORDER]))
    query = RegionQuery(query_id, version, "f", draw(boxes), kind=kind, where=draw(wheres))
    query = replace(query, enabled=draw(st.sampled_from([True, True, True, False])))
    due = draw(st.sampled_from([NEVER, NEVER, now - 1, now, now + 1])) if query.is_level else NEVER
    if kind is Kind.SELECT:
        any_of = tuple(draw(st.lists(conjunctions, min_size=1, max_size=3)))
        around = Region((-np.inf,) * 2, (np.inf,) * 2)
        return Standing(replace(query, region=around, alternatives=tuple(map(box_of, any_of))), any_of, due)
    streams = draw(st.sampled_from([None, None, ("a",), ("a", "zz")]))
    return Standing(replace(query, region=draw(boxes | circles), streams=streams), (), due)


# -- the engine ---------------------------------------------------------------------------------------------


def readings_of(readings: list[Reading]) -> Readings:
    texts = [concat_attributes(map(attribute_text, reading.attributes)) for reading in readings]
    distinct = tuple(dict.fromkeys(texts))
    times = np.array([reading.time for reading in readings], dtype=np.int64)
    values = np.ascontiguousarray(np.array([reading.value for reading in readings]).reshape(-1, 2).T)
    codes = np.array([distinct.index(text) for text in texts], dtype=np.int32)
    return Readings(make_ids(r.stream for r in readings), times, times, values, Attributes(codes, distinct))


def events_of(crossings: Crossings | None) -> dict[str, list[Event]]:
    events: dict[str, list[Event]] = {}
    if crossings is None:
        return events
    for i in range(len(crossings)):
        query = crossings.queries[crossings.query_rows[i]]
        event = Event(
            int(crossings.signs[i]),
            query.query_id,
            query.version,
            int(crossings.event_times[i]),
            tuple(crossings.values[:, i].tolist()),
            Reason(crossings.reasons[i]).text,
        )
        events.setdefault(crossings.ids.text(i), []).append(event)
    return events


def copy_of(engine: FeedEngine, definition: Definition) -> FeedEngine:
    """Return an engine that was given what is known, and no more."""
    copy = FeedEngine(engine.tables.feed, Installation({}))
    for standing in definition.standing.values():
        copy.restore(standing.query, standing.due)
    for page in engine.stream_pages(2):
        copy.restore_streams(page)
    copy.tables.settled = engine.tables.settled
    return copy


@pytest.mark.parametrize("many", [1, 64])
@pytest.mark.parametrize("stream_ttl", [None, 10**6], ids=["plain", "timers"])
@given(data=st.data())
def test_every_reading_inside_is_emitted_once_and_in_order(
    many: int, stream_ttl: int | None, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where_index, "MANY", many)
        patch.setattr(feed_tables, "CODES_MIN", data.draw(st.sampled_from([0, 4096])))  # texts are forgotten early
        engine = FeedEngine(
            Feed("f", "f", "id", DIMENSIONS, "ts", attributes=ATTRIBUTES, stream_ttl_ms=stream_ttl), Installation({})
        )
        definition, now, version = Definition(), FIRST_TIME, 0
        for _ in range(data.draw(st.integers(1, 6))):
            for query_id in data.draw(st.lists(st.sampled_from(["a", "b", "c", "é", "z"]), max_size=4)):
                version += 1
                in_force = definition.standing.get(query_id)
                if in_force is not None and data.draw(st.booleans()):
                    assert events_of(engine.remove(query_id, Reason.QUERY_DELETED)) == definition.remove(query_id)
                    continue
                new = data.draw(standings(query_id, version, now))
                reason = Reason.QUERY_REGISTERED if in_force is None else Reason.QUERY_UPDATED
                assert events_of(engine.put(new.query, reason, new.due)) == definition.put(new, reason.text)
            if data.draw(st.booleans()):
                engine = copy_of(engine, definition)
            batch = data.draw(
                st.lists(
                    st.builds(
                        Reading,
                        st.sampled_from("abc"),
                        st.integers(now - 1, now + 2),
                        st.tuples(numbers, numbers),
                        st.tuples(st.sampled_from(["g", None]), sizes),
                    ),
                    max_size=5,
                )
            )
            now = max([now, *(reading.time for reading in batch)])

            crossings = engine.advance(readings_of(batch) if batch else None, now).crossings

            assert len(crossings) <= 1
            assert events_of(crossings[0] if crossings else None) == definition.advance(batch, now)
            assert {query.query_id for query in engine.tables.queries.queries()} == definition.standing.keys()
            engine._check()
