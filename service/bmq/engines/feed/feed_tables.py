"""The tables of one feed in one shard: its streams, its queries and their regions, and look-ups across the tables.

    feed_engine ──► batch, edits, endings, pass_events, stream_expiry, … ──► feed_tables ──► the tables

The tables know no events except the leaves of silent members. The last reading of a stream determines which regions the
stream is inside, so a plain query needs nothing else. A tracked query has a tracking for each stream that it remembers
(`trackings`).
"""

from dataclasses import replace

import numpy as np

from bmq.engines.event_columns import Events
from bmq.engines.feed.dues import DueQueries
from bmq.engines.feed.level_queries import Levels
from bmq.engines.feed.member_search import MemberSearch
from bmq.engines.feed.pass_search import Passes
from bmq.engines.feed.query_table import FOREVER, NO_SLOT, QueryTable
from bmq.engines.feed.silence_dues import SilenceDues
from bmq.engines.feed.silent_members import SilentMembers
from bmq.engines.feed.watched_regions import WatchedRegions
from bmq.engines.scope.conditions import CODES_MIN, Conditions
from bmq.engines.tracking.trackings import Trackings
from bmq.index.stream_table import Chained, StreamTable
from bmq.index.text_ids import ids_of_texts
from bmq.records import (
    NEVER,
    Attributes,
    Bools,
    Feed,
    Float64s,
    Installation,
    Int32s,
    Readings,
    RegionQuery,
    StreamRows,
)


class FeedTables:
    """What is kept of one feed in one shard.

    Attributes
    ----------
    installation : what one reading may cost, and whose queries these are.
    n_dims : the number of dimensions of the feed.
    streams : the last reading of each stream. If the feed has attributes, the last row of its values is their code.
    queries : query id -> slot, and columns by slot.
    regions : the regions of queries that have members, and of exit regions.
    levels : match and select queries, which report every reading inside and have no members.
    member_search : the search from a region to the streams inside it (`member_search`).
    silent : the memberships that end without an event.
    trackings : one for each (tracked query, stream) that is remembered.
    passes : the regions of queries with `passes`.
    dues : when each query with a life time ends.
    silence_dues : when some stream may fall silent.
    settled : epoch ms up to which timers have fired; of a stream with a lag, up to this time less the lag.
    """

    def __init__(self, feed: Feed, installation: Installation) -> None:
        self.feed = feed
        self.installation = installation
        self.n_dims = len(feed.dimensions)
        self.streams = StreamTable(self.n_dims + bool(feed.attributes), feed.stream_ttl_ms)
        self.queries = QueryTable()
        conditions = Conditions(feed.attributes)
        self.regions = WatchedRegions(self.n_dims, conditions, feed.index)
        self.levels = Levels(feed, conditions)
        self.member_search = MemberSearch(self.streams, self.regions, self.n_dims)
        self.silent = SilentMembers()
        self.trackings = Trackings(self.n_dims)
        self.passes = Passes(self.n_dims, feed.lonlat)
        self.dues = DueQueries()
        self.silence_dues = SilenceDues()
        self.settled = NEVER

    # -- queries ------------------------------------------------------------------------------------------

    def remember(self, query: RegionQuery, due: int) -> int:
        """Register or replace a query and return its slot; the query's trackings and silent members stay.

        Parameters
        ----------
        due : epoch ms at which the query ends; NEVER: it does not end, or the time is not known yet.
        """
        replaced = self.queries.query(self.queries.slot(query.query_id)) if query.query_id in self.queries else None
        exit_before = self.queries.exit_slot(self.queries.slot(query.query_id)) if replaced is not None else NO_SLOT
        slot = self.queries.put(query, self._stream_ttl(query))
        streams = None
        if query.streams is not None:
            # A named stream gets its slot now, so that its first reading needs no look-up by name.
            streams = np.unique(self.streams.slots_of(ids_of_texts(query.streams)))
        self._watch(query, slot, exit_before, streams)
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

    def forget(self, query_id: str) -> None:
        """Remove a query and all that is kept of it, without events."""
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

    def query_id(self, slot: int) -> str:
        """Return the id of the query in a slot."""
        return self.queries.query(slot).query_id

    def _watch(self, query: RegionQuery, slot: int, exit_before: int, streams: Int32s | None) -> None:
        """Watch the region and the exit region of a query that can have members; stop watching the old exit region."""
        has_members = query.enabled and not query.is_level
        regions = {slot: query.region if has_members else None}
        regions[exit_before] = None
        regions[self.queries.exit_slot(slot)] = query.exit_region if has_members else None
        for region_slot, region in regions.items():
            if region is not None:
                self.regions.put(region_slot, region, streams, query.where)
            elif region_slot in self.regions:
                self.regions.remove(region_slot)

    def _stream_ttl(self, query: RegionQuery) -> int:
        """Return the ms of silence after which this query does not know a stream.

        FOREVER: the query has no `stream_ttl`, or the feed's own is not longer and so ends the membership first.
        """
        if query.stream_ttl_ms is None:
            return FOREVER
        if self.feed.stream_ttl_ms is not None and self.feed.stream_ttl_ms <= query.stream_ttl_ms:
            return FOREVER
        return query.stream_ttl_ms

    # -- streams ------------------------------------------------------------------------------------------

    def apply(self, readings: Readings) -> Chained:
        """Apply readings to the streams; return each reading with the previous reading of its stream."""
        self.member_search.moved()
        if self.feed.attributes:
            assert readings.attributes is not None
            readings = replace(readings, values=np.vstack([readings.values, self._codes(readings.attributes)]))
        chained = self.streams.apply(readings, self.settled)
        if self.silence_dues:
            self.silence_dues.take(self.streams.silent_since_of(chained.slots))
        return chained

    def put_streams(self, rows: StreamRows) -> None:
        """Set streams to the given rows, without events."""
        self.member_search.moved()
        self.silence_dues.forget()
        if rows.attributes is not None:
            rows = replace(rows, values=np.vstack([rows.values, self._codes(rows.attributes)]), attributes=None)
        self.streams.put_rows(rows)

    def split_codes(self, carried: Float64s) -> tuple[Float64s, Int32s | None]:
        """Split columns of the stream table into values and attribute codes.

        Parameters
        ----------
        carried : float64[d, n], or float64[d + 1, n] if the feed has attributes.

        Returns
        -------
        values : float64[d, n].
        codes : int32[n]; None if the feed has no attributes.
        """
        if not self.feed.attributes:
            return carried, None
        return carried[: self.n_dims], carried[self.n_dims].astype(np.int32)

    def with_attributes(self, rows: StreamRows) -> StreamRows:
        """Return rows of the stream table with texts in place of attribute codes."""
        values, codes = self.split_codes(rows.values)
        if codes is None:
            return rows
        distinct, local = np.unique(codes, return_inverse=True)
        texts = tuple(self.regions.attributes.text(int(code)) for code in distinct)
        return replace(rows, values=np.ascontiguousarray(values), attributes=Attributes(local.astype(np.int32), texts))

    def _codes(self, attributes: Attributes) -> Int32s:
        index = self.regions.attributes
        # If every reading brings new attributes, most texts belong to no stream's last reading any more.
        if index.n_codes > max(CODES_MIN, 2 * self.streams.n_slots):
            index.forget_all_but(np.unique(self.streams.values[self.n_dims]).astype(np.int32))
        codes: Int32s = index.learn(attributes.texts)[attributes.codes]
        return codes

    # -- members ------------------------------------------------------------------------------------------

    def members(self, region_slot: int) -> Int32s:
        """Return the slots of the streams inside a region and its scope that its query knows, int32[n], ascending."""
        inside = self.member_search.inside(region_slot)
        return inside[self.knows(int(self.queries.owners[region_slot]), inside)]

    def knows(self, slot: int, streams: Int32s) -> Bools:
        """Return which streams a query knows, bool[n]: those that are not silent for longer than its `stream_ttl`."""
        since = self.streams.silent_since_of(streams)
        known: Bools = since != NEVER
        ttl = self.queries.stream_ttls[slot]
        if ttl != FOREVER and self.settled != NEVER:
            known &= since >= self.settled - ttl
        return known

    def without_silent(self, events: Events) -> Events:
        """End the silent memberships that ``events`` end, and return the other events; ``events`` is in emit order."""
        if not self.silent:
            return events
        emitted = np.ones(len(events), dtype=np.bool_)
        watched = [self.queries.slot(query_id) for query_id in self.silent.query_ids()]
        for i in np.flatnonzero((events.signs < 0) & np.isin(events.queries, watched)):
            query_id = self.query_id(int(events.queries[i]))
            emitted[i] = not self.silent.end(query_id, self.streams.text_of(int(events.streams[i])))
        return events if emitted.all() else events.where(emitted)

    def _check(self) -> None:
        """State every invariant; for tests."""
        self.streams._check()
        self.queries._check()
        self.regions._check()
        self.trackings._check()
        if self.settled != NEVER:
            self.silence_dues._check(self.streams.silent_since, self.settled)
        self.levels._check()
        for query in self.queries.queries():
            slot = self.queries.slot(query.query_id)
            assert (slot in self.regions) == (query.enabled and not query.is_level)
            assert (slot in self.levels) == (query.enabled and query.is_level)
        # A silent member is a member.
        for query_id, stream in self.silent.pairs():
            assert stream in [self.streams.text_of(int(slot)) for slot in self.members(self.queries.slot(query_id))]
