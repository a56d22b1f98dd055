"""The worked numbers of Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing."""

from itertools import product

import numpy as np
import pytest

from bench.baselines.overlapped_lists import cut_overlapped
from bench.baselines.virtual_constructs import Decomposition, Labelling, Lci, Sci, Vcr, integer_grid
from bmq.index.match.construct_indexes import VcrIndex
from bmq.index.match.construct_lists import ConstructLists, VirtualConstructIndex
from bmq.index.match.virtual_grid import VirtualGrid
from bmq.kernels.match.construct_lists import IN_PART
from bmq.kernels.match.virtual_constructs import (
    Axis,
    CellRanges,
    Pieces,
    cell_ranges,
    cells_of,
    construct_id,
    cut,
    pivots_of,
)
from bmq.records import Float64s, Int64s

pytestmark = pytest.mark.unit

INF = np.inf
SIMPLE, OVERLAPPED = Decomposition.SIMPLE, Decomposition.OVERLAPPED


def lengths(*of_sides: int) -> Int64s:
    return np.array(of_sides, dtype=np.int64)


def cells(first: int, n_cells: int) -> CellRanges:
    """Return one range of whole cells."""
    no = np.zeros(1, dtype=np.bool_)
    return CellRanges(np.array([first], dtype=np.int32), np.array([first + n_cells - 1], dtype=np.int32), no, no)


def placed(pieces: Pieces, of_sides: Int64s) -> list[tuple[int, int]]:
    """Return (first cell, length) of each piece."""
    return list(zip(pieces.cells.tolist(), of_sides[pieces.lengths].tolist(), strict=True))


def register(index: VirtualConstructIndex, *regions: tuple[list[float], list[float]]) -> ConstructLists:
    """Add queries from (lo, hi), numbered from 0, and return the structure of the only layer."""
    lo, hi = (np.array([region[end] for region in regions], dtype=np.float64).T for end in range(2))
    index.register(np.arange(len(regions), dtype=np.int32), lo, hi)
    index._check()
    [(structure, _)] = index._settled()
    assert isinstance(structure, ConstructLists)
    return structure


def covering_constructs(lists: ConstructLists, values: Float64s) -> list[list[int]]:
    """Return the numbers of all constructs that cover each of float64[d, n] values, ascending."""
    runs = list(zip(lists._firsts.tolist(), lists._stops.tolist(), strict=True))
    return [
        [int(pivot) + difference for first, stop in runs for difference in range(first, stop)]
        for pivot in pivots_of(lists.constructs, lists.cells_of(values))
    ]


def holding(index: VirtualConstructIndex, *value: float) -> list[int]:
    queries: list[int] = index.stab(np.array(value, dtype=np.float64)[:, None]).queries.tolist()
    return sorted(queries)


# -- decomposition ----------------------------------------------------------------------------------------


def test_figure_10a_the_simple_decomposition_of_the_query_3_3_11_6_is_8_rectangles() -> None:
    sides = lengths(1, 2, 4)
    in_x, in_y = cut(cells(3, 11), sides), cut(cells(3, 6), sides)

    rectangles = [(w, h) for (_, h), (_, w) in product(placed(in_y, sides), placed(in_x, sides))]

    # Two strips, of 4 and 2, each cut in four: the sizes of section 3.3.
    assert rectangles == [(4, 4), (4, 4), (2, 4), (1, 4), (4, 2), (4, 2), (2, 2), (1, 2)]


def test_figure_10b_the_overlapped_decomposition_of_the_query_3_3_11_6_is_6_squares_of_4() -> None:
    sides = lengths(1, 2, 4)

    in_x, shifted_x, own_from_x = cut_overlapped(cells(3, 11), sides)
    in_y, _, own_from_y = cut_overlapped(cells(3, 6), sides)

    assert placed(in_x, sides) == [(3, 4), (7, 4), (10, 4)]
    assert placed(in_y, sides) == [(3, 4), (5, 4)]
    assert (shifted_x.tolist(), in_x.inexact.tolist()) == ([False, False, True], [False] * 3)
    # From here on a value is in the shifted one alone.
    assert (own_from_x[0], own_from_y[0]) == (11, 7)


@pytest.mark.parametrize(("decomposition", "n_rectangles"), [(SIMPLE, 8), (OVERLAPPED, 6)])
def test_the_query_of_figure_10_is_in_as_many_lists(decomposition: Decomposition, n_rectangles: int) -> None:
    index = Vcr(integer_grid(20, 20, longest=4), decomposition=decomposition)
    structure = register(index, ([3, 3], [14, 9]))

    assert structure.n_entries == n_rectangles
    # Each value inside has it once, each outside not at all, and nothing needs a final check.
    grid = np.stack(np.meshgrid(np.arange(-1, 21) + 0.5, np.arange(-1, 21) + 0.5)).reshape(2, -1)
    moves = index.stab(grid)
    assert (
        moves.rows.tolist() == np.flatnonzero((grid[0] > 3) & (grid[0] < 14) & (grid[1] > 3) & (grid[1] < 9)).tolist()
    )
    assert not (structure._entries[: structure.n_entries] & IN_PART).any()


def test_a_logarithmic_remnant_of_7_is_4_and_2_and_1() -> None:
    sides = lengths(1, 2, 4, 8, 16)

    assert placed(cut(cells(0, 7), sides), sides) == [(0, 4), (4, 2), (6, 1)]
    assert placed(cut(cells(0, 39), sides), sides) == [(0, 16), (16, 16), (32, 4), (36, 2), (38, 1)]


def test_a_simple_remnant_is_one_interval_and_no_remnant_is_none() -> None:
    sides = lengths(1, 2, 3, 4)

    assert placed(cut(cells(5, 3), sides), sides) == [(5, 3)]
    assert placed(cut(cells(5, 8), sides), sides) == [(5, 4), (9, 4)]
    # The paper's count, ceil((w - 1) / L) of length L, would be 2 here.
    assert placed(cut(cells(5, 6), sides), sides) == [(5, 4), (9, 2)]


def test_an_overlapped_query_smaller_than_the_largest_square_takes_the_largest_that_fits() -> None:
    sides = lengths(1, 2, 4, 8)

    assert placed(cut_overlapped(cells(0, 6), sides)[0], sides) == [(0, 4), (2, 4)]
    assert placed(cut_overlapped(cells(0, 1), sides)[0], sides) == [(0, 1)]


# -- numbers ----------------------------------------------------------------------------------------------


def test_figure_2_the_number_of_a_simple_construct_interval() -> None:
    length = 4
    constructs = register(Sci(integer_grid(50, longest=length), labelling=Labelling.BY_POINT), ([1], [2])).constructs
    origin = construct_id(constructs, 0, 0, 0, 0)

    for a, b in [(0, 1), (0, 4), (1, 2), (7, 10)]:
        assert construct_id(constructs, a, 0, b - a - 1, 0) - origin == a * length + (b - a) - 1


def test_figure_3_the_number_of_a_logarithmic_construct_interval() -> None:
    k = 2
    constructs = register(Lci(integer_grid(50, longest=1 << k), labelling=Labelling.BY_POINT), ([1], [2])).constructs
    origin = construct_id(constructs, 0, 0, 0, 0)

    for a, exponent in product((0, 1, 7), range(k + 1)):
        assert construct_id(constructs, a, 0, exponent, 0) - origin == a * (k + 1) + exponent


def test_formula_1_the_number_of_a_virtual_construct_rectangle() -> None:
    k = 2
    index = Vcr(integer_grid(50, 40, longest=1 << k), labelling=Labelling.BY_POINT)
    constructs = register(index, ([1, 1], [2, 2])).constructs
    origin = construct_id(constructs, 0, 0, 0, 0)

    assert constructs.n_shapes == 9
    for a, b, i, j in product((0, 3), (0, 5), range(k + 1), range(k + 1)):
        number = 9 * (a + b * constructs.width) + j * (k + 1) + i
        assert construct_id(constructs, a, b, i, j) - origin == number


# -- search -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labelling", Labelling)
@pytest.mark.parametrize(
    ("make", "n_covering"),
    [
        # 1 + 2 + ... + L; 1 + 2 + 4 + ... + L; and the square of that.
        (lambda labelling: Sci(integer_grid(9, longest=4), labelling=labelling), 10),
        (lambda labelling: Lci(integer_grid(9, longest=4), labelling=labelling), 7),
        (lambda labelling: Vcr(integer_grid(9, 6, longest=4), labelling=labelling), 49),
        (lambda labelling: Vcr(integer_grid(9, 6, longest=8), labelling=labelling), 225),
    ],
    ids=["SCI", "LCI", "VCR 4", "VCR 8"],
)
def test_one_difference_table_gives_the_covering_constructs_of_every_cell_also_at_the_boundary(
    make: type[Vcr], n_covering: int, labelling: Labelling
) -> None:
    index = make(labelling=labelling)
    structure = register(index, ([1] * index.n_dims, [2] * index.n_dims))
    constructs = structure.constructs
    lengths_x, lengths_y = constructs.lengths_x.tolist(), constructs.lengths_y.tolist()
    ranges = [range(-1, axis.n_units + 1) for axis in structure._grid.axes]
    for cell in product(*ranges):
        # A value at the lower border of the cell; -1 and R are the overflow cells, numbered 0 and R + 1.
        x, y = (*(c + 1 for c in cell), 0)[:2]
        [found] = covering_constructs(structure, np.array(cell, dtype=np.float64)[:, None])

        assert found == sorted(
            construct_id(constructs, x - back_x, y - back_y, i, j)
            for (i, length_x), (j, length_y) in product(enumerate(lengths_x), enumerate(lengths_y))
            for back_x, back_y in product(range(length_x), range(length_y))
        )
        assert len(found) == n_covering


def test_constructs_of_a_shape_beside_each_other_make_few_runs() -> None:
    # L = 8: 4 widths times 1 + 2 + 4 + 8 rows, where the covering rectangles are 225.
    grid = integer_grid(245, 245, longest=8)

    n_runs = [register(Vcr(grid, labelling=labelling), ([1, 1], [2, 2]))._firsts.size for labelling in Labelling]

    assert n_runs == [112, 60]


def test_figure_8_the_queries_of_three_vehicles() -> None:
    for decomposition in Decomposition:
        index = Vcr(integer_grid(13, 13, longest=4), decomposition=decomposition)
        register(index, ([3, 3], [8, 9]), ([6, 7], [11, 12]))

        assert [holding(index, *d) for d in [(9.3, 4.15), (3.6, 5.2), (7.5, 9.5)]] == [[], [0], [1]]


def test_figure_1_a_value_is_in_the_queries_of_the_intervals_that_cover_it() -> None:
    for index in (Sci(integer_grid(50, longest=4)), Lci(integer_grid(50, longest=4))):
        register(index, ([2], [9]), ([5], [7]), ([6], [20]), ([9], [10]))

        assert holding(index, 6.5) == [0, 1, 2]
        assert holding(index, 9) == [2, 3]


# -- ends that are not on the grid -----------------------------------------------------------------------


def test_an_end_is_exact_on_a_line_of_the_grid_or_where_there_is_none() -> None:
    axis = Axis(0.0, 1.0, 10)
    intervals = np.array([[2, 5], [2.5, 5], [2, 5.5], [-INF, 3], [3, INF], [-4, 3], [3, 14], [0, 10]], dtype=np.float64)

    ranges = cell_ranges(axis, intervals)

    # Cell 0 is all below 0, cell 11 all from 10.
    assert ranges.first.tolist() == [3, 3, 3, 0, 4, 0, 4, 1]
    assert ranges.last.tolist() == [5, 5, 6, 3, 11, 3, 11, 10]
    assert np.flatnonzero(ranges.inexact_first).tolist() == [1, 5]
    assert np.flatnonzero(ranges.inexact_last).tolist() == [2, 6]


def test_only_the_pieces_at_an_inexact_end_get_the_final_check() -> None:
    sides = lengths(1, 2, 4)

    ranges = cell_ranges(Axis(0.0, 1.0, 30), np.array([[2.5, 17]]))

    assert cut(ranges, sides).inexact.tolist() == [True, False, False, False, False]


def test_values_outside_the_attribute_range_are_found_and_not_mistaken() -> None:
    index = Sci(integer_grid(10, longest=4))
    register(index, ([-INF], [3]), ([-5], [3]), ([8], [INF]), ([8], [12]), ([20], [30]))

    assert [holding(index, value) for value in (-6, -5, -0.5, 9, 11.5, 12, 25, 1e308)] == [
        [0], [0, 1], [0, 1], [2, 3], [2, 3], [2], [2, 4], [2],
    ]  # fmt: skip


def test_a_deregistered_query_is_not_found_and_is_still_a_candidate() -> None:
    index = Lci(integer_grid(10, longest=4))
    register(index, ([1], [3]), ([2], [4]), ([2], [5]))
    index.deregister(np.array([1], dtype=np.int32))

    moves = index.stab(np.array([[2.0]]))

    assert (moves.queries.tolist(), moves.visits) == ([0, 2], 3)


# -- grids ------------------------------------------------------------------------------------------------


def test_a_chosen_grid_has_a_power_of_two_for_unit_so_that_integers_of_a_wide_query_need_no_check() -> None:
    index = VcrIndex()
    rng = np.random.default_rng(1)
    lo = rng.integers(0, 200, (2, 30_000)) * 4.0
    structure = register(index, *zip(lo.T.tolist(), (lo + 16).T.tolist(), strict=True))

    assert {axis.unit for axis in structure._grid.axes} <= {1.0, 2.0, 4.0}
    assert not (structure._entries[: structure.n_entries] & IN_PART).any()


def test_a_few_huge_queries_make_the_chosen_grid_coarser_and_do_not_fill_the_memory() -> None:
    rng = np.random.default_rng(1)
    lo = rng.uniform(0, 1e5, (2, 10_000))
    hi = lo + 10
    hi[:, :200] = 2e5
    for decomposition in Decomposition:
        index = Vcr(decomposition=decomposition)
        index.register(np.arange(10_000, dtype=np.int32), lo, hi)
        index.stab(np.zeros((2, 0)))

        assert index.nbytes < 10_000 * 300


def test_a_line_of_the_grid_parts_cells_however_far_the_origin_is() -> None:
    values = np.array([-np.nextafter(0, 1), 0.0, np.nextafter(4, 0), 4.0])

    for n_below in (0, 250_000):
        assert (cells_of(Axis(-4.0 * n_below, 4.0, 500_000), values) - n_below).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Lci(integer_grid(10, longest=6)), "longest side of a construct is 6 units"),
        (lambda: Sci(integer_grid(10, longest=0)), "longest side of a construct is 0 units"),
        (lambda: Vcr(integer_grid(10, longest=4)), "the grid has 1 dimensions"),
        (lambda: Sci(VirtualGrid((Axis(0.0, 0.0, 5),), 4)), "is no attribute range"),
        (lambda: Sci(VirtualGrid((Axis(-INF, 1.0, 5),), 4)), "is no attribute range"),
        (lambda: Sci(integer_grid(0, longest=4)), "is no attribute range"),
        (
            lambda: register(Vcr(integer_grid(50_000, 50_000, longest=4)), ([1, 1], [2, 2])),
            "constructs for 1 queries are too many",
        ),
        (
            lambda: register(Vcr(integer_grid(40_000, 40_000, longest=1)), *[([0.0, 0.0], [4e4, 4e4])] * 3),
            "entries for 3 queries are too many",
        ),
    ],
)
def test_a_grid_that_cannot_be_is_refused(make: type[Sci], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        make()
