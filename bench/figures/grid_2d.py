"""Figure `grid_2d`: the border grid against the n-D BMQ in the plane; beyond the papers."""

from collections.abc import Iterator

import numpy as np

from bench.baselines.one_structure import BorderGrid, NdBmq
from bench.border_indexes import Setup
from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.measure import Times, race_moves, registered
from bmq.records import Float64s

GRID = "border grid"
ND_BMQ = "n-D BMQ"
SEED = 20060509
STEP = 330.0  # metres in 30 s at 40 km/h
# Number of queries and side in metres, in the papers' 15 km by 15 km.
SETUPS = {"5K of 500 m": (5_000, 500.0), "100K of 500 m": (100_000, 500.0), "100K of 60 m": (100_000, 60.0)}
SETUPS["5K of 5 km"] = (5_000, 5_000.0)


def race(n_queries: int, side: float, *, n_streams: int, n_rounds: int) -> dict[str, Times]:
    """Return what each index took on uniform squares and streams that move by 330 m in random directions."""
    setup = Setup(2, 15_000.0, n_queries, side, STEP, n_streams)
    rng = np.random.default_rng(SEED)
    regions = setup.regions(rng, n_queries)
    indexes = {GRID: BorderGrid(), ND_BMQ: NdBmq(2)}
    for index in indexes.values():
        registered(index, regions)
    return race_moves(indexes, walked(setup, rng, n_rounds + 2), regions)


def walked(setup: Setup, rng: np.random.Generator, n_steps: int) -> Iterator[Float64s]:
    """Yield where the streams are at first and after each step, float64[2, n_streams]."""
    at = setup.positions(rng, setup.n_streams)
    yield at
    for _ in range(n_steps):
        at = setup.next_positions(rng, at)
        yield at


def _measure(scale: Scale) -> Iterator[Point]:
    n_streams, n_rounds = {Scale.SMOKE: (50, 3), Scale.REDUCED: (4_000, 5), Scale.FULL: (20_000, 9)}[scale]
    for words, (n_queries, side) in SETUPS.items():
        if scale is Scale.SMOKE:
            n_queries //= 100
        for name, times in race(n_queries, side, n_streams=n_streams, n_rounds=n_rounds).items():
            rates = sorted(1e9 / ns for ns in times.spread)
            yield Point("rate", name, words, *rates)
            yield counted("visits", name, words, times.n_visits / times.n_ops)
            yield counted("events", name, words, times.n_found / times.n_ops)


FIGURE = Figure(
    name="grid_2d",
    source="beyond the papers",
    claim="a cell that lists only the borders in it spares the look at all borders that share a coordinate with a move",
    setup="uniform squares in 15 km by 15 km, uniform streams that move by 330 m in random directions, one core",
    x="queries",
    panels=(
        Panel("rate", "moves/s", log_y=True),
        Panel("visits", "candidates looked at, a move", log_y=True),
        Panel("events", "events a move", log_y=True),
    ),
    measure=_measure,
)
