"""Band joins against the definition, which tests every pair after every change."""

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
from tests.examples import times
from tests.oracle_feeds import FeedState, Happening
from tests.oracle_join_queries import JoinQuery, are_equal, read_join
from tests.oracle_joins import Joins, PairEvent
from tests.oracle_queries import Feed, Reading

pytestmark = pytest.mark.property

# Many that are equal, and some whose differences are rounded.
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
Pair = tuple[int, int, int]  # query, left stream, right stream
Change = tuple[int, int, int, int]  # row, query, other stream or -1, sign or 0

FEEDS = ("l", "r")
FEED = Feed(("price",), attributes=("key",))


def as_join(lo: float, hi: float, reports: bool = False) -> JoinQuery:
    """Return the band join of `tests.oracle_joins`."""
    definition = {
        "kind": "band_join",
        "left": "l",
        "right": "r",
        "on": {"left": "price", "right": "price"},
        "band": [None if math.isinf(end) else end for end in (lo, hi)],
        "equal": {"left": "key", "right": "key"},
        "report": "queries" if reports else "pairs",
    }
    return read_join(1, definition, dict.fromkeys(FEEDS, FEED))


class Definition:
    """`tests.oracle_joins` for changes of values. Here is no rule: it passes changes on, and returns the events."""

    def __init__(self) -> None:
        self.states = {name: FeedState(name, FEED) for name in FEEDS}
        self.joins = Joins(self.states)
        self.queries: set[int] = set()
        self.known: dict[tuple[int, int], Reading] = {}

    def put(self, query: int, lo: float, hi: float, reports: bool) -> None:
        self.queries.add(query)
        self.joins.put(str(query), as_join(lo, hi, reports), "query_registered")

    def remove(self, query: int) -> None:
        self.queries.remove(query)
        self.joins.remove(str(query), "query_deleted")

    def pairs(self) -> set[Pair]:
        return {(int(query), int(left), int(right)) for query, left, right in self.joins.pairs()}

    def change(self, row: int, side: int, stream: int, value: float, key: int) -> list[Change]:
        """Apply a reading, or the expiry of the stream if the value is NaN; a key below 0 is null."""
        is_expiry = math.isnan(value)
        if is_expiry and (side, stream) not in self.known:
            return []
        if is_expiry:
            last = self.known.pop((side, stream))
        else:
            last = self.known[side, stream] = Reading(str(stream), row, (value,), () if key < 0 else (("key", key),))
        self.states[FEEDS[side]].happenings.append(Happening(row, is_expiry, FEEDS[side], last))
        n_before = len(self.joins.events)
        self.joins.advance()
        return [self._as_change(row, side, event) for event in self.joins.events[n_before:]]

    @staticmethod
    def _as_change(row: int, side: int, event: PairEvent) -> Change:
        other = (event.right, event.left)[side]
        sign = {"-": -1, "+": 1, "": 0}[event.sign]
        return row, int(event.query_id), -1 if other is None else int(other.stream), sign


def pairs_of_many(queries: Sequence[JoinQuery], values: Float64s, keys: Int64s) -> Bools:
    """Return which values make which pairs: bool[n_queries, n_left, n_right].

    The rules are those of `tests.oracle_join_queries`, which hold for arrays too. NaN: there is no value.
    """
    have_equal_keys = np.frompyfunc(are_equal, 2, 1)(keys[0][:, None], keys[1]).astype(np.bool_)
    bands = [band for query in queries for one in query.alternatives for band in one.bands]
    found: Bools = np.stack([band.holds(values[0][:, None], values[1]) for band in bands]) & have_equal_keys
    return found


@pytest.mark.parametrize("reports", [False, True])
@given(steps=steps)
def test_changes_emit_what_came_in_band_and_what_left(steps: Sequence[tuple], reports: bool) -> None:  # type: ignore[type-arg]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(band_join, "FIRST_ROOM", 1)
        patch.setattr(band_join, "FIRST_BLOCKS", 1)
        patch.setattr(band_queries, "RECENT_MIN", 2)
        joins, definition = BandJoin(), Definition()
        for kind, *what in steps:
            if kind == "put" and what[0] not in definition.queries:
                slot, (lo, hi) = what
                joins.put(np.array([slot], np.int32), np.array([lo]), np.array([hi]), reports)
                definition.put(slot, lo, hi, reports)
            elif kind == "remove" and what[0] in definition.queries:
                joins.remove(np.array(what, np.int32))
                definition.remove(what[0])
            elif kind == "change":
                expected = [one for row, change in enumerate(what[0]) for one in definition.change(row, *change)]
                assert _emitted(joins.change(*_columns(what[0]))) == sorted(expected)
            joins._check()
            slots = np.array(sorted(definition.queries), np.int32)
            found = joins.pairs(slots)
            pairs = list(zip(found.queries.tolist(), found.left.tolist(), found.right.tolist(), strict=True))
            assert sorted(pairs) == sorted(definition.pairs())


def _columns(rows: Sequence[tuple[int, int, float, int]]) -> tuple[Int8s, Int32s, Float64s, Int64s]:
    sides, streams, values, keys = zip(*rows, strict=True) if rows else ((), (), (), ())
    return np.array(sides, np.int8), np.array(streams, np.int32), np.array(values, np.float64), np.array(keys, np.int64)


def _emitted(found: PairChanges) -> list[Change]:
    assert (np.diff(found.rows) >= 0).all()
    columns = (found.rows, found.queries, found.others, found.signs)
    rows, queries, others, signs = (column.tolist() for column in columns)
    return sorted(zip(rows, queries, others, signs, strict=True))


@settings(max_examples=times(0.1))
@given(seed=st.integers(0, 2**32 - 1), n_keys=st.integers(1, 3))
def test_many_values_are_in_order_through_many_changes(seed: int, n_keys: int) -> None:
    rng = np.random.default_rng(seed)
    joins = BandJoin()
    lo = rng.normal(0, 0.02, 8)
    hi = lo + rng.uniform(0, 0.02, 8)
    joins.put(np.arange(8, dtype=np.int32), lo, hi)
    queries = [as_join(*ends) for ends in zip(lo.tolist(), hi.tolist(), strict=True)]
    last_values, last_keys = np.full((2, 700), np.nan), np.zeros((2, 700), dtype=np.int64)
    emitted: set[Pair] = set()
    for _ in range(3):
        n = 2_000
        sides, streams = rng.integers(0, 2, n).astype(np.int8), rng.integers(0, 700, n).astype(np.int32)
        values, keys = rng.normal(size=n).round(3), rng.integers(0, n_keys, n)
        values[rng.random(n) < 0.1] = np.nan
        found = joins.change(sides, streams, values, keys)
        for side, stream, value, key in zip(sides, streams, values, keys, strict=True):
            last_values[side, stream], last_keys[side, stream] = value, key
        for row, query, other, sign in _emitted(found):
            own = int(streams[row])
            pair = (query, own, other) if sides[row] == 0 else (query, other, own)
            assert (pair in emitted) == (sign < 0)
            emitted ^= {pair}
        joins._check()
        assert emitted == set(map(tuple, np.argwhere(pairs_of_many(queries, last_values, last_keys)).tolist()))


@pytest.fixture(scope="module")
def few_are_recent() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(band_queries, "RECENT_MIN", 2)
        yield


@pytest.mark.usefixtures("few_are_recent")
@pytest.mark.parametrize("reports", [False, True])
@settings(max_examples=times(0.2))
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
    queries = [as_join(*ends) for ends in zip(lo.tolist(), hi.tolist(), strict=True)]
    is_put = np.zeros(n_queries, dtype=bool)
    values, keys = np.full((2, n_streams), np.nan), np.zeros((2, n_streams), dtype=np.int64)

    for _ in range(6):
        # If many change, the join groups all queries anew. If few change, they are recent ones beside the groups.
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
        before = pairs_of_many(queries, values, keys) & is_put[:, None, None]
        for row in range(n):
            values[sides[row], streams[row]], keys[sides[row], streams[row]] = new_values[row], new_keys[row]
            after = pairs_of_many(queries, values, keys) & is_put[:, None, None]
            for query, left, right in np.argwhere(before != after).tolist():
                sign = 1 if after[query, left, right] else -1
                expected.append((row, query, -1, 0) if reports else (row, query, (right, left)[sides[row]], sign))
            before = after
        assert _emitted(joins.change(sides, streams, new_values, new_keys)) == sorted(set(expected))
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
    # There are as many intervals that do not meet each other, and each of them needs a point of its own.
    apart, last = 0, -math.inf
    for low, high in sorted(intervals, key=lambda band: band[1]):
        if low > last or (apart == 0):
            apart, last = apart + 1, high
    assert len(groups) == apart
