"""Figure `fluctuation_1d`: processing efficiency and time against the fluctuation level."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.line import CHOICE, PAPERS, TIME_PANELS, compared, some
from bench.stocks import Market

PAPERS_LEVELS = tuple(number / 100 for number in range(1, 11))  # FL, percent of the domain
BEYOND = (0.2, 0.5, 1.0)


def _measure(scale: Scale) -> Iterator[Point]:
    for level in (*some(PAPERS_LEVELS, scale), *some(BEYOND, scale)):
        yield from compared(level, Market(fluctuation_percent=level), scale, (*PAPERS, CHOICE))


FIGURE = Figure(
    name="fluctuation_1d",
    source="BMQ-Index, Fig. 8 (a, b); BMQ-Processor, Fig. 12 (a, b); beyond them from 0.2 % on",
    claim="BMQ-Index looks at fewer queries than DiffRMQ as long as FL < W = 0.1 %, and beyond that is not much slower",
    setup="N 100K, W 0.1 %, 2,000 streams, as the papers'; exponential steps",
    x="FL, % of the domain",
    panels=TIME_PANELS,
    measure=_measure,
    log_x=True,
)
