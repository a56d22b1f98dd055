"""Figure `locality`: prices differ the less, the more often they are read; what that means for the time of an index.

No trace of the papers' stocks is to be had, so two are made: trades come at random, and each moves the price by an
exponential step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.figures.figure import Figure, Panel, Point, Scale, counted
from bench.figures.line import PAPERS, Length, made, scaled, some
from bench.measure import race_moves
from bench.stocks import DOMAIN, SEED, Market, fluctuation_percent, stepped
from bmq.records import Float64s

INTERVALS = (1, 2, 5, 10, 20, 30)  # seconds between two readings
TRADES_A_SECOND = 0.3  # the papers: "the probability of zero difference ... is considerably high"


@dataclass(frozen=True, slots=True)
class Stock:
    """How a stock's price moves: by ``step_percent`` of the domain in the mean, at each trade."""

    name: str
    step_percent: float

    def paths(self, market: Market, n_seconds: int) -> Float64s:
        """Return the price of each stream of ``market`` at every second, float64[n_seconds + 1, n_streams]."""
        rng = np.random.default_rng(SEED + 2)
        prices = next(market.prices(0))
        paths = np.empty((n_seconds + 1, market.n_streams))
        paths[0] = prices
        for second in range(n_seconds):
            traded = rng.random(market.n_streams) < TRADES_A_SECOND
            paths[second + 1] = np.where(traded, stepped(rng, paths[second], self.step_percent), paths[second])
        return paths


CALM = Stock("calm stock", 0.005)  # as LG's in the papers
LIVELY = Stock("lively stock", 0.02)  # as Samsung's


def _measure(scale: Scale) -> Iterator[Point]:
    market = scaled(Market(), scale)
    # Shorter than `line.LENGTHS`: paths of so many readings every 30 s would take 500 MB a stock.
    length = {Scale.SMOKE: Length(3, 1), Scale.REDUCED: Length(4, 20), Scale.FULL: Length(9, 20)}[scale]
    n_readings = (length.n_rounds + 1) * length.n_calls * length.n_steps
    for stock in (CALM, LIVELY):
        paths = stock.paths(market, n_readings * INTERVALS[-1])
        for interval in INTERVALS:
            yield counted("locality", stock.name, interval, fluctuation_percent(paths[::interval]))
    # `paths` are the lively stock's.
    for interval in some(INTERVALS, scale):
        yield from _differences(paths[::interval], f"every {interval} s")
    for interval in some(INTERVALS, scale):
        yield from _worked(paths[::interval][: n_readings + 1], interval, market, length)


def _differences(paths: Float64s, series: str) -> Iterator[Point]:
    """Yield the share of the differences in each of the bins, which are a hundredth of a percent wide."""
    differences = np.diff(paths, axis=0).ravel() / DOMAIN * 100
    bins = np.linspace(-0.105, 0.105, 22)
    shares = np.histogram(differences, bins)[0] / differences.size
    for middle, share in zip((bins[:-1] + bins[1:]) / 2, shares, strict=True):
        yield counted("differences", series, round(middle, 4), float(share))


def _worked(paths: Float64s, interval: int, market: Market, length: Length) -> Iterator[Point]:
    indexes = {name: made(name, market) for name in PAPERS}
    raced = race_moves(
        indexes, paths[:, None], market.regions(), n_warm=1, n_steps=length.n_steps, n_calls=length.n_calls
    )
    for name, times in raced.items():
        yield Point("work", name, interval, *(ns / interval for ns in times.spread))


FIGURE = Figure(
    name="locality",
    source="BMQ-Processor, appendix A, Fig. 20 to 22; the time beyond them",
    claim="the more often a price is read, the lower is FL, so BMQ-Index' time grows more slowly than the readings",
    setup="made prices, where the papers had two Korean stocks: 0.3 trades a second, exponential steps of 0.005 % or"
    " 0.02 %; time over N 100K, W 0.1 %",
    x="seconds between readings",
    panels=(
        Panel("locality", "FL, % of the domain"),
        Panel("differences", "share of readings", x="difference from the last reading, % of the domain"),
        Panel("work", "ns for a second of a lively stock", log_y=True),
    ),
    measure=_measure,
)
