"""Figure `skew_1d`: processing efficiency and time with skewed prices and queries."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.line import TIME_PANELS, compared
from bench.stocks import Market

# What the papers call each combination: prices / queries.
MARKETS = {
    f"{'normal' if prices else 'uniform'} / {'normal' if queries else 'uniform'}": Market(
        prices_skewed=prices, queries_skewed=queries
    )
    for prices in (False, True)
    for queries in (False, True)
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
    x="prices / queries",
    panels=TIME_PANELS,
    measure=_measure,
)
