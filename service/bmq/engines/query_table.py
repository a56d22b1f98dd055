"""The query table of one feed: query id -> slot and region.

Slots are small numbers that arrays can be indexed with; the slot of a removed query is used again.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bmq.records import Float64s, Int32s, RegionQuery

INITIAL_QUERIES = 64  # doubles as needed


class QueryTable:
    """Queries of one feed by slot. Memory: 16 * d bytes a query and its record."""

    def __init__(self, n_dims: int) -> None:
        self._slots: dict[str, int] = {}
        self._queries: list[RegionQuery | None] = []
        self._free: list[int] = []
        self.lo: Float64s = np.empty((n_dims, INITIAL_QUERIES))
        self.hi: Float64s = np.empty((n_dims, INITIAL_QUERIES))

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._slots

    def slot(self, query_id: str) -> int:
        """Return the slot of a registered query."""
        return self._slots[query_id]

    def query(self, slot: int) -> RegionQuery:
        """Return the query in a slot that is in use."""
        query = self._queries[slot]
        assert query is not None, f"slot {slot} is free"
        return query

    def queries(self) -> Iterable[RegionQuery]:
        """Return the registered queries, in no order."""
        return (self.query(slot) for slot in self._slots.values())

    def put(self, query: RegionQuery) -> int:
        """Register or replace a query and return its slot."""
        slot = self._slots.get(query.query_id)
        if slot is None:
            slot = self._free.pop() if self._free else self._new_slot()
            self._slots[query.query_id] = slot
        self._queries[slot] = query
        self.lo[:, slot] = query.region.lo
        self.hi[:, slot] = query.region.hi
        return slot

    def remove(self, query_id: str) -> int:
        """Remove a query and return the slot it had."""
        slot = self._slots.pop(query_id)
        self._queries[slot] = None
        self._free.append(slot)
        return slot

    def order_by_id(self, slots: Int32s) -> npt.NDArray[np.int64]:
        """Return, for each slot, the rank of its query id among these slots, by UTF-8 bytes.

        Ranks are made for the slots of one batch's crossings rather than kept for all: keeping a million ids
        ordered would cost every registration more than all crossings need.
        """
        distinct, inverse = np.unique(slots, return_inverse=True)
        ids = [self.query(int(slot)).query_id.encode() for slot in distinct]
        ranks = np.empty(len(ids), dtype=np.int64)
        ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        return ranks[inverse]

    def _new_slot(self) -> int:
        slot = len(self._queries)
        self._queries.append(None)
        if slot == self.lo.shape[1]:
            self.lo = np.concatenate([self.lo, np.empty_like(self.lo)], axis=1)
            self.hi = np.concatenate([self.hi, np.empty_like(self.hi)], axis=1)
        return slot

    def _check(self) -> None:
        """State every invariant of the table; for tests."""
        # A slot is either free or holds the query that its id leads to.
        assert sorted([*self._slots.values(), *self._free]) == list(range(len(self._queries)))
        assert all(self.query(slot).query_id == query_id for query_id, slot in self._slots.items())
        # The arrays say the same as the records.
        for slot in self._slots.values():
            assert tuple(self.lo[:, slot]) == self.query(slot).region.lo
            assert tuple(self.hi[:, slot]) == self.query(slot).region.hi
