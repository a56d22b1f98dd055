"""The query table of one layer: regions that lie close together in space lie close together in memory.

Knows regions and slots, and finds the regions that hold a value (with a packed R-tree). It must not know moves.
"""

from itertools import pairwise

import numpy as np

from bmq.index.base import Moves
from bmq.kernels.border import stab as kernel
from bmq.kernels.border.ranks import Ranks, make_ranks, places_of, ranks_of
from bmq.records import Float64s, Int32s, Int64s

GONE = -1  # the slot of a row whose query was deregistered; kernels do not report a negative slot

SAMPLE_SIZE = 4096  # regions in the sample that gives the ranks of an axis: 64 for each line of `ranks`


class PackedQueries:
    """Regions by row, at least one, in an order that keeps neighbours together. The rows never move.

    Rows that are appended later are behind the rows in order, in no order of their own, and not in the tree.

    Parameters
    ----------
    slots, regions : as the attributes, in any order.
    room : how many rows can be appended, as a share of the rows given here.

    Attributes
    ----------
    slots : int32[m], the query slot of each row, or ``GONE``, which `forget` writes.
    any_gone : whether the slot of any row may be ``GONE``.
    regions : float64[m, d, 2], the lower and the upper border.
    mean_sides : float64[d], the mean side of the regions in each dimension, as a difference of ranks.
    n_packed : how many rows are in order.
    """

    def __init__(self, slots: Int32s, regions: Float64s, room: float = 0.0) -> None:
        self._ranks = [_ranks_among(regions[:, k]) for k in range(regions.shape[1])]
        ranks = self.ranks_of_ends(regions)
        self.mean_sides: Float64s = (ranks[1] - ranks[0]).mean(axis=1)
        if regions.shape[1] == 1:
            # On a line, the order of lower borders keeps neighbours together, too; and it is +DQ
            # (`kernels.border.delta_sets`).
            order = np.argsort(regions[:, 0, 0])
        else:
            order = np.argsort(kernel.packing_keys(ranks, self.mean_sides))
        self.n_packed = slots.size
        self.any_gone = False
        capacity = slots.size + int(slots.size * room)
        self._all_slots: Int32s = np.empty(capacity, dtype=np.int32)
        self._all_regions: Float64s = np.empty((capacity, *regions.shape[1:]), dtype=np.float64)
        self.slots, self.regions = self._all_slots[:0], self._all_regions[:0]
        self.append(slots[order], regions[order])
        self._tree: tuple[Float64s, Int64s] | None = None  # built at the first stab

    def __len__(self) -> int:
        return self.slots.size

    def forget(self, rows: Int32s) -> None:
        """Mark ``rows`` as deregistered."""
        self.slots[rows] = GONE
        self.any_gone |= bool(rows.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the table, of the ranks of its axes, and of the tree if a stab has built it."""
        n_bytes = self._all_slots.nbytes + self._all_regions.nbytes + sum(ranks.nbytes for ranks in self._ranks)
        return n_bytes + (sum(part.nbytes for part in self._tree) if self._tree is not None else 0)

    @property
    def room(self) -> int:
        """How many rows can still be appended."""
        return self._all_slots.size - len(self)

    def append(self, slots: Int32s, regions: Float64s) -> None:
        """Append rows behind the others; there must be room for them."""
        first, stop = len(self), len(self) + slots.size
        self._all_slots[first:stop], self._all_regions[first:stop] = slots, regions
        self.slots, self.regions = self._all_slots[:stop], self._all_regions[:stop]

    def ranks_on(self, axis: int, values: Float64s) -> Float64s:
        """Return the rank of each value on one axis, both float64[n], as `kernels.border.ranks` defines it."""
        return ranks_of(self._ranks[axis], values)

    def ranks_of(self, values: Float64s) -> Float64s:
        """Return the rank of each value on its axis, both float64[d, n]."""
        return np.stack([self.ranks_on(axis, values_k) for axis, values_k in enumerate(values)])

    def ranks_of_ends(self, regions: Float64s) -> Float64s:
        """Return the ranks of float64[m, d, 2] regions: float64[2, d, m], lower ends before upper ends."""
        return np.stack([self.ranks_of(np.ascontiguousarray(regions[:, :, end].T)) for end in range(2)])

    def places_of(self, values: Float64s) -> Int32s:
        """Return the place of each value, as `kernels.border.ranks.places_of`: int32[d, n] for float64[d, n]."""
        places = np.empty(values.shape, dtype=np.int32)
        for ranks, values_k, places_k in zip(self._ranks, values, places, strict=True):
            places_of(ranks, values_k, places_k)
        return places

    def places_of_ends(self, regions: Float64s) -> Int32s:
        """Return the places of float64[m, d, 2] regions: int32[2, d, m], lower ends before upper ends."""
        return np.stack([self.places_of(np.ascontiguousarray(regions[:, :, end].T)) for end in range(2)])

    def stab(self, values: Float64s) -> Moves:
        """Return the queries among the rows in order that hold each of ``values`` (float64[d, n])."""
        regions = self.regions[: self.n_packed]
        if self._tree is None:
            self._tree = kernel.build_boxes(regions)
        return Moves(*kernel.holding_queries(regions, self.slots, *self._tree, values))

    def _check(self) -> None:
        """Assert every invariant; for tests."""
        assert self.any_gone or (self.slots != GONE).all()
        assert self.slots.shape == self.regions.shape[:1]
        assert self.regions.shape[2:] == (2,)
        assert (self.regions[:, :, 0] < self.regions[:, :, 1]).all()
        ranks = self.ranks_of_ends(self.regions)
        assert ((ranks >= 0) & (ranks <= 1)).all()
        assert (ranks[0] <= ranks[1]).all()
        if self._tree is None:
            return
        boxes, level_starts = self._tree
        below = self.regions[: self.n_packed]
        for first, stop in pairwise(level_starts):
            # Each box is the smallest around its rows (or boxes) of the level below.
            for j, box in enumerate(boxes[first:stop]):
                entries = below[kernel.FANOUT * j : kernel.FANOUT * (j + 1)]
                assert (box[:, 0] == entries[:, :, 0].min(axis=0)).all()
                assert (box[:, 1] == entries[:, :, 1].max(axis=0)).all()
            assert stop - first == -(-len(below) // kernel.FANOUT)
            below = boxes[first:stop]
        assert len(below) <= kernel.FANOUT


def _ranks_among(intervals: Float64s) -> Ranks:
    """Return the ranks that a sample of the finite ends of float64[m, 2] intervals defines."""
    ends = intervals[:: 1 + len(intervals) // SAMPLE_SIZE].ravel()
    return make_ranks(np.sort(ends[np.isfinite(ends)]))
