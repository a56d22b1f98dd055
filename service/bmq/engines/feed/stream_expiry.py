"""Streams that fall silent: find the queries that do not know them any more, and from what time on.

If a stream's last reading was at p, a query with `stream_ttl` T does not know the stream from p + T on. If the feed has
a `stream_ttl`, this holds for all queries. At p + T the memberships of the stream end, and its next reading is a first
sight. Both follow from the last reading, its lag and the clock, so no table keeps them:

    p ──────────────── p + T ──────────── t          t - p > T: left at p + T, first sight at t
    p ──────────────── p + T ────── clock            clock - lag > p + T, and no reading: left at p + T
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmq.engines.event_columns import Events, When
from bmq.engines.feed.feed_tables import FeedTables
from bmq.engines.feed.query_table import FOREVER
from bmq.engines.feed.slot_events import no_events, some_events
from bmq.engines.feed.watched_regions import Steps
from bmq.index.stream_table import Chained
from bmq.records import NEVER, Bools, Float64s, Int32s, Int64s, Reason, Sign
from bmq.records.column_records import concat


@dataclass(frozen=True, slots=True)
class Expiries:
    """Streams that queries do not know any more.

    Attributes
    ----------
    streams : int32[n], slots.
    moments : int64[n], epoch ms, p + T.
    ttls : int64[n], the `stream_ttl` of the queries that do not know the stream; FOREVER: the queries without one.
    ordinals : int32[n]
        0, unless the clock was past p + T before this batch: then the number of the stream's readings before the one at
        p. The event id needs this number, because the stream may have expired at p + T before.
    values : float64[d, n], the values of the reading at p.
    codes : int32[n], the attribute codes of the reading at p; None: the feed has no attributes.
    """

    streams: Int32s
    moments: Int64s
    ttls: Int64s
    ordinals: Int32s
    values: Float64s
    codes: Int32s | None


@dataclass(frozen=True, slots=True)
class Silences:
    """The effects of silence in one batch.

    Attributes
    ----------
    expiries : the streams that queries do not know any more.
    leaves : one for each stream in ``expiries`` and each region that held it.
    first_sights : enters at readings of streams that the feed knew and the query did not.
    lengths : int64[rows], ms of silence before each reading, to compare with the `stream_ttl` of a query. It is 0 at
        the first reading of a stream, and if the feed did not know the stream. None: no query has a `stream_ttl`, or
        there are no readings.
    """

    expiries: Expiries
    leaves: Events
    first_sights: Events
    lengths: Int64s | None

    def cover(self, tables: FeedTables, at_readings: Events) -> Bools:
        """Return which events are of queries that did not know the stream: `first_sights` replaces these events."""
        if self.lengths is None:
            return np.zeros(len(at_readings), dtype=np.bool_)
        ttls = tables.queries.stream_ttls[tables.queries.owners[at_readings.queries]]
        covered: Bools = self.lengths[at_readings.rows] > ttls
        return covered


def find_silences(tables: FeedTables, chained: Chained | None, steps: Steps | None, settled: int) -> Silences:
    """Return the effects of silence in a batch.

    The stream table has applied the readings already. This function also makes it forget the streams that are silent
    for the whole feed. Cost: the readings, plus one comparison for each stream and each distinct `stream_ttl` that may
    have passed.
    """
    found = []
    lengths = None
    first_sights = no_events(tables.n_dims)
    by_query = sorted(tables.queries.stream_ttl_counts)
    if chained is not None and steps is not None:
        if by_query:
            elapsed, earlier = _silence_before(tables, chained)
            lengths = np.where(chained.moved, np.maximum(elapsed, earlier), 0)
            found += [
                _before_readings(tables, chained, steps, np.flatnonzero((elapsed > ttl) & (earlier <= ttl)), ttl, ttl)
                for ttl in by_query
            ]
            first_sights = _first_sights(tables, chained, steps, lengths, by_query[0])
        if chained.returned is not None:
            ttl = tables.feed.stream_ttl_ms
            assert ttl is not None
            found.append(_before_readings(tables, chained, steps, np.flatnonzero(chained.returned), ttl, FOREVER))
    found += _at_end(tables, chained, settled, by_query)
    expiries = _concat_expiries([one for one in found if one.streams.size], tables)
    return Silences(expiries, _leaves(tables, expiries), first_sights, lengths)


def _silence_before(tables: FeedTables, chained: Chained) -> tuple[Int64s, Int64s]:
    """Return the time between each reading and the one before, and the part of it before this batch, int64[rows]."""
    known = chained.moved if chained.returned is None else chained.moved | chained.returned
    elapsed = np.where(known, chained.event_times - chained.previous_times, 0)
    earlier = np.zeros_like(elapsed)
    if tables.settled != NEVER:
        first = np.zeros(known.size, dtype=np.bool_)
        first[np.unique(chained.slots, return_index=True)[1]] = True
        first &= known
        earlier[first] = tables.settled - chained.previous_times[first]
        if chained.lags_before is not None:
            earlier[first] -= chained.lags_before[first]
    return elapsed, earlier


def _before_readings(tables: FeedTables, chained: Chained, steps: Steps, rows: Int64s, ttl: int, tag: int) -> Expiries:
    moments = chained.previous_times[rows] + ttl
    ordinals = np.zeros(rows.size, dtype=np.int32)
    if (moments < tables.settled).any():
        ordinals[:] = np.where(moments < tables.settled, _ordinals_before(chained)[rows], 0)
    return Expiries(
        chained.slots[rows],
        moments,
        np.full(rows.size, tag, dtype=np.int64),
        ordinals,
        steps.previous[:, rows],
        None if steps.previous_codes is None else steps.previous_codes[rows],
    )


def _ordinals_before(chained: Chained) -> Int32s:
    """Return the ordinal of the stream's reading before each reading, int32[rows]; not valid at first sight."""
    by_stream = np.argsort(chained.slots, kind="stable")
    ordinals = np.zeros_like(chained.ordinals)
    ordinals[by_stream[1:]] = chained.ordinals[by_stream[:-1]]
    # If no stream had a lag, the clock was not past p + T before this batch, unless the reading at p is in this batch,
    # too. The memberships of a stream without a lag would have ended in the batch before.
    if chained.ordinals_before is not None:
        first = np.unique(chained.slots, return_index=True)[1]
        ordinals[first] = chained.ordinals_before[first]
    return ordinals


def _at_end(tables: FeedTables, chained: Chained | None, settled: int, by_query: list[int]) -> Iterator[Expiries]:
    """Yield the streams that fell silent before ``settled`` and had no reading after that."""
    streams, dues, of_feed = tables.streams, tables.silence_dues, tables.feed.stream_ttl_ms
    if settled == NEVER:
        return
    since = streams.silent_since
    passed = dues.passed(by_query, settled)
    touched = np.zeros(since.size if passed else 0, dtype=np.bool_)
    if passed and chained is not None:
        touched[chained.slots] = True
    for ttl in passed:
        # A stream without a reading in this batch is new here only if the clock passes its due now.
        is_new = touched | (since >= tables.settled - ttl) if tables.settled != NEVER else True
        slots = np.flatnonzero((since != NEVER) & (since < settled - ttl) & is_new).astype(np.int32)
        dues.set(ttl, since, settled)
        yield _of_table(tables, slots, ttl, ttl)
    if of_feed is not None and dues.passed([of_feed], settled):
        slots = streams.silent_slots(settled)
        expiries = _of_table(tables, slots, of_feed, FOREVER)
        streams.forget(slots)
        dues.set(of_feed, streams.silent_since, settled)
        yield expiries


def _of_table(tables: FeedTables, slots: Int32s, ttl: int, tag: int) -> Expiries:
    values, codes = tables.split_codes(tables.streams.values[:, slots])
    moments = tables.streams.last_times[slots] + ttl
    ordinals = np.where(moments < tables.settled, tables.streams.ordinals[slots], 0).astype(np.int32)
    return Expiries(slots, moments, np.full(slots.size, tag, dtype=np.int64), ordinals, values, codes)


def _leaves(tables: FeedTables, expiries: Expiries) -> Events:
    if not expiries.streams.size:
        return no_events(tables.n_dims)
    inside = tables.regions.inside(expiries.streams, np.ascontiguousarray(expiries.values), expiries.codes)
    ttls = tables.queries.stream_ttls[tables.queries.owners[inside.queries]]
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


def _first_sights(tables: FeedTables, chained: Chained, steps: Steps, lengths: Int64s, shortest_ttl: int) -> Events:
    rows = np.flatnonzero(lengths > shortest_ttl)
    if not rows.size:
        return no_events(tables.n_dims)
    at = steps.at(rows)
    inside = tables.regions.inside(at.streams, at.values, at.codes)
    ttls = tables.queries.stream_ttls[tables.queries.owners[inside.queries]]
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


def _concat_expiries(parts: list[Expiries], tables: FeedTables) -> Expiries:
    if not parts:
        none = np.empty(0, dtype=np.int64)
        codes = np.empty(0, dtype=np.int32) if tables.feed.attributes else None
        slots = np.empty(0, dtype=np.int32)
        return Expiries(slots, none, none, slots, np.empty((tables.n_dims, 0)), codes)
    return concat(parts)
