"""Vehicles in a plane and squares to watch or to select, from a seed: what every benchmark of the pipeline reads.

A vehicle keeps its direction and turns back at the border of the plane, so every reading is one step of fixed
length. A step (dx, dy) causes an event for each square that has one of its ends inside, and not the other. Of N squares
of side a in a plane of area A these are 2 * N / A * (a^2 - max(a - |dx|, 0) * max(a - |dy|, 0)): that is how a side is
chosen for an event rate. A step jumps over a square that is much smaller, so a million squares must be larger than
Buffon's formula says. A select query reports every reading inside, so N of them with two squares each report
2 * N * a^2 / A of a reading.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import bisect

Floats = npt.NDArray[np.float64]

PLANE_M = 60_000.0
STEP_M = 30.0
EVENTS_PER_READING = 0.1
CITY_STEP_M = 333.0
TOP_PRICE = 1_000_000.0
CITY_TURN_RAD = 0.3  # standard deviation of the change of heading from one reading to the next
BASE_MS = 1_700_000_000_000
ROUND_MS = 1_000


def side_of_squares(n_queries: int, events_per_reading: float = EVENTS_PER_READING) -> float:
    """Return the side in metres that gives so many events a reading (see the module's text)."""
    headings = np.linspace(0, np.pi / 2, 10_001)
    dx, dy = STEP_M * np.cos(headings), STEP_M * np.sin(headings)

    def too_many(side: float) -> float:
        both = np.maximum(side - dx, 0) * np.maximum(side - dy, 0)
        return float(2 * n_queries / PLANE_M**2 * (side**2 - both.mean()) - events_per_reading)

    return float(bisect(too_many, 0.0, PLANE_M))


@dataclass(frozen=True, slots=True)
class Workload:
    """``n_rounds`` readings of each of ``n_streams`` vehicles over ``n_queries`` squares of ``side_m``."""

    n_streams: int
    n_rounds: int
    n_queries: int
    side_m: float
    seed: int = 20060509

    def rounds(self) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield (event time ms, x float64[n_streams], y float64[n_streams]), rounded to centimetres."""
        rng = np.random.default_rng(self.seed)
        x, y = rng.uniform(0, PLANE_M, (2, self.n_streams))
        heading = rng.uniform(0, 2 * np.pi, self.n_streams)
        dx, dy = STEP_M * np.cos(heading), STEP_M * np.sin(heading)
        for number in range(self.n_rounds):
            yield BASE_MS + number * ROUND_MS, np.round(x, 2), np.round(y, 2)
            dx = np.where((x + dx < 0) | (x + dx >= PLANE_M), -dx, dx)
            dy = np.where((y + dy < 0) | (y + dy >= PLANE_M), -dy, dy)
            x, y = x + dx, y + dy

    def squares(self) -> tuple[Floats, Floats]:
        """Return lower and upper corners of the squares, float64[2, n_queries] each."""
        rng = np.random.default_rng(self.seed + 1)
        lo = np.round(rng.uniform(0, PLANE_M - self.side_m, (2, self.n_queries)), 2)
        return lo, lo + self.side_m

    def definitions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (query id, definition)."""
        lo, hi = self.squares()
        for i in range(self.n_queries):
            box = {"x": [lo[0, i], hi[0, i]], "y": [lo[1, i], hi[1, i]]}
            yield f"q{i}", {"kind": "border", "feed": "vehicles", "region": {"box": box}}


@dataclass(frozen=True, slots=True)
class SelectWorkload(Workload):
    """The same vehicles; each of the queries selects what is in either of two squares of ``side_m``."""

    def alternatives(self) -> tuple[Floats, Floats]:
        """Return lower and upper corners of both squares of each query, float64[2, n_queries, 2] each."""
        rng = np.random.default_rng(self.seed + 2)
        lo = np.round(rng.uniform(0, PLANE_M - self.side_m, (2, self.n_queries, 2)), 2)
        return lo, lo + self.side_m

    def definitions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (query id, definition)."""
        lo, hi = self.alternatives()
        for i in range(self.n_queries):
            squares = [{"x": [lo[0, i, k], hi[0, i, k]], "y": [lo[1, i, k], hi[1, i, k]]} for k in range(2)]
            yield f"q{i}", {"kind": "select", "feed": "vehicles", "any": squares}


@dataclass(frozen=True, slots=True)
class CityWorkload(Workload):
    """Objects with long steps and slow turns in a city; edges of squares are drawn from 2/3 to 4/3 of ``side_m``."""

    city_m: float = 15_000.0

    @property
    def crossings_per_reading(self) -> float:
        """Return the expected crossings of a reading: Buffon's, less the corners that a step jumps over."""
        area = (4 * self.side_m * CITY_STEP_M - CITY_STEP_M**2) / np.pi
        return 2 * self.n_queries * area / self.city_m**2

    def rounds(self) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield (event time ms, x float64[n_streams], y float64[n_streams]), rounded to centimetres."""
        rng = np.random.default_rng(self.seed)
        places = rng.uniform(0, self.city_m, (2, self.n_streams))
        heading = rng.uniform(0, 2 * np.pi, self.n_streams)
        for number in range(self.n_rounds):
            yield BASE_MS + number * ROUND_MS, np.round(places[0], 2), np.round(places[1], 2)
            heading += rng.normal(0, CITY_TURN_RAD, self.n_streams)
            step = CITY_STEP_M * np.stack([np.cos(heading), np.sin(heading)])
            step = np.where((places + step < 0) | (places + step >= self.city_m), -step, step)
            heading = np.arctan2(step[1], step[0])
            places = places + step

    def squares(self) -> tuple[Floats, Floats]:
        """Return lower and upper corners of the squares, float64[2, n_queries] each, in whole centimetres."""
        rng = np.random.default_rng(self.seed + 1)
        side = np.round(rng.uniform(self.side_m * 2 / 3, self.side_m * 4 / 3, self.n_queries), 2)
        lo = np.round(rng.uniform(0, self.city_m - side, (2, self.n_queries)), 2)
        return lo, np.round(lo + side, 2)


@dataclass(frozen=True, slots=True)
class BandBoxWorkload(Workload):
    """Stocks whose prices x go up or down by one step, and bands of them as boxes: y is 0.5, and boxes hold 0 to 1.

    ``side_m`` is the width of a band, in the unit of the prices. A step crosses
    2 * n_queries * step / TOP_PRICE borders on average.
    """

    step: float = 0.5

    def rounds(self) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield (event time ms, x float64[n_streams], y float64[n_streams]), rounded to hundredths."""
        rng = np.random.default_rng(self.seed)
        x = rng.uniform(0, TOP_PRICE, self.n_streams)
        y = np.full(self.n_streams, 0.5)
        dx = rng.choice([-self.step, self.step], self.n_streams)
        for number in range(self.n_rounds):
            yield BASE_MS + number * ROUND_MS, np.round(x, 2), y
            dx = np.where((x + dx < 0) | (x + dx >= TOP_PRICE), -dx, dx)
            x = x + dx

    def squares(self) -> tuple[Floats, Floats]:
        """Return lower and upper corners of the boxes, float64[2, n_queries] each."""
        rng = np.random.default_rng(self.seed + 1)
        lo = np.round(rng.uniform(0, TOP_PRICE - self.side_m, self.n_queries), 2)
        nothing = np.zeros(self.n_queries)
        return np.stack([lo, nothing]), np.stack([lo + self.side_m, nothing + 1])


@dataclass(frozen=True, slots=True)
class BandWorkload(BandBoxWorkload):
    """The same, for a feed with the one dimension x."""

    def definitions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (query id, definition)."""
        lo, hi = self.squares()
        for i in range(self.n_queries):
            yield f"q{i}", {"kind": "border", "feed": "vehicles", "region": {"box": {"x": [lo[0, i], hi[0, i]]}}}


def stream_id(number: int) -> str:
    """Return the id of a vehicle."""
    return f"v{number}"
