"""What the figures of one dimension share: who takes part, how long a race is, what is reported of it. No figure."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from bench.baselines import cei, is_list
from bench.baselines.cei import Cei, smallest_length
from bench.baselines.diff_rmq import DiffRmq
from bench.baselines.is_list import IsList
from bench.baselines.one_structure import RegionSegmentList
from bench.baselines.published_walk import PublishedWalk
from bench.figures.figure import Panel, Point, Scale, counted
from bench.measure import Times, race_moves, registered
from bench.stocks import Market
from bmq.index.base import BorderIndex
from bmq.index.border.adaptive_border import make_index
from bmq.index.border.structures import OneKind
from bmq.records import IndexKind

BMQ = "BMQ-Index"
PUBLISHED = "BMQ-Index as published"
CEI = "DiffRMQ (CEI)"
CEI_SMALL = "DiffRMQ (CEI for storage)"
IS_LIST = "DiffRMQ (IS-list)"
CHOICE = "the service's choice"
BRUTE = "brute force"
PAPERS = (BMQ, PUBLISHED, CEI, IS_LIST)

# CEI's L as tuned for time: 32 to 128 are the fastest, with no difference between them, at each N, W and skew of the
# figures (`cei_lengths_1d`). Not measured anew for each query set: noise would pick, and storage hangs on it.
CEI_LENGTH = 64

TIME_PANELS = (Panel("efficiency", "processing efficiency, %"), Panel("time", "ns a reading", log_y=True))

_MAKERS: dict[str, Callable[[Market], BorderIndex]] = {
    BMQ: lambda _: RegionSegmentList(),
    PUBLISHED: lambda _: PublishedWalk(),
    CEI: lambda _: diff_cei(CEI_LENGTH),
    CEI_SMALL: lambda market: diff_cei(smallest_length(*market.regions())),
    IS_LIST: lambda _: DiffRmq(IsList, is_list.collect, 1),
    CHOICE: lambda _: make_index(1),
    BRUTE: lambda _: OneKind(1, IndexKind.SCAN),
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Length:
    """How long a race is: ``n_rounds`` timed ones of ``n_calls`` calls of ``n_steps`` steps, after one not timed."""

    n_rounds: int
    n_steps: int
    n_calls: int = 1

    @property
    def n_timed(self) -> int:
        """Readings of each stream in the timed rounds."""
        return self.n_rounds * self.n_calls * self.n_steps


# A call of 40,000 readings, as a batch of the service has them, and four in a round: after the others' turns the first
# thousands find nothing in the caches, and in rounds of 2,000 a reading took up to twice as long.
LENGTHS = {Scale.SMOKE: Length(3, 1), Scale.REDUCED: Length(5, 20, 4), Scale.FULL: Length(12, 20, 4)}


def diff_cei(length: int) -> DiffRmq:
    """Return a DiffRMQ over CEI with L = ``length``, without queries."""
    return DiffRmq(partial(Cei, length=length), cei.collect, 1)


def made(name: str, market: Market) -> BorderIndex:
    """Return the contestant ``name`` with the market's queries."""
    index = _MAKERS[name](market)
    registered(index, market.regions())
    return index


def race(market: Market, length: Length, names: Sequence[str] = PAPERS) -> dict[str, Times]:
    """Return what each contestant took to follow the market's prices, with the answers checked."""
    return raced({name: made(name, market) for name in names}, market, length)


def raced(indexes: dict[str, BorderIndex], market: Market, length: Length) -> dict[str, Times]:
    """Return as ``race`` what ``indexes`` took that have the market's queries."""
    prices = market.prices((length.n_rounds + 1) * length.n_calls * length.n_steps)
    return race_moves(indexes, prices, market.regions(), n_warm=1, n_steps=length.n_steps, n_calls=length.n_calls)


def compared(x: float | str, market: Market, scale: Scale, names: Sequence[str] = PAPERS) -> Iterator[Point]:
    """Yield the points of `TIME_PANELS` at ``x``."""
    for name, times in race(scaled(market, scale), LENGTHS[scale], names).items():
        yield counted("efficiency", name, x, times.efficiency)
        yield Point("time", name, x, *times.spread)


def scaled(market: Market, scale: Scale) -> Market:
    """Return the market, or for a smoke test a tiny one: a two-hundredth of the queries, a fortieth of the streams."""
    if scale is not Scale.SMOKE:
        return market
    return replace(market, n_queries=market.n_queries // 200, n_streams=max(1, market.n_streams // 40))


def some(values: Sequence[T], scale: Scale) -> Sequence[T]:
    """Return the ends of an axis for a smoke test, its ends and middle for a reduced run, else all."""
    places = {Scale.SMOKE: (0, -1), Scale.REDUCED: (0, len(values) // 2, -1), Scale.FULL: range(len(values))}[scale]
    return [values[place] for place in places]


def ratio(slower: Times, faster: Times) -> float:
    """Return the median of the rounds' ratios: what disturbs a round, disturbs both in it."""
    return statistics.median(a / b for a, b in zip(slower.ns, faster.ns, strict=True))
