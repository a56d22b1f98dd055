"""Which structure an index takes, and when it takes another."""

import numpy as np
import pytest

from bmq.index.border.adaptive_border import MOVES_ON_TRIAL, Adaptive, ChangeRule, make_index
from bmq.index.border.border_costs import NS, Workload, move_ns, terms
from bmq.index.border.structures import STRUCTURES, OneKind
from bmq.records import IndexKind

pytestmark = pytest.mark.unit

N_STREAMS = 1_000


def adaptive_over(n_dims: int, n_queries: int, side: float) -> Adaptive:
    """Return an index of cubes that lie evenly between 0 and 1."""
    index = Adaptive(n_dims, rule=ChangeRule(moves_between_looks=N_STREAMS))
    lo = np.random.default_rng(1).uniform(0, 1, (n_dims, n_queries))
    index.register(np.arange(n_queries, dtype=np.int32), lo, lo + side)
    return index


def move_all(index: Adaptive, step: float, n_times: int = 1) -> None:
    """Move a thousand streams by ``step`` in every dimension."""
    before = np.random.default_rng(2).uniform(0, 1, (index.n_dims, N_STREAMS))
    for _ in range(n_times):
        index.moves(np.arange(N_STREAMS, dtype=np.int32), before, before + step)


@pytest.mark.parametrize(
    ("n_dims", "n_queries", "side", "step", "kind"),
    [
        (1, 10_000, 1e-3, 1e-4, IndexKind.REGION_SEGMENTS),
        (2, 10_000, 1e-1, 1e-3, IndexKind.BORDER_GRID),
        (2, 10, 1e-1, 1e-2, IndexKind.SCAN),
        (2, 10_000, 1e-3, 0.3, IndexKind.STAB_DIFFERENCE),
        (9, 10_000, 1e-3, 1e-3, IndexKind.STAB_DIFFERENCE),
        (5, 10_000, 1e-1, 1e-3, IndexKind.ND_BMQ),
    ],
)
def test_each_structure_is_taken_where_it_is_good(
    n_dims: int, n_queries: int, side: float, step: float, kind: IndexKind
) -> None:
    index = adaptive_over(n_dims, n_queries, side)
    move_all(index, step)
    assert index.kinds == [kind]


def test_before_the_first_move_small_steps_are_assumed() -> None:
    index = adaptive_over(2, 10_000, 1e-1)
    index.moves(np.empty(0, dtype=np.int32), np.empty((2, 0)), np.empty((2, 0)))
    assert index.kinds == [IndexKind.BORDER_GRID]


def test_each_layer_has_a_structure_of_its_own() -> None:
    index = adaptive_over(1, 10_000, 0.01)
    move_all(index, 0.001)
    lo = np.full((1, 3), 0.5)
    index.register(np.arange(10_000, 10_003, dtype=np.int32), lo, lo + 0.01)
    move_all(index, 0.001)
    assert index.kinds == [IndexKind.REGION_SEGMENTS, IndexKind.SCAN]
    index._check()


def test_another_movement_brings_another_structure_once_it_has_paid() -> None:
    # A thousand moves are a millisecond dearer, and 10,000 queries cost several to build.
    index = adaptive_over(1, 10_000, 1e-4)
    move_all(index, 1e-5)
    assert index.kinds == [IndexKind.REGION_SEGMENTS]
    move_all(index, 0.3)
    assert index.kinds == [IndexKind.REGION_SEGMENTS]
    move_all(index, 0.3, 100)
    assert index.kinds == [IndexKind.STAB_DIFFERENCE]


def test_a_movement_that_comes_and_goes_does_not_have_a_layer_built_anew() -> None:
    index = adaptive_over(1, 10_000, 1e-4)
    move_all(index, 1e-5)
    standing = index._layers[0].structure
    for _ in range(20):
        move_all(index, 0.3)
        move_all(index, 1e-5, 5)
    assert index._layers[0].structure is standing


@pytest.mark.parametrize("kind", list(STRUCTURES))
def test_every_structure_has_a_constant_for_each_of_its_terms(kind: IndexKind) -> None:
    for n_dims in (1, 2, 3, 9):
        if kind.fits(n_dims):
            workload = Workload(1_000, np.full(n_dims, 0.01), np.full(n_dims, 0.02))
            assert len(terms(kind, workload)) == len(NS[kind])
            assert move_ns(kind, workload) > 0


@pytest.mark.parametrize("kind", list(STRUCTURES))
def test_a_longer_step_is_never_cheaper_and_more_queries_neither(kind: IndexKind) -> None:
    n_dims = 1 if kind.fits(1) else 2
    sides = np.full(n_dims, 0.01)
    for longer in (1e-4, 1e-3, 1e-2, 1e-1):
        costs = [move_ns(kind, Workload(1_000, sides, np.full(n_dims, step))) for step in (longer / 2, longer)]
        assert costs == sorted(costs)
    costs = [move_ns(kind, Workload(n, sides, np.full(n_dims, 0.02))) for n in (10, 100, 1_000, 10_000)]
    assert costs == sorted(costs)


def test_a_feed_gets_what_its_configuration_names() -> None:
    assert isinstance(make_index(2), Adaptive)
    for kind in STRUCTURES:
        n_dims = 1 if kind.fits(1) else 2
        index = make_index(n_dims, kind)
        assert isinstance(index, OneKind)
        assert index.n_dims == n_dims
        index.register(np.zeros(1, dtype=np.int32), np.zeros((n_dims, 1)), np.ones((n_dims, 1)))
        index.moves(np.zeros(1, dtype=np.int32), np.zeros((n_dims, 1)), np.ones((n_dims, 1)))
        assert type(index._layers[0].structure) is type(STRUCTURES[kind](index._layers[0].table))


def test_a_structure_that_looks_at_far_more_than_predicted_is_replaced_after_a_trial() -> None:
    def wrong(kind: IndexKind, workload: Workload) -> float:
        return 1.0 if kind is IndexKind.SCAN else move_ns(kind, workload)

    rng = np.random.default_rng(1)
    index = Adaptive(2, rule=ChangeRule(predicted_ns=wrong, rebuild_ns=0.0))
    lo = rng.uniform(0, 1, (2, 20_000))
    index.register(np.arange(20_000, dtype=np.int32), lo, lo + 0.01)
    before = rng.uniform(0, 1, (2, 2 * MOVES_ON_TRIAL))
    kinds = []
    for part in np.split(before, 2, axis=1):
        index.moves(np.arange(MOVES_ON_TRIAL, dtype=np.int32), part, part + 0.001)
        kinds += index.kinds
    assert IndexKind.SCAN not in kinds[1:]


def test_a_call_that_is_cut_for_a_look_gives_the_answer_of_one_that_is_not() -> None:
    rng = np.random.default_rng(1)
    n_queries, n_moves = 300, 7_001
    lo = rng.uniform(0, 1, (2, n_queries))
    before = rng.uniform(0, 1, (2, n_moves))
    after = before + rng.normal(0, 0.1, before.shape)
    answers = []
    for index in (Adaptive(2, rule=ChangeRule(moves_between_looks=1_000)), OneKind(2, IndexKind.SCAN)):
        index.register(np.arange(n_queries, dtype=np.int32), lo, lo + 0.1)
        moves = index.moves(np.arange(n_moves, dtype=np.int32), before, after)
        assert (np.diff(moves.rows) >= 0).all()
        order = np.lexsort((moves.queries, moves.rows))
        answers.append(np.stack((moves.rows, moves.queries, moves.signs))[:, order])
    one, other = answers
    np.testing.assert_array_equal(one, other)
