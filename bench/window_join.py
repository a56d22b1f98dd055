"""Window joins against IBS-JS, and against object decomposition: time for each new reading.

Claim: at windows of 10,000 readings and 100,000 queries a new reading takes at most 1 / 6.9 of what it takes by shared
join conditions and then IBS trees. The paper (Lim et al., SIGMOD 2006, section 7.4) has two streams with uniform values
in [0, 1], random selections, a random comparison (>, >=, =, <, <=) of two attributes, windows all of one size; it does
not say how many attributes, nor how many of them are asked about: ours are four a stream, all of them, so that a pair
satisfies seven of 100,000 queries. Processor seconds of one thread, by turns, on the same readings; all pairs are
compared before a number is returned. Run `python -m bench.window_join`.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.baselines.decomposed_join import DecomposedJoin
from bench.baselines.ibs_join import IbsJoin
from bench.measure import Spread
from bmq.engines.window.window_join import Window, WindowJoin, WindowPairs
from bmq.index.match.select_index import SelectIndex
from bmq.records import Band, Bools, Conjunction, Float64s, Int32s, Int64s, JoinQuery, JoinSide, Kind, Region, Where

SEED = 20060627
N_ATTRIBUTES = 4
LEAST = 5e-324  # above zero: "less" as a closed end
BANDS = ((LEAST, np.inf), (0.0, np.inf), (0.0, 0.0), (-np.inf, -LEAST), (-np.inf, 0.0))

OURS = "Spatial Join CQ"
IBS = "IBS-JS"
DECOMPOSED = "object decomposition"

Finder = Callable[[Window, Window], WindowPairs]


@dataclass(frozen=True, slots=True)
class Setup:
    """How many queries, readings in a window, and new readings on each side at a time."""

    n_queries: int
    size: int
    n_new: int = 1

    def queries(self) -> list[JoinQuery]:
        """Return the queries, each with one conjunction of one band and a condition on every attribute."""
        rng = np.random.default_rng(SEED)
        ends = np.sort(rng.random((self.n_queries, 2, N_ATTRIBUTES, 2)))
        ends[..., 1] = np.nextafter(ends[..., 1], 2.0)
        columns = rng.integers(0, N_ATTRIBUTES, (self.n_queries, 2)).tolist()
        bands = rng.integers(0, len(BANDS), self.n_queries).tolist()
        sides = JoinSide("l", window_count=self.size), JoinSide("r", window_count=self.size)
        queries = []
        for slot in range(self.n_queries):
            (left, right), (lo, hi) = columns[slot], BANDS[bands[slot]]
            band = Band(left, right, lo, hi)
            conjunction = Conjunction(_region(ends[slot, 0]), _region(ends[slot, 1]), (band,))
            queries.append(JoinQuery(str(slot), 1, Kind.WINDOW_JOIN, *sides, (conjunction,)))
        return queries

    def windows(self, round_: int) -> tuple[Window, Window]:
        """Return full windows of both sides, with some new readings behind them."""
        rng = np.random.default_rng((SEED, round_))
        order = rng.permutation(2 * self.n_new)
        return (
            _window(rng, self.size, np.sort(order[: self.n_new])),
            _window(rng, self.size, np.sort(order[self.n_new :])),
        )


def _region(ends: Float64s) -> Region:
    return Region(tuple(ends[:, 0].tolist()), tuple(ends[:, 1].tolist()))


def _window(rng: np.random.Generator, size: int, positions: Int64s) -> Window:
    n = size + positions.size
    return Window(
        columns=rng.random((N_ATTRIBUTES, n)),
        event_times=np.zeros(n, dtype=np.int64),
        codes=np.zeros(n, dtype=np.int32),
        keys={},
        first=0,
        positions=np.concatenate((np.arange(-size, 0), positions)),
        own=np.ones(n, dtype=np.bool_),
    )


def contestants(setup: Setup, names: tuple[str, ...]) -> dict[str, Finder]:
    """Return those named, with the queries of ``setup``."""
    queries = setup.queries()
    makers: dict[str, Callable[[], Finder]] = {
        OURS: lambda: _ours(queries),
        IBS: lambda: IbsJoin(queries, setup.size).find,
        DECOMPOSED: lambda: DecomposedJoin(queries, setup.size, SelectIndex).find,
    }
    return {name: makers[name]() for name in names}


def _ours(queries: list[JoinQuery]) -> Finder:
    join = WindowJoin(N_ATTRIBUTES, N_ATTRIBUTES)
    for slot, query in enumerate(queries):
        join.put(slot, query, (0, 0))
    return partial(join.find, fits=_fits)


def _fits(side: int, where: Where, codes: Int32s) -> Bools:
    return np.ones(codes.size, dtype=np.bool_)


def race(setup: Setup, names: tuple[str, ...] = (OURS, IBS), n_rounds: int = 5) -> dict[str, Spread]:
    """Return the microseconds a new reading that each takes; a first round is not counted.

    Raises
    ------
    AssertionError
        They find different pairs.
    """
    finders = contestants(setup, names)
    times: dict[str, list[float]] = {name: [] for name in names}
    for round_ in range(n_rounds + 1):
        windows = setup.windows(round_)
        answers = {}
        first = round_ % len(names)
        for name in names[first:] + names[:first]:
            start = time.thread_time_ns()
            answers[name] = finders[name](*windows)
            elapsed = time.thread_time_ns() - start
            if round_:  # the first compiles and builds
                times[name].append(elapsed / 1e3 / (2 * setup.n_new))
        expected = _sorted(answers[names[0]])
        for name in names[1:]:
            np.testing.assert_array_equal(_sorted(answers[name]), expected, err_msg=f"{name} differs from {names[0]}")
    return {name: Spread(min(found), statistics.median(found), max(found)) for name, found in times.items()}


def _sorted(pairs: WindowPairs) -> Int32s:
    order = np.lexsort((pairs.queries, pairs.right_rows, pairs.left_rows))
    return np.stack([column[order] for column in (pairs.left_rows, pairs.right_rows, pairs.queries)])


def against_ibs(n_queries: int = 100_000, size: int = 10_000, n_rounds: int = 3) -> float:
    """Return the time of IBS-JS by ours, medians of the rounds."""
    times = race(Setup(n_queries, size), (OURS, IBS), n_rounds)
    return times[IBS].median / times[OURS].median


def against_decomposition(n_queries: int = 100_000, size: int = 1_000, n_rounds: int = 3) -> float:
    """Return the time of object decomposition, in the same index, by ours, medians of the rounds."""
    times = race(Setup(n_queries, size), (OURS, DECOMPOSED), n_rounds)
    return times[DECOMPOSED].median / times[OURS].median


def main() -> None:
    """Print a line a setup."""
    for size in (100, 1_000, 10_000):
        names = (OURS, IBS, DECOMPOSED)
        for name, spread in race(Setup(100_000, size), names, 3).items():
            print(f"window={size} {name}: {spread.median:,.0f} us a reading", flush=True)


if __name__ == "__main__":
    main()
