"""Stock prices and price ranges to watch: the workload of the papers' experiments of one dimension.

Knows prices and borders, no index. Source: Lee et al., BMQ-Processor, section 7.1.1 (BMQ-Index, section 5.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmq.records import Float64s

DOMAIN = 1_000_000  # D, in won: the maximum price of most Korean stocks then
SEED = 20060509
# The papers draw from "a normal distribution" around D / 2 and say no more. A tenth of the domain puts two in
# three within a fifth of it, so that both skews together are 2.8 times as dense where the prices are.
SKEW = DOMAIN / 10


@dataclass(frozen=True, slots=True)
class Market:
    """Queries over prices, and prices that move.

    Attributes
    ----------
    n_queries : N.
    width_percent : W, of the domain.
    fluctuation_percent : FL, the mean absolute step, of the domain.
    n_streams : S.
    prices_skewed, queries_skewed : whether first prices and lower borders lie normally around D / 2, or uniformly.

    Notes
    -----
    Departure: the papers do not say how a price moves. Here steps are exponential, as appendix A of
    BMQ-Processor shows a skewed distribution around zero, up or down alike, and turn back at 0 and D. Prices
    and borders are whole, as won are.
    """

    n_queries: int = 100_000
    width_percent: float = 0.1
    fluctuation_percent: float = 0.01
    n_streams: int = 2_000
    prices_skewed: bool = False
    queries_skewed: bool = False

    def regions(self) -> tuple[Float64s, Float64s]:
        """Return lower and upper borders, float64[1, n_queries]; lower ones in 1..D - 1."""
        rng = np.random.default_rng(SEED)
        lo = _places(rng, self.n_queries, skewed=self.queries_skewed)[None]
        return lo, lo + max(1, round(self.width_percent / 100 * DOMAIN))

    def prices(self, n_rounds: int) -> Iterator[Float64s]:
        """Yield the prices of all streams, float64[1, n_streams] in 0..D: the first ones, then after each step."""
        rng = np.random.default_rng(SEED + 1)
        prices = _places(rng, self.n_streams, skewed=self.prices_skewed)[None]
        yield prices
        for _ in range(n_rounds):
            prices = stepped(rng, prices, self.fluctuation_percent)
            yield prices


def stepped(rng: np.random.Generator, prices: Float64s, fluctuation_percent: float) -> Float64s:
    """Return where ``prices`` (any shape) are one step later."""
    lengths = rng.exponential(fluctuation_percent / 100 * DOMAIN, prices.shape)
    moved = prices + np.round(lengths) * rng.choice((-1, 1), prices.shape)
    # Folded, as between two mirrors: 0..D stays, what is beyond an end comes back from it.
    folded: Float64s = np.abs((moved + DOMAIN) % (2 * DOMAIN) - DOMAIN)
    return folded


def fluctuation_percent(paths: Float64s) -> float:
    """Return FL as measured over ``paths``, float64[n_times, n_streams] (BMQ-Processor, section 4.4)."""
    return float(np.abs(np.diff(paths, axis=0)).mean()) / DOMAIN * 100


def _places(rng: np.random.Generator, n: int, *, skewed: bool) -> Float64s:
    if not skewed:
        return rng.integers(1, DOMAIN, n).astype(np.float64)
    # Five standard deviations from either end, so what is cut there is none or one in a million.
    places: Float64s = np.round(rng.normal(DOMAIN / 2, SKEW, n)).clip(1, DOMAIN - 1)
    return places
