"""Races: every contestant gets the same work, by turns, and must give the same answers.

Times are processor seconds of this thread: what else runs on the machine takes caches, not time.
"""

import ctypes
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bmq.index.base import MatchIndex, Moves
from bmq.records import Float64s, Int32s

N_COMPARED = 10_000  # moves of each round on which all must agree; of the others only the number of crossings
N_CHECKED = 200  # moves of each round that are compared with the definition


if sys.platform == "linux":
    # Answers are kept until all have been compared. Without this, every call would get its memory anew from the
    # system, page by page, which is not the index' work. mallopt's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, in bytes.
    for option in (-3, -1):
        ctypes.CDLL(None).mallopt(option, 1 << 30)


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
    n_calls: int = 1,
) -> dict[str, Times]:
    """Return what each index took to follow all streams through ``positions``.

    Parameters
    ----------
    indexes : by name; queries are slots 0..m - 1 and registered.
    positions : float64[d, n_streams] each, (n_warm + 1) * n_calls * n_steps + 1 of them at least. All streams
        move in every step.
    regions : lower and upper borders, float64[d, m]: the definition that answers are checked with.
    n_warm : rounds that are not timed: they compile, build, and fill the position hints.
    n_steps : steps of a call.
    n_calls : calls of a round. The others' turns empty the caches, so a short round is a race for memory that a
        long run of one index would not see.

    Raises
    ------
    AssertionError
        Two indexes differ, or one differs from the definition on the first streams.
    """
    times = {name: Times() for name in indexes}
    calls = _calls(positions, n_steps)
    for number, round_ in enumerate(iter(lambda: list(islice(calls, n_calls)), [])):
        asks = {name: [partial(index.moves, *call) for call in round_] for name, index in indexes.items()}
        answers = _answers(asks, number, times if number >= n_warm else {}, sum(call[0].size for call in round_))
        for k, (_, before, after) in enumerate(round_):
            found = _agreed({name: answers[name][k] for name in indexes})
            sample = found[found[:, 0] < N_CHECKED]
            np.testing.assert_array_equal(sample, _crossed(regions, before, after))
    return times


def _calls(positions: Iterable[Float64s], n_steps: int) -> Iterator[tuple[Int32s, Float64s, Float64s]]:
    """Yield the moves of each call in order of time: streams, from where, to where."""
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
    for number, points in enumerate(values):
        asks = {name: [partial(index.stab, points)] for name, index in indexes.items()}
        answers = _answers(asks, number, times if number >= n_warm else {}, points.shape[1])
        found = _agreed({name: answers[name][0] for name in indexes})
        sample = found[found[:, 0] < N_CHECKED]
        inside = np.argwhere(held_by(regions, points[:, :N_CHECKED]))
        np.testing.assert_array_equal(sample[:, :2], inside)
    return times


def _answers(
    asks: Mapping[str, Sequence[Callable[[], Moves]]], number: int, times: Mapping[str, Times], n_ops: int
) -> dict[str, list[Moves]]:
    """Return everybody's answers in round ``number``; what they took goes to ``times``, where that has the name."""
    names = list(asks)
    first = number % len(names)
    answers: dict[str, list[Moves]] = {}
    # The first to go finds the caches full of the checks of the round before, so the turns rotate.
    for name in names[first:] + names[:first]:
        start = time.thread_time_ns()
        answers[name] = [ask() for ask in asks[name]]
        elapsed = time.thread_time_ns() - start
        if name in times:
            _add(times[name], answers[name], elapsed, n_ops)
    return answers


def _agreed(answers: Mapping[str, Moves]) -> npt.NDArray[np.int64]:
    """Return the answer about the first moves on which all agree, as ``_sorted``."""
    expected = None
    assert len({moves.rows.size for moves in answers.values()}) == 1, "they differ in how many crossings there are"
    for name, moves in answers.items():
        found = _sorted(moves)
        expected = found if expected is None else expected
        np.testing.assert_array_equal(found, expected, err_msg=f"{name} differs from the others")
    assert expected is not None
    return expected


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
    """Return row, query and sign of the first moves, int64[k, 3], in that order of importance."""
    n = np.searchsorted(moves.rows, N_COMPARED)
    # One number each: that sorts ten times as fast as three columns, and answers are most of a race's work.
    keys = moves.rows[:n].astype(np.int64) << 32 | moves.queries[:n].astype(np.int64) << 1 | (moves.signs[:n] > 0)
    keys.sort()
    return np.column_stack((keys >> 32, (keys & 0xFFFFFFFF) >> 1, 2 * (keys & 1) - 1))


def _add(times: Times, answers: Sequence[Moves], elapsed: int, n_ops: int) -> None:
    times.ns.append(elapsed / n_ops)
    times.n_found += sum(moves.rows.size for moves in answers)
    times.n_visits += sum(moves.visits for moves in answers)
    times.n_ops += n_ops


def registered(index: MatchIndex, regions: tuple[Float64s, Float64s]) -> None:
    """Register all ``regions`` (lower and upper borders, float64[d, m]) as slots 0..m - 1."""
    lo, hi = regions
    index.register(np.arange(lo.shape[1], dtype=np.int32), lo, hi)
