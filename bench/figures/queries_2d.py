"""Figure `queries_2d`: vehicles against the number of squares."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.vehicles import N_QUERIES, PANELS, race


def _measure(scale: Scale) -> Iterator[Point]:
    for n_queries in N_QUERIES[scale]:
        yield from race(scale, n_queries, 5.0, n_queries)


FIGURE = Figure(
    name="queries_2d",
    source="BMQ-Processor, Fig. 16 (a, b)",
    claim="time of DiffRMQ grows with the queries that hold a reading, that of BMQ with those whose border it passes",
    setup="squares of 5 km around the centre of a made-up city of 15 km; 1,000 vehicles, at 20 km/h or 4.3 km/h on"
    " average, with a reading in 30 s; CES with cells of 5 m, as in the paper, and with cells of 234 m, tuned for time",
    x="queries",
    panels=PANELS,
    measure=_measure,
)
