"""The border index of regions of any form: boxes to the index that their feed has, shapes to the index of shapes.

Knows which of the two has a query, and nothing of how they find anything.
"""

from collections.abc import Sequence

import numpy as np

from bmq.index.base import Moves, joined
from bmq.index.choose import make_index
from bmq.index.shape_grid import ShapeIndex
from bmq.records import Bools, Float64s, IndexKind, Int32s, Region


class Areas:
    """A border index whose regions are `Region`s.

    Parameters
    ----------
    n_dims : number of dimensions of values and regions; shapes need two.
    kind : how crossings of boxes are found; it has to fit ``n_dims``.
    """

    def __init__(self, n_dims: int, kind: IndexKind = IndexKind.AUTO) -> None:
        self.n_dims = n_dims
        self._boxes = make_index(n_dims, kind)
        self._shapes: ShapeIndex | None = None  # until there is one, it costs nothing
        self._ends: Float64s = np.empty((0, n_dims, 2))  # by slot; holds nothing where nothing is registered
        self._has_shape: Bools = np.empty(0, dtype=np.bool_)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def register(self, slots: Int32s, regions: Sequence[Region]) -> None:
        """Add queries: int32[m], and the region of each. Slots as for `MatchIndex.register`, with its errors."""
        if not slots.size:
            return
        lo = np.array([region.lo for region in regions], dtype=np.float64)
        hi = np.array([region.hi for region in regions], dtype=np.float64)
        has_shape = np.array([region.shape is not None for region in regions])
        if has_shape.any():
            self._shapes = self._shapes or ShapeIndex()
            self._shapes.register(slots[has_shape], [region for region in regions if region.shape is not None])
        if not has_shape.all():
            self._boxes.register(slots[~has_shape], lo[~has_shape].T, hi[~has_shape].T)
        n_more = int(slots.max()) + 1 - len(self._ends)
        if n_more > 0:
            n_more = max(n_more, len(self._ends))
            self._ends = np.concatenate((self._ends, np.full((n_more, self.n_dims, 2), np.inf)))
            self._has_shape = np.append(self._has_shape, np.zeros(n_more, dtype=np.bool_))
        self._ends[slots] = np.stack((lo, hi), axis=2)
        self._has_shape[slots] = has_shape
        self._n += slots.size

    def deregister(self, slots: Int32s) -> None:
        """Forget queries: int32[m]. Errors as those of `MatchIndex.deregister`."""
        if not slots.size:
            return
        has_shape = self._has_shape[slots]
        if self._shapes is not None:
            self._shapes.deregister(slots[has_shape])
        self._boxes.deregister(slots[~has_shape])
        self._ends[slots] = np.inf
        self._n -= slots.size

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        boxes = self._boxes.moves(streams, previous, current)
        return boxes if self._shapes is None else joined([boxes, self._shapes.moves(streams, previous, current)])

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        boxes = self._boxes.stab(values)
        return boxes if self._shapes is None else joined([boxes, self._shapes.stab(values)])

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the region of each slot holds the value beside it.

        Parameters
        ----------
        slots : int32[n], registered.
        values : float64[d, n], finite; column i is asked of the region of ``slots[i]``.
        """
        ends = self._ends[slots]
        # Of a shape, its bounding box.
        held: Bools = np.logical_and.reduce((ends[:, :, 0] <= values.T) & (ends[:, :, 1] > values.T), axis=1)
        if self._shapes is not None:
            asked = np.flatnonzero(held & self._has_shape[slots])
            held[asked] = self._shapes.holds(slots[asked], values[:, asked])
        return held

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the index is made of."""
        n_bytes = self._boxes.nbytes + self._ends.nbytes + self._has_shape.nbytes
        return n_bytes + (self._shapes.nbytes if self._shapes is not None else 0)

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._boxes._check()
        if self._shapes is not None:
            self._shapes._check()
        registered = (self._ends[:, :, 0] < self._ends[:, :, 1]).all(axis=1)
        assert self._n == np.count_nonzero(registered)
