"""The generated streams look like what they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.demo.demo_queries import Definition, stock_queries, vehicle_queries
from bmq.demo.generated_streams import Stocks, Vehicles, World
from bmq.records import Float64s, Int64s

seeds = st.integers(0, 2**32 - 1)
# Rarely a tick, mostly ordinary gaps between two readings, sometimes so long that several corners are passed.
gaps = st.lists(st.sampled_from([0.0, 0.001, 1.0, 5.0, 600.0]), min_size=1, max_size=6)


def all_rows(world: World) -> Int64s:
    return np.arange(len(world.ids))


@given(seed=seeds, gaps=gaps)
def test_prices_are_positive_whole_cents(seed: int, gaps: list[float]) -> None:
    stocks = Stocks(50, seed)

    for seconds in gaps:
        prices = stocks.move(all_rows(stocks), seconds)

        assert prices.shape == (1, 50)
        assert (prices >= 0.01).all()
        assert np.array_equal(prices, prices.round(2))


def test_returns_of_a_price_have_the_stated_spread_and_no_drift() -> None:
    stocks = Stocks(2_000, seed=1)
    before = stocks.move(all_rows(stocks), 0.0)
    # 100 steps of one second are as spread as one of 100: a random walk.
    for _ in range(100):
        after = stocks.move(all_rows(stocks), 1.0)

    returns = np.log(after / before)

    assert returns.std() == pytest.approx(Stocks.VOLATILITY * 10, rel=0.1)
    assert (after / before).mean() == pytest.approx(1.0, abs=0.003)


def test_symbols_are_three_letters_and_never_repeat() -> None:
    ids = Stocks(26**3).ids

    assert len(set(ids)) == 26**3
    assert all(len(symbol) == 3 and symbol.isalpha() and symbol.isupper() for symbol in ids)


@given(seed=seeds, gaps=gaps)
def test_vehicles_stay_on_the_streets_of_the_grid(seed: int, gaps: list[float]) -> None:
    vehicles = Vehicles(50, seed)

    for seconds in gaps:
        x, y = vehicles.move(all_rows(vehicles), seconds)

        assert ((x % Vehicles.AVENUE_SPACING == 0) | (y % Vehicles.STREET_SPACING == 0)).all()
        assert ((x >= 0) & (x <= Vehicles.AVENUE_SPACING * (Vehicles.N_AVENUES - 1))).all()
        assert ((y >= 0) & (y <= Vehicles.STREET_SPACING * (Vehicles.N_STREETS - 1))).all()


@given(seed=seeds, seconds=st.sampled_from([0.001, 1.0, 5.0]))
def test_a_vehicle_drives_as_far_as_its_speed_says(seed: int, seconds: float) -> None:
    # Less than a block is driven, so at most one corner is turned, and the way is the sum of both distances.
    vehicles = Vehicles(50, seed)
    before = vehicles.move(all_rows(vehicles), 0.0)

    after = vehicles.move(all_rows(vehicles), seconds)

    driven = np.abs(after - before).sum(axis=0)
    assert driven == pytest.approx(vehicles.speeds * seconds, abs=0.02)  # positions are in centimetres


def test_vehicles_turn_both_ways_and_reach_all_parts_of_the_grid() -> None:
    vehicles = Vehicles(500, seed=1)
    seen = [vehicles.move(all_rows(vehicles), 5.0) for _ in range(1_000)]

    x, y = np.concatenate(seen, axis=1)

    assert (x.min(), x.max()) == (0, Vehicles.AVENUE_SPACING * (Vehicles.N_AVENUES - 1))
    assert (y.min(), y.max()) == (0, Vehicles.STREET_SPACING * (Vehicles.N_STREETS - 1))


@pytest.mark.parametrize("world", [Stocks, Vehicles])
def test_only_the_streams_that_report_move(world: type[Stocks] | type[Vehicles]) -> None:
    moved, still = np.arange(0, 20), np.arange(20, 40)
    streams = world(40, seed=1)
    before = streams.move(still, 0.0)

    streams.move(moved, 10.0)

    assert np.array_equal(streams.move(still, 0.0), before)


@pytest.mark.parametrize("world", [Stocks, Vehicles])
def test_the_same_seed_gives_the_same_streams(world: type[Stocks] | type[Vehicles]) -> None:
    def played(seed: int) -> Float64s:
        streams = world(20, seed)
        return np.stack([streams.move(np.arange(20), 3.0) for _ in range(50)])

    assert np.array_equal(played(7), played(7))
    assert not np.array_equal(played(7), played(8))


def members(queries: dict[str, Definition], world: World, values: Float64s) -> dict[str, int]:
    """Return how many of the streams at ``values`` are inside each query's box."""
    counts = {}
    for query_id, definition in queries.items():
        inside = np.ones(values.shape[1], dtype=bool)
        for dimension, (lo, hi) in definition["region"]["box"].items():
            axis = values[world.dimensions.index(dimension)]
            inside &= (axis >= (-np.inf if lo is None else lo)) & (axis < (np.inf if hi is None else hi))
        counts[query_id] = int(inside.sum())
    return counts


def test_every_open_price_is_in_exactly_one_band() -> None:
    stocks = Stocks(2_000, seed=3)
    bands = {query_id: q for query_id, q in stock_queries(stocks).items() if query_id.startswith("band")}

    inside = members(bands, stocks, stocks.opens[np.newaxis])

    assert sum(inside.values()) == 2_000


def test_an_alert_watches_one_symbol_above_its_open() -> None:
    stocks = Stocks(2_000, seed=3)
    alert = stock_queries(stocks)[f"alert-{stocks.ids[5]}"]

    assert alert["streams"] == [stocks.ids[5]]
    assert alert["region"]["box"]["price"][0] > stocks.opens[5]


def test_vehicles_come_to_most_garages_and_shops() -> None:
    vehicles = Vehicles(2_000, seed=3)
    queries = vehicle_queries(seed=3)
    visits = dict.fromkeys(queries, 0)
    for _ in range(50):
        for query_id, n in members(queries, vehicles, vehicles.move(all_rows(vehicles), 3.0)).items():
            visits[query_id] += n

    assert len(queries) == 600
    assert sum(n > 0 for n in visits.values()) > 0.9 * len(queries)
