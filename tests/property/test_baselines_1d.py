"""Every baseline says what the definition says, whatever happens to it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from numba import njit

from bench.baselines import cei, dlist, is_list
from bench.baselines.diff_rmq import DiffRmq
from bench.baselines.grid_line import begin_of, cell_of, cover, line_around
from bench.baselines.trees import build_lists
from bmq.index.base import BorderIndex
from bmq.kernels.match.virtual_constructs import Axis
from tests.examples import times
from tests.index_machines import IndexMachine, crossings, values
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property


class Ends(NamedTuple):
    """The simplest RMQ index: every region."""

    lo: Any
    hi: Any


class Scan:
    """Asks every region, so that DiffRMQ is tested apart from the structures."""

    nbytes = 0

    def __init__(self, lo: Any, hi: Any) -> None:
        self.arrays = Ends(lo, hi)


@njit
def scan(ends: Ends, values: Any, i: int, out: Any, n_out: int) -> int:
    for row in range(ends.lo.shape[1]):
        if (ends.lo[:, row] <= values[:, i]).all() and (values[:, i] < ends.hi[:, row]).all():
            out[n_out] = row
            n_out += 1
    return n_out


# Lines that cover a part of the values. A unit of 2 puts half of the coarse borders off the grid lines, an origin
# of 0.25 all of them.
WHOLE = Axis(-3.0, 1.0, 7)
DOUBLE = Axis(-4.0, 2.0, 3)
SHIFTED = Axis(-3.75, 1.0, 8)


def diff_cei(length: int, line: Axis | None = None) -> DiffRmq:
    return DiffRmq(partial(cei.Cei, length=length, line=line), cei.collect, 1)


def diff_dlist(line: Axis | None = None) -> DiffRmq:
    return DiffRmq(partial(dlist.Dlist, line=line), dlist.collect, 1)


BASELINES: dict[str, Callable[[], BorderIndex]] = {
    "CEI of 1": partial(diff_cei, 1, WHOLE),
    "CEI of 4": partial(diff_cei, 4, WHOLE),
    "CEI of 4, off the grid": partial(diff_cei, 4, DOUBLE),
    "CEI of 64, off the grid": partial(diff_cei, 64, SHIFTED),
    "Dlist": partial(diff_dlist, WHOLE),
    "Dlist, off the grid": partial(diff_dlist, DOUBLE),
    "IS-list": partial(DiffRmq, is_list.IsList, is_list.collect, 1),
    "scan, 2-D": partial(DiffRmq, Scan, scan, 2),
}


@pytest.mark.parametrize("make", BASELINES.values(), ids=BASELINES)
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(
    make: Callable[[], BorderIndex],
) -> None:
    class Machine(IndexMachine):
        def make_index(self) -> BorderIndex:
            return make()

    run_state_machine_as_test(Machine, settings=settings(max_examples=times(0.3), stateful_step_count=20))


LARGE: dict[str, Callable[[], BorderIndex]] = {
    "CEI of 1": partial(diff_cei, 1),
    "CEI of 64": partial(diff_cei, 64),
    "CEI of 16, a part of the range": partial(diff_cei, 16, Axis(100.0, 2.0, 300)),
    "Dlist": diff_dlist,
    "IS-list": partial(DiffRmq, is_list.IsList, is_list.collect, 1),
}


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([1.0, 30.0, 900.0]),
    step=st.sampled_from([0.3, 10.0, 1000.0]),
    on_grid=st.booleans(),
)
@settings(max_examples=times(0.05))
def test_many_queries_and_moves_get_the_answers_of_the_definition(
    make: Callable[[], BorderIndex], seed: int, width: float, step: float, on_grid: bool
) -> None:
    rng = np.random.default_rng(seed)
    index, oracle = make(), IndexOracle()
    n_dims, n_queries, n_moves = index.n_dims, 600, 300
    before = rng.uniform(-100, 1100, (n_dims, n_moves))
    streams = rng.permutation(n_moves).astype(np.int32)
    for part in np.array_split(rng.permutation(n_queries).astype(np.int32), 2):
        lo = rng.uniform(0, 1000, (n_dims, part.size))
        hi = lo + width * rng.lognormal(0, 1, lo.shape)
        if on_grid:
            lo, hi = np.floor(lo), np.ceil(hi)
        lo[rng.random(lo.shape) < 0.03] = -np.inf
        hi[rng.random(hi.shape) < 0.03] = np.inf
        index.register(part, lo, hi)
        oracle.register(part.tolist(), lo, hi)
        gone = part[rng.random(part.size) < 0.2]
        index.deregister(gone)
        oracle.deregister(gone.tolist())
        for _ in range(2):  # the second time, every matching set is known
            after = before + rng.normal(0, step, before.shape)
            assert crossings(index.moves(streams, before, after)) == oracle.moves(before, after)
            before = after
        assert crossings(index.stab(after)) == oracle.stab(after)
    index._check()


def test_marks_that_run_out_begin_anew() -> None:
    index, oracle = diff_cei(4, WHOLE), IndexOracle()
    lo = np.arange(-3.0, 3.0)[None]
    index.register(np.arange(lo.size, dtype=np.int32), lo, lo + 2)
    oracle.register(range(lo.size), lo, lo + 2)
    index.stab(lo)
    index._last_mark = np.iinfo(np.int32).max - 15

    for previous, current in [(lo, lo + 1), (lo + 1, lo), (lo, lo + 1)]:
        streams = np.arange(lo.size, dtype=np.int32)
        assert crossings(index.moves(streams, previous, current)) == oracle.moves(previous, current)
    assert index._last_mark < 100


def test_a_change_that_breaks_the_rules_is_refused_and_changes_nothing() -> None:
    index = diff_dlist()
    one, two, at = np.array([3], dtype=np.int32), np.array([4, 4], dtype=np.int32), np.array([[1.0]])
    index.register(one, at, at + 1)

    for slots, lo, hi in [(one, at, at + 1), (two, at.repeat(2, 1), at.repeat(2, 1) + 1), (one + 1, at, at)]:
        with pytest.raises(ValueError, match=r"slots|border"):
            index.register(slots, lo, hi)
    for slots in (one + 1, one.repeat(2)):
        with pytest.raises(ValueError, match="slots"):
            index.deregister(slots)

    assert crossings(index.stab(at)) == [(0, 3, 1)]


@given(line=st.sampled_from([WHOLE, DOUBLE, SHIFTED, Axis(0.1, 0.3, 17), Axis(-1e6, 1.0, 1 << 21)]), value=values)
@example(line=Axis(-1e6, 1.0, 1 << 21), value=np.nextafter(5.0, 0.0))  # value - origin rounds to a grid line
def test_a_cell_holds_its_values_however_the_division_rounds(line: Axis, value: float) -> None:
    cell = cell_of(line, value)

    assert cell == 0 or begin_of(line, cell) <= value
    assert cell == line.n_units + 1 or value < begin_of(line, cell + 1)


def test_only_rows_with_an_end_off_the_grid_are_compared_with_values() -> None:
    lo, hi = np.array([-3.0, -np.inf, -2.5, -9.0]), np.array([2.0, np.inf, 1.0, 0.0])

    assert cover(WHOLE, lo, hi).entries.tolist() == [0, 1, ~2, ~3]
    assert cover(WHOLE, lo[:2], hi[:2]).lo.size == 0


@given(
    rows=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 41)), max_size=8),
    length=st.sampled_from([1, 2, 8, 64]),
)
def test_a_cell_meets_each_row_that_covers_it_in_exactly_one_list(rows: list[tuple[int, int]], length: int) -> None:
    first = np.array([first for first, _ in rows], dtype=np.int64)
    stop = first + np.array([width for _, width in rows], dtype=np.int64)
    n_cells = 82
    starts, ids = build_lists(first, stop, np.arange(first.size, dtype=np.int32), n_cells, length)

    for cell in range(n_cells):
        met = []
        node = length + cell % length
        while node:
            at = cell // length * (2 * length - 1) + node - 1
            met += ids[starts[at] : starts[at + 1]].tolist()
            node //= 2
        assert sorted(met) == np.flatnonzero((first <= cell) & (cell < stop)).tolist()


def test_a_unit_that_does_not_fit_is_refused() -> None:
    far = np.array([[0.0, 1e12]])
    with pytest.raises(ValueError, match="choose a larger unit"):
        line_around(far, far + 1)
    with pytest.raises(ValueError, match="cannot be distinguished"):
        cover(Axis(1e17, 1.0, 5), far[0], far[0] + 1)


def test_the_shortest_lists_are_found_without_building_them() -> None:
    lo = np.random.default_rng(1).integers(0, 5_000, (1, 400)).astype(np.float64)
    lengths = (4, 16, 64, 256)
    sizes = [cei.Cei(lo, lo + 100, length).nbytes for length in lengths]

    assert cei.smallest_length(lo, lo + 100, lengths) == lengths[int(np.argmin(sizes))]
