"""The query table of one feed: query id -> slot, and columns by slot for the inner loops.

Slots are small numbers that index arrays. A new query reuses the slot of a removed query. A query with an exit region
has a second slot for the exit region, because the service watches both regions:

    slot      0        1        2
    owner     0        1        0        slot 2 is the exit region of query 0
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bmq.records import Bools, Int8s, Int32s, Int64s, Kind, RegionQuery

INITIAL_QUERIES = 64  # doubles as needed
FOREVER = np.iinfo(np.int64).max  # stands for an absent duration or due
NO_SLOT = -1


class QueryTable:
    """Queries of one feed by slot. Memory: 26 bytes a slot, and the record of each query."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._queries: list[RegionQuery | None] = []
        self._free: list[int] = []
        self.exit_slots: Int32s = np.full(INITIAL_QUERIES, NO_SLOT, dtype=np.int32)
        self.owners: Int32s = np.empty(INITIAL_QUERIES, dtype=np.int32)
        self.tracked: Bools = np.zeros(INITIAL_QUERIES, dtype=np.bool_)
        self.n_tracked = 0
        self.kinds: Int8s = np.zeros(INITIAL_QUERIES, dtype=np.int8)  # an exit slot has the kind of its query
        self.n_of_kind: Counter[Kind] = Counter()
        self._ranks: Int64s | None = None  # by slot, ranks of the query ids; None: not computed since a slot was taken
        self.stream_ttls: Int64s = np.full(INITIAL_QUERIES, FOREVER, dtype=np.int64)
        # ms -> number of queries with this `stream_ttl`. If it is empty, batches skip the search for silence by query.
        self.stream_ttl_counts: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._slots

    def slot(self, query_id: str) -> int:
        """Return the slot of a registered query."""
        return self._slots[query_id]

    def exit_slot(self, slot: int) -> int:
        """Return the slot of the exit region of the query in ``slot``; NO_SLOT: it has no exit region."""
        return int(self.exit_slots[slot])

    def query(self, slot: int) -> RegionQuery:
        """Return the query in a slot that is in use."""
        query = self._queries[slot]
        assert query is not None, f"slot {slot} is free"
        return query

    def queries(self) -> Iterable[RegionQuery]:
        """Return the registered queries, in no order."""
        return (self.query(slot) for slot in self._slots.values())

    def put(self, query: RegionQuery, stream_ttl: int = FOREVER) -> int:
        """Register or replace a query and return its slot.

        Parameters
        ----------
        stream_ttl : ms; FOREVER: the query has none, or the feed's ends memberships first.
        """
        slot = self._slots.get(query.query_id)
        if slot is None:
            slot = self._slots[query.query_id] = self._take_slot(query)
            self.owners[slot] = slot
        else:
            self.n_of_kind[self.query(slot).kind] -= 1
        self._queries[slot] = query
        self.kinds[slot] = query.kind.number
        self.n_of_kind[query.kind] += 1
        self._set_tracked(slot, is_tracked=query.is_tracked)
        self._set_stream_ttl(slot, stream_ttl)
        if query.exit_region is None:
            self._give_back_exit_slot(slot)
        else:
            if self.exit_slots[slot] == NO_SLOT:
                # Two statements, because `_take_slot` may replace the array `exit_slots`.
                exit_slot = self._take_slot(query)
                self.exit_slots[slot] = exit_slot
            self._queries[self.exit_slots[slot]] = query
            self.kinds[self.exit_slots[slot]] = query.kind.number
            self.owners[self.exit_slots[slot]] = slot
        return slot

    def remove(self, query_id: str) -> int:
        """Remove a query and return the slot it had."""
        slot = self._slots.pop(query_id)
        self.n_of_kind[self.query(slot).kind] -= 1
        self._set_stream_ttl(slot, FOREVER)
        self._set_tracked(slot, is_tracked=False)
        self._give_back(slot)
        self._give_back_exit_slot(slot)
        return slot

    def order_by_id(self, slots: Int32s) -> npt.NDArray[np.int64]:
        """Return for each slot a rank that orders the query ids of these slots by UTF-8 bytes.

        The ranks are computed for the crossings of one batch. To keep a million ids ordered would cost every
        registration more than the ranks cost all crossings. If ``slots`` has at least as many entries as there are
        queries, the ranks are computed for all queries and kept until a slot is taken.
        """
        if self._ranks is None and slots.size >= len(self._slots):
            self._ranks = self._ranks_of_all()
        if self._ranks is not None:
            return self._ranks[slots]
        distinct, inverse = np.unique(slots, return_inverse=True)
        ids = [self.query(int(slot)).query_id.encode() for slot in distinct]
        ranks = np.empty(len(ids), dtype=np.int64)
        ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        return ranks[inverse]

    def _ranks_of_all(self) -> Int64s:
        in_order = sorted(self._slots, key=str.encode)
        ranks = np.zeros(len(self._queries), dtype=np.int64)
        ranks[[self._slots[query_id] for query_id in in_order]] = np.arange(len(in_order))
        return ranks[self.owners[: ranks.size]]

    def _set_tracked(self, slot: int, *, is_tracked: bool) -> None:
        self.n_tracked += int(is_tracked) - int(self.tracked[slot])
        self.tracked[slot] = is_tracked

    def _set_stream_ttl(self, slot: int, stream_ttl: int) -> None:
        before = int(self.stream_ttls[slot])
        if before != FOREVER:
            self.stream_ttl_counts[before] -= 1
            if not self.stream_ttl_counts[before]:
                del self.stream_ttl_counts[before]
        if stream_ttl != FOREVER:
            self.stream_ttl_counts[stream_ttl] += 1
        self.stream_ttls[slot] = stream_ttl

    def _take_slot(self, query: RegionQuery) -> int:
        self._ranks = None
        if self._free:
            slot = self._free.pop()
            self._queries[slot] = query
            return slot
        slot = len(self._queries)
        self._queries.append(query)
        if slot == self.owners.size:
            self.owners = np.append(self.owners, np.empty_like(self.owners))
            self.exit_slots = np.append(self.exit_slots, np.full_like(self.exit_slots, NO_SLOT))
            self.tracked = np.append(self.tracked, np.zeros_like(self.tracked))
            self.kinds = np.append(self.kinds, np.zeros_like(self.kinds))
            self.stream_ttls = np.append(self.stream_ttls, np.full_like(self.stream_ttls, FOREVER))
        return slot

    def _give_back(self, slot: int) -> None:
        self._queries[slot] = None
        self._free.append(slot)

    def _give_back_exit_slot(self, slot: int) -> None:
        if self.exit_slots[slot] != NO_SLOT:
            self._give_back(int(self.exit_slots[slot]))
            self.exit_slots[slot] = NO_SLOT

    def _check(self) -> None:
        """State every invariant of the table; for tests."""
        # A slot is free, or it is the slot of a query id, or it is the exit slot of a query.
        with_exit: Int32s = np.flatnonzero(self.exit_slots != NO_SLOT).astype(np.int32)
        exit_slots = self.exit_slots[with_exit]
        taken = [*self._slots.values(), *exit_slots.tolist()]
        assert sorted([*taken, *self._free]) == list(range(len(self._queries)))
        assert all(self.query(slot).query_id == query_id for query_id, slot in self._slots.items())
        for slot in self._slots.values():
            query = self.query(slot)
            assert self.owners[slot] == slot
            assert self.tracked[slot] == query.is_tracked
            assert self.kinds[slot] == query.kind.number
            assert (query.exit_region is not None) == (slot in with_exit)
        assert np.array_equal(self.owners[exit_slots], with_exit)
        assert +self.n_of_kind == Counter(query.kind for query in self.queries())
        assert self.n_tracked == np.count_nonzero(self.tracked)
        assert self.stream_ttl_counts == Counter(self.stream_ttls[self.stream_ttls != FOREVER].tolist())
