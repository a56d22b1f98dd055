"""Figure `vcr_side`: search time and storage of VCR against the longest side of its rectangles."""

from collections.abc import Iterator

from bench.baselines.virtual_constructs import Decomposition, Vcr, integer_grid
from bench.boxes import WholeBoxes
from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.figures.searches import LENGTHS, raced
from bmq.index.base import MatchIndex

SPACE = (300, 200)  # the report says that Rx Ry is 60,000
N_QUERIES = 32_000  # not said for this figure; the smallest of the next one
SIDES = {Scale.SMOKE: (2, 4), Scale.REDUCED: (2, 4, 8, 16, 32), Scale.FULL: (2, 4, 8, 16, 32)}
DECOMPOSITIONS = {"simple": Decomposition.SIMPLE, "overlapped": Decomposition.OVERLAPPED}


def vcr(side: int, decomposition: Decomposition) -> Vcr:
    """Return an empty VCR index over the report's space."""
    return Vcr(integer_grid(*SPACE, longest=side), decomposition=decomposition)


def _measure(scale: Scale) -> Iterator[Point]:
    n_queries = N_QUERIES if scale is not Scale.SMOKE else 100
    for widest in (20, 40):
        at = {
            f"W = {widest}, {name}, L = {side}": (f"W = {widest}, {name}", side, vcr(side, decomposition))
            for side in SIDES[scale]
            for name, decomposition in DECOMPOSITIONS.items()
        }
        indexes: dict[str, MatchIndex] = {name: index for name, (_, _, index) in at.items()}
        times = raced(indexes, WholeBoxes(SPACE, widest), n_queries, LENGTHS[scale])
        for name, (series, side, index) in at.items():
            yield Point("time", series, side, *times[name].spread)
            yield counted("storage", series, side, index.nbytes / 1e6)


FIGURE = Figure(
    name="vcr_side",
    source="VCI and VCR report, Fig. 12 (a, b)",
    claim="there is a best longest side, and larger queries want a longer one",
    setup="32,000 rectangles (not said in the report) with sides uniform in 1..W in a space of 300 by 200; uniform"
    " values; query tables included",
    x="L, longest side of a construct",
    panels=(Panel("time", "ns a search", log_y=True), Panel("storage", "MB")),
    measure=_measure,
    log_x=True,
)
