"""The queries of band joins in groups, while commands add and remove queries.

    sequences   [ main: most queries, by group | recent queries, by group | room ]

New queries are recent. The recent queries are few, and they are grouped anew after each change. If they are no longer
few, all queries are grouped anew. A removed query leaves a hole in its group.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bmq.engines.band.stabbing_set import Groups, stabbing_groups
from bmq.kernels.band.band_groups import GONE, Bands
from bmq.records import Float64s, Int32s, Int64s

# The most recent queries and holes, as a part of the main queries. Lower: all queries are grouped anew more often.
# Higher: each change groups more recent queries anew.
MOST_RECENT = 1 / 8
RECENT_MIN = 256  # grouped in 0.1 ms


class BandQueries:
    """Closed intervals by slot, and their groups in the form that the kernels need.

    Memory: 32 bytes a slot and 24 bytes a query, and room for an eighth more queries. To add or remove a query costs
    O(log n), amortised, and the next call of `bands` O(r log r) for r recent queries.
    """

    def __init__(self) -> None:
        self.lo: Float64s = np.empty(0)
        self.hi: Float64s = np.empty(0)
        self._reported: Int64s = np.empty(0, dtype=np.int64)
        # By slot: the place of the query in each sequence; -1: it is not in the main part.
        self._places: npt.NDArray[np.int32] = np.empty((2, 0), dtype=np.int32)
        self._recent: set[int] = set()
        self._bands: Bands | None = None
        self._group_all()

    def __len__(self) -> int:
        return self._main.by_lo.size - self._n_gone + len(self._recent)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.lo, self.hi, self._reported, self._places, *self._sequences)
        heads = (self._main.points, self._main.starts, self._main.cover_lo, self._main.cover_hi)
        return sum(array.nbytes for array in (*arrays, *heads))

    def put(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries in free slots."""
        self._make_room(int(slots.max(initial=-1)) + 1)
        self.lo[slots], self.hi[slots] = lo, hi
        self._recent.update(slots.tolist())
        self._bands = None

    def remove(self, slots: Int32s) -> None:
        """Remove registered queries."""
        self.lo[slots] = self.hi[slots] = np.nan
        self._recent.difference_update(slots.tolist())
        places = self._places[:, slots]
        is_main = places[0] >= 0
        for sequence, place in zip((self._main.by_lo, self._main.by_hi), places, strict=True):
            sequence[place[is_main]] = GONE
        self._places[:, slots] = -1
        self._n_gone += int(is_main.sum())
        self._bands = None

    def bands(self, *, reports_pairs: bool) -> Bands:
        """Return the queries as they are now; the result is valid until the next `put` or `remove`."""
        if self._bands is None:
            if len(self._recent) + self._n_gone > max(RECENT_MIN, MOST_RECENT * self._main.by_lo.size):
                self._group_all()
            self._bands = self._with_recent(reports_pairs)
        return self._bands

    def _group_all(self) -> None:
        slots = np.flatnonzero(~np.isnan(self.lo)).astype(np.int32)
        n = slots.size
        found = self._groups_of(slots)
        room = n + max(RECENT_MIN, int(MOST_RECENT * n))
        slots_by_end, ends = np.empty((2, room), dtype=np.int32), np.empty((2, room))
        self._sequences = (slots_by_end[0], slots_by_end[1], ends[0], ends[1])
        self._write(found, 0)
        by_lo, by_hi, lo, hi = self._sequences
        self._main = replace(found, by_lo=by_lo[:n], by_hi=by_hi[:n], lo=lo[:n], hi=hi[:n])
        self._recent.clear()
        self._n_gone = 0
        for places, sequence in zip(self._places, (found.by_lo, found.by_hi), strict=True):
            places[sequence] = np.arange(n, dtype=np.int32)

    def _groups_of(self, slots: Int32s) -> Groups:
        found = stabbing_groups(self.lo[slots], self.hi[slots])
        return replace(found, by_lo=slots[found.by_lo], by_hi=slots[found.by_hi])

    def _write(self, groups: Groups, begin: int) -> None:
        by_lo, by_hi, lo, hi = self._sequences
        own = slice(begin, begin + groups.lo.size)
        by_lo[own], by_hi[own], lo[own], hi[own] = groups.by_lo, groups.by_hi, groups.lo, groups.hi

    def _with_recent(self, reports_pairs: bool) -> Bands:
        main, n_main = self._main, self._main.by_lo.size
        recent = self._groups_of(np.fromiter(self._recent, dtype=np.int32))
        self._write(recent, n_main)
        by_lo, by_hi, lo, hi = self._sequences
        n = n_main + recent.by_lo.size
        return Bands(
            np.append(main.points, recent.points),
            np.append(main.starts, recent.starts[1:] + n_main),
            np.append(main.cover_lo, recent.cover_lo),
            np.append(main.cover_hi, recent.cover_hi),
            np.append(np.maximum.accumulate(main.cover_hi), np.maximum.accumulate(recent.cover_hi)),
            by_lo[:n],
            by_hi[:n],
            lo[:n],
            hi[:n],
            self.lo,
            self.hi,
            self._reported,
            len(main),
            reports_pairs,
        )

    def _make_room(self, n_slots: int) -> None:
        n_more = n_slots - self.lo.size
        if n_more <= 0:
            return
        n_more = max(n_more, self.lo.size)
        self.lo, self.hi = (np.append(ends, np.full(n_more, np.nan)) for ends in (self.lo, self.hi))
        self._reported = np.append(self._reported, np.full(n_more, -1, dtype=np.int64))
        self._places = np.hstack([self._places, np.full((2, n_more), -1, dtype=np.int32)])

    def _check(self) -> None:
        """State every invariant; for tests."""
        known = set(np.flatnonzero(~np.isnan(self.lo)).tolist())
        assert len(known) == len(self)
        for places, sequence in zip(self._places, (self._main.by_lo, self._main.by_hi), strict=True):
            main = sequence[sequence != GONE]
            # Each query is either in the main part, at the place in `_places`, or recent.
            assert sorted([*main.tolist(), *self._recent]) == sorted(known)
            assert np.array_equal(sequence[places[main]], main)
            assert (places >= 0).sum() == main.size
        assert sequence.size - main.size == self._n_gone
