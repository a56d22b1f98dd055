"""The match index of the plane: virtual construct rectangles.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, section 3.
"""

from bmq.index.construct_lists import VirtualConstructIndex
from bmq.index.layered import GROWTH, SMALLEST_LAYER
from bmq.index.virtual_grid import VirtualGrid, doubling_lengths
from bmq.kernels.virtual_constructs import Decomposition, Labelling

# On a chosen grid, where the mean side is at most 8 units. 8, with 60 runs of lists for a value in place of 21, was
# slower by up to a half, as the runs take longer than the entries.
LONGEST = 4


class VcrIndex(VirtualConstructIndex):
    """The `MatchIndex` of virtual construct rectangles: at each grid point one of each size 2^i x 2^j up to L x L.

    Parameters
    ----------
    grid : attribute ranges, units and L; None: chosen from the queries.
    decomposition : SIMPLE makes at most (w / L + k)(h / L + k) disjoint rectangles of a query of w times h units;
        OVERLAPPED ceil(w / l) ceil(h / l') of one size, l x l', of which the last may reach over the ones before.

    Raises
    ------
    ValueError
        L is no power of two.
    """

    def __init__(
        self,
        grid: VirtualGrid | None = None,
        *,
        decomposition: Decomposition = Decomposition.SIMPLE,
        labelling: Labelling = Labelling.BY_SHAPE,
        growth: int = GROWTH,
        smallest_layer: int = SMALLEST_LAYER,
    ) -> None:
        super().__init__(
            2,
            doubling_lengths(grid.longest if grid else LONGEST),
            grid,
            decomposition=decomposition,
            labelling=labelling,
            growth=growth,
            smallest_layer=smallest_layer,
        )
