"""The numbers behind the claims of `bounds.toml` in two and more dimensions. Each checks the answers it measures."""

import numpy as np

from bench.baselines.one_structure import NdBmq
from bench.border_indexes import Setup
from bench.boxes import Cubes
from bench.figures import grid_2d, vcr_rtree, vehicles
from bench.figures.figure import Scale
from bench.figures.line import ratio
from bench.figures.searches import Length, raced
from bench.measure import race_moves, registered
from bmq.index.border.adaptive_border import make_index

SEED = 20060509
SIDES_KM = vehicles.SIDES_KM[Scale.FULL]


def storage_against_ces() -> float:
    """Return the bytes of DiffRMQ over the paper's CES by those of the n-D BMQ, the least of W = 0.5 to 5 km.

    5,000 squares, 1,000 vehicles. Where CES has large cells and a final check that the papers' has not, little of it is
    left: `bench/figures/storage_2d.py` has both.
    """
    n_queries = vehicles.N_QUERIES[Scale.FULL][-1]
    megabytes = [
        vehicles.storage(Scale.FULL, n_queries, side_km, (vehicles.CES, vehicles.ND_BMQ)) for side_km in SIDES_KM
    ]
    return min(each[vehicles.CES] / each[vehicles.ND_BMQ] for each in megabytes)


def nd_bmq_megabytes() -> float:
    """Return the megabytes of the n-D BMQ over 5,000 squares and 1,000 vehicles, the most of W = 0.5 to 5 km."""
    return _most_megabytes(vehicles.ND_BMQ)


def grid_megabytes() -> float:
    """Return the megabytes of the border grid, as ``nd_bmq_megabytes``."""
    return _most_megabytes(vehicles.GRID)


def grid_against_nd_bmq() -> float:
    """Return the time of the n-D BMQ by the border grid's over 100K squares of 500 m and of 60 m, the lower ratio."""
    ratios = []
    for side in (500.0, 60.0):
        times = grid_2d.race(100_000, side, n_streams=2_000, n_rounds=7)
        ratios.append(ratio(times[grid_2d.ND_BMQ], times[grid_2d.GRID]))
    return min(ratios)


def nine_dimensions_megabytes() -> float:
    """Return the megabytes of the n-D BMQ of nine dimensions over 10,000 queries once 1,000 streams have moved."""
    cubes = Cubes(9)
    index = NdBmq(9)
    registered(index, cubes.regions(SEED))
    race_moves({"n-D BMQ": index}, cubes.positions(1_000, 4, SEED), cubes.regions(SEED))
    return index.nbytes / 1e6


def city_million_readings_per_second() -> float:
    """Return how many million readings a second one core finds the crossings of, in a city of 60 km.

    10,000 uniform squares of 500 m, 100,000 streams, steps of 330 m; by the index that the service picks.
    """
    setup = Setup(2, 60_000.0, 10_000, 500.0, grid_2d.STEP, 100_000)
    rng = np.random.default_rng(SEED)
    regions = setup.regions(rng, setup.n_queries)
    index = make_index(2)
    registered(index, regions)
    times = race_moves({"index": index}, grid_2d.walked(setup, rng, 11), regions)
    return 1e3 / times["index"].spread.median


def vcr_against_rtree() -> float:
    """Return the search time of the R-tree by VCR's over 32,000 queries: the lower of uniform and 90-10."""
    ratios = []
    for boxes in vcr_rtree.WORKLOADS.values():
        chosen = {name: vcr_rtree.contestants()[name] for name in (vcr_rtree.FASTEST, vcr_rtree.RTREE)}
        times = raced(chosen, boxes, 32_000, Length(15, 2_000))
        ratios.append(ratio(times[vcr_rtree.RTREE], times[vcr_rtree.FASTEST]))
    return min(ratios)


def _most_megabytes(name: str) -> float:
    n_queries = vehicles.N_QUERIES[Scale.FULL][-1]
    return max(vehicles.storage(Scale.FULL, n_queries, side_km, (name,))[name] for side_km in SIDES_KM)
