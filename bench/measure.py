"""Races: every contestant gets the same work, by turns, and must give the same answers.

Times are processor seconds of this thread: what else runs on the machine takes caches, not time.
"""

import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bmq.index.base import MatchIndex, Moves
from bmq.records import Float64s, Int32s

N_CHECKED = 200  # rows of each round that are compared with the definition


class Spread(NamedTuple):
    """Minimum, median and maximum of the rounds."""

    min: float
    median: float
    max: float


@dataclass
class Times:
    """What one contestant did: nanoseconds an operation in each round, and sums over the rounds."""

    ns: list[float] = field(default_factory=list)
    n_found: int = 0
    n_visits: int = 0
    n_ops: int = 0

    @property
    def spread(self) -> Spread:
        """Nanoseconds an operation."""
        return Spread(min(self.ns), statistics.median(self.ns), max(self.ns))

    @property
    def efficiency(self) -> float:
        """The papers' processing efficiency in percent: final result by intermediate result."""
        return 100.0 * self.n_found / self.n_visits if self.n_visits else 100.0


class Mover(Protocol):
    """What is asked about moves: any border index or baseline."""

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """As `BorderIndex.moves`."""


class Stabber(Protocol):
    """What is asked about values: any match index or baseline."""

    def stab(self, values: Float64s) -> Moves:
        """As `MatchIndex.stab`."""


def race_moves(
    indexes: Mapping[str, Mover],
    positions: Iterable[Float64s],
    regions: tuple[Float64s, Float64s],
    *,
    n_warm: int = 2,
    n_steps: int = 1,
) -> dict[str, Times]:
    """Return what each index took to follow all streams through ``positions``.

    Parameters
    ----------
    indexes : by name; queries are slots 0..m - 1 and registered.
    positions : float64[d, n_streams] each, (n_warm + 1) * n_steps + 1 of them at least. All streams move in
        every step.
    regions : lower and upper borders, float64[d, m]: the definition that answers are checked with.
    n_warm : rounds that are not timed: they compile, build, and fill the position hints.
    n_steps : steps of a round. The others' turns and the checks empty the caches, so where a step is short,
        one alone is a race for memory that a long run of one index would not see.

    Raises
    ------
    AssertionError
        Two indexes differ, or one differs from the definition on the first streams.
    """
    times = {name: Times() for name in indexes}
    names = list(indexes)
    for number, (streams, before, after) in enumerate(_rounds(positions, n_steps)):
        expected = None
        # The first to go finds the positions outside the caches, so the turns rotate.
        for name in names[number % len(names) :] + names[: number % len(names)]:
            start = time.thread_time_ns()
            moves = indexes[name].moves(streams, before, after)
            elapsed = time.thread_time_ns() - start
            if number >= n_warm:
                _add(times[name], moves, elapsed, streams.size)
            found = _sorted(moves)
            if expected is None:
                expected = found
                sample = found[found[:, 0] < N_CHECKED]
                np.testing.assert_array_equal(sample, _crossed(regions, before, after))
            np.testing.assert_array_equal(found, expected, err_msg=f"{name} differs from the others")
    return times


def _rounds(positions: Iterable[Float64s], n_steps: int) -> Iterator[tuple[Int32s, Float64s, Float64s]]:
    """Yield the moves of each round in order of time: streams, from where, to where."""
    steps = iter(positions)
    last = next(steps)
    streams = np.arange(last.shape[1], dtype=np.int32)
    while taken := list(islice(steps, n_steps)):
        before, after = [last, *taken[:-1]], taken
        yield np.tile(streams, len(taken)), np.concatenate(before, axis=1), np.concatenate(after, axis=1)
        last = taken[-1]


def race_stabs(
    indexes: Mapping[str, Stabber],
    values: Iterable[Float64s],
    regions: tuple[Float64s, Float64s],
    *,
    n_warm: int = 1,
) -> dict[str, Times]:
    """Return what each index took to find all queries that hold each value; as ``race_moves``."""
    times = {name: Times() for name in indexes}
    names = list(indexes)
    for number, points in enumerate(values):
        expected = None
        for name in names[number % len(names) :] + names[: number % len(names)]:
            start = time.thread_time_ns()
            held = indexes[name].stab(points)
            elapsed = time.thread_time_ns() - start
            if number >= n_warm:
                _add(times[name], held, elapsed, points.shape[1])
            found = _sorted(held)
            if expected is None:
                expected = found
                sample = found[found[:, 0] < N_CHECKED]
                inside = np.argwhere(held_by(regions, points[:, :N_CHECKED]))
                np.testing.assert_array_equal(sample[:, :2], inside)
            np.testing.assert_array_equal(found, expected, err_msg=f"{name} differs from the others")
    return times


def held_by(regions: tuple[Float64s, Float64s], values: Float64s) -> npt.NDArray[np.bool_]:
    """Return bool[n, m]: whether each query holds each value, by the definition."""
    lo, hi = regions
    held = np.ones((values.shape[1], lo.shape[1]), dtype=np.bool_)
    for lo_k, hi_k, values_k in zip(lo, hi, values, strict=True):
        held &= (lo_k <= values_k[:, None]) & (values_k[:, None] < hi_k)
    return held


def _crossed(regions: tuple[Float64s, Float64s], before: Float64s, after: Float64s) -> npt.NDArray[np.int64]:
    was, now = (held_by(regions, values[:, :N_CHECKED]) for values in (before, after))
    crossed = np.argwhere(was != now)
    signs = np.where(now[tuple(crossed.T)], 1, -1)
    return np.column_stack((crossed, signs))


def _sorted(moves: Moves) -> npt.NDArray[np.int64]:
    """Return int64[k, 3]: row, query, sign, in that order of importance."""
    # One number each: that sorts ten times as fast as three columns, and answers are most of a race's work.
    keys = moves.rows.astype(np.int64) << 32 | moves.queries.astype(np.int64) << 1 | (moves.signs > 0)
    keys.sort()
    return np.column_stack((keys >> 32, (keys & 0xFFFFFFFF) >> 1, 2 * (keys & 1) - 1))


def _add(times: Times, moves: Moves, elapsed: int, n_ops: int) -> None:
    times.ns.append(elapsed / n_ops)
    times.n_found += moves.rows.size
    times.n_visits += moves.visits
    times.n_ops += n_ops


def registered(index: MatchIndex, regions: tuple[Float64s, Float64s]) -> None:
    """Register all ``regions`` (lower and upper borders, float64[d, m]) as slots 0..m - 1."""
    lo, hi = regions
    index.register(np.arange(lo.shape[1], dtype=np.int32), lo, hi)
