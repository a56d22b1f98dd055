"""Figure `match_1d`: search time and storage of the match indexes of one dimension."""

from collections.abc import Iterator
from functools import partial

from bench.baselines import cei, dlist, is_list
from bench.baselines.diff_rmq import DiffRmq
from bench.baselines.one_structure import RegionSegmentList
from bench.baselines.virtual_constructs import Labelling, Lci, Sci, integer_grid
from bench.boxes import WholeBoxes
from bench.figures.figure import Figure, Panel, Point, Scale
from bench.figures.searches import compared
from bmq.index.base import MatchIndex

RANGE = 5_000
# Of 8 to 128. SCI is the fastest, and LCI as fast as with any other, within the noise.
LONGEST = 16
CEI_LENGTH = 64  # as fast as any other, and the smallest
INTERVALS = WholeBoxes((RANGE,), widest=100)
N_QUERIES = {
    Scale.SMOKE: (100, 300),
    Scale.REDUCED: (1_000, 8_000, 64_000),
    Scale.FULL: tuple(1_000 << k for k in range(9)),
}


def contestants() -> dict[str, MatchIndex]:
    """Return the indexes by name, empty. Our R-tree is what the service's border indexes stab with."""
    grid = integer_grid(RANGE, longest=LONGEST)
    return {
        "SCI": Sci(grid),
        "LCI": Lci(grid),
        "LCI, numbered as published": Lci(grid, labelling=Labelling.BY_POINT),
        "IS-list": DiffRmq(is_list.IsList, is_list.collect, 1),
        "Dlist": DiffRmq(dlist.Dlist, dlist.collect, 1),
        "CEI": DiffRmq(partial(cei.Cei, length=CEI_LENGTH), cei.collect, 1),
        "packed R-tree": RegionSegmentList(),
    }


def _measure(scale: Scale) -> Iterator[Point]:
    for n_queries in N_QUERIES[scale]:
        yield from compared(n_queries, contestants(), INTERVALS, n_queries, scale, ("time", "storage"))


FIGURE = Figure(
    name="match_1d",
    source="VCI and VCR report, Fig. 6 and 7",
    claim="construct intervals search as fast as a Dlist, which lists each query at each value, and take far less"
    " memory",
    setup="R = 5,000 as in the report; widths uniform in 1..100 and uniform values, which it does not say; L = 16,"
    " CEI: 64; query tables included; SCI and LCI numbered by shape and not by point",
    x="queries",
    panels=(Panel("time", "ns a search", log_y=True), Panel("storage", "MB", log_y=True)),
    measure=_measure,
    log_x=True,
)
