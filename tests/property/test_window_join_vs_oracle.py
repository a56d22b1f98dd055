"""Window joins against the definition: queries come and go, batches end anywhere, times go back."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmq.engines.window.window_join import Window, WindowJoin
from bmq.engines.window.window_search import Costs
from bmq.records import Band, Bools, Conjunction, Int32s, JoinQuery, JoinSide, Kind, Region, Where
from tests.examples import times
from tests.oracle_join_queries import JoinQuery as OracleJoin
from tests.oracle_join_queries import read_join
from tests.oracle_joins import find_earlier
from tests.oracle_queries import Feed, read_where
from tests.oracle_queries import Reading as OracleReading
from tests.oracle_queries import fits as fits_where
from tests.strategies_windows import LEAST, NO_NUMBER, Reading, readings, window_queries

pytestmark = pytest.mark.property

N_SLOTS = 4
COLUMNS = ("x", "a")  # of each side; the second is an attribute, which may be no number
N_COLUMNS = (2, 2)
FEED = Feed(("x",), attributes=("a", "kind", "key"))
EACH_WAY = (Costs(pair=0.0), Costs(sort=0.0, box=0.0, reading=0.0), Costs())


# -- the definition --------------------------------------------------------------------------------------------


def as_reading(reading: Reading) -> OracleReading:
    """Return the same reading for `tests.oracle_joins`: a dimension and three attributes."""
    value, number = reading.columns
    attributes = {"kind": str(reading.code)}
    numbers = ({} if number == NO_NUMBER else {"a": number}) | ({} if reading.key < 0 else {"key": reading.key})
    return OracleReading("s", reading.time, (value,), tuple((attributes | numbers).items()))


def as_join(query: JoinQuery) -> OracleJoin:
    """Return the same query for `tests.oracle_joins`."""
    definition: dict[str, Any] = {"kind": "window_join", "where": {}}
    for name, side in (("left", query.left), ("right", query.right)):
        window = side.window_count if side.window_ms is None else f"{side.window_ms}ms"
        definition[name] = {"feed": side.feed, "window": window}
        definition["where"] |= {f"{name}.{attribute}": list(values) for attribute, values in side.where}
    definition["equal"] = {"left": query.left.equal, "right": query.right.equal}
    definition["any"] = [as_alternative(one) for one in query.alternatives]
    return read_join(1, definition, {"l": FEED, "r": FEED})


def as_alternative(conjunction: Conjunction) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    for side, region in (("left", conjunction.left), ("right", conjunction.right)):
        for name, lo, hi in zip(COLUMNS, region.lo, region.hi, strict=True):
            if (lo, hi) != (-np.inf, np.inf):
                asked[f"{side}.{name}"] = [as_end(lo), as_end(hi)]
    bands = [
        [f"left.{COLUMNS[band.left]}", f"right.{COLUMNS[band.right]}", as_end(band.lo), as_end(band.hi)]
        for band in conjunction.bands
    ]
    return asked | {"band": bands}


def as_end(end: float) -> float | None:
    return None if np.isinf(end) or end == LEAST else end


def expected(
    applied: Sequence[Reading], standing: dict[int, tuple[JoinQuery, int]], n_before: int
) -> list[tuple[int, int, int]]:
    """Return the pairs of readings from ``n_before`` on: place of the later reading, slot, place of the earlier one.

    ``standing``: slot -> the query, and how many readings had been applied when it began to count.
    """
    joins = {slot: (as_join(query), since) for slot, (query, since) in sorted(standing.items())}
    sides: tuple[list[OracleReading], list[OracleReading]] = ([], [])
    places: tuple[list[int], list[int]] = ([], [])
    found = []
    for place, reading in enumerate(applied):
        later = as_reading(reading)
        other = 1 - reading.side
        for slot, (join, since) in joins.items() if place >= n_before else ():
            first = sum(one < since for one in places[other])
            for number in find_earlier(join, reading.side, later, sides[other], first):
                pair = place, places[other][number]
                # A shard finds the pairs of its own left readings only.
                if all(applied[one].own for one in pair if applied[one].side == 0):
                    found.append((pair[0], slot, pair[1]))
        sides[reading.side].append(later)
        places[reading.side].append(place)
    return found


# -- what is tested --------------------------------------------------------------------------------------------


@dataclass
class Joining:
    """A WindowJoin and the windows of its owner: all readings, or those that `keep` leaves."""

    join: WindowJoin
    drops: bool = False
    applied: list[Reading] = field(default_factory=list)
    dropped: list[int] = field(default_factory=lambda: [0, 0])

    def n_applied(self, side: int) -> int:
        return sum(reading.side == side for reading in self.applied)

    def put(self, slot: int, query: JoinQuery) -> None:
        self.join.put(slot, query, (self.n_applied(0), self.n_applied(1)))

    def read(self, batch: Sequence[Reading]) -> list[tuple[int, int, int]]:
        n_before = len(self.applied)
        self.applied += batch
        sides = [self.window(side, n_before) for side in range(2)]
        found = self.join.find(sides[0], sides[1], fits)
        places = [self.places(side) for side in range(2)]
        pairs = []
        for slot, *rows in np.stack([found.queries, found.left_rows, found.right_rows], axis=1).tolist():
            earlier, later = sorted(places[side][row] for side, row in enumerate(rows))
            pairs.append((later, slot, earlier))
        if self.drops:
            settled = [max((r.time for r in self.applied if r.side == side), default=-(2**63)) for side in range(2)]
            for side in range(2):
                event_times = self.window(side, 0).event_times
                self.dropped[side] += self.join.keep(event_times, self.dropped[side], side, settled[1 - side])
        return pairs

    def places(self, side: int) -> list[int]:
        held = [place for place, reading in enumerate(self.applied) if reading.side == side]
        return held[self.dropped[side] :]

    def window(self, side: int, n_before: int) -> Window:
        places = self.places(side)
        rows = [self.applied[place] for place in places]
        return Window(
            columns=np.array([row.columns for row in rows], dtype=np.float64).reshape(-1, 2).T,
            event_times=np.array([row.time for row in rows], dtype=np.int64),
            codes=np.array([row.code for row in rows], dtype=np.int32),
            keys={"key": np.array([row.key for row in rows], dtype=np.int64)},
            first=self.dropped[side],
            positions=np.array(places, dtype=np.int64) - n_before,
            own=np.array([row.own for row in rows], dtype=np.bool_),
        )


def fits(side: int, where: Where, codes: Int32s) -> Bools:
    wanted = read_where({name: list(values) for name, values in where})
    readings = [OracleReading("s", 0, (0.0,), (("kind", str(code)),)) for code in codes.tolist()]
    return np.array([fits_where(wanted, reading) for reading in readings], dtype=np.bool_)


def cut(data: st.DataObject, applied: Sequence[Reading]) -> list[Sequence[Reading]]:
    ends = [0, *sorted(data.draw(st.sets(st.integers(0, len(applied))), label="cuts")), len(applied)]
    return [applied[begin:end] for begin, end in itertools.pairwise(ends)]


@given(data=st.data(), cluster=st.sampled_from([1, 3, 1 << 16]), costs=st.sampled_from(EACH_WAY))
def test_pairs_are_those_of_the_definition_wherever_queries_come_and_batches_end(
    data: st.DataObject, cluster: int, costs: Costs
) -> None:
    joining = Joining(WindowJoin(*N_COLUMNS, cluster=cluster, costs=costs))
    standing: dict[int, tuple[JoinQuery, int]] = {}
    for _ in range(data.draw(st.integers(1, 4), label="steps")):
        for slot in data.draw(st.sets(st.sampled_from(sorted(standing))), label="removed") if standing else ():
            joining.join.remove(slot)
            del standing[slot]
        for slot in data.draw(st.sets(st.integers(0, N_SLOTS - 1)), label="put") - standing.keys():
            query = data.draw(window_queries(), label=f"query {slot}")
            joining.put(slot, query)
            standing[slot] = query, len(joining.applied)
        assert len(joining.join) == len(standing)
        n_before = len(joining.applied)
        batch = data.draw(st.lists(readings, max_size=8), label="batch")

        found = [pair for part in cut(data, batch) for pair in joining.read(part)]

        assert found == expected(joining.applied, standing, n_before)
        joining.join._check()


@given(
    data=st.data(),
    queries=st.lists(window_queries(), min_size=1, max_size=N_SLOTS),
    batch=st.lists(readings, max_size=20),
)
def test_what_is_dropped_is_missed_by_none_that_comes_in_order(
    data: st.DataObject, queries: list[JoinQuery], batch: list[Reading]
) -> None:
    in_order = sorted(batch, key=lambda reading: reading.time)
    found = []
    for drops in (False, True):
        joining = Joining(WindowJoin(*N_COLUMNS), drops)
        for slot, query in enumerate(queries):
            joining.put(slot, query)
        found.append([pair for part in cut(data, in_order) for pair in joining.read(part)])

    assert found[0] == found[1]


@given(
    seed=st.integers(0, 1 << 30), queries=st.lists(window_queries(), min_size=1, max_size=2), count=st.integers(30, 90)
)
@settings(max_examples=times(0.2))
def test_pairs_of_long_windows_are_those_of_the_definition(seed: int, queries: list[JoinQuery], count: int) -> None:
    """The ranges of a box are then too long to test each reading in them."""
    rng = np.random.default_rng(seed)
    sides, times, codes, keys = (rng.integers(0, most, 150).tolist() for most in (2, 90, 3, 2))
    values = (rng.integers(-30, 30, (150, 2)) / 10).tolist()
    read = [
        Reading(side, (a, NO_NUMBER if a > 2 else b), time, code, key)
        for side, (a, b), time, code, key in zip(sides, values, times, codes, keys, strict=True)
    ]
    long = [replace(query, left=_counted(query.left, count), right=_counted(query.right, 80)) for query in queries]
    standing = {slot: (query, 0) for slot, query in enumerate(long)}
    pairs = expected(read, standing, 0)
    for costs in EACH_WAY:
        joining = Joining(WindowJoin(*N_COLUMNS, costs=costs))
        for slot, query in enumerate(long):
            joining.put(slot, query)

        assert joining.read(read) == pairs


def _counted(side: JoinSide, count: int) -> JoinSide:
    return replace(side, window_ms=None, window_count=count)


@given(batch=st.lists(readings, max_size=12), query=window_queries(), data=st.data())
def test_only_own_left_readings_make_pairs(batch: list[Reading], query: JoinQuery, data: st.DataObject) -> None:
    owned = [
        Reading(r.side, r.columns, r.time, r.code, r.key, own=r.side == 1 or data.draw(st.booleans())) for r in batch
    ]
    joining = Joining(WindowJoin(*N_COLUMNS))
    joining.put(0, query)

    assert joining.read(owned) == expected(owned, {0: (query, 0)}, 0)


Length = tuple[int | None, int | None]  # of a window: ms, count


def one_query(left: Length, right: Length, *bands: Band) -> JoinQuery:
    everything = Region((-np.inf, -np.inf), (np.inf, np.inf))
    left_side, right_side = JoinSide("l", (), None, *left), JoinSide("r", (), None, *right)
    return JoinQuery("q", 1, Kind.WINDOW_JOIN, left_side, right_side, (Conjunction(everything, everything, bands),))


def pairs_of(query: JoinQuery, *applied: Reading) -> list[tuple[int, int]]:
    found = []
    for costs in EACH_WAY:
        joining = Joining(WindowJoin(*N_COLUMNS, costs=costs))
        joining.put(0, query)
        found.append([(earlier, later) for later, _, earlier in joining.read(applied)])
    assert found[0] == found[1] == found[2]
    return found[0]


def left(time: int, value: float = 0.0) -> Reading:
    return Reading(0, (value, NO_NUMBER), time, 0, 0)


def right(time: int, value: float = 0.0) -> Reading:
    return Reading(1, (value, NO_NUMBER), time, 0, 0)


def test_a_time_window_includes_exactly_its_length() -> None:
    query = one_query((10, None), (1, None))

    assert pairs_of(query, left(0), right(10), right(11)) == [(0, 1)]


def test_of_two_readings_the_window_of_the_one_with_the_smaller_event_time_decides() -> None:
    query = one_query((10, None), (1, None))

    assert pairs_of(query, right(10), left(0)) == [(0, 1)]
    assert pairs_of(query, left(10), right(0)) == []


def test_a_counted_window_holds_the_last_readings_of_its_feed_whatever_their_times() -> None:
    query = one_query((None, 2), (5, None))

    assert pairs_of(query, left(0), left(900), left(7), right(1000)) == [(1, 3), (2, 3)]
    assert pairs_of(query, left(0), left(900), left(7), right(1)) == []
    assert pairs_of(query, left(7), right(2), right(1)) == [(0, 1)]


def test_a_band_compares_the_difference_as_it_is_rounded() -> None:
    query = one_query((1, None), (1, None), Band(0, 0, -1.0, 0.1 + 0.2 - 0.1))

    assert pairs_of(query, left(0, 0.1 + 0.2), right(0, 0.1)) == [(0, 1)]
    assert pairs_of(query, left(0, float(np.nextafter(0.3, 1)) + 1e-15), right(0, 0.1)) == []


def test_two_bands_on_the_same_columns_both_hold() -> None:
    query = one_query((1, None), (1, None), Band(0, 0, -1.0, 2.0), Band(0, 0, 1.0, 3.0))

    assert [bool(pairs_of(query, left(0, difference), right(0))) for difference in (0.0, 1.0, 2.0, 3.0)] == [
        False,
        True,
        True,
        False,
    ]


def test_bands_that_lie_apart_leave_out_what_is_between_them() -> None:
    first, second = (one_query((1, None), (1, None), Band(0, 0, lo, lo + 1)) for lo in (-5.0, 4.0))
    query = replace(first, alternatives=first.alternatives + second.alternatives)
    rights = [right(0, float(value)) for value in range(30)]

    assert pairs_of(query, *rights, left(0, 10.0)) == [(5, 30), (6, 30), (14, 30), (15, 30)]


def test_a_reading_is_kept_as_long_as_a_query_can_need_it() -> None:
    join = WindowJoin(*N_COLUMNS)
    join.put(0, one_query((10, None), (None, 2)), (0, 0))
    event_times = np.array([0, 5, 9])

    assert [join.keep(event_times, 0, 0, settled) for settled in (-(2**63), 10, 11, 16, 20)] == [0, 0, 1, 2, 3]
    assert join.keep(event_times, 0, 1, 1000) == 1

    join.remove(0)
    assert join.keep(event_times, 0, 1, 1000) == 3

    join.put(0, one_query((10, None), (None, 2)), (7, 0))
    assert join.keep(event_times, 5, 0, 0) == 2


def test_a_band_without_ends_asks_for_two_numbers() -> None:
    query = one_query((1, None), (1, None), Band(1, 0, -np.inf, np.inf))

    assert pairs_of(query, left(0), right(0)) == []
    assert pairs_of(query, Reading(0, (0.0, 1e308), 0, 0, 0), right(0, -1e308)) == [(0, 1)]


def test_a_slot_is_used_once() -> None:
    join = WindowJoin(*N_COLUMNS)
    join.put(0, one_query((1, None), (1, None)), (0, 0))

    with pytest.raises(ValueError, match="slot 0 is in use"):
        join.put(0, one_query((1, None), (1, None)), (0, 0))
