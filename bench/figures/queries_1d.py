"""Figure `queries_1d`: processing efficiency and time against the number of queries."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.line import BRUTE, LENGTHS, PAPERS, TIME_PANELS, compared, some
from bench.stocks import Market

QUERIES = tuple(range(10_000, 100_001, 10_000))  # N


def _measure(scale: Scale) -> Iterator[Point]:
    for n_queries in some(QUERIES, scale):
        yield from compared(n_queries, Market(n_queries=n_queries), scale, (*PAPERS, BRUTE))


FIGURE = Figure(
    name="queries_1d",
    source="BMQ-Index, Fig. 6 (a, b); BMQ-Processor, Fig. 10 (a, b)",
    claim="BMQ-Index looks at nothing but final results, whatever N; DiffRMQ at ten times as much and more slowly",
    setup="W 0.1 %, FL 0.01 %, 2,000 streams, as the papers'; exponential steps;"
    f" {LENGTHS[Scale.FULL].n_timed} each in full runs, else {LENGTHS[Scale.REDUCED].n_timed}",
    x="N, queries",
    panels=TIME_PANELS,
    measure=_measure,
)
