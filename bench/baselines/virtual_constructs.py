"""Virtual constructs with all options of the report: on a given grid, of any length, overlapped, numbered by point.

The service has simple decomposition on grids that it chooses, and numbers by shape. `overlapped_lists` has what
overlapped decomposition needs.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, sections 2 and 3.
"""

from abc import abstractmethod
from enum import Enum

from bench.baselines.overlapped_lists import OverlappedLists, count_overlapped
from bmq.index.layered import GROWTH, SMALLEST_LAYER
from bmq.index.match.construct_indexes import SciIndex, VcrIndex
from bmq.index.match.construct_lists import ConstructLists, VirtualConstructIndex
from bmq.index.match.virtual_grid import VirtualGrid, choose_grid, doubling_lengths, simple_lengths
from bmq.index.packed import PackedQueries
from bmq.kernels.match.virtual_constructs import Axis, Constructs, count_cut, make_constructs
from bmq.records import Int64s


class Decomposition(Enum):
    """How a range of cells is put together of lengths: `cut`, or `cut_overlapped`."""

    SIMPLE = "simple"
    OVERLAPPED = "overlapped"


class Labelling(Enum):
    """In which order constructs are numbered.

    BY_POINT is the report's: all shapes that begin at a point, then the next point. BY_SHAPE is the service's.
    """

    BY_POINT = "by_point"
    BY_SHAPE = "by_shape"


def integer_grid(*ranges: int, longest: int) -> VirtualGrid:
    """Return the report's grid: attributes 0 .. R - 1 for each R of ``ranges``, unit 1."""
    return VirtualGrid(tuple(Axis(0.0, 1.0, n_units) for n_units in ranges), longest)


def number_by_point(n_cells_x: int, n_cells_y: int, lengths_x: Int64s, lengths_y: Int64s) -> Constructs:
    """Return the constructs of `make_constructs`, numbered as in the report.

    Notes
    -----
    With a = place on the x axis, b on the y axis:

    - SCI: ``a * L + length - 1``, section 2.2's (a - a_0) L + (b - a) - 1;
    - LCI: ``a * (k + 1) + l``, section 2.2's (a - a_0)(k + 1) + l;
    - VCR: ``B * (a + b * width) + j * (k + 1) + i``, section 3.2's formula (1).
    """
    constructs = make_constructs(n_cells_x, n_cells_y, lengths_x, lengths_y)
    n_shapes = constructs.n_shapes
    return constructs._replace(stride_x=n_shapes, stride_y=n_shapes * constructs.width, stride_shape=1)


class PointLists(ConstructLists):
    """The query lists of constructs that are numbered by point."""

    def _number(self, n_cells_x: int, n_cells_y: int, lengths_x: Int64s, lengths_y: Int64s) -> Constructs:
        return number_by_point(n_cells_x, n_cells_y, lengths_x, lengths_y)


class OverlappedPointLists(OverlappedLists):
    """The query lists of an overlapped decomposition into constructs that are numbered by point."""

    def _number(self, n_cells_x: int, n_cells_y: int, lengths_x: Int64s, lengths_y: Int64s) -> Constructs:
        return number_by_point(n_cells_x, n_cells_y, lengths_x, lengths_y)


_LISTS: dict[tuple[Decomposition, Labelling], type[ConstructLists]] = {
    (Decomposition.SIMPLE, Labelling.BY_SHAPE): ConstructLists,
    (Decomposition.SIMPLE, Labelling.BY_POINT): PointLists,
    (Decomposition.OVERLAPPED, Labelling.BY_SHAPE): OverlappedLists,
    (Decomposition.OVERLAPPED, Labelling.BY_POINT): OverlappedPointLists,
}


class ReportedConstructs(VirtualConstructIndex):
    """The `MatchIndex` of virtual constructs with the report's options.

    Parameters
    ----------
    grid : attribute ranges, units and L; None: chosen for each layer from its regions.
    decomposition, labelling : see the enums.
    growth, smallest_layer : as for `Layers`.

    Raises
    ------
    ValueError
        The grid has another number of dimensions, or there are no constructs for its L.
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
        super().__init__(growth=growth, smallest_layer=smallest_layer)
        if grid is not None:
            if len(grid.axes) != self.n_dims:
                raise ValueError(f"the grid has {len(grid.axes)} dimensions: give one of {self.n_dims}.")
            self._lengths = self._lengths_up_to(grid.longest)
        self._grid = grid
        self._count_pieces = count_cut if decomposition is Decomposition.SIMPLE else count_overlapped
        self._make_lists = _LISTS[decomposition, labelling]

    @staticmethod
    @abstractmethod
    def _lengths_up_to(longest: int) -> Int64s:
        """Return the lengths of a construct's sides: int64[], ascending from 1, in units."""

    def _build(self, table: PackedQueries) -> ConstructLists:
        grid = self._grid or choose_grid(table.regions, self._lengths, self._count_pieces)
        return self._make_lists(table, grid, self._lengths)


class Sci(ReportedConstructs, SciIndex):
    """Simple construct intervals: at each unit one of each length 1, 2, 3, ..., L."""

    _lengths_up_to = staticmethod(simple_lengths)


class Lci(ReportedConstructs):
    """Logarithmic construct intervals: at each unit one of each length 1, 2, 4, ..., L = 2^k.

    A query of w units is w / L + k entries at most. An L that is no power of two raises `ValueError`.
    """

    _n_dims = 1
    _lengths_up_to = staticmethod(doubling_lengths)
    _lengths = doubling_lengths(8)  # of a chosen grid; 4 and 16 were as fast


class Vcr(ReportedConstructs, VcrIndex):
    """Virtual construct rectangles: at each grid point one of each size 2^i x 2^j up to L x L.

    Of a query of w times h units, simple decomposition makes at most (w / L + k)(h / L + k) disjoint rectangles,
    overlapped decomposition ceil(w / l) ceil(h / l') of one size, l x l'. The last of these may overlap the one before.
    An L that is no power of two raises `ValueError`.
    """

    _lengths_up_to = staticmethod(doubling_lengths)
