"""The rivals in the plane say what the definition says; a fast wrong rival would prove nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from bench.baselines.ces import Ces, collect
from bench.baselines.diff_rmq import DiffRmq
from bench.baselines.rtree import NODE_CAPACITY, RTreeDifference, count_nodes
from bmq.index.base import BorderIndex
from tests.examples import times
from tests.index_machines import IndexMachine, crossings
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property

# Cells of 1: borders are on grid lines, but for those beyond. Cells of 3 and of 0.7: few borders are.
GRIDS: list[dict[str, Any]] = [
    {"unit": 1.0, "length": 4, "origin": (-5.0, -5.0), "extent": 10.0},
    {"unit": 1.0, "length": 1, "origin": (-3.0, -2.0), "extent": 4.0},
    {"unit": 3.0, "length": 2, "origin": (-5.0, -4.0), "extent": 12.0},
    {"unit": 0.7, "length": 16, "origin": (-6.0, -6.0), "extent": 12.0},
]
INDEXES = [
    *(partial(DiffRmq, partial(Ces, **grid), collect, 2) for grid in GRIDS),
    *(partial(RTreeDifference, n_dims) for n_dims in (1, 2)),
]
NAMES = [f"CES, cells of {grid['unit']}, blocks of {grid['length']}" for grid in GRIDS] + ["1-D R-tree", "2-D R-tree"]


@pytest.mark.parametrize("make", INDEXES, ids=NAMES)
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(
    make: Callable[[], BorderIndex],
) -> None:
    class Machine(IndexMachine):
        def make_index(self) -> BorderIndex:
            return make()

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=25, max_examples=times(0.3)))


N_CELLS = 14
# Not the outer cells: they hold all that is beyond the grid, too, so the final check is never left out there.
cells = st.tuples(st.integers(1, N_CELLS - 2), st.integers(1, N_CELLS - 2)).map(sorted)


@given(column=cells, strip=cells, length=st.sampled_from([1, 2, 4, 8, 16]))
def test_a_query_is_listed_in_the_fewest_virtual_squares_that_make_up_its_cells(
    column: list[int], strip: list[int], length: int
) -> None:
    lo, hi = np.array([column, strip], dtype=np.float64).T[:, :, None]
    hi += 1
    index = Ces(lo, hi, unit=1.0, length=length, origin=(0.0, 0.0), extent=float(N_CELLS))
    n_blocks = -(-N_CELLS // length)

    listed = np.flatnonzero(np.diff(index.arrays.starts))

    tiles = [cells_of_square(number, length, n_blocks) for number in listed.tolist()]
    covered = [cell for tile in tiles for cell in tile]
    wanted = {(x, y) for x in range(column[0], column[1] + 1) for y in range(strip[0], strip[1] + 1)}
    assert len(covered) == len(set(covered))
    assert set(covered) == wanted
    # The fewest: no square around a listed one is within the query, too.
    for number in listed.tolist():
        block, square = divmod(number, squares_of_block(length))
        if square:
            parent = block * squares_of_block(length) + (square - 1) // 4
            assert not set(cells_of_square(parent, length, n_blocks)) <= wanted
    # All borders are on grid lines, so no row needs a final check.
    assert (index.arrays.entries == 0).all()


def squares_of_block(length: int) -> int:
    return sum(4**depth for depth in range(length.bit_length()))


def cells_of_square(number: int, length: int, n_blocks: int) -> list[tuple[int, int]]:
    """Return the cells of a virtual square, by walking down from its block to it."""
    block, square = divmod(number, squares_of_block(length))
    turns = []
    while square:
        square, turn = divmod(square - 1, 4)
        turns.append(turn)
    left, bottom, side = block % n_blocks * length, block // n_blocks * length, length
    for turn in reversed(turns):
        side //= 2
        left, bottom = left + side * (turn % 2), bottom + side * (turn // 2)
    return [(left + x, bottom + y) for x in range(side) for y in range(side)]


def test_a_block_whose_side_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        Ces(np.zeros((2, 1)), np.ones((2, 1)), unit=1.0, length=3, origin=(0.0, 0.0), extent=10.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiffRmq(partial(Ces, unit=0.5, length=8, origin=(0.0, 0.0), extent=100.0), collect, 2),
        RTreeDifference,
    ],
    ids=["CES", "R-tree"],
)
@given(seed=st.integers(0, 2**32 - 1), side=st.sampled_from([0.3, 5.0, 60.0]), step=st.sampled_from([0.1, 3.0, 200.0]))
@settings(max_examples=times(0.15))
def test_many_queries_and_moves_get_the_answers_of_the_definition(
    make: Callable[[], BorderIndex], seed: int, side: float, step: float
) -> None:
    rng = np.random.default_rng(seed)
    index, oracle = make(), IndexOracle()
    lo = rng.uniform(-10, 110, (2, 500))
    hi = lo + side * rng.uniform(0.1, 1, lo.shape)
    index.register(np.arange(500, dtype=np.int32), lo, hi)
    oracle.register(range(500), lo, hi)
    before = rng.uniform(-10, 110, (2, 400))

    for _ in range(2):
        after = before + rng.normal(0, step, before.shape)
        streams = rng.permutation(400).astype(np.int32)
        assert crossings(index.moves(streams, before, after)) == oracle.moves(before, after)
        before = after
    assert crossings(index.stab(before)) == oracle.stab(before)


@pytest.mark.parametrize(
    ("n_boxes", "n_nodes"),
    [(0, 0), (1, 1), (NODE_CAPACITY, NODE_CAPACITY + 1), (NODE_CAPACITY + 1, NODE_CAPACITY + 4), (1_000, 1_115)],
)
def test_the_nodes_of_an_r_tree_are_counted_as_the_library_makes_them(n_boxes: int, n_nodes: int) -> None:
    # Eleven are 2 slices of 6 and 5, a node for each, and a root. A thousand have 100, 12, 2 and 1 above them.
    assert count_nodes(n_boxes) == n_nodes


def test_an_r_tree_of_three_dimensions_is_refused() -> None:
    with pytest.raises(ValueError, match="1 or 2 dimensions"):
        RTreeDifference(3)
