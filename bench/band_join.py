"""Band joins: what a search and a change cost, and how storage grows with the size of the stabbing set.

Claims: with 100,000 values and 100,000 queries a search whose answer is small takes at most a tenth of a merge of the
sorted values with all queries; the published structure's bytes are a linear function of m tau and n; no batch with
1,000 registrations takes a tenth of a second for them. The queries lie around tau "hotspots" (section 2.2, remark), far
apart; values are uniform over a range so wide that a hotspot meets few of them. Processor seconds of one thread, by
turns, the same displacements; all answers are compared before a number is returned.
Run `python -m bench.band_join`.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bench.baselines.band_search import InputSensitive, merged_pairs, nested_pairs
from bench.measure import Spread
from bmq.engines.band.band_join import BandJoin
from bmq.records import Float64s, Int32s

SEED = 20051219
OURS = "the service's"
PUBLISHED = "published, Lemma 5"
MERGE = "sorted merge"
NESTED = "nested loop"
RANGE = 1e7  # of values: with 100,000 of them a hotspot of width 1 meets one in a hundred searches
N_SEARCHES = 200
LEFT, RIGHT = 0, 1

Answers = list[Int32s]  # of each search: rows of values, rows of queries
Search = Callable[[Float64s], tuple[Answers, float]]  # to answers, and seconds


@dataclass(frozen=True, slots=True)
class Setup:
    """How many values, queries and hotspots."""

    n_values: int = 100_000
    n_queries: int = 100_000
    tau: int = 10

    def values(self) -> Float64s:
        """Return the values of the side that is searched, ascending."""
        return np.sort(np.random.default_rng(SEED).uniform(0.0, RANGE, self.n_values))

    def bands(self) -> tuple[Float64s, Float64s]:
        """Return both ends of the queries, ascending by the lower one: around each hotspot intervals that have it."""
        rng = np.random.default_rng((SEED, self.tau))
        hotspots = 10.0 * rng.integers(0, self.tau, self.n_queries)
        lo, hi = hotspots - rng.uniform(0.0, 0.5, self.n_queries), hotspots + rng.uniform(0.0, 0.5, self.n_queries)
        order = np.argsort(lo)
        return lo[order], hi[order]

    def searched(self) -> Float64s:
        """Return values of the other side: half of them are in few bands with a value, half mostly in none."""
        rng = np.random.default_rng((SEED, 1))
        # So far off that some twenty of a hotspot's queries reach there.
        near = rng.choice(self.values(), N_SEARCHES) - 0.5 * (1.0 - min(0.9, 20.0 * self.tau / self.n_queries))
        return np.where(np.arange(N_SEARCHES) % 2 == 0, near, rng.uniform(0.0, RANGE, N_SEARCHES))


def searches(setup: Setup, names: tuple[str, ...]) -> dict[str, Search]:
    """Return, by name, what finds (row of left value, row of query) for each of some values of the right side."""
    values, (lo, hi) = setup.values(), setup.bands()
    room = np.empty((2, 4_000_000), dtype=np.int32)
    makers: dict[str, Callable[[], Search]] = {
        OURS: lambda: _ours(values, lo, hi),
        PUBLISHED: lambda: _one_by_one(_published(values, lo, hi)),
        MERGE: lambda: _one_by_one(lambda value: room[:, : merged_pairs(values, lo, hi, -value, room)].copy()),
        NESTED: lambda: _one_by_one(lambda value: room[:, : nested_pairs(values, lo, hi, -value, room)].copy()),
    }
    return {name: makers[name]() for name in names}


def _one_by_one(search: Callable[[float], Int32s]) -> Search:
    def run(searched: Float64s) -> tuple[Answers, float]:
        start = time.thread_time_ns()
        answers = [search(value) for value in searched.tolist()]
        return answers, (time.thread_time_ns() - start) / 1e9

    return run


def _published(values: Float64s, lo: Float64s, hi: Float64s) -> Callable[[float], Int32s]:
    structure = InputSensitive(values, lo, hi)
    return lambda value: structure.pairs(-value)


def _ours(values: Float64s, lo: Float64s, hi: Float64s) -> Search:
    join = band_join(values, lo, hi)

    def run(searched: Float64s) -> tuple[Answers, float]:
        n = searched.size
        right, streams, keys = np.full(n, RIGHT, dtype=np.int8), np.arange(n, dtype=np.int32), np.zeros(n, np.int64)
        join.change(right, streams, np.full(n, np.nan), keys)
        # As a batch does it: from no value to one, what is emitted is what the search finds.
        start = time.thread_time_ns()
        found = join.change(right, streams, searched, keys)
        seconds = (time.thread_time_ns() - start) / 1e9
        ends = np.searchsorted(found.rows, np.arange(n + 1))
        pairs = np.stack([found.others, found.queries])
        return [pairs[:, begin:end] for begin, end in pairwise(ends)], seconds

    return run


def band_join(values: Float64s, lo: Float64s, hi: Float64s) -> BandJoin:
    """Return the service's band join with values on the left."""
    n = values.size
    join = BandJoin()
    join.put(np.arange(lo.size, dtype=np.int32), lo, hi)
    left = np.full(n, LEFT, dtype=np.int8)
    join.change(left, np.arange(n, dtype=np.int32), values, np.zeros(n, dtype=np.int64))
    return join


def race(setup: Setup, names: tuple[str, ...], n_rounds: int = 3) -> dict[str, Spread]:
    """Return the microseconds a search that each takes.

    Raises
    ------
    AssertionError
        They find different pairs, or none at all.
    """
    found = searches(setup, names)
    searched = setup.searched()[: 4 if NESTED in names else N_SEARCHES]
    times: dict[str, list[float]] = {name: [] for name in names}
    for round_ in range(n_rounds + 1):
        answers = {}
        for name in names[round_ % len(names) :] + names[: round_ % len(names)]:
            answers[name], seconds = found[name](searched)
            if round_:  # the first compiles
                times[name].append(1e6 * seconds / searched.size)
        assert sum(pairs.shape[1] for pairs in answers[names[0]]) > 0
        for name in names[1:]:
            for one, other in zip(answers[name], answers[names[0]], strict=True):
                np.testing.assert_array_equal(_sorted(one), _sorted(other), err_msg=f"{name} differs from {names[0]}")
    return {name: Spread(min(one), statistics.median(one), max(one)) for name, one in times.items()}


def _sorted(pairs: Int32s) -> Int32s:
    return pairs[:, np.lexsort((pairs[1], pairs[0]))]


def against_merge() -> float:
    """Return the time of a sorted merge by the service's, for a search; medians of the rounds."""
    times = race(Setup(), (OURS, MERGE))
    return times[MERGE].median / times[OURS].median


def published_against_merge() -> float:
    """Return the time of a sorted merge by the published structure's, for a search; medians of the rounds."""
    times = race(Setup(), (PUBLISHED, MERGE))
    return times[MERGE].median / times[PUBLISHED].median


def storage(setups: tuple[Setup, ...]) -> tuple[Float64s, Float64s]:
    """Return (m tau, n, m) of each setup, float64[s, 3], and the published structure's bytes, float64[s]."""
    rows, sizes = [], []
    for setup in setups:
        structure = InputSensitive(setup.values(), *setup.bands())
        rows.append((setup.n_values * len(structure.groups), setup.n_queries, setup.n_values))
        sizes.append(structure.nbytes)
    return np.array(rows, dtype=np.float64), np.array(sizes, dtype=np.float64)


STORAGE_SETUPS = tuple(
    Setup(n_values, n_queries, tau)
    for n_values in (2_000, 5_000, 10_000)
    for n_queries in (5_000, 20_000)
    for tau in (1, 4, 16, 64)
)


def storage_fit() -> float:
    """Return how much of the variance of the bytes a multiple of m tau and one of n explain: R squared of the fit."""
    rows, sizes = storage(STORAGE_SETUPS)
    fitted, *_ = np.linalg.lstsq(rows[:, :2], sizes, rcond=None)
    unexplained = sizes - rows[:, :2] @ fitted
    return float(1.0 - (unexplained @ unexplained) / np.square(sizes - sizes.mean()).sum())


def slowest_registrations() -> float:
    """Return the milliseconds of 1,000 queries that come one by one, and one reading after them; the slowest of 50."""
    n, n_more, n_batches = 100_000, 1_000, 50
    lo, hi = Setup(n_queries=n + n_more * n_batches).bands()
    order = np.random.default_rng(SEED).permutation(lo.size)
    lo, hi = lo[order], hi[order]
    join = band_join(Setup().values(), lo[:n], hi[:n])
    right, stream, key = np.array([RIGHT], np.int8), np.zeros(1, np.int32), np.zeros(1, np.int64)
    places = np.random.default_rng(SEED).uniform(0.0, RANGE, (n_batches + 1, 1))
    join.change(right, stream, places[-1], key)
    times = []
    for batch in range(n_batches):
        first = n + n_more * batch
        start = time.thread_time_ns()
        for slot in range(first, first + n_more):
            join.put(np.array([slot], np.int32), lo[slot : slot + 1], hi[slot : slot + 1])
        join.change(right, stream, places[batch], key)
        times.append((time.thread_time_ns() - start) / 1e6)
    all_at_once = band_join(Setup().values(), lo, hi)
    all_at_once.change(right, stream, places[-2], key)
    wanted, found = (one.change(right, stream, Setup().searched()[:1], key) for one in (all_at_once, join))
    assert wanted.rows.size > 0
    for column in ("queries", "others", "signs"):
        np.testing.assert_array_equal(np.sort(getattr(found, column)), np.sort(getattr(wanted, column)))
    return max(times)


def main() -> None:
    """Print a line a setup."""
    for tau in (1, 10, 100):
        for name, spread in race(Setup(tau=tau), (OURS, PUBLISHED, MERGE)).items():
            print(f"tau={tau} {name}: {spread.median:,.2f} us a search", flush=True)
    print(f"1,000 registrations, the slowest: {slowest_registrations():.1f} ms")
    print(f"storage against a m tau + b n: R^2 = {storage_fit():.6f}")


if __name__ == "__main__":
    main()
