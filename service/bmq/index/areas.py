"""The border index of regions of any form: boxes to the index that their feed has, shapes to the index of shapes.

Knows which of the two has a query, and nothing of how they find anything.
"""

from collections.abc import Sequence

import numpy as np

from bmq.index.base import Moves
from bmq.index.choose import make_index
from bmq.records import Bools, Float64s, IndexKind, Int32s, Region


class Areas:
    """A border index whose regions are `Region`s.

    Parameters
    ----------
    n_dims : number of dimensions of values and regions.
    kind : how crossings of boxes are found; it has to fit ``n_dims``.
    """

    def __init__(self, n_dims: int, kind: IndexKind = IndexKind.AUTO) -> None:
        self.n_dims = n_dims
        self._boxes = make_index(n_dims, kind)
        self._ends: Float64s = np.empty((0, n_dims, 2))  # by slot: holds nothing where no box is registered
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def register(self, slots: Int32s, regions: Sequence[Region]) -> None:
        """Add queries: int32[m], and the region of each. Slots as for `MatchIndex.register`, with its errors."""
        if any(region.shape is not None for region in regions):
            raise ValueError("regions are boxes only: leave out shapes.")
        if not slots.size:
            return
        lo = np.array([region.lo for region in regions], dtype=np.float64)
        hi = np.array([region.hi for region in regions], dtype=np.float64)
        self._boxes.register(slots, lo.T, hi.T)
        n_more = int(slots.max()) + 1 - len(self._ends)
        if n_more > 0:
            n_more = max(n_more, len(self._ends))
            self._ends = np.concatenate((self._ends, np.full((n_more, self.n_dims, 2), np.inf)))
        self._ends[slots] = np.stack((lo, hi), axis=2)
        self._n += slots.size

    def deregister(self, slots: Int32s) -> None:
        """Forget queries: int32[m]. Errors as those of `MatchIndex.deregister`."""
        if not slots.size:
            return
        self._boxes.deregister(slots)
        self._ends[slots] = np.inf
        self._n -= slots.size

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        return self._boxes.moves(streams, previous, current)

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        return self._boxes.stab(values)

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the region of each slot holds the value beside it.

        Parameters
        ----------
        slots : int32[n], registered.
        values : float64[d, n], finite; column i is asked of the region of ``slots[i]``.
        """
        ends = self._ends[slots]
        return np.logical_and.reduce((ends[:, :, 0] <= values.T) & (ends[:, :, 1] > values.T), axis=1)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the index is made of."""
        return self._boxes.nbytes + self._ends.nbytes

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._boxes._check()
        assert self._n == np.count_nonzero((self._ends[:, :, 0] < self._ends[:, :, 1]).all(axis=1))
