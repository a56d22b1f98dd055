"""The match indexes of one dimension: simple and logarithmic construct intervals.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, section 2.
"""

from bmq.index.construct_lists import VirtualConstructIndex
from bmq.index.layered import GROWTH, SMALLEST_LAYER
from bmq.index.virtual_grid import VirtualGrid, doubling_lengths, simple_lengths
from bmq.kernels.virtual_constructs import Labelling

# On a chosen grid, where the mean query is 4 to 8 units long. Of simple intervals 8 and 16 were slower, by a tenth and
# by a third, as a value has a run of lists for each length; of doubling ones 4, 8 and 16 were alike.
LONGEST_SIMPLE = 4
LONGEST_DOUBLING = 8


class SciIndex(VirtualConstructIndex):
    """The `MatchIndex` of simple construct intervals: at each unit one of each length 1, 2, 3, ..., L.

    A query of w units is w / L + 1 entries at most.

    Parameters
    ----------
    grid : attribute range, unit and L; None: chosen from the queries.
    """

    def __init__(
        self,
        grid: VirtualGrid | None = None,
        *,
        labelling: Labelling = Labelling.BY_SHAPE,
        growth: int = GROWTH,
        smallest_layer: int = SMALLEST_LAYER,
    ) -> None:
        lengths = simple_lengths(grid.longest if grid else LONGEST_SIMPLE)
        super().__init__(1, lengths, grid, labelling=labelling, growth=growth, smallest_layer=smallest_layer)


class LciIndex(VirtualConstructIndex):
    """The `MatchIndex` of logarithmic construct intervals: at each unit one of each length 1, 2, 4, ..., L = 2^k.

    A query of w units is w / L + k entries at most.

    Parameters
    ----------
    grid : attribute range, unit and L; None: chosen from the queries.

    Raises
    ------
    ValueError
        L is no power of two.
    """

    def __init__(
        self,
        grid: VirtualGrid | None = None,
        *,
        labelling: Labelling = Labelling.BY_SHAPE,
        growth: int = GROWTH,
        smallest_layer: int = SMALLEST_LAYER,
    ) -> None:
        lengths = doubling_lengths(grid.longest if grid else LONGEST_DOUBLING)
        super().__init__(1, lengths, grid, labelling=labelling, growth=growth, smallest_layer=smallest_layer)
