"""The match index that chooses its structure: its answers are those of the definition, whatever it chooses and when."""

import random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from bmq.index.match.adaptive_match import AdaptiveMatches, make_match
from bmq.index.match.match_costs import MatchKind, MatchWorkload, call_ns
from bmq.records import Float64s
from tests.examples import times
from tests.index_machines import MatchMachine, crossings
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(n_dims: int) -> None:
    class Machine(MatchMachine):
        def make_index(self) -> AdaptiveMatches:
            costs = random.Random(n_dims)
            # It takes another structure at nearly every question.
            return AdaptiveMatches(
                n_dims, switch_factor=1.0, values_between_looks=1, predicted_ns=lambda kind, workload: costs.random()
            )

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=15, max_examples=times(0.5)))


def cubes(n_dims: int, n_queries: int, side: float) -> tuple[AdaptiveMatches, Float64s]:
    """Return an index of cubes that lie evenly between 0 and 1, and their lower ends."""
    index = make_match(n_dims)
    lo = np.random.default_rng(1).uniform(0, 1, (n_dims, n_queries))
    index.register(np.arange(n_queries, dtype=np.int32), lo, lo + side)
    return index, lo


def ask(index: AdaptiveMatches, n_values: int) -> None:
    index.stab(np.random.default_rng(2).uniform(0, 1, (index.n_dims, n_values)))


@pytest.mark.parametrize(
    ("n_dims", "n_queries", "side", "n_values", "kind"),
    [
        (1, 10_000, 1e-3, 5_000, MatchKind.CONSTRUCTS),
        (2, 10_000, 1e-2, 5_000, MatchKind.CONSTRUCTS),
        (1, 10_000, 0.5, 5_000, MatchKind.CORNERS),
        (3, 10_000, 0.3, 5_000, MatchKind.CORNERS),
        (3, 10_000, 1e-3, 20, MatchKind.TREE),
        (2, 10, 0.1, 20, MatchKind.TREE),
    ],
)
def test_each_structure_is_taken_where_it_is_good(
    n_dims: int, n_queries: int, side: float, n_values: int, kind: MatchKind
) -> None:
    index, _ = cubes(n_dims, n_queries, side)
    ask(index, n_values)
    assert index.kind is kind


def test_the_first_reading_does_not_decide_for_batches() -> None:
    index, _ = cubes(2, 10_000, 1e-2)
    ask(index, 1)
    few = index.kind
    ask(index, 5_000)

    assert (few, index.kind) == (MatchKind.TREE, MatchKind.CONSTRUCTS)


def test_another_structure_is_taken_when_there_are_many_more_queries_and_when_they_go() -> None:
    index, lo = cubes(2, 10, 0.3)
    ask(index, 20)
    few = index.kind
    more = np.arange(10, 20_010, dtype=np.int32)
    lo = np.random.default_rng(3).uniform(0, 1, (2, more.size))
    index.register(more, lo, lo + 0.03)
    ask(index, 2_000)
    many = index.kind
    index.deregister(more)
    ask(index, 20)

    assert (few, many, index.kind) == (MatchKind.TREE, MatchKind.CONSTRUCTS, MatchKind.TREE)


def test_values_that_go_where_queries_crowd_have_another_structure_taken_once_there_were_enough() -> None:
    index = AdaptiveMatches(2, values_between_looks=3_000)
    rng, oracle = np.random.default_rng(4), IndexOracle()
    lo = np.hstack([rng.uniform(0, 1, (2, 2_000)), rng.uniform(5, 5.01, (2, 2_000))])  # and all of these overlap
    slots = np.arange(4_000, dtype=np.int32)
    index.register(slots, lo, lo + 0.02)
    oracle.register(slots.tolist(), lo, lo + 0.02)
    kinds = []
    for place in ((0.0, 1.0), (5.01, 5.02)):
        for _ in range(12):
            at = rng.uniform(*place, (2, 2_000))
            assert crossings(index.stab(at[:, :20].copy())) == oracle.stab(at[:, :20])
            index.stab(at)
        kinds.append(index.kind)

    assert kinds == [MatchKind.CONSTRUCTS, MatchKind.CORNERS]


def test_the_model_asks_for_more_where_there_is_more_to_look_at() -> None:
    some = MatchWorkload(2, 1_000, 500.0, 3.0, 90.0, 6.0)
    more = MatchWorkload(2, 2_000, 600.0, 9.0, 180.0, 18.0)
    for kind in MatchKind:
        assert 0 < call_ns(kind, some) < call_ns(kind, more)
