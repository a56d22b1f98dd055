"""Streams that say nothing for too long: who is unknown again, and since when.

A stream whose last reading was at p is unknown to a query with `stream_ttl` T from p + T on, to all queries where the
feed has one. Its memberships end then; its next reading is first sight. Both follow from the last reading and the
clock, so nothing is kept of it:

    p ──────────────── p + T ──────────── t          t - p > T: left at p + T, first sight at t
    p ──────────────── p + T ────── clock            clock > p + T, and no reading: left at p + T
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bmq.engines.feed.query_table import FOREVER
from bmq.engines.feed.slot_events import Events, When, no_events, some_events
from bmq.engines.feed.watched_regions import Steps
from bmq.index.stream_table import Chained
from bmq.records import NEVER, Bools, Float64s, Int32s, Int64s, Reason, Sign
from bmq.records.column_records import concat

if TYPE_CHECKING:
    from bmq.engines.feed.feed_engine import FeedEngine

# Distinct `stream_ttl` that are remembered: queries come and go. Fewer than are in use: all streams are looked at.
DUES_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Expiries:
    """Streams that became unknown.

    Attributes
    ----------
    streams : int32[n], slots.
    moments : int64[n], epoch ms, p + T.
    ttls : int64[n], unknown to the queries with this `stream_ttl`; FOREVER: to those without one.
    ordinals : int32[n]
        0, but where the clock was past p + T before the reading at p came: how many came before it at p. An event id
        needs it, since each of them ends the same way.
    values : float64[d, n], codes : int32[n] or None
        What the stream was at p.
    """

    streams: Int32s
    moments: Int64s
    ttls: Int64s
    ordinals: Int32s
    values: Float64s
    codes: Int32s | None


@dataclass(frozen=True, slots=True)
class Silences:
    """What silence did in one batch.

    Attributes
    ----------
    expiries : the streams that became unknown.
    leaves : their leaves, of all regions that held them.
    first_sights : enters at readings of streams that were known to the feed, and unknown to the query.
    lengths : int64[rows], for each reading how long the stream was silent before it, as far as it counts for a query.
    """

    expiries: Expiries
    leaves: Events
    first_sights: Events
    lengths: Int64s | None

    def cover(self, engine: "FeedEngine", at_readings: Events) -> Bools:
        """Return which events are of queries to which the stream was unknown: `first_sights` has what is so."""
        if self.lengths is None:
            return np.zeros(len(at_readings), dtype=np.bool_)
        ttls = engine.queries.stream_ttls[engine.queries.owners[at_readings.queries]]
        covered: Bools = self.lengths[at_readings.rows] > ttls
        return covered


class SilenceDues:
    """For each `stream_ttl` a time before which no stream becomes silent by it, so that not all need be looked at."""

    def __init__(self) -> None:
        self._dues: dict[int, int] = {}  # ms -> epoch ms; absent: not known

    def take(self, event_times: Int64s) -> None:
        """Take note that streams had readings at these times."""
        if self._dues and event_times.size:
            earliest = int(event_times.min())
            self._dues = {ttl: min(due, earliest + ttl) for ttl, due in self._dues.items()}

    def forget(self) -> None:
        """Know nothing any more: streams were changed otherwise."""
        self._dues.clear()

    def passed(self, ttls: Sequence[int], settled: int) -> list[int]:
        """Return the ttls by which some stream may have become silent before ``settled``."""
        return [ttl for ttl in ttls if self._dues.get(ttl, NEVER) < settled]

    def set(self, ttl: int, last_times: Int64s, settled: int) -> None:
        """Take note that ``settled`` has come, and what had become silent by it has been told."""
        if len(self._dues) > DUES_MOST:
            self._dues.clear()
        least = int(np.min(last_times, where=last_times >= settled - ttl, initial=FOREVER))
        self._dues[ttl] = FOREVER if least == FOREVER else least + ttl

    def _check(self, last_times: Int64s, settled: int) -> None:
        """State every invariant; for tests."""
        for ttl, due in self._dues.items():
            waiting = last_times[last_times >= settled - ttl]
            assert (waiting >= due - ttl).all(), "a stream becomes silent before the time that is remembered"


def find_silences(engine: "FeedEngine", chained: Chained | None, steps: Steps | None, settled: int) -> Silences:
    """Return what silence does in a batch whose readings the stream table has taken; streams it ended are forgotten.

    Cost: beside the readings, a comparison for each stream and each distinct `stream_ttl` by which one may be silent.
    """
    found = []
    lengths = None
    first_sights = no_events(engine.n_dims)
    by_query = sorted(engine.queries.stream_ttl_counts)
    if chained is not None and steps is not None:
        if by_query:
            elapsed, earlier = _silence_before(engine, chained)
            lengths = np.where(chained.moved, np.maximum(elapsed, earlier), 0)
            found += [
                _before_readings(engine, chained, steps, np.flatnonzero((elapsed > ttl) & (earlier <= ttl)), ttl, ttl)
                for ttl in by_query
            ]
            first_sights = _first_sights(engine, chained, steps, lengths, by_query[0])
        if chained.returned is not None:
            ttl = engine.feed.stream_ttl_ms
            assert ttl is not None
            found.append(_before_readings(engine, chained, steps, np.flatnonzero(chained.returned), ttl, FOREVER))
    found += _at_end(engine, chained, settled, by_query)
    expiries = _join([one for one in found if one.streams.size], engine)
    return Silences(expiries, _leaves(engine, expiries), first_sights, lengths)


def _silence_before(engine: "FeedEngine", chained: Chained) -> tuple[Int64s, Int64s]:
    """Return for each reading the time since the one before, and how much of it had gone by before the batch."""
    known = chained.moved if chained.returned is None else chained.moved | chained.returned
    elapsed = np.where(known, chained.event_times - chained.previous_times, 0)
    earlier = np.zeros_like(elapsed)
    if engine.settled != NEVER:
        first = np.zeros(known.size, dtype=np.bool_)
        first[np.unique(chained.slots, return_index=True)[1]] = True
        first &= known
        earlier[first] = engine.settled - chained.previous_times[first]
    return elapsed, earlier


def _before_readings(
    engine: "FeedEngine", chained: Chained, steps: Steps, rows: Int64s, ttl: int, tag: int
) -> Expiries:
    moments = chained.previous_times[rows] + ttl
    ordinals = np.zeros(rows.size, dtype=np.int32)
    if (moments < engine.settled).any():
        # The reading before is one of this batch: what an earlier one left behind the clock, it also ended.
        by_stream = np.argsort(chained.slots, kind="stable")
        before = np.zeros_like(by_stream)
        before[by_stream[1:]] = by_stream[:-1]
        ordinals[:] = np.where(moments < engine.settled, chained.ordinals[before[rows]], 0)
    return Expiries(
        chained.slots[rows],
        moments,
        np.full(rows.size, tag, dtype=np.int64),
        ordinals,
        steps.previous[:, rows],
        None if steps.previous_codes is None else steps.previous_codes[rows],
    )


def _at_end(engine: "FeedEngine", chained: Chained | None, settled: int, by_query: list[int]) -> Iterator[Expiries]:
    """Yield the streams whose silence ended by ``settled`` without a reading."""
    streams, dues, of_feed = engine.streams, engine.silence_dues, engine.feed.stream_ttl_ms
    if settled == NEVER:
        return
    times = streams.last_times
    passed = dues.passed(by_query, settled)
    touched = np.zeros(times.size if passed else 0, dtype=np.bool_)
    if passed and chained is not None:
        touched[chained.slots] = True
    for ttl in passed:
        # Those not touched were told when the clock passed their due, unless it passes only now.
        is_new = touched | (times >= engine.settled - ttl) if engine.settled != NEVER else True
        slots = np.flatnonzero((times != NEVER) & (times < settled - ttl) & is_new).astype(np.int32)
        dues.set(ttl, times, settled)
        yield _of_table(engine, slots, ttl, ttl)
    if of_feed is not None and dues.passed([of_feed], settled):
        slots = streams.silent_slots(settled)
        expiries = _of_table(engine, slots, of_feed, FOREVER)
        streams.forget(slots)
        dues.set(of_feed, times, settled)
        yield expiries


def _of_table(engine: "FeedEngine", slots: Int32s, ttl: int, tag: int) -> Expiries:
    values, codes = engine.split_codes(engine.streams.values[:, slots])
    moments = engine.streams.last_times[slots] + ttl
    ordinals = np.where(moments < engine.settled, engine.streams.ordinals[slots], 0).astype(np.int32)
    return Expiries(slots, moments, np.full(slots.size, tag, dtype=np.int64), ordinals, values, codes)


def _leaves(engine: "FeedEngine", expiries: Expiries) -> Events:
    if not expiries.streams.size:
        return no_events(engine.n_dims)
    inside = engine.regions.inside(expiries.streams, np.ascontiguousarray(expiries.values), expiries.codes)
    ttls = engine.queries.stream_ttls[engine.queries.owners[inside.queries]]
    chosen = ttls == expiries.ttls[inside.rows]
    rows, slots = inside.rows[chosen], inside.queries[chosen]
    return some_events(
        rows.size,
        queries=slots,
        streams=expiries.streams[rows],
        moments=expiries.moments[rows],
        when=When.STREAM_EXPIRED,
        signs=Sign.LEFT,
        reasons=Reason.STREAM_EXPIRED,
        ordinals=expiries.ordinals[rows],
        values=expiries.values[:, rows],
    )


def _first_sights(engine: "FeedEngine", chained: Chained, steps: Steps, lengths: Int64s, shortest_ttl: int) -> Events:
    rows = np.flatnonzero(lengths > shortest_ttl)
    if not rows.size:
        return no_events(engine.n_dims)
    at = steps.at(rows)
    inside = engine.regions.inside(at.streams, at.values, at.codes)
    ttls = engine.queries.stream_ttls[engine.queries.owners[inside.queries]]
    chosen = lengths[rows[inside.rows]] > ttls
    rows, slots = rows[inside.rows[chosen]], inside.queries[chosen]
    return some_events(
        rows.size,
        queries=slots,
        streams=chained.slots[rows],
        moments=chained.event_times[rows],
        when=When.AT_READING,
        signs=Sign.ENTERED,
        reasons=Reason.FIRST_SEEN,
        ordinals=chained.ordinals[rows],
        values=steps.values[:, rows],
        rows=rows.astype(np.int32),
    )


def _join(parts: list[Expiries], engine: "FeedEngine") -> Expiries:
    if not parts:
        none = np.empty(0, dtype=np.int64)
        codes = np.empty(0, dtype=np.int32) if engine.feed.attributes else None
        slots = np.empty(0, dtype=np.int32)
        return Expiries(slots, none, none, slots, np.empty((engine.n_dims, 0)), codes)
    return concat(parts)
