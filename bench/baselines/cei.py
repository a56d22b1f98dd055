"""CEI: the containment-encoded interval index, a range query index of one dimension.

Knows what an ID list is searched for; how rows get into the lists is `trees`, the attribute range `grid_line`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from bench.baselines.grid_line import cell_of, cover, drop_others, line_around
from bench.baselines.rmq import nbytes_of
from bench.baselines.trees import build_lists, copy_upward, count_entries
from bmq.kernels.match.virtual_constructs import Axis
from bmq.records import Float64s, Int32s

LENGTHS = tuple(1 << k for k in range(2, 12))  # 4 .. 2048 units; 1 is the Dlist


class CeiArrays(NamedTuple):
    """``n_levels`` is k of segments of 2**k units; ``starts`` and ``ids`` as `trees`, ``lo`` and ``hi`` as `Cover`."""

    line: Axis
    n_levels: int
    starts: Int32s
    ids: Int32s
    lo: Float64s
    hi: Float64s


class Cei:
    """An `RmqIndex` of one dimension.

    Parameters
    ----------
    lo, hi : float64[1, m].
    length : units of a segment, a power of two. Short segments make the search fast (log2(length) + 1 lists), long
        ones the lists few: about W / length + log2(length) entries for a query of W units, and 2 lists a unit.
    line : how the attribute range is cut; None: units of 1 around all finite ends.

    Notes
    -----
    Source: Wu and Yu, Interval Query Indexing for Efficient Stream Processing, CIKM 2004: segments of L = 2**k
    units, each with 2 L - 1 containment-encoded intervals, numbered like a perfect binary tree; a query is
    decomposed into whole segments and the binary decomposition of the two remnants; the intervals that cover a
    value are its unit's number and that number's right shifts. Departures: ID lists are ranges of one array, and
    those of one segment lie side by side; two more units reach to -inf and inf.
    """

    def __init__(self, lo: Float64s, hi: Float64s, length: int, line: Axis | None = None) -> None:
        line = line or line_around(lo, hi)
        rows = cover(line, lo[0], hi[0])
        starts, ids = build_lists(rows.first, rows.stop, rows.entries, line.n_cells, length)
        self.arrays = CeiArrays(line, length.bit_length() - 1, starts, ids, rows.lo, rows.hi)

    @property
    def nbytes(self) -> int:
        """Bytes of the ID lists and of where they start."""
        return nbytes_of(self.arrays)


@njit(cache=True)
def collect(cei: CeiArrays, values: Float64s, i: int, out: Int32s, n_out: int) -> int:
    """Find the rows that hold ``values[0, i]``, as `rmq.Collect`."""
    value = values[0, i]
    cell = cell_of(cei.line, value)
    length = 1 << cei.n_levels
    tree, leaf = cell >> cei.n_levels, length + (cell & (length - 1))
    stop = copy_upward(cei.starts, cei.ids, tree, leaf, length, out, n_out)
    if cei.lo.size == 0:
        return stop
    return drop_others(out, n_out, stop, cei.lo, cei.hi, value)


def smallest_length(lo: Float64s, hi: Float64s, lengths: Sequence[int] = LENGTHS, line: Axis | None = None) -> int:
    """Return which of ``lengths`` takes the fewest bytes over these regions (float64[1, m]); counts, builds nothing."""
    line = line or line_around(lo, hi)
    rows = cover(line, lo[0], hi[0])
    n_words = []
    for length in lengths:
        counts = np.zeros(-(-line.n_cells // length) * (2 * length - 1), dtype=np.int64)
        count_entries(rows.first, rows.stop, length, counts)
        n_words.append(counts.size + int(counts.sum()))
    return lengths[int(np.argmin(n_words))]
