"""Figure `band_moves`: what a small move costs band joins, as their bands widen to half of all values."""

import statistics
import time
from collections.abc import Iterator

import numpy as np

from bench.band_join import MERGE, OURS, RIGHT, band_join
from bench.baselines.band_search import merged_pairs
from bench.figures.figure import Figure, Panel, Point, Scale
from bmq.engines.band.band_join import BandJoin
from bmq.records import Float64s, Int64s

SEED = 20051220
WIDTHS = {
    Scale.SMOKE: (0.01, 0.5),
    Scale.REDUCED: (0.001, 0.01, 0.1, 0.5),
    Scale.FULL: (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5),
}
SIZES = {Scale.SMOKE: 500, Scale.REDUCED: 20_000, Scale.FULL: 100_000}
N_QUERIES = 100
N_MOVES = 20
STEP = 1e-5  # of the range of values: of 100,000 a query gains or loses about one at each end
N_ROUNDS = 3


def _measure(scale: Scale) -> Iterator[Point]:
    n_values = SIZES[scale]
    rng = np.random.default_rng(SEED)
    values = np.sort(rng.uniform(0.0, 1.0, n_values))
    before = rng.uniform(0.3, 0.7, N_MOVES)
    room = np.empty((2, 2, N_QUERIES * n_values), dtype=np.int32)
    for width in WIDTHS[scale]:
        hi = width * np.sort(rng.uniform(0.4, 0.6, N_QUERIES))[::-1]
        join = band_join(values, -hi, hi)
        times: dict[str, list[float]] = {OURS: [], MERGE: []}
        for round_ in range(N_ROUNDS + 1):
            after = before + rng.normal(0.0, STEP, N_MOVES)
            ours, seconds = _moved(join, n_values, before, after)
            merged, merge_seconds = _merged(values, hi, before, after, room)
            np.testing.assert_array_equal(ours, merged)
            if round_:  # the first compiles
                times[OURS].append(1e6 * seconds / N_MOVES)
                times[MERGE].append(1e6 * merge_seconds / N_MOVES)
        for name, micros in times.items():
            yield Point("all", name, width, min(micros), statistics.median(micros), max(micros))


def _moved(join: BandJoin, n_values: int, before: Float64s, after: Float64s) -> tuple[Int64s, float]:
    """Return what each move changes, as (move, query, value) in one number, and the seconds of all moves."""
    n = before.size
    right, streams, keys = np.full(n, RIGHT, dtype=np.int8), np.arange(n, dtype=np.int32), np.zeros(n, dtype=np.int64)
    join.change(right, streams, before, keys)
    start = time.thread_time_ns()
    found = join.change(right, streams, after, keys)
    seconds = (time.thread_time_ns() - start) / 1e9
    return np.sort((found.rows.astype(np.int64) * N_QUERIES + found.queries) * n_values + found.others), seconds


def _merged(
    values: Float64s, hi: Float64s, before: Float64s, after: Float64s, room: np.ndarray
) -> tuple[Int64s, float]:
    """Return the same by the pairs at both places, and the seconds of the merges that find these."""
    changed: list[Int64s] = []
    seconds = 0.0
    for move, places in enumerate(zip(before.tolist(), after.tolist(), strict=True)):
        start = time.thread_time_ns()
        sizes = [merged_pairs(values, -hi, hi, -place, out) for place, out in zip(places, room, strict=True)]
        seconds += (time.thread_time_ns() - start) / 1e9
        was, now = (out[1, :n].astype(np.int64) * values.size + out[0, :n] for n, out in zip(sizes, room, strict=True))
        changed.append(move * N_QUERIES * values.size + np.setxor1d(was, now, assume_unique=True))
    return np.concatenate(changed), seconds


FIGURE = Figure(
    name="band_moves",
    source="beyond the papers",
    claim="a move costs little more where 500 times as many values are in band; a merge, over 100 times as much",
    setup="100 queries |left - right| <= a, 20,000 values (100,000 in full); moves of 1/100,000 of the range; the merge"
    " finds the pairs before and after, and is not charged for their difference",
    x="values in band, as a part of all",
    panels=(Panel("all", "microseconds a move", log_y=True),),
    measure=_measure,
    log_x=True,
)
