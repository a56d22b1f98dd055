"""Figure `skew_1d`: processing efficiency and time with skewed prices and queries."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.line import TIME_PANELS, compared
from bench.stocks import Market

MARKETS = {
    "neither": Market(),
    "queries": Market(queries_skewed=True),
    "prices": Market(prices_skewed=True),
    "both": Market(prices_skewed=True, queries_skewed=True),
}


def _measure(scale: Scale) -> Iterator[Point]:
    for words, market in MARKETS.items():
        yield from compared(words, market, scale)


FIGURE = Figure(
    name="skew_1d",
    source="BMQ-Processor, Fig. 13 (a, b)",
    claim="skew changes no efficiency, and times only where prices and queries crowd in one place",
    setup="N 100K, W 0.1 %, FL 0.01 %, 2,000 streams, as the papers'; the standard deviation is not said:"
    " a tenth of the domain",
    x="normal around D / 2, not uniform",
    panels=TIME_PANELS,
    measure=_measure,
)
