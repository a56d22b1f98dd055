"""What many equal borders, many registrations in one place, and many axes may cost, and must not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.baselines.one_structure import BorderGrid
from bmq.kernels.border.ranks import make_ranks, ranks_of
from bmq.kernels.border.stab import packing_keys
from tests.examples import times
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property


@pytest.mark.parametrize("n_crowds", [1, 2, 3, 20])
def test_what_lies_beside_a_crowd_of_equal_borders_does_not_share_their_rank(n_crowds: int) -> None:
    # Nor what lies beyond all of them. Between two crowds there is no border, so that no line rises there.
    borders = np.repeat(np.arange(n_crowds, dtype=np.float64), 100)
    beside = np.linspace(-0.5, n_crowds - 0.5, 2 * n_crowds + 1)[::2]

    ascending = np.sort(np.append(beside, np.arange(n_crowds, dtype=np.float64)))
    ranks = ranks_of(make_ranks(borders), ascending)

    assert np.diff(ranks).min() >= 0.49 / n_crowds


def test_a_stream_beside_a_crowd_of_equal_regions_looks_at_none_of_them() -> None:
    n_queries = 2_000
    index = BorderGrid()
    lo = np.where(np.arange(n_queries) % 2, 0.0, 5.0) * np.ones((2, 1))
    index.register(np.arange(n_queries, dtype=np.int32), lo, lo + 1)
    beside = np.array([-1.0, 0.5, 3.0, 5.5, 7.0])
    previous = np.stack([axis.ravel() for axis in np.meshgrid(beside, beside)])

    moves = index.moves(np.zeros(previous.shape[1], dtype=np.int32), previous, previous + 0.25)

    assert (moves.rows.size, moves.visits) == (0, 0)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_queries=st.integers(1, 300),
    crowd=st.floats(0, 1),
    n_later=st.lists(st.integers(1, 40), max_size=6),
)
@settings(max_examples=times(0.5))
def test_room_in_the_grid_is_made_without_losing_a_border(
    seed: int, n_queries: int, crowd: float, n_later: list[int]
) -> None:
    # Most rooms are used up by a crowd in one place, so that whole rows of cells are shifted, empty ones too.
    rng = np.random.default_rng(seed)
    index, oracle = BorderGrid(room=1.0, smallest_layer=1), IndexOracle()
    slot = 0
    for n in [n_queries, *n_later]:
        lo = np.where(rng.random(n) < crowd, 50.0, rng.uniform(0, 100, (2, n)))
        hi = lo + 5
        for kind in (index, oracle):
            kind.register(np.arange(slot, slot + n, dtype=np.int32), lo, hi)
        slot += n
        previous, current = rng.uniform(-10, 110, (2, 2, 20))
        found = index.moves(np.arange(20, dtype=np.int32), previous, current)

        index._check()
        assert sorted(zip(found.rows, found.queries, found.signs, strict=True)) == sorted(
            oracle.moves(previous, current)
        )


def test_beyond_58_dimensions_a_packing_key_still_says_where_a_region_lies() -> None:
    low = np.repeat([[0.1], [0.1], [0.9]], 60, axis=1).T

    keys = packing_keys(np.stack((low, low)), np.ones(60))

    assert keys[0] == keys[1] != keys[2]
