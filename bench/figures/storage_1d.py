"""Figure `storage_1d`: bytes against the number and the width of the queries."""

from collections.abc import Iterator

import numpy as np

from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.figures.line import BMQ, CEI, CEI_SMALL, IS_LIST, PUBLISHED, made, scaled, some
from bench.figures.queries_1d import QUERIES
from bench.figures.widths_1d import WIDTHS
from bench.stocks import Market
from bmq.index.base import BorderIndex

NAMES = (BMQ, PUBLISHED, CEI, CEI_SMALL, IS_LIST)
MATCHING_SETS = "matching sets of a DiffRMQ alone"


def followed_bytes(index: BorderIndex, market: Market) -> int:
    """Return the bytes of ``index`` once it has followed a step of every stream of ``market``."""
    before, after = market.prices(1)
    index.moves(np.arange(market.n_streams, dtype=np.int32), before, after)
    return index.nbytes


def _measure(scale: Scale) -> Iterator[Point]:
    for n_queries in some(QUERIES, scale):
        yield from _stored("queries", n_queries, scaled(Market(n_queries=n_queries), scale))
    for width in some(WIDTHS, scale):
        yield from _stored("widths", width, scaled(Market(width_percent=width), scale))


def _stored(panel: str, x: float, market: Market) -> Iterator[Point]:
    for name in NAMES:
        index = made(name, market)
        index.moves(np.empty(0, dtype=np.int32), np.empty((1, 0)), np.empty((1, 0)))
        without_streams = index.nbytes
        n_bytes = followed_bytes(index, market)
        yield counted(panel, name, x, n_bytes / 1e6)
        if name == CEI:
            yield counted(panel, MATCHING_SETS, x, (n_bytes - without_streams) / 1e6)


FIGURE = Figure(
    name="storage_1d",
    source="BMQ-Index, Fig. 9 (a, b); BMQ-Processor, Fig. 14 (a, b)",
    claim="BMQ-Index stores a query twice, however wide it is; CEI in all intervals that make it up, IS-list in log N",
    setup="by N at W 0.1 %, by W at N 100K, as the papers'; with query tables and the places or matching sets of 2,000"
    " streams; CEI with the L that is fastest, and with the L that is smallest",
    x="N, queries",
    panels=(Panel("queries", "MB"), Panel("widths", "MB", x="W, % of the domain")),
    measure=_measure,
)
