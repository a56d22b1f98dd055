"""Figure `streams_1d`: total time and storage against the number of streams."""

from collections.abc import Iterator
from dataclasses import replace

from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.figures.line import PAPERS, Length, made, raced, scaled
from bench.stocks import Market

STREAMS = {
    Scale.SMOKE: (1_000, 2_000),
    Scale.REDUCED: (1_000, 8_000, 32_000, 128_000),
    Scale.FULL: tuple(1_000 << k for k in range(8)),
}
N_ROUNDS = {Scale.SMOKE: 3, Scale.REDUCED: 5, Scale.FULL: 21}
READINGS = {Scale.SMOKE: 0, Scale.REDUCED: 40_000, Scale.FULL: 40_000}  # of a round at least, as in `line.LENGTHS`


def _measure(scale: Scale) -> Iterator[Point]:
    for n_streams in STREAMS[scale]:
        market = scaled(replace(Market(), n_streams=n_streams), scale)
        indexes = {name: made(name, market) for name in PAPERS}
        length = Length(N_ROUNDS[scale], max(1, READINGS[scale] // n_streams))
        for name, times in raced(indexes, market, length).items():
            yield Point("time", name, n_streams, *(ns * market.n_streams / 1e6 for ns in times.spread))
            yield counted("storage", name, n_streams, indexes[name].nbytes / 1e6)


FIGURE = Figure(
    name="streams_1d",
    source='BMQ-Processor, Fig. 15 (a, b), and "6.8 times smaller"',
    claim="time grows with the number of streams at the same rate for all; DiffRMQ's storage, too, BMQ-Index' hardly",
    setup="N 100K, W 0.1 %, FL 0.01 %, one reading of each stream, as the paper's; exponential steps; stream ids, which"
    " all need, are not counted",
    x="S, streams",
    panels=(Panel("time", "ms for a reading of each stream", log_y=True), Panel("storage", "MB", log_y=True)),
    measure=_measure,
    log_x=True,
)
