"""Searches among band joins: the published structure, and what it is to beat.

All answer the same: given values X and closed intervals, and a displacement d, which (value, interval) have ``x + d``
in the interval (Q1), or which intervals have some (Q2). Source: Agarwal, Xie, Yang and Yu, Monitoring Continuous
Band-Join Queries over Dynamic Data (ISAAC 2005), section 2.2: Lemma 3 to 5, Definition 1.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.engines.band.stabbing_set import stabbing_groups
from bmq.records import Float64s, Int32s, Int64s


class Intervals(NamedTuple):
    """Intervals of displacements, of a group and a value, by lower end.

    most : the largest upper end of each subtree. The tree is the array itself: the root of a range is its middle.
    """

    lo: Float64s
    hi: Float64s
    most: Float64s
    groups: Int32s
    values: Int32s


class InputSensitive:
    """The structure of Lemma 5, static: O(m tau + n) of storage, O(log(m tau) + k) a search.

    Parameters
    ----------
    values : float64[m], ascending. lo, hi : float64[n], finite.
    """

    def __init__(self, values: Float64s, lo: Float64s, hi: Float64s) -> None:
        self.values = values
        self.groups = stabbing_groups(lo, hi)
        self._row_lo, self._row_hi = lo, hi
        self._covers = self._covering()
        self._pieces = self._atomic()
        self._room = np.empty((2, 1024), dtype=np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays for Q1: values, sequences of the groups, covering intervals less each value."""
        return self.values.nbytes + self.groups.nbytes + sum(array.nbytes for array in self._covers)

    def pairs(self, displacement: float) -> Int32s:
        """Return (value, interval) rows, int32[2, k]: Q1."""
        return self._search(self._covers, displacement, pairs=True)

    def queries(self, displacement: float) -> Int32s:
        """Return the rows of intervals, each once, int32[k]: Q2."""
        found: Int32s = self._search(self._pieces, displacement, pairs=False)[1]
        return found

    def _search(self, intervals: Intervals, displacement: float, *, pairs: bool) -> Int32s:
        groups = self.groups
        while True:
            n = _search(
                intervals,
                displacement,
                pairs,
                self.values,
                groups.points,
                groups.starts,
                groups.by_lo,
                groups.by_hi,
                self._row_lo,
                self._row_hi,
                self._room,
            )
            if n <= self._room.shape[1]:
                found: Int32s = self._room[:, :n].copy()
                return found
            self._room = np.empty((2, 2 * n), dtype=np.int32)

    def _covering(self) -> Intervals:
        tau, m = len(self.groups), self.values.size
        lo = (self.groups.cover_lo[:, None] - self.values).ravel()
        hi = (self.groups.cover_hi[:, None] - self.values).ravel()
        return _tree(lo, hi, np.repeat(np.arange(tau), m), np.tile(np.arange(m), tau))

    def _atomic(self) -> Intervals:
        """Return the (i, j)-intervals: where value j is the last one at or before the group's point."""
        x = np.concatenate(([-np.inf], self.values, [np.inf]))
        points, cover_lo, cover_hi = (
            column[:, None] for column in (self.groups.points, self.groups.cover_lo, self.groups.cover_hi)
        )
        # Where j and j + 1 enclose the point; where j + 1 comes to lie on it, that is the last one.
        first, last = np.nextafter(points - x[1:], np.inf), points - x[:-1]
        # Stabbed by value j down to its lower end, by value j + 1 up to its upper end.
        by_this, by_next = np.maximum(first, cover_lo - x[:-1]), np.minimum(last, cover_hi - x[1:])
        is_one = by_this <= by_next
        groups = np.broadcast_to(np.arange(len(self.groups))[:, None], first.shape)
        rows = np.broadcast_to(np.arange(first.shape[1]) - 1, first.shape)
        parts = []
        for chosen, lo, hi in (
            (is_one, first, last),
            (~is_one & np.isfinite(by_this), by_this, last),
            (~is_one & np.isfinite(by_next), first, by_next),
        ):
            parts.append((lo[chosen], hi[chosen], groups[chosen], rows[chosen]))
        return _tree(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _tree(lo: Float64s, hi: Float64s, groups: Int64s, values: Int64s) -> Intervals:
    order = np.argsort(lo, kind="stable")
    lo, hi = lo[order], hi[order]
    most = np.empty_like(hi)
    _fill_most(hi, most)
    return Intervals(lo, hi, most, groups[order].astype(np.int32), values[order].astype(np.int32))


@njit(cache=True)
def _fill_most(hi: Float64s, most: Float64s) -> None:
    """Write the largest end of each subtree: ranges from the root on, then back from the last one."""
    ranges = np.empty((hi.size + 1, 2), dtype=np.int64)
    ranges[0, 0], ranges[0, 1] = 0, hi.size
    n, at = 1, 0
    while at < n:
        begin, end = ranges[at, 0], ranges[at, 1]
        middle = (begin + end) // 2
        if begin < middle:
            ranges[n, 0], ranges[n, 1] = begin, middle
            n += 1
        if middle + 1 < end:
            ranges[n, 0], ranges[n, 1] = middle + 1, end
            n += 1
        at += 1
    for at in range(n - 1, -1, -1):
        begin, end = ranges[at, 0], ranges[at, 1]
        middle = (begin + end) // 2
        largest = hi[middle]
        if begin < middle:
            largest = max(largest, most[(begin + middle) // 2])
        if middle + 1 < end:
            largest = max(largest, most[(middle + 1 + end) // 2])
        most[middle] = largest


@njit(cache=True)
def _search(
    intervals: Intervals,
    displacement: float,
    pairs: bool,
    values: Float64s,
    points: Float64s,
    starts: Int64s,
    by_lo: Int32s,
    by_hi: Int32s,
    row_lo: Float64s,
    row_hi: Float64s,
    out: Int32s,
) -> int:
    """Write (value, interval) of each answer into ``out``, int32[2, room]; return how many there are."""
    stack = np.empty((64, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, intervals.lo.size
    n_stack, n = 1, 0
    while n_stack:
        n_stack -= 1
        begin, end = stack[n_stack, 0], stack[n_stack, 1]
        if begin >= end:
            continue
        middle = (begin + end) // 2
        if intervals.most[middle] < displacement:
            continue
        stack[n_stack, 0], stack[n_stack, 1] = begin, middle
        n_stack += 1
        if intervals.lo[middle] > displacement:
            continue
        stack[n_stack, 0], stack[n_stack, 1] = middle + 1, end
        n_stack += 1
        if intervals.hi[middle] < displacement:
            continue
        group, row = intervals.groups[middle], intervals.values[middle]
        if pairs:
            place = values[row] + displacement
            if place <= points[group]:
                n = _write_begun(by_lo, row_lo, starts[group], starts[group + 1], place, row, out, n)
            else:
                n = _write_open(by_hi, row_hi, row_lo, -np.inf, starts[group], starts[group + 1], place, row, out, n)
            continue
        before = -np.inf
        if row >= 0:
            before = values[row] + displacement
            n = _write_begun(by_lo, row_lo, starts[group], starts[group + 1], before, row, out, n)
        if row + 1 < values.size:
            place = values[row + 1] + displacement
            n = _write_open(by_hi, row_hi, row_lo, before, starts[group], starts[group + 1], place, row, out, n)
    return n


@njit(cache=True)
def _write_begun(
    by_lo: Int32s, row_lo: Float64s, begin: int, end: int, place: float, value: int, out: Int32s, n: int
) -> int:
    """Write the intervals of a group that begin at or before a place that is not behind the group's point."""
    for i in range(begin, end):
        if row_lo[by_lo[i]] > place:
            break
        if n < out.shape[1]:
            out[0, n], out[1, n] = value, by_lo[i]
        n += 1
    return n


@njit(cache=True)
def _write_open(
    by_hi: Int32s,
    row_hi: Float64s,
    row_lo: Float64s,
    reported_from: float,
    begin: int,
    end: int,
    place: float,
    value: int,
    out: Int32s,
    n: int,
) -> int:
    """Write the intervals that end at a place from the point on, except those begun by ``reported_from``."""
    for i in range(begin, end):
        if row_hi[by_hi[i]] < place:
            break
        if row_lo[by_hi[i]] > reported_from:
            if n < out.shape[1]:
                out[0, n], out[1, n] = value, by_hi[i]
            n += 1
    return n


@njit(cache=True)
def merged_pairs(values: Float64s, lo: Float64s, hi: Float64s, displacement: float, out: Int32s) -> int:
    """Write Q1's answer by a merge of sorted values with queries sorted by lower end; return how many there are.

    O(m + n + k). ``lo`` is ascending.
    """
    n, first = 0, 0
    for query in range(lo.size):
        while first < values.size and values[first] + displacement < lo[query]:
            first += 1
        at = first
        while at < values.size and values[at] + displacement <= hi[query]:
            if n < out.shape[1]:
                out[0, n], out[1, n] = at, query
            n += 1
            at += 1
    return n


@njit(cache=True)
def nested_pairs(values: Float64s, lo: Float64s, hi: Float64s, displacement: float, out: Int32s) -> int:
    """Write Q1's answer by testing every value against every query; return how many there are. O(m n)."""
    n = 0
    for at in range(values.size):
        place = values[at] + displacement
        for query in range(lo.size):
            if lo[query] <= place <= hi[query]:
                if n < out.shape[1]:
                    out[0, n], out[1, n] = at, query
                n += 1
    return n
