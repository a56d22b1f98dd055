"""Which border index a feed gets."""

from bmq.index.base import BorderIndex
from bmq.index.border_grid import BorderGrid
from bmq.index.nd_bmq import NdBmq
from bmq.index.region_segments import RegionSegmentList


def make_index(n_dims: int) -> BorderIndex:
    """Return an empty border index for values of ``n_dims`` dimensions.

    In the plane the border grid: it looks only at borders near the move, where the n-D BMQ looks at all that
    share a coordinate with it (measured in docs/indexes.md).
    """
    if n_dims == 1:
        return RegionSegmentList()
    if n_dims == 2:
        return BorderGrid()
    return NdBmq(n_dims)
