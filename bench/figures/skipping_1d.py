"""Figure `skipping_1d`: the walk that skips jumped-over queries against the published one."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.fluctuation_1d import BEYOND, PAPERS_LEVELS
from bench.figures.line import BMQ, PUBLISHED, TIME_PANELS, compared, some
from bench.stocks import Market

WIDTH = 0.01  # W, percent of the domain


def _measure(scale: Scale) -> Iterator[Point]:
    for level in (*some(PAPERS_LEVELS, scale), *some(BEYOND, scale)):
        market = Market(width_percent=WIDTH, fluctuation_percent=level)
        yield from compared(level, market, scale, (BMQ, PUBLISHED))


FIGURE = Figure(
    name="skipping_1d",
    source="beyond the papers",
    claim="what a step jumps over need not be looked at: at FL = 100 W five times faster, and not slower at FL = W",
    setup="N 100K, W 0.01 %, 2,000 streams, exponential steps",
    x="FL, % of the domain",
    panels=TIME_PANELS,
    measure=_measure,
    log_x=True,
)
