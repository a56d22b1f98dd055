"""Every baseline says what the definition says, whatever happens to it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from numba import njit

from bench.baselines import cei, dlist, is_list
from bench.baselines.diff_rmq import DiffRmq
from bench.baselines.grid_line import Line
from bmq.index.base import BorderIndex
from tests.property.test_index_vs_oracle import IndexMachine

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


# The coarse grid of the values, of which the line covers a part; a unit of 2 puts half of the borders off its
# grid lines, and an origin of 0.25 all of them.
LINES = [Line(-3.0, 1.0, 7), Line(-4.0, 2.0, 3), Line(-4.75, 0.5, 19)]

BASELINES: dict[str, Callable[[], BorderIndex]] = {
    **{
        f"CEI of {length}, {line.unit} from {line.origin}": partial(
            DiffRmq, partial(cei.Cei, length=length, line=line), cei.collect, 1
        )
        for length in (1, 4, 64)
        for line in LINES
    },
    **{
        f"Dlist, {line.unit} from {line.origin}": partial(DiffRmq, partial(dlist.Dlist, line=line), dlist.collect, 1)
        for line in LINES
    },
    "IS-list": partial(DiffRmq, is_list.IsList, is_list.collect, 1),
    "scan, 1-D": partial(DiffRmq, Scan, scan, 1),
    "scan, 2-D": partial(DiffRmq, Scan, scan, 2),
}


@pytest.mark.parametrize("make", BASELINES.values(), ids=BASELINES)
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(
    make: Callable[[], BorderIndex],
) -> None:
    class Machine(IndexMachine):
        def make_index(self) -> BorderIndex:
            return make()

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=25))
