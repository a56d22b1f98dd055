"""Figure `widths_2d`: vehicles against the width of squares."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Point, Scale
from bench.figures.vehicles import N_QUERIES, PANELS, SIDES_KM, race


def _measure(scale: Scale) -> Iterator[Point]:
    for side_km in SIDES_KM[scale]:
        yield from race(scale, N_QUERIES[scale][-1], side_km, side_km)


FIGURE = Figure(
    name="widths_2d",
    source="BMQ-Processor, Fig. 17 (a, b)",
    claim="time of the n-D BMQ hardly depends on the width of queries, that of DiffRMQ grows with it; the border grid"
    " is the fastest at any width",
    setup="5,000 squares; else as in queries_2d",
    x="width of a query, km",
    panels=PANELS,
    measure=_measure,
)
