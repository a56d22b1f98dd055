"""The match index of the plane: virtual construct rectangles.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, section 3.
"""

from bmq.index.construct_lists import VirtualConstructIndex
from bmq.index.layered import GROWTH, SMALLEST_LAYER
from bmq.index.virtual_grid import VirtualGrid, doubling_lengths
from bmq.kernels.virtual_constructs import Decomposition, Labelling

LONGEST = 8  # twice the mean side of a query on a chosen grid; the paper's choice for sides of 10.5 units


class VcrIndex(VirtualConstructIndex):
    """The `MatchIndex` of virtual construct rectangles: at each grid point one of each size 2^i x 2^j up to L x L.

    Parameters
    ----------
    grid : attribute ranges, units and L; None: chosen from the queries.
    decomposition : SIMPLE cuts a query into disjoint rectangles of up to (w / L + k)(h / L + k) sizes and places;
        OVERLAPPED into ceil(w / l) ceil(h / l') of one size l x l', of which the last may overlap the ones before.

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
