"""The engine of border queries for one feed: who enters and leaves which region, and why.

Knows the feed's queries and streams of one shard. No commands, no replies, no clock: `monitor` decides what a
command means, this carries it out. Every membership follows from the stream's last value and the query's region
and scope; only "silent" members (registered over a stream inside, without an event) are remembered one by one.
"""

from dataclasses import dataclass

import numpy as np

from bmq.engines.query_table import QueryTable
from bmq.engines.silent import SilentMembers
from bmq.index.base import Moves
from bmq.index.choose import make_index
from bmq.index.stream_table import NEVER, StreamTable
from bmq.kernels.hashing import hash_ids
from bmq.kernels.scope import scoped_moves
from bmq.records import (
    Crossings,
    Feed,
    Ids,
    Initial,
    Int8s,
    Int32s,
    Int64s,
    Readings,
    Reason,
    RegionQuery,
    Sign,
    StreamRows,
)


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a batch of readings did: crossings, and counts for the metrics."""

    crossings: Crossings
    n_late: int
    visits: int


class BorderEngine:
    """Border queries over one feed and shard."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        n_dims = len(feed.dimensions)
        self.streams = StreamTable(n_dims)
        self.queries = QueryTable(n_dims)
        self.silent = SilentMembers()
        self._index = make_index(n_dims, feed.index)
        # Queries with a scope: query slot -> slots of the streams it names; as arrays by stream when needed.
        self._scopes: dict[int, Int32s] = {}
        self._scope_starts: Int64s | None = None
        self._scope_queries: Int32s = np.empty(0, dtype=np.int32)
        # Index changes wait for the next readings, so that a thousand commands are one change of the index.
        self._to_register: set[int] = set()
        self._registered: set[int] = set()
        # Streams by their first dimension, for the members of a region; made when a command needs it.
        self._by_first_dimension: Int32s | None = None
        self._first_values = np.empty(0)

    # -- commands -----------------------------------------------------------------------------------------

    def put(self, query: RegionQuery, reason: Reason) -> Crossings | None:
        """Register or replace a query; return the difference that makes, at once; None: it makes none.

        A stream that is inside before and after is not reported and stays silent or not. Cost: O(log n) for a
        region with few streams in its first dimension's range, plus the streams in that range.
        """
        if not self.streams.any_seen:
            self.restore(query)
            return None
        replaced = query.query_id in self.queries
        before = self._members(query.query_id) if replaced else _no_slots()
        if replaced:
            self._forget(self.queries.slot(query.query_id))
        self._remember(query)
        after = self._members(query.query_id)
        entered = np.setdiff1d(after, before, assume_unique=True)
        left = np.setdiff1d(before, after, assume_unique=True)
        left = self._end_silent(query.query_id, left)
        if query.initial is Initial.SILENT:
            self.silent.begin_all(query.query_id, self._texts(entered))
            entered = entered[:0]
        return self._at_rest(query, left, entered, reason)

    def remove(self, query_id: str, reason: Reason, *, told_by: RegionQuery | None = None) -> Crossings | None:
        """Remove a query; return a leave for each member that was not silent; None: there is none.

        ``told_by`` is the definition that the events carry where it is not the removed one: the new version of a
        query that moved to another feed.
        """
        query = self.queries.query(self.queries.slot(query_id))
        left = self._end_silent(query_id, self._members(query_id))
        self._forget(self.queries.slot(query_id))
        self.queries.remove(query_id)
        return self._at_rest(told_by or query, left, _no_slots(), reason)

    def restore(self, query: RegionQuery) -> None:
        """Register or replace a query without a word, as a replica does that catches up."""
        if query.query_id in self.queries:
            self._forget(self.queries.slot(query.query_id))
        self._remember(query)

    def restore_streams(self, rows: StreamRows) -> None:
        """Set streams without a word, as a replica does that catches up."""
        self._by_first_dimension = None
        self.streams.put_rows(rows)

    def restore_removal(self, query_id: str) -> None:
        """Remove a query without a word, as a replica does that catches up."""
        self._forget(self.queries.slot(query_id))
        self.queries.remove(query_id)
        self.silent.forget(query_id)

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, readings: Readings) -> Advanced:
        """Apply readings, given ascending by (partition, offset); return the crossings in output order.

        For each stream by event time; for one reading all leaves, then all enters, each by query id.
        """
        self._by_first_dimension = None
        chained = self.streams.apply(readings)
        self._settle_index()
        first = np.flatnonzero(~chained.moved)
        moved = np.flatnonzero(chained.moved) if first.size else None
        if moved is None:
            moves = self._index.moves(chained.slots, chained.previous_values, chained.values)
        else:
            moves = self._index.moves(
                chained.slots[moved],
                np.ascontiguousarray(chained.previous_values[:, moved]),
                np.ascontiguousarray(chained.values[:, moved]),
            )
            moves = Moves(moved[moves.rows].astype(np.int32), moves.queries, moves.signs, moves.visits)
        parts = [moves]
        if first.size and len(self._registered):
            sights = self._index.stab(np.ascontiguousarray(chained.values[:, first]))
            parts.append(Moves(first[sights.rows].astype(np.int32), sights.queries, sights.signs, sights.visits))
        if self._scopes:
            scope_starts, scope_queries = self._scope_arrays()
            parts.append(
                Moves(
                    *scoped_moves(
                        chained.slots,
                        chained.moved,
                        chained.previous_values,
                        chained.values,
                        scope_starts,
                        scope_queries,
                        self.queries.lo,
                        self.queries.hi,
                    )
                )
            )
        rows, queries, signs = self._loud(*self._ordered(parts), chained.slots)
        distinct, query_rows = np.unique(queries, return_inverse=True)
        slots = chained.slots[rows]
        has_previous = chained.moved[rows]
        crossings = Crossings(
            feed=self.feed.name,
            ids=self.streams.ids_of(slots),
            queries=tuple(self.queries.query(int(slot)) for slot in distinct),
            query_rows=query_rows.astype(np.int32),
            signs=signs,
            reasons=np.where(has_previous, Reason.MOVED, Reason.FIRST_SEEN).astype(np.int8),
            event_times=readings.event_times[chained.rows[rows]],
            ordinals=chained.ordinals[rows],
            values=chained.values[:, rows],
            previous_times=chained.previous_times[rows],
            previous_values=chained.previous_values[:, rows],
            has_previous=has_previous,
            record_times=readings.record_times[chained.rows[rows]],
        )
        return Advanced(crossings, chained.n_late, sum(part.visits for part in parts))

    def _ordered(self, parts: list[Moves]) -> tuple[Int32s, Int32s, Int8s]:
        """Return rows, queries, signs of all parts, by (row, leaves first, query id)."""
        rows = np.concatenate([part.rows for part in parts])
        queries = np.concatenate([part.queries for part in parts])
        signs = np.concatenate([part.signs for part in parts])
        keys = 2 * rows.astype(np.int64) + (signs > 0)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        tied = np.zeros(keys.size, dtype=np.bool_)
        tied[1:] = keys[1:] == keys[:-1]
        tied[:-1] |= tied[1:]
        if tied.any():
            # Query ids are compared only where two crossings of one reading and sign meet: mostly nowhere.
            among = order[tied]
            ranks = self.queries.order_by_id(queries[among])
            order[tied] = among[np.lexsort((ranks, keys[tied]))]
        return rows[order], queries[order], signs[order]

    def _loud(self, rows: Int32s, queries: Int32s, signs: Int8s, slots: Int32s) -> tuple[Int32s, Int32s, Int8s]:
        """Return the crossings without the leaves of silent members, which end here."""
        if not self.silent or not rows.size:
            return rows, queries, signs
        watched = [self.queries.slot(query_id) for query_id in self.silent.query_ids()]
        keep = np.ones(rows.size, dtype=np.bool_)
        for i in np.flatnonzero((signs < 0) & np.isin(queries, watched)):
            query_id = self.queries.query(int(queries[i])).query_id
            keep[i] = not self.silent.end(query_id, self.streams.text_of(int(slots[rows[i]])))
        return rows[keep], queries[keep], signs[keep]

    # -- members ------------------------------------------------------------------------------------------

    def _members(self, query_id: str) -> Int32s:
        """Return the slots of the streams inside a query's region and scope, ascending."""
        slot = self.queries.slot(query_id)
        lo, hi = self.queries.lo[:, slot], self.queries.hi[:, slot]
        times, values = self.streams.last_times, self.streams.values
        if slot in self._scopes:
            candidates = self._scopes[slot]
        else:
            if self._by_first_dimension is None:
                seen = self.streams.seen_slots()
                self._by_first_dimension = seen[np.argsort(values[0, seen], kind="stable")]
                self._first_values = values[0, self._by_first_dimension]
            # Both ends by the same rule as the region: lo belongs, hi does not.
            begin, end = np.searchsorted(self._first_values, (lo[0], hi[0]), side="left")
            candidates = self._by_first_dimension[begin:end]
        inside = times[candidates] != NEVER
        for k in range(lo.size):
            inside &= (values[k, candidates] >= lo[k]) & (values[k, candidates] < hi[k])
        return np.sort(candidates[inside])

    def _at_rest(self, query: RegionQuery, left: Int32s, entered: Int32s, reason: Reason) -> Crossings | None:
        """Return crossings that no reading caused: the stream's last time and value, no previous one."""
        slots = np.concatenate([left, entered])
        n = slots.size
        if not n:
            return None
        rows = self.streams.rows_of(slots)
        return Crossings(
            feed=self.feed.name,
            ids=rows.ids,
            queries=(query,),
            query_rows=np.zeros(n, dtype=np.int32),
            signs=np.repeat(np.array([Sign.LEFT, Sign.ENTERED], dtype=np.int8), (left.size, entered.size)),
            reasons=np.full(n, reason, dtype=np.int8),
            event_times=rows.event_times,
            ordinals=rows.ordinals,
            values=rows.values,
            previous_times=np.zeros(n, dtype=np.int64),
            previous_values=np.zeros_like(rows.values),
            has_previous=np.zeros(n, dtype=np.bool_),
            record_times=np.full(n, -1, dtype=np.int64),
        )

    def _end_silent(self, query_id: str, left: Int32s) -> Int32s:
        """End the silent ones among the memberships that end, and return the others: those have an event."""
        if query_id not in self.silent.query_ids():
            return left
        return left[self.silent.end_all(query_id, self._texts(left))]

    def _texts(self, slots: Int32s) -> list[str]:
        return [self.streams.text_of(int(slot)) for slot in slots]

    # -- tables -------------------------------------------------------------------------------------------

    def _remember(self, query: RegionQuery) -> None:
        slot = self.queries.put(query)
        if query.streams is None:
            self._to_register.add(slot)
        else:
            # A named stream gets its slot now, so that its first reading needs no look-up by name.
            self._scopes[slot] = np.unique(self.streams.slots_of(_ids_of(query.streams)))
            self._scope_starts = None

    def _forget(self, slot: int) -> None:
        if self._scopes.pop(slot, None) is not None:
            self._scope_starts = None
        elif slot in self._to_register:
            self._to_register.remove(slot)
        else:
            self._registered.remove(slot)
            self._index.deregister(np.array([slot], dtype=np.int32))

    def _settle_index(self) -> None:
        if not self._to_register:
            return
        slots = np.array(sorted(self._to_register), dtype=np.int32)
        self._index.register(slots, self.queries.lo[:, slots], self.queries.hi[:, slots])
        self._registered |= self._to_register
        self._to_register = set()

    def _scope_arrays(self) -> tuple[Int64s, Int32s]:
        n_streams = self.streams.n_slots
        if self._scope_starts is None or self._scope_starts.size != n_streams + 1:
            streams = np.concatenate(list(self._scopes.values()))
            queries = np.repeat(list(self._scopes), [scope.size for scope in self._scopes.values()])
            order = np.argsort(streams, kind="stable")
            self._scope_queries = queries[order].astype(np.int32)
            self._scope_starts = np.searchsorted(streams[order], np.arange(n_streams + 1)).astype(np.int64)
        return self._scope_starts, self._scope_queries

    def _check(self) -> None:
        """State every invariant of the engine; for tests."""
        self.streams._check()
        self.queries._check()
        self._index._check()
        # A query is in the index, waits for it, or is in the scope table: exactly one of the three.
        for query in self.queries.queries():
            slot = self.queries.slot(query.query_id)
            places = [slot in self._registered, slot in self._to_register, slot in self._scopes]
            assert sum(places) == 1
            assert places[2] == (query.streams is not None)
        # A silent member is a member.
        for query_id, stream in self.silent.pairs():
            assert stream in self._texts(self._members(query_id))


def _no_slots() -> Int32s:
    return np.empty(0, dtype=np.int32)


def _ids_of(texts: tuple[str, ...]) -> Ids:
    encoded = [text.encode() for text in texts]
    starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=starts[1:])
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return Ids(starts, data, hash_ids(starts, data))
