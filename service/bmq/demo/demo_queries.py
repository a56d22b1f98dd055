"""The standing queries of the demo, as definitions for the control topic.

Pure: the same world gives the same queries.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bmq.demo.generated_streams import Stocks, Vehicles

Definition = dict[str, Any]

N_BANDS = 200  # each 2.3 % wide: a price that moves leaves one and enters the next
N_ALERTS = 100
ALERT_RISE = 1.02  # times the opening price; within minutes some of the watched stocks reach it

N_GARAGES, N_SHOPS = 300, 300
GARAGE_METRES = 40.0  # a corner with its four mouths
SHOP_METRES = 30.0  # one front, in the middle of a block
KERB_METRES = 6.0  # to either side of the middle of the street


def stock_queries(stocks: Stocks) -> dict[str, Definition]:
    """Return price bands that tile the prices, and alerts for single symbols that have risen."""
    borders = np.geomspace(stocks.LOWEST_OPEN, stocks.HIGHEST_OPEN, N_BANDS + 1).round(2).tolist()
    bands = {
        f"band-{i}": _border("stocks", {"price": [lo, hi]}, {"from": f"{lo:.2f}", "to": f"{hi:.2f}"})
        for i, (lo, hi) in enumerate(pairwise(borders))
    }
    watched = zip(stocks.ids[:N_ALERTS], stocks.opens[:N_ALERTS].tolist(), strict=True)
    alerts = {f"alert-{symbol}": _alert(symbol, opened) for symbol, opened in watched}
    return bands | alerts


def vehicle_queries(seed: int = 0) -> dict[str, Definition]:
    """Return garages at corners and shops in the middle of blocks, each at a place of its own."""
    garages = {
        f"garage-{n}": _zone(place, along=0.0, reach=(GARAGE_METRES / 2, GARAGE_METRES / 2))
        for n, place in enumerate(_places(N_GARAGES, seed))
    }
    shops = {
        f"shop-{n}": _zone(place, along=0.5, reach=(KERB_METRES, SHOP_METRES / 2))
        for n, place in enumerate(_places(N_SHOPS, seed + 1))
    }
    return garages | shops


def _alert(symbol: str, opened: float) -> Definition:
    """Return a query for one stock well above its opening price: an unbounded region, and one stream."""
    box = {"price": [round(opened * ALERT_RISE, 2), None]}
    return _border("stocks", box, {"opened at": f"{opened:.2f}"}) | {"streams": [symbol]}


def _places(n: int, seed: int) -> Iterator[tuple[int, int]]:
    """Return ``n`` different corners (avenue, street), without the corners of the last street."""
    shape = (Vehicles.N_AVENUES, Vehicles.N_STREETS - 1)
    chosen = np.random.default_rng(seed).choice(shape[0] * shape[1], n, replace=False)
    avenues, streets = np.unravel_index(chosen, shape)
    return zip(avenues.tolist(), streets.tolist(), strict=True)


def _zone(place: tuple[int, int], along: float, reach: tuple[float, float]) -> Definition:
    """Return a query for a box around a point on an avenue, ``along`` of the way to the next street."""
    avenue, street = place
    x, y = avenue * Vehicles.AVENUE_SPACING, (street + along) * Vehicles.STREET_SPACING
    box = {"x": [x - reach[0], x + reach[0]], "y": [y - reach[1], y + reach[1]]}
    return _border("vehicles", box, {"place": f"Avenue {avenue + 1}, Street {street + 1}"})


def _border(feed: str, box: Mapping[str, Sequence[float | None]], tags: dict[str, str]) -> Definition:
    return {"kind": "border", "feed": feed, "region": {"box": box}, "tags": tags}
