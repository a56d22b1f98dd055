"""Every baseline says what the definition says, whatever happens to it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from numba import njit

from bench.baselines.diff_rmq import DiffRmq
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


BASELINES: dict[str, Callable[[], BorderIndex]] = {
    "scan, 1-D": lambda: DiffRmq(Scan, scan, 1),
    "scan, 2-D": lambda: DiffRmq(Scan, scan, 2),
}


@pytest.mark.parametrize("make", BASELINES.values(), ids=BASELINES)
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(
    make: Callable[[], BorderIndex],
) -> None:
    class Machine(IndexMachine):
        def make_index(self) -> BorderIndex:
            return make()

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=25))
