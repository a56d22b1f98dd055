"""Every border index, whatever happens to it, says what the definition says."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from bench.baselines.one_structure import BorderGrid, NdBmq, RegionSegmentList
from bench.baselines.published_walk import PublishedWalk
from bmq.index.layered import Layered
from tests.examples import times
from tests.index_machines import OTHER_KINDS, IndexMachine

pytestmark = pytest.mark.property


@pytest.mark.parametrize("growth", [1, 4])
@pytest.mark.parametrize(
    "kind",
    [
        RegionSegmentList,
        PublishedWalk,
        BorderGrid,
        *(partial(NdBmq, n_dims) for n_dims in (1, 2, 3, 4)),
        *OTHER_KINDS.values(),
    ],
    ids=["segments", "published walk", "grid", "1-D BMQ", "2-D BMQ", "3-D BMQ", "4-D BMQ", *OTHER_KINDS],
)
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(
    kind: Callable[..., Layered], growth: int
) -> None:
    class Machine(IndexMachine):
        def make_index(self) -> Layered:
            # Layers as small as one query, so that there are several of them, and they merge all the time.
            return kind(growth=growth, smallest_layer=1)

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=25, max_examples=times(0.5)))
