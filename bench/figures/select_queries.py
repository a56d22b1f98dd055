"""Figure `select_queries`: selections by spatial join against predicate indexing, by the number of queries."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Panel, Point, Scale
from bench.select import BATCH, IBS, IMMEDIATE, SCAN, Length, Selections, raced

NAMES = (BATCH, IMMEDIATE, IBS, SCAN)
N_QUERIES = {
    Scale.SMOKE: (200, 400),
    Scale.REDUCED: (10_000, 100_000),
    Scale.FULL: tuple(range(10_000, 100_001, 10_000)),
}
LENGTHS = {Scale.SMOKE: Length(3, 300, 20), Scale.REDUCED: Length(3, 10_000, 100), Scale.FULL: Length(9, 10_000, 300)}


def _measure(scale: Scale) -> Iterator[Point]:
    for n_attributes in (4, 8):
        for n_queries in N_QUERIES[scale]:
            times = raced(Selections(n_attributes, n_attributes), n_queries, LENGTHS[scale], NAMES)
            for name in NAMES:
                yield Point(f"{n_attributes} attributes", name, n_queries, *times[name].spread)


FIGURE = Figure(
    name="select_queries",
    source="Spatial Join CQ paper, Fig. 15 (a, b)",
    claim="batches are answered fastest, values one by one next, IBS last; the more so, the more queries there are",
    setup="a condition on every attribute (the paper does not say on how many), values uniform, batches of 10,000;"
    " a scan by column besides, which the paper does not have",
    x="queries",
    panels=tuple(Panel(f"{n} attributes", f"ns a value, {n} attributes", log_y=True) for n in (4, 8)),
    measure=_measure,
)
