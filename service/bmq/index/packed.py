"""The query table of one layer: regions that lie close together in space lie close together in memory.

Knows regions and slots, and how to find what holds a value (a packed R-tree). Knows nothing of moves.
"""

from itertools import pairwise

import numpy as np

from bmq.index.base import Moves
from bmq.kernels import stab as kernel
from bmq.records import Float64s, Int32s, Int64s

GONE = -1  # the slot of a row whose query was deregistered; kernels report no negative slot

SAMPLE_SIZE = 4096  # borders looked at to find the extent; the quantiles taken from them err by a percent
TAIL = 64  # a 64th of the borders at each end may be outliers; a few far regions must not set the scale
WIDEST = 1e300  # of an extent; so that sums of sides stay finite. No feed that means something comes near


class PackedQueries:
    """Regions by row, in an order that keeps neighbours together; the rows never move.

    Attributes
    ----------
    slots : int32[m], query slot of each row, or ``GONE``. The only thing that changes.
    regions : float64[m, d, 2], lower and upper border.
    starts, stops : float64[d], the extent: where nearly all finite borders lie; 0, 0 where there are none.
    mean_sides : float64[d], mean side of the regions within the extent.
    """

    def __init__(self, slots: Int32s, regions: Float64s) -> None:
        n_dims = regions.shape[1]
        extents = [_extent(regions[:, k]) for k in range(n_dims)]
        self.starts = np.array([start for start, _ in extents], dtype=np.float64)
        self.stops = np.array([stop for _, stop in extents], dtype=np.float64)
        self.mean_sides = np.array([_mean_side(regions[:, k], *extents[k]) for k in range(n_dims)])
        order = np.argsort(kernel.packing_keys(regions, self.starts, self.stops, self.mean_sides))
        self.slots: Int32s = slots[order]
        self.regions: Float64s = regions[order]
        self._tree: tuple[Float64s, Int64s] | None = None

    def __len__(self) -> int:
        return self.slots.size

    def stab(self, values: Float64s) -> Moves:
        """Return the queries that hold each of ``values`` (float64[d, n]). The first call builds the tree."""
        if self._tree is None:
            self._tree = kernel.build_boxes(self.regions)
        return Moves(*kernel.holding_queries(self.regions, self.slots, *self._tree, values))

    def _check(self) -> None:
        """State every invariant; for tests."""
        assert self.slots.shape == self.regions.shape[:1]
        assert self.regions.shape[2] == 2
        assert (self.regions[:, :, 0] < self.regions[:, :, 1]).all()
        assert (self.starts <= self.stops).all()
        assert ((self.mean_sides >= 0) & (self.mean_sides <= self.stops - self.starts)).all()
        if self._tree is None:
            return
        boxes, level_starts = self._tree
        below = self.regions
        for first, stop in pairwise(level_starts):
            # Each box is the smallest around its rows (or boxes) of the level below.
            for j, box in enumerate(boxes[first:stop]):
                entries = below[kernel.FANOUT * j : kernel.FANOUT * (j + 1)]
                assert (box[:, 0] == entries[:, :, 0].min(axis=0)).all()
                assert (box[:, 1] == entries[:, :, 1].max(axis=0)).all()
            assert stop - first == -(-len(below) // kernel.FANOUT)
            below = boxes[first:stop]
        assert len(below) <= kernel.FANOUT


def _extent(intervals: Float64s) -> tuple[float, float]:
    """Return where nearly all finite ends of float64[m, 2] lie."""
    ends = intervals[:: 1 + 2 * len(intervals) // SAMPLE_SIZE].ravel()
    ends = np.sort(ends[np.isfinite(ends)])
    if not ends.size:
        return 0.0, 0.0
    tail = ends.size // TAIL
    # Python's floats, which overflow to infinity without a warning.
    low, high = float(ends[tail]), float(ends[-1 - tail])
    # Half as wide again: enough to take in all ends where they are spread evenly.
    margin = (high - low) / 4
    start, stop = max(low - margin, float(ends[0])), min(high + margin, float(ends[-1]))
    return (start, stop) if stop - start <= WIDEST else (0.0, 0.0)


def _mean_side(intervals: Float64s, start: float, stop: float) -> float:
    if not len(intervals):
        return 0.0
    clipped = np.clip(intervals, start, stop)
    return min(float(np.mean(clipped[:, 1] - clipped[:, 0])), stop - start)
