"""Figure `select_predicates`: selections by the share of attributes that a query has a condition on."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.figures.select_queries import NAMES
from bench.select import IBS, Length, Selections, raced

N_ATTRIBUTES = 8
N_QUERIES = {Scale.SMOKE: 200, Scale.REDUCED: 50_000, Scale.FULL: 50_000}
N_CONDITIONS = {Scale.SMOKE: (2, 8), Scale.REDUCED: (2, 4, 8), Scale.FULL: tuple(range(1, 9))}
# Batches of a fifth of the paper's: with few conditions a value has ten thousand queries and more.
LENGTHS = {Scale.SMOKE: Length(3, 300, 20), Scale.REDUCED: Length(3, 2_000, 100), Scale.FULL: Length(9, 2_000, 300)}


def _measure(scale: Scale) -> Iterator[Point]:
    for n_conditions in N_CONDITIONS[scale]:
        x = 100 * n_conditions / N_ATTRIBUTES
        times = raced(Selections(N_ATTRIBUTES, n_conditions), N_QUERIES[scale], LENGTHS[scale], NAMES)
        for name in NAMES:
            yield Point("time", name, x, *times[name].spread)
        yield counted("found", "queries", x, times[IBS].n_found / times[IBS].n_ops)


FIGURE = Figure(
    name="select_predicates",
    source="Spatial Join CQ paper, Fig. 16",
    claim="the more attributes have a condition, the faster spatial join, as fewer queries match; IBS counts them all",
    setup="8 attributes, 50,000 queries, values uniform, batches of 2,000 (the paper: of 10,000)",
    x="R_pred, percent",
    panels=(Panel("time", "ns a value", log_y=True), Panel("found", "queries that hold a value", log_y=True)),
    measure=_measure,
)
