"""A city of vehicles that park in garages: what the benchmark of transition queries reads.

As in BMQ-Processor, section 6.4: a million vehicles on a city of 30 km, each reports every 30 s; garages are squares of
30 m. Departures: the city is a plane without streets; a trip is a straight line to a random place, or, for one in
`PARKING`, to a garage, where the vehicle stays one to ten minutes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmq.records import Float64s, Int64s

PERIOD_SECONDS = 30
CITY_M = 30_000.0
GARAGE_M = 30.0
PARKING = 0.2
SPEEDS_M_S = (4.0, 14.0)
STAY_SECONDS = (60, 600)
PATTERNS = ("in_then_out", "out_then_in", "in_not_out", "out_not_in")


@dataclass(frozen=True, slots=True)
class Traffic:
    """``n_vehicles`` among ``n_garages`` for ``n_seconds``, from a seed."""

    n_vehicles: int
    n_garages: int
    n_seconds: int
    seed: int = 20060509

    def corners(self) -> Float64s:
        """Return the lower corners of the garages, float64[2, n_garages], in metres."""
        rng = np.random.default_rng(self.seed + 1)
        return np.round(rng.uniform(0, CITY_M - GARAGE_M, (2, self.n_garages)), 2)

    def definitions(self, within: str) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (query id, definition): a transition query for each garage, the four patterns by turns."""
        lo = self.corners()
        for i in range(self.n_garages):
            box = {"x": [lo[0, i], lo[0, i] + GARAGE_M], "y": [lo[1, i], lo[1, i] + GARAGE_M]}
            yield (
                f"g{i}",
                {
                    "kind": "transition",
                    "pattern": PATTERNS[i % len(PATTERNS)],
                    "within": within,
                    "feed": "vehicles",
                    "region": {"box": box},
                },
            )

    def seconds(self) -> Iterator[tuple[Int64s, Float64s]]:
        """Yield, for each second, the vehicles that report and where they are: int64[m], float64[2, m] to the cm."""
        rng = np.random.default_rng(self.seed)
        n = self.n_vehicles
        garages = self.corners() + GARAGE_M / 2
        place = rng.uniform(0, CITY_M, (2, n))
        target = rng.uniform(0, CITY_M, (2, n))
        is_garage = np.zeros(n, dtype=np.bool_)
        leaves_at = np.zeros(n, dtype=np.int64)
        step = rng.uniform(*SPEEDS_M_S, n) * PERIOD_SECONDS
        for second in range(self.n_seconds):
            who = np.arange(second % PERIOD_SECONDS, n, PERIOD_SECONDS)
            way = target[:, who] - place[:, who]
            left = np.hypot(*way)
            moves = leaves_at[who] <= second
            arrives = moves & (left <= step[who])
            share = np.where(moves, np.minimum(1.0, step[who] / np.maximum(left, 1e-9)), 0.0)
            place[:, who] += way * share
            parks = who[arrives & is_garage[who]]
            leaves_at[parks] = second + rng.integers(*STAY_SECONDS, parks.size)
            done = who[arrives]
            target[:, done] = rng.uniform(0, CITY_M, (2, done.size))
            is_garage[done] = rng.random(done.size) < PARKING
            to_garage = done[is_garage[done]]
            target[:, to_garage] = garages[:, rng.integers(0, self.n_garages, to_garage.size)]
            yield who, np.round(place[:, who], 2)


def vehicle_id(number: int) -> str:
    """Return the id of a vehicle."""
    return f"v{number}"
