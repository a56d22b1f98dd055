"""A scan of all queries by column, many in one instruction: what an index must beat. Knows no structure."""

import numpy as np
from numba import njit

from bench.baselines.standing import StandingQueries
from bmq.index.base import Moves
from bmq.kernels.tables.bit_sets import WORD, count_bits, pack_bits, write_members
from bmq.records import Float64s, Int32s, Int64s, UInt64s

BLOCK = 8  # words of rows compared with all values in turn: the ends of 512 rows in four dimensions fill a first cache
GROUP = 256  # values compared at once with a block: their sets of 100,000 rows are 3 MB


class ColumnScan:
    """A `MatchIndex` that compares every query with every value; columns are built anew when queries come or go.

    As fast as we could make it: ends by column and in blocks that stay in the first cache, eight compared in one
    instruction, answers written from sets of bits.
    """

    def __init__(self, n_dims: int) -> None:
        self.n_dims = n_dims
        self._standing = StandingQueries(n_dims)
        self._ends: Float64s | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the columns and the slots."""
        return self._standing.slots.nbytes + (self._ends.nbytes if self._ends is not None else 0)

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries, as `MatchIndex.register`."""
        self._standing.register(slots, lo, hi)
        self._ends = None

    def deregister(self, slots: Int32s) -> None:
        """Forget queries, as `MatchIndex.deregister`."""
        self._standing.deregister(slots)
        self._ends = None

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        if self._ends is None:
            self._ends = columns(self._standing.regions)
        slots = np.zeros(self._ends.shape[0] * WORD + 1, dtype=np.int32)
        slots[: self._standing.slots.size] = self._standing.slots
        counts = np.zeros(values.shape[1], dtype=np.int64)
        queries = _scan(self._ends, slots, values, counts)
        rows = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
        visits = values.shape[1] * self._standing.slots.size
        return Moves(rows, queries, np.ones(rows.size, dtype=np.int8), visits)

    def _check(self) -> None:
        """State every invariant; for tests."""


def columns(regions: Float64s) -> Float64s:
    """Return float64[m, d, 2] regions as float64[n_words, d, 2, 64]; what is behind the last holds nothing."""
    n_rows, n_dims = regions.shape[:2]
    by_row = np.full((-(-n_rows // WORD) * WORD, n_dims, 2), -np.inf)
    by_row[:n_rows] = regions
    return np.ascontiguousarray(by_row.reshape(-1, WORD, n_dims, 2).transpose(0, 2, 3, 1))


@njit(cache=True)
def _scan(ends: Float64s, slots: Int32s, values: Float64s, counts: Int64s) -> Int32s:
    """Return the queries of all values, and write how many each has. Raises nothing."""
    n_words, n_values = ends.shape[0], values.shape[1]
    sets = np.empty((GROUP, n_words), dtype=np.uint64)
    queries = np.empty(0, dtype=np.int32)
    n_found = 0
    for start in range(0, n_values, GROUP):
        group = values[:, start : start + GROUP]
        _compare(ends, group, sets)
        for j in range(group.shape[1]):
            n_held = 0
            for word in range(n_words):
                n_held += int(count_bits(sets[j, word]))
            counts[start + j] = n_held
        n_more = counts[start : start + group.shape[1]].sum()
        if n_found + n_more > queries.size:
            longer = np.empty(int(1.1 * (n_found + n_more) * n_values / (start + group.shape[1])) + 8, dtype=np.int32)
            longer[:n_found] = queries[:n_found]
            queries = longer
        for j in range(group.shape[1]):
            for word in range(n_words):
                n_found = write_members(sets[j, word], slots, word * WORD, queries, n_found, queries.size)
    return queries[:n_found]


@njit(cache=True)
def _compare(ends: Float64s, values: Float64s, sets: UInt64s) -> None:
    """Write the set of rows that hold each value. Raises nothing."""
    held = np.empty(WORD, dtype=np.uint8)
    for block in range(0, ends.shape[0], BLOCK):
        for j in range(values.shape[1]):
            for word in range(block, min(block + BLOCK, ends.shape[0])):
                held[:] = 1
                for k in range(values.shape[0]):
                    value = values[k, j]
                    for lane in range(WORD):
                        held[lane] &= np.uint8((ends[word, k, 0, lane] <= value) & (value < ends[word, k, 1, lane]))
                sets[j, word] = pack_bits(held)
