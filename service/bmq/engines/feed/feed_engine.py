"""The engine of one feed in one shard: its queries, its streams, and what commands mean for both.

Knows no replies and no clock of its own: `monitor` decides when a command is due and how far the clock has come, this
carries it out. What a stream is inside of follows from its last reading, and so nothing is kept of most queries; those
that ask for more than that (a stay, a pause, a pattern) have a row for each stream (`pairs`). What readings and the
clock do is in `batch`.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bmq.engines.feed.batch import Advanced, advance
from bmq.engines.feed.crossing_records import to_crossings
from bmq.engines.feed.dues import DueQueries
from bmq.engines.feed.edits import (
    change_members,
    change_options,
    change_silence,
    end_silent,
    events_at_rest,
    run_at_rest,
    watch_the_same,
)
from bmq.engines.feed.level_queries import Levels
from bmq.engines.feed.member_search import Residents
from bmq.engines.feed.pass_search import Passes
from bmq.engines.feed.query_table import FOREVER, NO_SLOT, QueryTable
from bmq.engines.feed.silent_members import SilentMembers
from bmq.engines.feed.slot_events import Events, no_events
from bmq.engines.feed.stream_expiry import SilenceDues
from bmq.engines.feed.watched_regions import WatchedRegions
from bmq.engines.scope.conditions import Conditions
from bmq.engines.tracking.trackings import END, Trackings
from bmq.index.stream_table import StreamTable
from bmq.kernels.tables.hashing import hash_ids
from bmq.records import (
    NEVER,
    Attributes,
    Bools,
    Crossings,
    Feed,
    Float64s,
    Ids,
    Int32s,
    Readings,
    Reason,
    RegionQuery,
    Sign,
    StreamRows,
    TrackingRows,
)
from bmq.records.column_records import as_one

CODES_MIN = 4096  # attribute texts that are kept in any case: to look for those in use costs a millisecond


class FeedEngine:
    """The queries over one feed in one shard, joins left out."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.n_dims = len(feed.dimensions)
        # The attributes' code is kept as one more number of each stream, beside its value.
        self.streams = StreamTable(self.n_dims + bool(feed.attributes), feed.stream_ttl_ms)
        self.queries = QueryTable()
        conditions = Conditions(feed.attributes)
        self.regions = WatchedRegions(self.n_dims, conditions, feed.index)
        self.levels = Levels(feed, conditions)
        self.residents = Residents(self.streams, self.regions, self.n_dims)
        self.silent = SilentMembers()
        self.trackings = Trackings(self.n_dims)
        self.passes = Passes(self.n_dims, feed.lonlat)
        self.dues = DueQueries()
        self.silence_dues = SilenceDues()
        self.settled = NEVER  # epoch ms up to which timers have fired

    # -- commands -----------------------------------------------------------------------------------------

    def put(self, query: RegionQuery, reason: Reason, due: int = NEVER) -> Crossings | None:
        """Register or replace a query; return the difference that makes, at once; None: it makes none.

        A stream that is told inside, and is inside after it, stays told, silently or not. Cost: O(log n) for a region
        with few streams in its first dimension's range, plus the streams in that range.
        """
        if not self.streams.any_seen:
            self.restore(query, due)
            return None
        replaced = self.queries.query(self.queries.slot(query.query_id)) if query.query_id in self.queries else None
        if replaced is None or not watch_the_same(replaced, query):
            events = change_members(self, replaced, query, reason, due)
        elif replaced.stream_ttl_ms == query.stream_ttl_ms:
            events = change_options(self, replaced, query, due)
        elif replaced.is_tracked:
            events = change_silence(self, replaced, query, due)
        else:
            events = change_members(self, replaced, query, reason, due)
        return self._at_rest(events)

    def remove(self, query_id: str, reason: Reason, *, emitted_as: RegionQuery | None = None) -> Crossings | None:
        """Remove a query; return a leave for each member that was not silent; None: there is none.

        ``emitted_as`` is the definition that the events carry where it is not the removed one: the new version of a
        query that moved to another feed.
        """
        slot = self.queries.slot(query_id)
        query = self.queries.query(slot)
        if query.is_tracked:
            events = run_at_rest(self, slot, self.trackings.rows_of(slot)[0], END, reason)
        else:
            left = end_silent(self, query_id, self.members(slot))
            events = events_at_rest(self, slot, left, Sign.LEFT, reason)
        crossings = self._at_rest([events], emitted_as)
        self.drop(query_id)
        return crossings

    def drop(self, query_id: str) -> None:
        """Remove a query without a word."""
        slot = self.queries.slot(query_id)
        exit_slot = self.queries.exit_slot(slot)
        for watched in (slot, exit_slot):
            if watched in self.regions:
                self.regions.remove(watched)
        query = self.queries.query(slot)
        if slot in self.levels:
            self.levels.remove(slot, query)
        if query.passes and query.enabled:
            self.passes.remove(slot)
        if query.is_tracked:
            self.trackings.forget(slot)
        self.silent.forget(query_id)
        self.dues.remove(slot)
        self.queries.remove(query_id)

    def set_due(self, query_id: str, due: int) -> None:
        """Let a query end at ``due``, epoch ms."""
        self.dues.set(self.queries.slot(query_id), due)

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, readings: Readings | None, settled: int) -> Advanced:
        """Apply readings, given ascending by (partition, offset), and let time come to ``settled``; see `batch`."""
        return advance(self, readings, settled)

    # -- state --------------------------------------------------------------------------------------------

    def restore(self, query: RegionQuery, due: int = NEVER) -> None:
        """Register or replace a query without a word, as a replica does that catches up."""
        if query.query_id in self.queries:
            slot = self.queries.slot(query.query_id)
            old = self.queries.query(slot)
            if old.is_tracked and not (query.is_tracked and old.kind is query.kind):
                self.trackings.forget(slot)
        slot = self.remember(query, due)
        if query.is_tracked:
            self.trackings.set_options(slot, query, self.streams.last_times)

    def restore_streams(self, rows: StreamRows) -> None:
        """Set streams without a word, as a replica does that catches up."""
        self.residents.moved()
        self.silence_dues.forget()
        if rows.attributes is not None:
            rows = replace(rows, values=np.vstack([rows.values, self._codes(rows.attributes)]), attributes=None)
        self.streams.put_rows(rows)

    def restore_trackings(self, rows: TrackingRows) -> None:
        """Set tracked pairs without a word, as a replica does that catches up."""
        self.trackings.put_rows(rows, self.queries.slot, self.streams.slots_of)

    def take_touched_streams(self) -> StreamRows:
        """Return the streams changed since the last call, as they are now."""
        return self._with_attributes(self.streams.take_touched())

    def take_touched_trackings(self) -> TrackingRows:
        """Return the tracked pairs changed since the last call, as they are now."""
        return self.trackings.take_touched(self._query_id, self.streams.ids_of)

    def stream_pages(self, size: int) -> Iterator[StreamRows]:
        """Yield all streams that are known, ``size`` at a time."""
        slots = self.streams.seen_slots()
        for begin in range(0, slots.size, size):
            yield self._with_attributes(self.streams.rows_of(slots[begin : begin + size]))

    def tracking_pages(self, size: int) -> Iterator[TrackingRows]:
        """Yield all tracked pairs, ``size`` at a time."""
        return self.trackings.snapshot(self._query_id, self.streams.ids_of, size)

    def chained_readings(self, readings: Readings) -> Readings:
        """Return the readings with the attributes' code as the last of their values."""
        if not self.feed.attributes:
            return readings
        assert readings.attributes is not None
        return replace(readings, values=np.vstack([readings.values, self._codes(readings.attributes)]))

    def split_codes(self, carried: Float64s) -> tuple[Float64s, Int32s | None]:
        """Return values (float64[d, n]) and attribute codes of what the stream table carries."""
        if not self.feed.attributes:
            return carried, None
        return carried[: self.n_dims], carried[self.n_dims].astype(np.int32)

    def _codes(self, attributes: Attributes) -> Int32s:
        index = self.regions.attributes
        # Where every reading has attributes of its own, most texts are of the past.
        if index.n_codes > max(CODES_MIN, 2 * self.streams.n_slots):
            index.forget_all_but(np.unique(self.streams.values[self.n_dims]).astype(np.int32))
        codes: Int32s = index.learn(attributes.texts)[attributes.codes]
        return codes

    def _with_attributes(self, rows: StreamRows) -> StreamRows:
        values, codes = self.split_codes(rows.values)
        if codes is None:
            return rows
        distinct, local = np.unique(codes, return_inverse=True)
        texts = tuple(self.regions.attributes.text(int(code)) for code in distinct)
        return replace(rows, values=np.ascontiguousarray(values), attributes=Attributes(local.astype(np.int32), texts))

    def _query_id(self, slot: int) -> str:
        return self.queries.query(slot).query_id

    # -- members ------------------------------------------------------------------------------------------

    def members(self, region_slot: int) -> Int32s:
        """Return the streams inside a region and its scope, ascending, as far as they are known to its query."""
        inside = self.residents.inside(region_slot)
        return inside[self.knows(int(self.queries.owners[region_slot]), inside)]

    def knows(self, slot: int, streams: Int32s) -> Bools:
        """Return which streams are known to a query, bool[n]: those that have not been silent for too long."""
        times = self.streams.last_times[streams]
        known: Bools = times != NEVER
        ttl = self.queries.stream_ttls[slot]
        if ttl != FOREVER and self.settled != NEVER:
            known &= times >= self.settled - ttl
        return known

    def emitted(self, events: Events) -> Bools:
        """Return which events are told: all but the leaves of silent members, which end here. In telling order."""
        keep = np.ones(len(events), dtype=np.bool_)
        if not self.silent:
            return keep
        watched = [self.queries.slot(query_id) for query_id in self.silent.query_ids()]
        for i in np.flatnonzero((events.signs < 0) & np.isin(events.queries, watched)):
            query_id = self._query_id(int(events.queries[i]))
            keep[i] = not self.silent.end(query_id, self.streams.text_of(int(events.streams[i])))
        return keep

    def _at_rest(self, parts: list[Events], emitted_as: RegionQuery | None = None) -> Crossings | None:
        events = as_one([part for part in parts if len(part)] or [no_events(self.n_dims)])
        return to_crossings(self, events, None, None, emitted_as) if len(events) else None

    # -- tables -------------------------------------------------------------------------------------------

    def remember(self, query: RegionQuery, due: int) -> int:
        """Set the tables to a query and return its slot; what is kept of its streams stays."""
        replaced = self.queries.query(self.queries.slot(query.query_id)) if query.query_id in self.queries else None
        exit_before = self.queries.exit_slot(self.queries.slot(query.query_id)) if replaced is not None else NO_SLOT
        slot = self.queries.put(query, self._stream_ttl(query))
        exit_slot = self.queries.exit_slot(slot)
        streams = None
        if query.streams is not None:
            # A named stream gets its slot now, so that its first reading needs no look-up by name.
            streams = np.unique(self.streams.slots_of(_ids_of(query.streams)))
        has_members = query.enabled and not query.is_level
        regions = {slot: query.region if has_members else None}
        regions[exit_before] = None
        regions[exit_slot] = query.exit_region if has_members else None
        for region_slot, region in regions.items():
            if region is not None:
                self.regions.put(region_slot, region, streams, query.where)
            elif region_slot in self.regions:
                self.regions.remove(region_slot)
        if replaced is not None and replaced.passes and replaced.enabled:
            self.passes.remove(slot)
        if query.passes and query.enabled:
            self.passes.put(slot, query.region)
        if replaced is not None and slot in self.levels:
            self.levels.remove(slot, replaced)
        if query.is_level and query.enabled:
            self.levels.put(slot, query, streams)
        self.dues.set(slot, due)
        return slot

    def _stream_ttl(self, query: RegionQuery) -> int:
        """Return the silence that ends a membership in this query alone: what the feed ends anyway does not count."""
        if query.stream_ttl_ms is None:
            return FOREVER
        if self.feed.stream_ttl_ms is not None and self.feed.stream_ttl_ms <= query.stream_ttl_ms:
            return FOREVER
        return query.stream_ttl_ms

    def _check(self) -> None:
        """State every invariant of the engine; for tests."""
        self.streams._check()
        self.queries._check()
        self.regions._check()
        self.trackings._check()
        if self.settled != NEVER:
            self.silence_dues._check(self.streams.last_times, self.settled)
        self.levels._check()
        for query in self.queries.queries():
            slot = self.queries.slot(query.query_id)
            assert (slot in self.regions) == (query.enabled and not query.is_level)
            assert (slot in self.levels) == (query.enabled and query.is_level)
        # A silent member is a member.
        for query_id, stream in self.silent.pairs():
            assert stream in [self.streams.text_of(int(slot)) for slot in self.members(self.queries.slot(query_id))]


def _ids_of(texts: tuple[str, ...]) -> Ids:
    encoded = [text.encode() for text in texts]
    starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=starts[1:])
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return Ids(starts, data, hash_ids(starts, data))
