"""A city of vehicles that park in garages: what the benchmark of transition queries reads.

As in BMQ-Processor, section 6.4: a million vehicles on a city of 30 km, each reports every 30 s; garages are squares of
30 m. The first second finds the city as any later one does: vehicles are on their way or parked.

Departures: the city is a plane without streets; a trip is a straight line to a random place, or, for one in two, to a
garage, where the vehicle stays one to ten minutes; every fifth of those that leave has only an errand in the
neighbourhood, and comes back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmq.records import Float64s, Int64s

BASE_MS = 1_700_000_000_000
PERIOD_SECONDS = 30
WITHIN_SECONDS = 180
CITY_M = 30_000.0
GARAGE_M = 30.0
SPEEDS_M_S = (4.0, 14.0)
STAY_SECONDS = (60, 600)
# Shares: of trips that end in a garage, of those that leave it for an errand, of vehicles that are parked at first.
# The last is what the first and the stays come to: a trip takes half an hour, and half of them end in a stay.
PARKING, ERRANDS, PARKED = 0.5, 0.2, 0.1
ERRAND_M = 150.0  # standard deviation, in each dimension: some 30 s away
PATTERNS = ("in_then_out", "out_then_in", "in_not_out", "out_not_in")
NOWHERE = -1  # no garage


@dataclass(frozen=True, slots=True)
class Traffic:
    """``n_vehicles`` among ``n_garages``, each a query, for ``n_seconds``, from a seed."""

    n_vehicles: int
    n_garages: int
    n_seconds: int
    within_seconds: int = WITHIN_SECONDS
    seed: int = 20060509

    def corners(self) -> Float64s:
        """Return the lower corners of the garages, float64[2, n_garages], in metres."""
        rng = np.random.default_rng(self.seed + 1)
        return np.round(rng.uniform(0, CITY_M - GARAGE_M, (2, self.n_garages)), 2)

    @property
    def within_ms(self) -> int:
        """The time of every query."""
        return 1000 * self.within_seconds

    @property
    def n_settling(self) -> int:
        """The seconds after which nothing waits that began with the first sight of a vehicle in a garage.

        That is a crossing for the queries, but none that the vehicle made.
        """
        return PERIOD_SECONDS + self.within_seconds

    def definitions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (query id, definition): a transition query for each garage, the four patterns by turns."""
        lo = self.corners()
        for i in range(self.n_garages):
            box = {"x": [lo[0, i], lo[0, i] + GARAGE_M], "y": [lo[1, i], lo[1, i] + GARAGE_M]}
            yield (
                f"g{i}",
                {
                    "kind": "transition",
                    "pattern": PATTERNS[i % len(PATTERNS)],
                    "within": f"{self.within_seconds}s",
                    "feed": "vehicles",
                    "region": {"box": box},
                },
            )

    def seconds(self) -> Iterator[tuple[Int64s, Float64s]]:
        """Yield, for each second, the vehicles that report and where they are: int64[m], float64[2, m] to the cm."""
        rng = np.random.default_rng(self.seed)
        n = self.n_vehicles
        garages = self.corners() + GARAGE_M / 2
        goal = self._goals(rng, n)
        target = np.where(goal >= 0, garages[:, goal], rng.uniform(0, CITY_M, (2, n)))
        place = target + (rng.uniform(0, CITY_M, (2, n)) - target) * rng.random(n)
        leaves_at = np.zeros(n, dtype=np.int64)
        parked = (goal >= 0) & (rng.random(n) < PARKED / PARKING)
        place[:, parked] = target[:, parked]
        n_parked = np.count_nonzero(parked)
        # At any moment a stay is as likely to be met as it is long, and at any point of it.
        shortest, longest = STAY_SECONDS
        leaves_at[parked] = np.sqrt(rng.uniform(shortest**2, longest**2, n_parked)) * rng.random(n_parked)
        goal[parked], target[:, parked] = NOWHERE, rng.uniform(0, CITY_M, (2, n_parked))
        back_to = np.full(n, NOWHERE)  # the garage after the errand
        step = rng.uniform(*SPEEDS_M_S, n) * PERIOD_SECONDS
        for second in range(self.n_seconds):
            who = np.arange(second % PERIOD_SECONDS, n, PERIOD_SECONDS)
            way = target[:, who] - place[:, who]
            left = np.hypot(*way)
            moves = leaves_at[who] <= second
            share = np.where(moves, np.minimum(1.0, step[who] / np.maximum(left, 1e-9)), 0.0)
            place[:, who] += way * share
            done = who[moves & (left <= step[who])]
            at, anywhere = goal[done], rng.uniform(0, CITY_M, (2, done.size))
            leaves_at[done] = np.where(at >= 0, second + rng.integers(*STAY_SECONDS, done.size), 0)
            errand = (at >= 0) & (rng.random(done.size) < ERRANDS)
            goal[done] = np.where(
                errand, NOWHERE, np.where(back_to[done] >= 0, back_to[done], self._goals(rng, done.size))
            )
            back_to[done] = np.where(errand, at, NOWHERE)
            near = np.clip(place[:, done] + rng.normal(0, ERRAND_M, (2, done.size)), 0, CITY_M)
            target[:, done] = np.where(errand, near, np.where(goal[done] >= 0, garages[:, goal[done]], anywhere))
            yield who, np.round(place[:, who], 2)

    def _goals(self, rng: np.random.Generator, n: int) -> Int64s:
        """Return the garages to which ``n`` trips go, int64[n]; NOWHERE: to another place."""
        return np.where(rng.random(n) < PARKING, rng.integers(0, self.n_garages, n), NOWHERE)


def vehicle_id(number: int) -> str:
    """Return the id of a vehicle."""
    return f"v{number}"
