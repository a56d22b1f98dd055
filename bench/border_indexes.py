"""The border indexes alone: moves a second, candidates a move, time to build, cost of live registration.

Claims: (1) the border grid answers 2 M moves/s over 10,000 squares, and is faster than the n-D BMQ of the
papers on the same moves; (2) the region segment list yields 36 M events/s; (3) a thousand registrations over
a million standing queries cost milliseconds. Papers' setup: BMQ-Processor, sections 7.1 to 7.3. Ours:
processor seconds of one thread; positions uniform or in towns, steps in random directions. Answers are
checked on a sample of the moves before a time is printed. Run `python -m bench.border_indexes`: a minute.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.baselines.one_structure import BorderGrid, NdBmq, RegionSegmentList
from bench.measure import held_by
from bmq.index.layered import Layered
from bmq.records import Float64s

SEED = 20060509
N_ROUNDS = 7
N_CHECKED = 300  # moves of the last round that are compared with every query


@dataclass(frozen=True, slots=True)
class Setup:
    """``n_queries`` cubes of ``side`` in a space of ``extent``; ``n_streams`` that move by ``step``.

    They lie evenly; or in ``n_towns`` of standard deviation ``town``, but for the share ``scattered``.
    """

    n_dims: int
    extent: float
    n_queries: int
    side: float
    step: float
    n_streams: int
    n_towns: int = 0
    town: float = 0.0
    scattered: float = 0.0

    def positions(self, rng: np.random.Generator, n: int) -> Float64s:
        """Return ``n`` places, float64[d, n]."""
        evenly = rng.uniform(0, self.extent, (self.n_dims, n))
        if not self.n_towns:
            return evenly
        towns = np.random.default_rng(SEED).uniform(0, self.extent, (self.n_dims, self.n_towns))
        in_towns = towns[:, rng.integers(0, self.n_towns, n)] + rng.normal(0, self.town, (self.n_dims, n))
        return np.where(rng.random(n) < self.scattered, evenly, in_towns)

    def regions(self, rng: np.random.Generator, n: int) -> tuple[Float64s, Float64s]:
        """Return the lower and upper borders of ``n`` cubes, float64[d, n]."""
        lo = self.positions(rng, n) - self.side / 2
        return lo, lo + self.side

    def next_positions(self, rng: np.random.Generator, positions: Float64s) -> Float64s:
        """Return where the streams at ``positions`` are one step later, float64[d, n]."""
        heading = rng.normal(0, 1, positions.shape)
        length = rng.exponential(self.step, positions.shape[1]) if self.n_dims == 1 else self.step
        moved: Float64s = positions + heading / np.linalg.norm(heading, axis=0) * length
        return moved


LINE = Setup(1, 1e6, 100_000, 500.0, 500.0, 20_000)
CITY = partial(Setup, 2, 60_000.0, step=330.0, n_streams=100_000)
TOWN = partial(Setup, 2, 15_000.0, step=330.0, n_streams=20_000)  # the papers' 15 km by 15 km
LAND = Setup(2, 1e6, 100_000, 100.0, 330.0, 20_000, n_towns=30, town=5_000.0)
EARTH = Setup(2, 4e7, 100_000, 100.0, 330.0, 20_000, n_towns=1, town=10_000.0, scattered=0.05)
RUNS: list[tuple[Callable[[], Layered], Setup]] = [
    (RegionSegmentList, LINE),
    (BorderGrid, CITY(n_queries=10_000, side=500.0)),
    (BorderGrid, CITY(n_queries=100_000, side=50.0)),
    (BorderGrid, CITY(n_queries=1_000_000, side=50.0)),
    *(
        (make, TOWN(n_queries=n_queries, side=side))
        for n_queries, side in ((5_000, 500.0), (100_000, 500.0), (100_000, 60.0), (5_000, 5_000.0))
        for make in (BorderGrid, partial(NdBmq, 2))
    ),
    (BorderGrid, LAND),
    (partial(NdBmq, 2), LAND),
    (BorderGrid, EARTH),
    (partial(NdBmq, 2), EARTH),
    *(
        (partial(make, n_dims), Setup(n_dims, 1e5, 10_000, 100.0, 100.0, 20_000))
        for n_dims in (3, 5, 9)
        for make in (BorderGrid, NdBmq)
    ),
]


def main() -> None:
    """Print one CSV line a run."""
    for make, setup in RUNS:  # compiles the kernels
        measure(make(), Setup(setup.n_dims, 100.0, 10, 10.0, 1.0, 10))
    print(
        "index,dims,extent,towns,queries,side,step,streams,build_ms,moves_per_s_min,median,max,stabs_per_s,events,visits"
    )
    for make, setup in RUNS:
        index = make()
        numbers = ",".join(f"{number:.4g}" for number in measure(index, setup))
        print(
            f"{type(index).__name__},{setup.n_dims},{setup.extent:g},{setup.n_towns},{setup.n_queries},{setup.side:g},"
            f"{setup.step:g},{setup.n_streams},{numbers}",
            flush=True,
        )
    print("index,standing,registered_at_once,times,mean_ms,worst_ms,layers")
    for make, setup in (
        (RegionSegmentList, Setup(1, 1e6, 1_000_000, 50.0, 3.0, 1)),
        (BorderGrid, CITY(n_queries=1_000_000, side=50.0)),
    ):
        measure_registration(make(), setup)


def measure(index: Layered, setup: Setup) -> tuple[float, ...]:
    """Return build ms; moves/s min, median, max; stabs/s; events and visits a move."""
    rng = np.random.default_rng(SEED)
    lo, hi = setup.regions(rng, setup.n_queries)
    streams = np.arange(setup.n_streams, dtype=np.int32)
    after = setup.positions(rng, setup.n_streams)
    index.register(np.arange(setup.n_queries, dtype=np.int32), lo, hi)
    build_seconds = seconds(lambda: index.moves(streams[:0], after[:, :0], after[:, :0]))
    index.stab(after[:, :0])
    stab_seconds = seconds(lambda: index.stab(after))
    times, n_events, n_visits = [], 0, 0
    for _ in range(N_ROUNDS):
        before, after = after, setup.next_positions(rng, after)
        start = time.thread_time()
        moves = index.moves(streams, before, after)
        times.append(time.thread_time() - start)
        n_events, n_visits = n_events + moves.rows.size, n_visits + moves.visits
    n_checked = min(N_CHECKED, setup.n_streams)
    was, now = (held_by((lo, hi), values[:, :n_checked]) for values in (before, after))
    expected = np.argwhere(was != now)
    found = np.stack((moves.rows, moves.queries), axis=1)[moves.rows < n_checked]
    np.testing.assert_array_equal(found[np.lexsort(found.T[::-1])], expected)
    rates = setup.n_streams / np.array(times)
    n_moves = N_ROUNDS * setup.n_streams
    return (
        build_seconds * 1e3,
        rates.min(),
        float(np.median(rates)),
        rates.max(),
        setup.n_streams / stab_seconds,
        n_events / n_moves,
        n_visits / n_moves,
    )


def measure_registration(index: Layered, setup: Setup, *, n_at_once: int = 1_000, n_times: int = 60) -> None:
    """Print what registering ``n_at_once`` queries costs, with the next question, over standing ones."""
    rng = np.random.default_rng(SEED)
    none = np.empty((setup.n_dims, 0))
    times = []
    for number in range(n_times + 1):
        n = n_at_once if number else setup.n_queries
        slots = np.arange(n, dtype=np.int32) + (number and setup.n_queries + number * n_at_once)
        lo, hi = setup.regions(rng, n)
        start = time.thread_time()
        index.register(slots.astype(np.int32), lo, hi)
        index.moves(slots[:0], none, none)
        times.append(time.thread_time() - start)
    mean_ms, worst_ms = 1e3 * float(np.mean(times[1:])), 1e3 * max(times[1:])
    layers = " ".join(str(layer.n_live) for layer in index._layers)
    print(
        f"{type(index).__name__},{setup.n_queries},{n_at_once},{n_times},{mean_ms:.2f},{worst_ms:.2f},{layers}",
        flush=True,
    )


def seconds(run: Callable[[], object]) -> float:
    """Return how many processor seconds ``run`` takes."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


if __name__ == "__main__":
    main()
