"""What the figures of two-dimensional monitoring share: the grid of points, the contestants, the races.

Source: Lee et al., BMQ-Processor, section 7.2. Knows no figure; `queries_2d`, `widths_2d` and `storage_2d` do.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from bench.baselines.ces import Ces, collect
from bench.baselines.diff_rmq import DiffRmq
from bench.baselines.one_structure import BorderGrid, NdBmq
from bench.figures.figure import Panel, Point, Scale, counted
from bench.measure import race_moves, registered
from bench.roads import FAST, OLDENBURG, SLOW, City, Kind, positions, squares
from bmq.index.base import BorderIndex
from bmq.index.border.adaptive_border import make_index
from bmq.records import Float64s

ND_BMQ = "n-D BMQ"
GRID = "border grid"
CHOSEN = "the service's choice"
CES = "DiffRMQ (CES)"
TUNED_CES = "DiffRMQ (CES, cells tuned)"
KINDS = {"fast": FAST, "slow": SLOW}
SEED = 20060509
N_WARM = 1
PANELS = (Panel("efficiency", "processing efficiency, %"), Panel("time", "ns a reading", log_y=True))

# The paper gives neither, but CES with 63.5 MB at 500 queries of 5 km and 203 MB at 5,000 (Fig. 18): 48 MB without any
# query. Pointers of 4 bytes to the virtual squares of (15 km / 5 m)^2 cells are 48 MB, and with blocks of 16 cells ours
# takes 63 and 199 MB. CES as published wants borders on grid lines, so its cells must be fine; L from 8 to 128 changed
# its time less than the noise.
CELL = 5.0
BLOCK = 16
# With a final check at the rim, which ours has, cells can be larger. Those of 120 m and 230 m were the fastest at any
# width; of 60 m and of 470 m up to a fifth slower, of 5 m up to twice as slow on narrow queries.
TUNED_CELL = OLDENBURG.extent / 64


@dataclass(frozen=True, slots=True)
class Traffic:
    """How many vehicles there are, for how many samples, in rounds of how many steps, and where."""

    n_objects: int
    n_samples: int
    n_steps: int
    city: City = OLDENBURG

    def positions(self, kind: Kind) -> Float64s:
        """Return where vehicles of a kind are, float64[n_samples, 2, n_objects]."""
        return positions(kind, self.n_objects, self.n_samples, SEED, self.city)


VILLAGE = City(n_across=20, n_edges=500, n_destinations=20)
# The paper's 1,000 objects and 100 readings of each, in rounds of 20,000: the first readings of a round find nothing in
# the caches.
PAPERS = Traffic(1_000, 101, 20)
TRAFFIC = {Scale.SMOKE: Traffic(20, N_WARM + 4, 1, VILLAGE), Scale.REDUCED: PAPERS, Scale.FULL: PAPERS}
N_QUERIES = {
    Scale.SMOKE: (10, 50),
    Scale.REDUCED: (500, 1_500, 3_000, 5_000),
    Scale.FULL: tuple(range(500, 5_001, 500)),
}
SIDES_KM = {
    Scale.SMOKE: (0.5, 5.0),
    Scale.REDUCED: (0.5, 1.5, 3.0, 5.0),
    Scale.FULL: tuple(0.5 * n for n in range(1, 11)),
}


def diff_rmq(cell: float) -> DiffRmq:
    """Return an empty DiffRMQ over CES with cells of so many metres."""
    make = partial(Ces, unit=cell, length=BLOCK, origin=(0.0, 0.0), extent=OLDENBURG.extent)
    return DiffRmq(make, collect, 2)


MAKERS: dict[str, Callable[[], BorderIndex]] = {
    ND_BMQ: partial(NdBmq, 2),
    GRID: BorderGrid,
    CHOSEN: partial(make_index, 2),
    CES: partial(diff_rmq, CELL),
    TUNED_CES: partial(diff_rmq, TUNED_CELL),
}


def contestants(
    n_queries: int, side_km: float, names: Iterable[str] = MAKERS
) -> tuple[dict[str, BorderIndex], tuple[Float64s, Float64s]]:
    """Return the indexes by name, with the queries registered, and the queries' borders, float64[2, n_queries]."""
    regions = squares(n_queries, 1_000 * side_km, SEED)
    indexes = {name: MAKERS[name]() for name in names}
    for index in indexes.values():
        registered(index, regions)
    return indexes, regions


def race(scale: Scale, n_queries: int, side_km: float, x: float) -> Iterator[Point]:
    """Yield efficiency and time of every contestant on fast and on slow vehicles, at ``x``."""
    indexes, regions = contestants(n_queries, side_km)
    traffic = TRAFFIC[scale]
    for speed, kind in KINDS.items():
        raced = race_moves(indexes, traffic.positions(kind), regions, n_warm=N_WARM, n_steps=traffic.n_steps)
        for name, times in raced.items():
            yield counted("efficiency", f"{name}, {speed}", x, times.efficiency)
            yield Point("time", f"{name}, {speed}", x, *times.spread)


def storage(scale: Scale, n_queries: int, side_km: float, names: Iterable[str] = MAKERS) -> dict[str, float]:
    """Return the megabytes of each contestant once it has followed the fast vehicles a step."""
    indexes, regions = contestants(n_queries, side_km, names)
    race_moves(indexes, TRAFFIC[scale].positions(FAST)[:3], regions, n_warm=1)
    return {name: index.nbytes / 1e6 for name, index in indexes.items()}
