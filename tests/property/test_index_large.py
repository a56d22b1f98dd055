"""What small examples cannot reach: many tree levels, cells, layers, blocks of moves, growing output."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.baselines.one_structure import BorderGrid, NdBmq, RegionSegmentList
from bench.baselines.published_walk import PublishedWalk
from bmq.index.layered import Layered
from bmq.records import Float64s
from tests.examples import times
from tests.index_machines import OTHER_KINDS, crossings
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property

# Layers of 50 queries and more, so that 600 make several.
INDEXES = [
    partial(RegionSegmentList, smallest_layer=50),
    partial(PublishedWalk, smallest_layer=50),
    partial(BorderGrid, smallest_layer=50),
    partial(NdBmq, 2, smallest_layer=50),
    partial(NdBmq, 3, smallest_layer=50),
    *(partial(make, smallest_layer=50) for make in OTHER_KINDS.values()),
]


def spread(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Float64s:
    """Return numbers that lie evenly, in a few towns, or around one with outliers far away."""
    if kind == "even":
        return rng.uniform(0, 100, shape)
    if kind == "towns":
        return rng.integers(0, 3, shape) * 1000.0 + rng.normal(0, 1, shape)
    return rng.standard_cauchy(shape)


@pytest.mark.parametrize(
    "make", INDEXES, ids=["segments", "published walk", "grid", "2-D BMQ", "3-D BMQ", *OTHER_KINDS]
)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["even", "towns", "outliers"]),
    size=st.sampled_from([1e-3, 1.0, 30.0]),
    step=st.sampled_from([0.01, 1.0, 1000.0]),
)
@settings(max_examples=times(0.15))
def test_many_queries_and_moves_get_the_answers_of_the_definition(
    make: Callable[[], Layered], seed: int, kind: str, size: float, step: float
) -> None:
    rng = np.random.default_rng(seed)
    index = make()
    n_dims = index.n_dims
    oracle = IndexOracle()
    n_queries, n_moves = 600, 700
    before = spread(rng, kind, (n_dims, n_moves))
    for part in np.array_split(rng.permutation(n_queries).astype(np.int32), 4):
        lo = spread(rng, kind, (n_dims, part.size))
        # Sides over six powers of ten, and some without an end.
        hi = np.nextafter(lo + size * rng.lognormal(0, 3, lo.shape), np.inf)
        lo[rng.random(lo.shape) < 0.03] = -np.inf
        hi[rng.random(hi.shape) < 0.03] = np.inf
        index.register(part, lo, hi)
        oracle.register(part.tolist(), lo, hi)
        gone = part[rng.random(part.size) < 0.2]
        index.deregister(gone)
        oracle.deregister(gone.tolist())

        after = before + rng.normal(0, step, before.shape)
        streams = rng.permutation(n_moves).astype(np.int32)

        assert crossings(index.moves(streams, before, after)) == oracle.moves(before, after)
        assert crossings(index.stab(after)) == oracle.stab(after)
        before = after
    index._check()
