"""Figure `cei_lengths_1d`: how long and how large CEI's segments make it, which the papers do not say."""

from collections.abc import Iterator

from bench.baselines.cei import LENGTHS as SEGMENTS
from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.figures.line import LENGTHS, diff_cei, raced, scaled, some
from bench.measure import registered
from bench.stocks import Market
from bmq.index.base import BorderIndex

MARKETS = {
    "N 100K, W 0.1 %": Market(),
    "N 100K, W 0.01 %": Market(width_percent=0.01),
    "N 10K, W 0.1 %": Market(n_queries=10_000),
}


def _measure(scale: Scale) -> Iterator[Point]:
    for words, full_market in MARKETS.items():
        market = scaled(full_market, scale)
        lengths = some(SEGMENTS, scale) if scale is Scale.SMOKE else SEGMENTS
        indexes: dict[str, BorderIndex] = {str(length): diff_cei(length) for length in lengths}
        for index in indexes.values():
            registered(index, market.regions())
        for length, times in raced(indexes, market, LENGTHS[scale]).items():
            yield Point("time", words, int(length), *times.spread)
            yield counted("storage", words, int(length), indexes[length].nbytes / 1e6)


FIGURE = Figure(
    name="cei_lengths_1d",
    source="beyond the papers: the tuning of their rival",
    claim="DiffRMQ (CEI) is fastest with L between 32 and 128, whatever N and W, and not much slower with others",
    setup="FL 0.01 %, 2,000 streams, exponential steps; storage with matching sets",
    x="L, units of a segment",
    panels=(Panel("time", "ns a reading"), Panel("storage", "MB", log_y=True)),
    measure=_measure,
    log_x=True,
)
