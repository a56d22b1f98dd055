"""Band joins against their definition: every pair tested after every change."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmq.engines.band import band_join
from bmq.engines.band import query_groups as band_queries
from bmq.engines.band.band_join import BandJoin, PairChanges
from bmq.engines.band.stabbing_set import stabbing_groups
from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s

pytestmark = pytest.mark.property

# Many that meet, and some that rounding plays with.
numbers = st.one_of(
    st.integers(-4, 4).map(float),
    st.sampled_from([0.1, 0.2, 0.3, 0.30000000000000004, -0.1, 1e16, 1e16 + 2, 1.7e308, -1.7e308, 5e-324, -0.0]),
)
bands = st.one_of(
    st.tuples(numbers, numbers).map(lambda two: (min(two), max(two))),
    st.tuples(st.just(-math.inf), numbers),
    st.tuples(numbers, st.just(math.inf)),
    st.just((-math.inf, math.inf)),
)
changes = st.tuples(st.integers(0, 1), st.integers(0, 6), st.one_of(numbers, st.just(math.nan)), st.integers(-1, 1))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 9), bands),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("change"), st.lists(changes, max_size=12)),
    ),
    max_size=12,
)
Pair = tuple[int, int, int]


class Definition:
    """Queries and values as dicts."""

    def __init__(self) -> None:
        self.queries: dict[int, tuple[float, float]] = {}
        self.values: tuple[dict[int, tuple[float, int]], dict[int, tuple[float, int]]] = ({}, {})

    def pairs(self) -> set[Pair]:
        return {
            (query, left, right)
            for query, (lo, hi) in self.queries.items()
            for left, (value, key) in self.values[0].items()
            for right, (other, other_key) in self.values[1].items()
            if key == other_key and lo <= value - other <= hi
        }

    def set(self, side: int, stream: int, value: float, key: int) -> None:
        if math.isnan(value) or key < 0:
            self.values[side].pop(stream, None)
        else:
            self.values[side][stream] = (value, key)


@pytest.mark.parametrize("reports", [False, True])
@given(steps=steps)
def test_changes_tell_what_came_in_band_and_what_left(steps: Sequence[tuple], reports: bool) -> None:  # type: ignore[type-arg]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(band_join, "FIRST_ROOM", 1)
        patch.setattr(band_join, "FIRST_BLOCKS", 1)
        patch.setattr(band_queries, "RECENT_MIN", 2)
        joins, definition = BandJoin(), Definition()
        for kind, *what in steps:
            if kind == "put" and what[0] not in definition.queries:
                slot, (lo, hi) = what
                joins.put(np.array([slot], np.int32), np.array([lo]), np.array([hi]), reports)
                definition.queries[slot] = (lo, hi)
            elif kind == "remove" and what[0] in definition.queries:
                joins.remove(np.array(what, np.int32))
                del definition.queries[what[0]]
            elif kind == "change":
                expected: list[tuple[int, int, int, int]] = []
                for row, change in enumerate(what[0]):
                    before = definition.pairs()
                    definition.set(*change)
                    after = definition.pairs()
                    expected += _expected(row, change[0], before, after, reports)
                assert _told(joins.change(*_columns(what[0]))) == sorted(expected)
            joins._check()
            slots = np.array(sorted(definition.queries), np.int32)
            found = joins.pairs(slots)
            pairs = list(zip(found.queries.tolist(), found.left.tolist(), found.right.tolist(), strict=True))
            assert sorted(pairs) == sorted(definition.pairs())


def _expected(
    row: int, side: int, before: set[Pair], after: set[Pair], reports: bool
) -> list[tuple[int, int, int, int]]:
    if reports:
        return [(row, query, -1, 0) for query in {pair[0] for pair in before ^ after}]
    other = 2 - side
    return [(row, pair[0], pair[other], -1) for pair in before - after] + [
        (row, pair[0], pair[other], 1) for pair in after - before
    ]


def _columns(rows: Sequence[tuple[int, int, float, int]]) -> tuple[Int8s, Int32s, Float64s, Int64s]:
    sides, streams, values, keys = zip(*rows, strict=True) if rows else ((), (), (), ())
    return np.array(sides, np.int8), np.array(streams, np.int32), np.array(values, np.float64), np.array(keys, np.int64)


def _told(found: PairChanges) -> list[tuple[int, int, int, int]]:
    assert (np.diff(found.rows) >= 0).all()
    columns = (found.rows, found.queries, found.others, found.signs)
    rows, queries, others, signs = (column.tolist() for column in columns)
    return sorted(zip(rows, queries, others, signs, strict=True))


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), n_keys=st.integers(1, 3))
def test_many_values_are_in_order_through_many_changes(seed: int, n_keys: int) -> None:
    rng = np.random.default_rng(seed)
    joins, definition = BandJoin(), Definition()
    lo = rng.normal(0, 0.02, 8)
    hi = lo + rng.uniform(0, 0.02, 8)
    joins.put(np.arange(8, dtype=np.int32), lo, hi)
    definition.queries = dict(enumerate(zip(lo.tolist(), hi.tolist(), strict=True)))
    told: set[Pair] = set()
    for _ in range(3):
        n = 2_000
        sides, streams = rng.integers(0, 2, n).astype(np.int8), rng.integers(0, 700, n).astype(np.int32)
        values, keys = rng.normal(size=n).round(3), rng.integers(0, n_keys, n)
        values[rng.random(n) < 0.1] = np.nan
        found = joins.change(sides, streams, values, keys)
        for change in zip(sides.tolist(), streams.tolist(), values.tolist(), keys.tolist(), strict=True):
            definition.set(*change)
        for row, query, other, sign in _told(found):
            own = int(streams[row])
            pair = (query, own, other) if sides[row] == 0 else (query, other, own)
            assert (pair in told) == (sign < 0)
            told ^= {pair}
        joins._check()
        assert told == definition.pairs()


@pytest.fixture(scope="module")
def few_are_recent() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(band_queries, "RECENT_MIN", 2)
        yield


@pytest.mark.usefixtures("few_are_recent")
@pytest.mark.parametrize("reports", [False, True])
@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([0.1, 2.0, math.inf]),
    n_keys=st.sampled_from([1, 30]),
    n_queries=st.sampled_from([3, 40]),
)
def test_whatever_is_many_values_queries_or_groups(
    reports: bool, seed: int, width: float, n_keys: int, n_queries: int
) -> None:
    rng = np.random.default_rng(seed)
    n_streams = 40
    joins = BandJoin()
    lo = rng.normal(0, 2, n_queries).round(1)
    hi = lo + (rng.uniform(0, width, n_queries).round(1) if width < math.inf else width)
    is_put = np.zeros(n_queries, dtype=bool)
    values, keys = np.full((2, n_streams), np.nan), np.zeros((2, n_streams), dtype=np.int64)

    def pairs() -> Bools:
        differences = values[0][:, None] - values[1]
        held = (lo[:, None, None] <= differences) & (differences <= hi[:, None, None])
        in_band: Bools = held & (keys[0][:, None] == keys[1]) & is_put[:, None, None]
        return in_band

    for _ in range(6):
        # Many, and all are grouped anew; few, and they are recent ones beside these.
        flipped = rng.random(n_queries) < rng.choice([0.05, 0.5])
        joins.remove(np.flatnonzero(flipped & is_put).astype(np.int32))
        came = np.flatnonzero(flipped & ~is_put).astype(np.int32)
        joins.put(came, lo[came], hi[came], reports)
        is_put ^= flipped
        n = 50
        sides, streams = rng.integers(0, 2, n).astype(np.int8), rng.integers(0, n_streams, n).astype(np.int32)
        new_values, new_keys = rng.normal(0, 2, n).round(1), rng.integers(0, n_keys, n)
        new_values[rng.random(n) < 0.1] = np.nan
        expected = []
        before = pairs()
        for row in range(n):
            values[sides[row], streams[row]], keys[sides[row], streams[row]] = new_values[row], new_keys[row]
            after = pairs()
            for query, left, right in np.argwhere(before != after).tolist():
                sign = 1 if after[query, left, right] else -1
                expected.append((row, query, -1, 0) if reports else (row, query, (right, left)[sides[row]], sign))
            before = after
        assert _told(joins.change(sides, streams, new_values, new_keys)) == sorted(set(expected))
        joins._check()


@given(intervals=st.lists(bands, max_size=20))
def test_a_group_shares_its_point_and_no_fewer_groups_would_do(intervals: list[tuple[float, float]]) -> None:
    lo, hi = (np.array([band[end] for band in intervals], dtype=np.float64) for end in (0, 1))

    groups = stabbing_groups(lo, hi)

    rows = []
    for i in range(len(groups)):
        own = groups.by_lo[groups.starts[i] : groups.starts[i + 1]]
        assert ((lo[own] <= groups.points[i]) & (groups.points[i] <= hi[own])).all()
        assert (groups.cover_lo[i], groups.cover_hi[i]) == (lo[own].min(), hi[own].max())
        assert sorted(own) == sorted(groups.by_hi[groups.starts[i] : groups.starts[i + 1]])
        assert (lo[own][1:] >= lo[own][:-1]).all()
        rows += own.tolist()
    assert sorted(rows) == list(range(len(intervals)))
    # As many intervals as groups, none of which meets another, need a point each.
    apart, last = 0, -math.inf
    for low, high in sorted(intervals, key=lambda band: band[1]):
        if low > last or (apart == 0):
            apart, last = apart + 1, high
    assert len(groups) == apart
