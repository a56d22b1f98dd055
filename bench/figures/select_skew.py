"""Figure `select_skew`: selections of values of which many lie in a tenth of the domain."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Panel, Point, Scale
from bench.figures.select_queries import LENGTHS, NAMES
from bench.select import Selections, raced

N_QUERIES = {Scale.SMOKE: 200, Scale.REDUCED: 100_000, Scale.FULL: 100_000}
SKEWS = {Scale.SMOKE: (0.2, 1.0), Scale.REDUCED: (0.2, 0.6, 1.0), Scale.FULL: (0.2, 0.4, 0.6, 0.8, 1.0)}


def _measure(scale: Scale) -> Iterator[Point]:
    for skew in SKEWS[scale]:
        times = raced(Selections(4, 4, skew), N_QUERIES[scale], LENGTHS[scale], NAMES)
        for name in NAMES:
            yield Point("time", name, 100 * skew, *times[name].spread)


FIGURE = Figure(
    name="select_skew",
    source="Spatial Join CQ paper, Fig. 17",
    claim="batches gain by skew, as clusters are smaller; values one by one and IBS do not",
    setup="4 attributes, a condition on each, 100,000 queries, batches of 10,000; crowded values lie in the middle"
    " tenth of each attribute (the paper: a tenth), where more queries hold them than elsewhere",
    x="R_skew, percent",
    panels=(Panel("time", "ns a value", log_y=True),),
    measure=_measure,
)
