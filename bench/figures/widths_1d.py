"""Figure `widths_1d`: processing efficiency and time against the width of the queries."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.line import TIME_PANELS, compared, some
from bench.stocks import Market

WIDTHS = tuple(number / 100 for number in range(1, 11))  # W, percent of the domain


def _measure(scale: Scale) -> Iterator[Point]:
    for width in some(WIDTHS, scale):
        yield from compared(width, Market(width_percent=width), scale)


FIGURE = Figure(
    name="widths_1d",
    source="BMQ-Index, Fig. 7 (a, b); BMQ-Processor, Fig. 11 (a, b)",
    claim="BMQ-Index takes the same time whatever W; DiffRMQ's time grows with W, as the matching sets do",
    setup="N 100K, FL 0.01 %, 2,000 streams, as the papers'; exponential steps, 37 % of which are longer than FL",
    x="W, % of the domain",
    panels=TIME_PANELS,
    measure=_measure,
)
