"""What the proofs and cost claims of docs/indexes.md rest on."""

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.baselines.one_structure import BorderGrid, RegionSegmentList
from bmq.index.border.border_grid import ROOM, GridCells
from bmq.kernels.border.delta_sets import BLOCK, build_delta_sets, find_rs_node_anew
from bmq.kernels.border.ranks import MAX_PLACE, make_ranks, places_of, ranks_of
from bmq.kernels.border.rs_list import find_rs_node_near
from bmq.kernels.border.stab import FANOUT, build_boxes, holding_queries
from tests.examples import times
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property

coarse = st.integers(-8, 8).map(float)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(borders=st.sets(coarse).map(sorted), value=coarse, hint=st.integers(0, 20))
def test_the_hint_changes_the_cost_and_never_the_answer(borders: list[float], value: float, hint: int) -> None:
    found = find_rs_node_near(np.array(borders, dtype=np.float64), value, hint)

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
    places = np.empty(ascending.size, dtype=np.int32)
    places_of(ranks, ascending, places)
    assert (places[1:] >= places[:-1]).all()
    assert (places[0], places[-1]) == (0, MAX_PLACE if borders else 0)


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
    assert cells._entries.size <= 12 * (1 + ROOM) * n_queries + 1
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


@given(lo=st.lists(sizes, min_size=1, max_size=60), width=st.sampled_from([5e-324, 1.0, 1e308]), values=st.lists(sizes))
@example(lo=[0.0], width=1.0, values=[])  # one border of either kind
@example(lo=[3.0] * 40, width=1.0, values=[])  # all borders equal, so no step of rank holds any but the last
@example(lo=[-1.7e308, -0.0, 0.0, 5e-324, 1.6e308], width=1e308, values=[])
def test_the_rs_node_of_a_value_is_how_many_borders_of_either_kind_are_at_or_below_it(
    lo: list[float], width: float, values: list[float]
) -> None:
    # Some regions have no lower border, and some no upper one: a width that overflows.
    lower = np.sort(np.array([-np.inf, *lo]))
    with np.errstate(over="ignore"):
        upper = np.nextafter(lower + width, np.inf)
    upper[0] = 1.0
    sets = build_delta_sets(np.stack((lower, upper), axis=-1)[:, None, :])
    ascending = np.sort(upper)

    for value in [*values, *lower[np.isfinite(lower)], *upper[np.isfinite(upper)]]:
        found = find_rs_node_anew(sets, value)

        assert found == (np.searchsorted(lower, value, side="right"), np.searchsorted(ascending, value, side="right"))


@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([0.0, 1.0, 100.0]),
    n_gone=st.sampled_from([0, 3, 1_000]),
    n_wide=st.sampled_from([0, 1, 5]),
)
@settings(max_examples=times(0.3))
def test_a_leap_over_many_blocks_misses_none_of_the_few_that_reach_further(
    seed: int, width: float, n_gone: int, n_wide: int
) -> None:
    # Moves of any length over 150 blocks of narrow queries, with a wide one here and there, and equal borders.
    rng = np.random.default_rng(seed)
    n_queries, n_moves = 150 * BLOCK + 3, 100
    index, oracle = RegionSegmentList(), IndexOracle()
    lo = rng.integers(0, 4_000, (1, n_queries)) / 4
    hi = np.nextafter(lo + width * rng.random(lo.shape), np.inf)
    hi[0, :n_wide] = np.nextafter(lo[0, :n_wide] + 1_000 * rng.random(n_wide), np.inf)
    slots = rng.permutation(n_queries).astype(np.int32)
    gone = rng.choice(slots, n_gone, replace=False)
    for kind in (index, oracle):
        kind.register(slots, lo, hi)
    streams = np.arange(n_moves, dtype=np.int32)
    before = rng.integers(0, 4_000, (1, n_moves)) / 4
    index.moves(streams, before, before)
    for kind in (index, oracle):
        kind.deregister(gone)

    for step in (0.5, 30.0, 1_000.0):
        after = before + rng.integers(int(-step * 4), int(step * 4), before.shape) / 4

        moves = index.moves(streams, before, after)

        assert sorted(zip(moves.rows.tolist(), moves.queries.tolist(), moves.signs.tolist(), strict=True)) == (
            oracle.moves(before, after)
        )
        before = after


def test_a_long_move_looks_at_one_summary_for_a_block_of_jumped_over_queries() -> None:
    n_queries = 10_000
    index = RegionSegmentList()
    lo = np.arange(n_queries, dtype=np.float64)[None]
    index.register(np.arange(n_queries, dtype=np.int32), lo, lo + 2)

    up = index.moves(np.zeros(1, dtype=np.int32), np.array([[100.5]]), np.array([[9_000.5]]))
    down = index.moves(np.zeros(1, dtype=np.int32), np.array([[9_000.5]]), np.array([[100.5]]))

    for moves in (up, down):
        assert sorted(moves.queries.tolist()) == [99, 100, 8_999, 9_000]
        # +DQ and -DQ hold 8,900 queries each; a leap begins and ends within a block.
        assert moves.visits <= 2 * (8_900 // BLOCK + 3 * BLOCK)


@pytest.fixture
def a_gigabyte_more() -> Iterator[None]:
    """Lets the process have no more memory than one gigabyte on top of what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.usefixtures("a_gigabyte_more")
@pytest.mark.parametrize(("n_queries", "n_moves", "after"), [(50_000, 100_000, 0.5), (2_000_000, 64, 3.0)])
def test_a_few_moves_across_every_border_ask_for_no_room_beyond_what_they_find(
    n_queries: int, n_moves: int, after: float
) -> None:
    # 64 moves go into all queries, or over all; the others meet a border or two. Their room must not follow from the
    # first, nor that of the first from what they jump over.
    index = RegionSegmentList()
    lo = np.linspace(0, 0.25, n_queries)[None]
    index.register(np.arange(n_queries, dtype=np.int32), lo, lo + 2)
    before, current = np.full((1, n_moves), 0.1), np.full((1, n_moves), 0.1 + 1e-5)
    before[0, :64], current[0, :64] = -1, after

    found = index.moves(np.arange(n_moves, dtype=np.int32), before, current)

    begun, begun_before = (np.searchsorted(lo[0], values[0], side="right") for values in (current, before))
    assert found.rows.size == (0 if after > 2.25 else (begun - begun_before).sum())
