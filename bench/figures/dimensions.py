"""Figure `dimensions`: from one dimension to nine, time and storage."""

import math
from collections.abc import Iterator

from bench.baselines.one_structure import BorderGrid, NdBmq
from bench.boxes import Cubes
from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.measure import race_moves, registered
from bmq.index.base import BorderIndex
from bmq.index.border.adaptive_border import make_index

ND_BMQ = "n-D BMQ"
GRID = "border grid"
CHOSEN = "the service's choice"
ESTIMATE = "estimate (d - 1) √d t₁"
SEED = 20060509


def race(n_dims: int, *, n_queries: int, n_streams: int, n_rounds: int, n_steps: int) -> Iterator[Point]:
    """Yield the points at one number of dimensions, without the estimate."""
    cubes = Cubes(n_dims, n_queries)
    regions = cubes.regions(SEED)
    indexes: dict[str, BorderIndex] = {ND_BMQ: NdBmq(n_dims), CHOSEN: make_index(n_dims)}
    if n_dims > 1:
        indexes[GRID] = BorderGrid(n_dims)
    for index in indexes.values():
        registered(index, regions)
    positions = cubes.positions(n_streams, (n_rounds + 1) * n_steps + 1, SEED + 1)
    for name, times in race_moves(indexes, positions, regions, n_warm=1, n_steps=n_steps).items():
        yield Point("time", name, n_dims, *times.spread)
        yield counted("storage", name, n_dims, indexes[name].nbytes / 1e6)


def _measure(scale: Scale) -> Iterator[Point]:
    n_queries, n_streams, n_rounds, n_steps, dims = {
        Scale.SMOKE: (200, 20, 3, 1, (1, 2, 3)),
        Scale.REDUCED: (10_000, 1_000, 4, 20, (1, 2, 3, 5, 7, 9)),
        Scale.FULL: (10_000, 1_000, 9, 20, tuple(range(1, 10))),
    }[scale]
    one_dimension = math.nan
    for n_dims in dims:
        for point in race(n_dims, n_queries=n_queries, n_streams=n_streams, n_rounds=n_rounds, n_steps=n_steps):
            yield point
            if n_dims == 1 and point.panel == "time" and point.series == ND_BMQ:
                one_dimension = point.median
        factor = max(1.0, (n_dims - 1) * math.sqrt(n_dims))
        yield counted("time", ESTIMATE, n_dims, factor * one_dimension)


FIGURE = Figure(
    name="dimensions",
    source="BMQ-Processor, Fig. 19 (a, b)",
    claim="from three dimensions on, time grows more slowly than (d - 1) √d, as the first one outside ends a"
    " cross-check; storage grows linearly and stays below 7 MB",
    setup="10,000 uniform cubes of 0.1 % in a space of 1e5, FL 0.1 % in each dimension; 1,000 streams (not said in the"
    " paper), exponential steps; the estimate from our n-D BMQ at d = 1",
    x="dimensions",
    panels=(Panel("time", "ns a reading"), Panel("storage", "MB")),
    measure=_measure,
)
