"""What the proofs and cost claims of docs/indexes.md rest on."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.index.border_grid import BorderGrid, GridCells
from bmq.kernels.ranks import make_ranks, ranks_of
from bmq.kernels.stab import FANOUT, build_boxes, holding_queries
from bmq.kernels.walk import find_rs_node

pytestmark = pytest.mark.property

coarse = st.integers(-8, 8).map(float)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(borders=st.sets(coarse).map(sorted), value=coarse, hint=st.integers(0, 20))
def test_the_hint_changes_the_cost_and_never_the_answer(borders: list[float], value: float, hint: int) -> None:
    found = find_rs_node(np.array(borders, dtype=np.float64), value, hint)

    assert found == np.searchsorted(borders, value, side="right")


# Towns, repeated borders, and the ends of what a float can say.
sizes = st.one_of(coarse, st.floats(0, 1), finite)


@given(borders=st.lists(sizes, max_size=200), values=st.lists(sizes))
@example(borders=[-1.7e308, 1.7e308], values=[0.0])  # their distance overflows
@example(borders=[0.0, 5e-324], values=[])  # the inverse of theirs does
def test_the_rank_never_falls_as_the_value_rises(borders: list[float], values: list[float]) -> None:
    # All that the proof of the border grid asks of how an axis is cut. The borders are values, too.
    ranks = make_ranks(np.sort(np.array(borders, dtype=np.float64)))
    ascending = np.sort([-np.inf, *values, *borders, np.inf])

    found = ranks_of(ranks, ascending)

    assert (found[1:] >= found[:-1]).all()
    assert found[0] == 0.0
    assert found[-1] == (1.0 if borders else 0.0)


def test_equal_steps_of_rank_hold_equally_many_borders_even_in_a_town_in_the_country() -> None:
    rng = np.random.default_rng(1)
    borders = np.sort(np.concatenate((rng.normal(0, 1, 9_500), rng.uniform(-1e6, 1e6, 500))))

    steps = (ranks_of(make_ranks(borders), borders) * 20).astype(int)

    assert np.bincount(steps, minlength=20)[:20].max() < 2 * borders.size / 20


@given(seed=st.integers(0, 2**32 - 1), n_queries=st.integers(1, 500), spread=st.floats(0, 6))
def test_the_grid_has_at_most_twelve_entries_and_cells_a_query_whatever_the_sides(
    seed: int, n_queries: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    index = BorderGrid()
    lo = rng.uniform(0, 100, (2, n_queries))
    hi = np.nextafter(lo + rng.lognormal(0, spread, lo.shape), np.inf)
    lo[rng.random(lo.shape) < 0.1] = -np.inf
    hi[rng.random(hi.shape) < 0.1] = np.inf
    index.register(np.arange(n_queries, dtype=np.int32), lo, hi)
    index.moves(np.zeros(1, dtype=np.int32), np.zeros((2, 1)), np.zeros((2, 1)))

    cells = index._layers[0].structure

    assert isinstance(cells, GridCells)
    assert cells._entries.size <= 12 * n_queries
    # Rounding to whole strips and columns may add half of each.
    assert cells._starts.size <= 2.25 * 8 * n_queries + 2


@given(n_rows=st.sampled_from([0, 1, FANOUT, FANOUT + 1, FANOUT**2, FANOUT**2 + 1, 2_000]), value=coarse)
def test_a_packed_tree_in_any_order_finds_every_region(n_rows: int, value: float) -> None:
    lo = np.random.default_rng(n_rows).integers(-8, 8, n_rows).astype(np.float64)
    regions = np.stack((lo, lo + 2), axis=-1)[:, None, :]
    slots = np.arange(n_rows, dtype=np.int32)

    _, queries, _, visits = holding_queries(regions, slots, *build_boxes(regions), np.array([[value]]))

    assert sorted(queries.tolist()) == np.flatnonzero((lo <= value) & (value < lo + 2)).tolist()
    assert visits <= n_rows
