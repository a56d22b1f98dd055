"""Figure `vcr_rtree`: VCR against R-trees, on queries that lie evenly and on such that crowd."""

from collections.abc import Iterator

from bench.baselines.one_structure import BorderGrid
from bench.baselines.rtree import RTree
from bench.baselines.virtual_constructs import Decomposition
from bench.boxes import WholeBoxes
from bench.figures.figure import Figure, Panel, Point, Scale
from bench.figures.searches import compared
from bench.figures.vcr_side import SPACE, vcr
from bmq.index.base import MatchIndex
from bmq.index.match.construct_indexes import VcrIndex

RTREE = "R-tree (GEOS)"
FASTEST = "VCR, simple, L = 2"
WIDEST = 20
WORKLOADS = {"uniform": WholeBoxes(SPACE, WIDEST), "90-10": WholeBoxes(SPACE, WIDEST, hot=True)}
N_QUERIES = {
    Scale.SMOKE: (100, 200),
    Scale.REDUCED: (32_000, 64_000),
    Scale.FULL: (32_000, 64_000, 128_000, 192_000, 256_000),
}


def contestants() -> dict[str, MatchIndex]:
    """Return the indexes by name, empty. L = 8 is the report's for these widths, L = 2 the fastest (`vcr_side`)."""
    return {
        "VCR, simple, L = 8": vcr(8, Decomposition.SIMPLE),
        FASTEST: vcr(2, Decomposition.SIMPLE),
        "VCR, overlapped, L = 2": vcr(2, Decomposition.OVERLAPPED),
        "VCR, grid from the queries": VcrIndex(),
        RTREE: RTree(2),
        "packed R-tree": BorderGrid(),
    }


def _measure(scale: Scale) -> Iterator[Point]:
    for n_queries in N_QUERIES[scale]:
        for workload, boxes in WORKLOADS.items():
            for point in compared(n_queries, contestants(), boxes, n_queries, scale, (workload, "storage")):
                # As in the report, one storage for both: they differ by less than a hundredth.
                if point.panel != "storage" or workload == "uniform":
                    yield point


FIGURE = Figure(
    name="vcr_rtree",
    source="VCI and VCR report, Fig. 13 (a, b)",
    claim="VCR searches faster than an R-tree, most of all where queries overlap, for more memory",
    setup="rectangles with sides uniform in 1..20 (not said in the report) in 300 by 200; 90-10: nine in ten corners,"
    " and values, in the middle tenth of the space; uniform: so are values; query tables included; GEOS' nodes counted",
    x="queries",
    panels=(
        Panel("uniform", "ns a search, uniform", log_y=True),
        Panel("90-10", "ns a search, 90 %-10 %", log_y=True),
        Panel("storage", "MB"),
    ),
    measure=_measure,
)
