"""The IBS tree, one a dimension, and the count of a query's predicates that hold: predicate indexing in main memory.

Knows the trees and the merge of what they found. As tuned as ours: arrays, compiled, built in bulk.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench.baselines.standing import StandingQueries
from bmq.index.base import Moves
from bmq.kernels.tables.buffers import make_room
from bmq.records import Bytes, Float64s, Int8s, Int32s, Int64s

# Sides of a tree node: the rows listed for values below it, on it, above it.
BELOW, ON, ABOVE = 0, 1, 2


class IbsTree(NamedTuple):
    """A balanced binary search tree over the constants of one dimension, perfect but for its last level.

    Attributes
    ----------
    constants : float64[n], every finite end, once, ascending; node `middle` of a range of them is its root.
    starts : int32[3 * n + 1], where the list of each side of each node begins in ``rows``.
    rows : int32[], rows of the query table; each list ascends. A row without a predicate here is in none.
    """

    constants: Float64s
    starts: Int32s
    rows: Int32s


class Ibs:
    """A `MatchIndex`: an IBS tree a dimension, built anew when queries come or go.

    Notes
    -----
    Source: Hanson et al., *A Predicate Matching Algorithm for Database Rule Systems* (SIGMOD 1990), and how the paper
    on duality of data and queries uses it (section 3): every tree is asked for the predicates that hold, and a query
    is found whose predicates all do. Departures, all in its favour: built in bulk and balanced, nodes and lists in
    arrays, and a query's predicates are counted in one byte each in place of merging sets.
    """

    def __init__(self, n_dims: int) -> None:
        self.n_dims = n_dims
        self._standing = StandingQueries(n_dims)
        self._trees: list[IbsTree] | None = None
        self._n_predicates: Bytes = np.empty(0, dtype=np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes of the trees, of the query slots, and of how many predicates each has."""
        trees = self._trees or []
        n_bytes = sum(part.nbytes for tree in trees for part in tree)
        return n_bytes + self._standing.slots.nbytes + self._n_predicates.nbytes

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries, as `MatchIndex.register`; the next question builds the trees anew."""
        self._standing.register(slots, lo, hi)
        self._trees = None

    def deregister(self, slots: Int32s) -> None:
        """Forget queries, as `MatchIndex.deregister`; the next question builds the trees anew."""
        self._standing.deregister(slots)
        self._trees = None

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        if self._trees is None:
            regions = self._standing.regions
            self._trees = [make_tree(np.ascontiguousarray(regions[:, k])) for k in range(self.n_dims)]
            self._n_predicates = np.isfinite(regions).any(axis=2).sum(axis=1).astype(np.uint8)
        values = np.ascontiguousarray(values, dtype=np.float64)
        return Moves(*_holding(tuple(self._trees), self._n_predicates, self._standing.slots, values))

    def _check(self) -> None:
        """State every invariant; for tests."""
        for tree in self._trees or []:
            assert (tree.constants[:-1] < tree.constants[1:]).all()
            assert tree.starts[-1] == tree.rows.size
            assert tree.starts.size == 3 * tree.constants.size + 1


def make_tree(intervals: Float64s) -> IbsTree:
    """Return the tree over float64[m, 2] intervals [lo, hi); those without an end are in no list. O(m log m)."""
    constants = np.unique(intervals[np.isfinite(intervals)])
    with_end = np.flatnonzero(np.isfinite(intervals).any(axis=1))
    # Where each begins and ends: 2i is the gap before constant i, 2i + 1 the constant itself.
    first = np.where(
        np.isfinite(intervals[with_end, 0]), 2 * np.searchsorted(constants, intervals[with_end, 0]) + 1, 0
    ).astype(np.int64)
    stop = np.where(
        np.isfinite(intervals[with_end, 1]),
        2 * np.searchsorted(constants, intervals[with_end, 1]) + 1,
        2 * constants.size + 1,
    ).astype(np.int64)
    ends = np.zeros(3 * constants.size + 1, dtype=np.int64)
    _count(first, stop, constants.size, ends)
    starts = np.cumsum(ends)
    rows = np.empty(starts[-1], dtype=np.int32)
    _fill(first, stop, with_end, constants.size, starts, rows)
    return IbsTree(constants, starts.astype(np.int32), rows)


@njit(cache=True)
def _marks(first: int, stop: int, n_constants: int, marks: Int64s, stack: Int64s) -> int:
    """Write the lists that an interval belongs to, each 3 * node + side, and return how many. Raises nothing.

    A search that comes past a node's list goes on only where the interval has not been listed for all of that side,
    so that it finds every interval once.
    """
    n = 0
    stack[0], stack[1] = 0, n_constants
    depth = 1
    while depth > 0:
        depth -= 1
        left, right = stack[2 * depth], stack[2 * depth + 1]
        if left >= right:
            continue
        middle = (left + right) // 2
        if first <= 2 * middle + 1 < stop:
            marks[n] = 3 * middle + ON
            n += 1
        if first <= 2 * left and stop >= 2 * middle + 1:
            marks[n] = 3 * middle + BELOW
            n += 1
        elif first < 2 * middle + 1 and stop > 2 * left:
            stack[2 * depth], stack[2 * depth + 1] = left, middle
            depth += 1
        if first <= 2 * middle + 2 and stop >= 2 * right + 1:
            marks[n] = 3 * middle + ABOVE
            n += 1
        elif first < 2 * right + 1 and stop > 2 * middle + 2:
            stack[2 * depth], stack[2 * depth + 1] = middle + 1, right
            depth += 1
    return n


@njit(cache=True)
def _count(first: Int64s, stop: Int64s, n_constants: int, counts: Int64s) -> None:
    """Add to ``counts`` how many rows each list will hold. Raises nothing."""
    marks, stack = np.empty(6 * 64, dtype=np.int64), np.empty(4 * 64, dtype=np.int64)
    for i in range(first.size):
        for e in range(_marks(first[i], stop[i], n_constants, marks, stack)):
            counts[marks[e]] += 1


@njit(cache=True)
def _fill(first: Int64s, stop: Int64s, listed: Int64s, n_constants: int, ends: Int64s, rows: Int32s) -> None:
    """Write the lists; where each ends becomes where it begins. Raises nothing."""
    marks, stack = np.empty(6 * 64, dtype=np.int64), np.empty(4 * 64, dtype=np.int64)
    for i in range(first.size - 1, -1, -1):
        for e in range(_marks(first[i], stop[i], n_constants, marks, stack)):
            ends[marks[e]] -= 1
            rows[ends[marks[e]]] = listed[i]


@njit(cache=True)
def _holding(
    trees: tuple[IbsTree, ...], n_predicates: Bytes, slots: Int32s, values: Float64s
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries all of whose predicates hold, as `MatchIndex.stab`.

    Visits are the predicates that hold, and the queries without one. Raises nothing.
    """
    rows = np.empty(0, dtype=np.int32)
    queries = np.empty(0, dtype=np.int32)
    signs = np.empty(0, dtype=np.int8)
    n_wanted = np.zeros(-(-slots.size // 8) * 8, dtype=np.uint8)
    n_wanted[: slots.size] = n_predicates
    n_wanted[slots.size :] = 255
    n_holding = np.empty_like(n_wanted)
    wanted_eights, holding_eights = n_wanted.view(np.uint64), n_holding.view(np.uint64)
    n_found, visits = 0, values.shape[1] * np.count_nonzero(n_predicates == 0)
    for i in range(values.shape[1]):
        n_holding[:] = 0
        for k in range(values.shape[0]):
            visits += _add_holding(trees[k].constants, trees[k].starts, trees[k].rows, values[k, i], n_holding)
        for eight in range(wanted_eights.size):
            unlike = wanted_eights[eight] ^ holding_eights[eight]
            # A byte is zero where all of a query's predicates hold.
            if not (unlike - np.uint64(0x0101010101010101)) & ~unlike & np.uint64(0x8080808080808080):
                continue
            rows, queries, signs = make_room(rows, queries, signs, n_found, 8)
            for row in range(8 * eight, min(8 * eight + 8, slots.size)):
                rows[n_found], queries[n_found], signs[n_found] = i, slots[row], 1
                n_found += n_holding[row] == n_wanted[row]
    return rows[:n_found], queries[:n_found], signs[:n_found], visits


@njit(cache=True)
def _add_holding(constants: Float64s, starts: Int32s, rows: Int32s, value: float, n_holding: Bytes) -> int:
    """Count one for each row whose predicate in this dimension holds; return how many there are."""
    left, right = 0, constants.size
    n = 0
    while left < right:
        middle = (left + right) // 2
        if value < constants[middle]:
            side, right = BELOW, middle
        elif value > constants[middle]:
            side, left = ABOVE, middle + 1
        else:
            side, right = ON, left
        for e in range(starts[3 * middle + side], starts[3 * middle + side + 1]):
            n_holding[rows[e]] += np.uint8(1)
        n += starts[3 * middle + side + 1] - starts[3 * middle + side]
    return n
