"""Figure `storage_2d`: bytes against the number and the width of squares."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.figures.vehicles import N_QUERIES, SIDES_KM, storage


def _measure(scale: Scale) -> Iterator[Point]:
    most = N_QUERIES[scale][-1]
    for n_queries in N_QUERIES[scale]:
        for name, megabytes in storage(scale, n_queries, 5.0).items():
            yield counted("queries", name, n_queries, megabytes)
    for side_km in SIDES_KM[scale]:
        for name, megabytes in storage(scale, most, side_km).items():
            yield counted("widths", name, side_km, megabytes)


FIGURE = Figure(
    name="storage_2d",
    source="BMQ-Processor, Fig. 18 (a, b)",
    claim="BMQ stores a query twice a dimension, CES in every square that it covers: with the paper's fine cells more"
    " than a hundred times as much",
    setup="squares and vehicles as in queries_2d, after a step of 1,000 vehicles; CES includes their matching sets",
    x="queries of 5 km",
    panels=(Panel("queries", "MB", log_y=True), Panel("widths", "MB", log_y=True, x="width of 5,000 queries, km")),
    measure=_measure,
)
