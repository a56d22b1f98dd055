"""The index of selections, whatever happens to it, says what the definition says."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from bench.baselines.column_scan import ColumnScan
from bench.baselines.ibs import Ibs
from bmq.index.base import MatchIndex
from bmq.index.match.select_index import IMMEDIATE, SelectIndex
from bmq.kernels.match.cluster_search import MAX_CLUSTER
from bmq.records import Float64s
from tests.examples import times
from tests.index_machines import MatchMachine, crossings
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property


@pytest.mark.parametrize("growth", [1, 4])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(n_dims: int, growth: int) -> None:
    class Machine(MatchMachine):
        def make_index(self) -> SelectIndex:
            # Layers as small as one query, so that there are several of them, and they merge all the time.
            return SelectIndex(n_dims, growth=growth, smallest_layer=1)

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=15, max_examples=times(0.5)))


@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("rival", [Ibs, ColumnScan])
def test_a_rival_gets_the_answers_of_the_definition(rival: Callable[[int], MatchIndex], n_dims: int) -> None:
    class Machine(MatchMachine):
        def make_index(self) -> MatchIndex:
            return rival(n_dims)

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=15, max_examples=times(0.5)))


def spread(rng: np.random.Generator, scale: str, shape: tuple[int, ...]) -> Float64s:
    """Return numbers that lie evenly, on few integers, or around one with outliers far away."""
    if scale == "even":
        return rng.uniform(0, 10, shape)
    if scale == "integers":
        return rng.integers(-5, 6, shape).astype(np.float64)
    return rng.standard_cauchy(shape) * 10.0 ** rng.integers(-300, 300, shape)


def draw_regions(rng: np.random.Generator, scale: str, shape: tuple[int, int]) -> tuple[Float64s, Float64s]:
    """Return lower and upper ends; in each dimension a fifth have no end below, above, or at all."""
    lo, hi = np.sort(spread(rng, scale, (2, *shape)), axis=0)
    hi = np.where(lo == hi, np.nextafter(lo, np.inf), hi)
    open_at = rng.integers(0, 5, shape)
    return np.where((open_at == 0) | (open_at == 2), -np.inf, lo), np.where((open_at == 1) | (open_at == 2), np.inf, hi)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_dims=st.sampled_from([1, 2, 4, 9]),
    scale=st.sampled_from(["even", "integers", "wild"]),
    n_values=st.sampled_from([0, 1, IMMEDIATE, IMMEDIATE + 1, MAX_CLUSTER, MAX_CLUSTER + 1, 3 * MAX_CLUSTER - 5]),
    missing=st.sampled_from([0.0, 0.1, 1.0]),
    cluster=st.sampled_from([1, 7, MAX_CLUSTER]),
)
@settings(max_examples=times(0.6))
def test_batches_of_any_size_get_the_answers_of_the_definition(
    seed: int, n_dims: int, scale: str, n_values: int, missing: float, cluster: int
) -> None:
    rng = np.random.default_rng(seed)
    index, oracle = SelectIndex(n_dims, cluster=cluster, smallest_layer=50), IndexOracle()
    for part in np.array_split(rng.permutation(rng.integers(1, 700)).astype(np.int32), 3):
        lo, hi = draw_regions(rng, scale, (n_dims, part.size))
        index.register(part, lo, hi)
        oracle.register(part.tolist(), lo, hi)
        gone = part[rng.random(part.size) < 0.2]
        index.deregister(gone)
        oracle.deregister(gone.tolist())
        values = spread(rng, scale, (n_dims, n_values))
        # Many values at one place, and attributes that are no numbers.
        values[:, rng.random(n_values) < 0.2] = 1.0
        values[rng.random(values.shape) < missing] = -np.inf

        found = index.stab(values)

        assert crossings(found) == oracle.stab(values)
        assert len(index) == len(oracle.regions)
        index._check()


@given(seed=st.integers(0, 2**32 - 1), n_dims=st.sampled_from([1, 3]))
@settings(max_examples=times(0.2))
def test_whether_one_query_holds_one_value_is_what_all_values_and_queries_say(seed: int, n_dims: int) -> None:
    rng = np.random.default_rng(seed)
    index = SelectIndex(n_dims)
    lo, hi = draw_regions(rng, "integers", (n_dims, 80))
    index.register(np.arange(80, dtype=np.int32), lo, hi)
    values = spread(rng, "integers", (n_dims, 50))
    rows, slots = (grid.ravel().astype(np.int32) for grid in np.meshgrid(np.arange(50), np.arange(80)))

    held = index.holds(slots, values[:, rows])

    moves = index.stab(values)
    assert set(zip(rows[held].tolist(), slots[held].tolist(), strict=True)) == set(
        zip(moves.rows.tolist(), moves.queries.tolist(), strict=True)
    )


@pytest.mark.parametrize("n_values", [1, 1000])
def test_half_open_ends_hold_their_lower_and_not_their_upper_value(n_values: int) -> None:
    index = SelectIndex(1)
    index.register(np.array([0, 1, 2], dtype=np.int32), np.array([[0.0, 1.0, -np.inf]]), np.array([[1.0, np.inf, 0.0]]))
    at = np.tile([0.0, 1.0, -np.inf, np.nextafter(1.0, 0.0)], (1, n_values))

    found = index.stab(at)

    assert found.queries.tolist() == [0, 1, 2, 0] * n_values


@pytest.mark.parametrize("make", [SelectIndex, Ibs, ColumnScan])
@pytest.mark.parametrize("n_values", [1, 1000])
def test_a_query_without_conditions_holds_every_value(make: Callable[[int], MatchIndex], n_values: int) -> None:
    index = make(2)
    index.register(np.array([7], dtype=np.int32), np.full((2, 1), -np.inf), np.full((2, 1), np.inf))

    found = index.stab(np.zeros((2, n_values)))

    assert crossings(found) == [(row, 7, 1) for row in range(n_values)]


@pytest.mark.parametrize("cluster", [0, MAX_CLUSTER + 1])
def test_a_cluster_without_values_or_with_more_than_a_set_has_is_refused(cluster: int) -> None:
    with pytest.raises(ValueError, match="data cluster"):
        SelectIndex(2, cluster=cluster)


def test_an_index_without_queries_finds_nothing() -> None:
    index = SelectIndex(2)

    assert index.stab(np.zeros((2, 1))).rows.size == 0
    assert index.stab(np.zeros((2, 5000))).rows.size == 0
    assert len(index) == 0
