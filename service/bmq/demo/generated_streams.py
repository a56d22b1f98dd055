"""Generated streams like the papers' two examples: stock prices, and vehicles on a street grid.

Pure: seeded random numbers in, arrays out; no clock, no Kafka. The same seed and the same calls of `move`
give the same values.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from bmq.records import Float64s, Int64s


class World(ABC):
    """Streams of one feed that move when `move` is called.

    Attributes
    ----------
    feed : the name of the feed and of its topic.
    id_field, dimensions : the fields of a record with the stream id and the values.
    ids : the stream ids; the `rows` of `move` are positions in it.
    """

    feed: ClassVar[str]
    id_field: ClassVar[str]
    dimensions: ClassVar[tuple[str, ...]]
    space: ClassVar[str] = "plane"
    ids: tuple[str, ...]

    @abstractmethod
    def move(self, rows: Int64s, seconds: float) -> Float64s:
        """Move the streams ``rows`` for ``seconds`` and return their values, float64[d, rows.size].

        ``rows`` must not contain a row twice.
        """


class Stocks(World):
    """Prices that follow a geometric Brownian motion without drift, in cents.

    Parameters
    ----------
    n_streams : number of symbols, at most 26 ** 3.
    seed : of all random numbers.
    """

    feed = "stocks"
    id_field = "symbol"
    dimensions = ("price",)

    # Relative standard deviation after one second. A calm stock has 0.0001; at that pace a demo would show one event a
    # minute. This is a stormy day, 20 times faster.
    VOLATILITY = 0.002
    LOWEST_OPEN, HIGHEST_OPEN = 5.0, 500.0  # dollars; prices on one exchange differ by this factor

    def __init__(self, n_streams: int = 2_000, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self.ids = tuple(_symbol(i) for i in range(n_streams))
        # Evenly spread on the logarithmic scale, because bands are a few percent wide at any price.
        low, high = np.log(self.LOWEST_OPEN), np.log(self.HIGHEST_OPEN)
        self._prices = np.exp(self._random.uniform(low, high, n_streams))
        self.opens = _to_cents(self._prices)

    def move(self, rows: Int64s, seconds: float) -> Float64s:
        """Move the prices of ``rows`` by ``seconds``; return them, at least 0.01, float64[1, rows.size]."""
        spread = self.VOLATILITY * np.sqrt(seconds)
        # - spread² / 2 keeps the expected price constant; otherwise a long demo would drift out of all bands.
        self._prices[rows] *= np.exp(self._random.normal(-spread * spread / 2, spread, rows.size))
        return _to_cents(self._prices[rows])[np.newaxis]


class Vehicles(World):
    """Vehicles that drive along the streets of a grid and turn at its corners.

    Streets run east at every multiple of STREET_SPACING, avenues north at every multiple of AVENUE_SPACING. A
    vehicle has left a corner in one of four headings and is some metres on its way to the next corner::

        corner (i, j) --- metres ---> vehicle ------------ corner (i + 1, j)

    Parameters
    ----------
    n_streams : number of vehicles.
    seed : of all random numbers.
    """

    feed = "vehicles"
    id_field = "id"
    dimensions = ("x", "y")

    # Metres. Manhattan's blocks, and so many of them that a walk across takes an hour.
    AVENUE_SPACING, STREET_SPACING = 250.0, 80.0
    N_AVENUES, N_STREETS = 12, 60
    SPEEDS = (4.0, 6.0, 9.0)  # metres a second: a bicycle, a bus, a car
    SHARES = (0.2, 0.1, 0.7)
    TURNS = (0, 1, 3)  # straight on, left, right as quarter turns; nobody turns back
    LIKING = (1.0, 0.5, 0.5)  # weight of each turn

    _EAST = np.array([1, 0, -1, 0])  # corners passed to the east and to the north, by heading
    _NORTH = np.array([0, 1, 0, -1])
    _BLOCKS = np.array([AVENUE_SPACING, STREET_SPACING] * 2)  # metres to the next corner, by heading

    def __init__(self, n_streams: int = 5_000, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self.ids = tuple(f"v{i}" for i in range(n_streams))
        self.speeds = self._random.choice(self.SPEEDS, n_streams, p=self.SHARES)
        # Never on the outermost corners, so that each heading leads somewhere.
        self._i = self._random.integers(1, self.N_AVENUES - 1, n_streams)
        self._j = self._random.integers(1, self.N_STREETS - 1, n_streams)
        self._headings = self._random.integers(0, 4, n_streams)
        self._metres = self._random.uniform(0, self._BLOCKS[self._headings])

    def move(self, rows: Int64s, seconds: float) -> Float64s:
        """Move the vehicles ``rows`` for ``seconds``; return their (x, y) in metres, float64[2, rows.size]."""
        self._metres[rows] += self.speeds[rows] * seconds
        on_the_way = rows
        while on_the_way.size:
            blocks = self._BLOCKS[self._headings[on_the_way]]
            arrived = self._metres[on_the_way] >= blocks
            on_the_way, blocks = on_the_way[arrived], blocks[arrived]
            self._metres[on_the_way] -= blocks
            self._pass_corner(on_the_way)
        return self._positions(rows)

    def _pass_corner(self, rows: Int64s) -> None:
        headings = self._headings[rows]
        self._i[rows] += self._EAST[headings]
        self._j[rows] += self._NORTH[headings]
        choices = (headings + np.array(self.TURNS)[:, np.newaxis]) % 4
        i = self._i[rows] + self._EAST[choices]
        j = self._j[rows] + self._NORTH[choices]
        leads_on = (i >= 0) & (i < self.N_AVENUES) & (j >= 0) & (j < self.N_STREETS)
        wishes = self._random.random(choices.shape) * np.array(self.LIKING)[:, np.newaxis]
        best = np.where(leads_on, wishes, -1.0).argmax(axis=0)
        self._headings[rows] = choices[best, np.arange(rows.size)]

    def _positions(self, rows: Int64s) -> Float64s:
        headings, metres = self._headings[rows], self._metres[rows]
        x = self._i[rows] * self.AVENUE_SPACING + self._EAST[headings] * metres
        y = self._j[rows] * self.STREET_SPACING + self._NORTH[headings] * metres
        return np.stack([x, y]).round(2)  # centimetres: no receiver is more precise


def _symbol(i: int) -> str:
    """Return symbol ``i`` of the 26 ** 3 with three letters, in an order that looks random."""
    number = i * 7919 % 26**3  # 7919 is coprime to 26, so no symbol occurs twice
    return "".join(chr(ord("A") + number // 26**place % 26) for place in (2, 1, 0))


def _to_cents(prices: Float64s) -> Float64s:
    return np.maximum(prices.round(2), 0.01)
