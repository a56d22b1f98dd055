"""The query lists of virtual constructs: filling them, and finding the queries that hold a value.

    construct      0      1      2      3                the lists of constructs with neighbouring numbers are
    starts         0      2      2      5                neighbours, so a run of constructs, empty ones or not,
    entries       [q3 q7][      ][q1 q3 q9][             is one range of entries

An entry is a row of the query table and three flags, in one number: ``row << 3 | flags``. Pure: arrays in, numbers
out. What constructs are, and how a region is put together of them, is `virtual_constructs`.
"""

import numpy as np
from numba import njit

from bmq.kernels.cross_check import holds
from bmq.kernels.virtual_constructs import INEXACT, SHIFTED, Constructs, Pieces, UInt32s, construct_id
from bmq.records import Float64s, Int32s

FLAG_BITS = 3
FLAGS = (1 << FLAG_BITS) - 1
MAX_ROWS = 1 << (31 - FLAG_BITS)
# The flags of an entry: some cell of the construct is only in part the query's; it overlaps, in x or in y, the
# construct before it.
IN_PART = INEXACT
SHIFTED_X = SHIFTED
SHIFTED_Y = 2 * SHIFTED

# Entries copied from each run whether it has them or not: a loop over so few is mostly guesses at its end. Runs of a
# covering set hold 1 entry on average on the paper's grid, and few hold more than 4.
COPIED_AHEAD = 4


@njit(cache=True)
def count_entries(constructs: Constructs, pieces_x: Pieces, pieces_y: Pieces, starts: UInt32s) -> None:
    """Add to ``starts[v]`` the queries in the list of construct v. Raises nothing; O(entries).

    Parameters
    ----------
    constructs : Constructs
    pieces_x, pieces_y : Pieces
        Of the m regions; each pair of a region's pieces is one construct.
    starts : uint32[n_constructs + 1]
    """
    for row in range(pieces_x.starts.size - 1):
        for y in range(pieces_y.starts[row], pieces_y.starts[row + 1]):
            for x in range(pieces_x.starts[row], pieces_x.starts[row + 1]):
                starts[_construct_of(constructs, pieces_x, pieces_y, x, y)] += 1


@njit(cache=True)
def fill_entries(constructs: Constructs, pieces_x: Pieces, pieces_y: Pieces, starts: UInt32s, entries: Int32s) -> None:
    """Write the regions' rows into the lists of their constructs. Raises nothing; O(entries).

    Parameters
    ----------
    constructs, pieces_x, pieces_y : as for ``count_entries``
    starts : uint32[n_constructs + 1]
        Where each list ends; becomes where it begins.
    entries : int32[n_entries + COPIED_AHEAD]
    """
    for row in range(pieces_x.starts.size - 2, -1, -1):
        for y in range(pieces_y.starts[row], pieces_y.starts[row + 1]):
            for x in range(pieces_x.starts[row], pieces_x.starts[row + 1]):
                construct = _construct_of(constructs, pieces_x, pieces_y, x, y)
                flags_x, flags_y = pieces_x.flags[x], pieces_y.flags[y]
                flags = (flags_x | flags_y) & IN_PART | flags_x & SHIFTED_X | (flags_y & SHIFTED) << 1
                starts[construct] -= 1
                entries[starts[construct]] = row << FLAG_BITS | flags


@njit(cache=True, inline="always")
def _construct_of(constructs: Constructs, pieces_x: Pieces, pieces_y: Pieces, x: int, y: int) -> int:
    return construct_id(constructs, pieces_x.cells[x], pieces_y.cells[y], pieces_x.lengths[x], pieces_y.lengths[y])


@njit(cache=True)
def count_candidates(starts: UInt32s, firsts: UInt32s, stops: UInt32s, pivots: UInt32s) -> int:
    """Return how many entries ``matching_queries`` will look at. Raises nothing; O(n * runs)."""
    n_candidates = np.uint64(0)
    for pivot in pivots:
        for run in range(firsts.size):
            n_candidates += np.uint64(starts[pivot + stops[run]] - starts[pivot + firsts[run]])
    return int(n_candidates)


@njit(cache=True)
def matching_queries(
    starts: UInt32s,
    entries: Int32s,
    firsts: UInt32s,
    stops: UInt32s,
    own_from: Int32s,
    regions: Float64s,
    slots: Int32s,
    values: Float64s,
    cells: Int32s,
    pivots: UInt32s,
    rows: Int32s,
    queries: Int32s,
) -> int:
    """Find the queries that hold each value, in the lists of the constructs that cover its cell; return how many.

    Two steps for a value: (1) gather the entries of all covering constructs in ``queries``, (2) keep those that
    hold it. In an overlapped decomposition a value may lie in a shifted construct and in the one before; the shifted
    one says so in its flags, and counts only from the first cell that the other does not have.

    Parameters
    ----------
    starts : uint32[n_constructs + 1]
    entries : int32[n_entries + COPIED_AHEAD]
    firsts, stops : uint32[n_runs]
        The difference table.
    own_from : int32[2, m]
        For queries with a shifted construct: the first cell, in x and in y, that only the last construct has.
    regions : float64[m, d, 2]
        The query table.
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    values : float64[d, n]
        Finite.
    cells : int32[2, n]
        Their cells.
    pivots : uint32[n]
        Their pivot constructs.
    rows, queries : int32[n_candidates + COPIED_AHEAD]
        Written: which of the n values, ascending, and query slots. They come from outside, of the length that
        ``count_candidates`` says: an array that may grow inside the loop made this half as fast.

    Returns
    -------
    int
        How many of them are used.

    Notes
    -----
    Raises nothing. Source: sections 2.4 and 3.4. Departure: an entry that says "in part" gets the final check, no
    other; the paper checks all candidates if any query's ends are not on the grid. Numbers are unsigned throughout:
    an index that may be negative costs a comparison in each access, which made this half as fast.
    """
    n_found = np.uint64(0)
    for i in range(pivots.size):
        # 1.
        gathered = n_found
        for run in range(firsts.size):
            first = np.uint64(starts[pivots[i] + firsts[run]])
            n_entries = np.uint64(starts[pivots[i] + stops[run]]) - first
            # Read before written: then the processor takes the four as one.
            entry_0, entry_1 = entries[first], entries[first + np.uint64(1)]
            entry_2, entry_3 = entries[first + np.uint64(2)], entries[first + np.uint64(3)]
            queries[gathered], queries[gathered + np.uint64(1)] = entry_0, entry_1
            queries[gathered + np.uint64(2)], queries[gathered + np.uint64(3)] = entry_2, entry_3
            if n_entries > np.uint64(COPIED_AHEAD):
                for e in range(np.uint64(COPIED_AHEAD), n_entries):
                    queries[gathered + e] = entries[first + e]
            gathered += n_entries
        # 2. Queries kept take the places of entries read.
        for e in range(n_found, gathered):
            entry = np.uint32(queries[e])
            row = entry >> np.uint32(FLAG_BITS)
            flags = entry & np.uint32(FLAGS)
            slot = slots[row]
            kept = slot >= 0
            if flags:
                if flags & np.uint32(SHIFTED_X):
                    kept &= cells[0, i] >= own_from[0, row]
                if flags & np.uint32(SHIFTED_Y):
                    kept &= cells[1, i] >= own_from[1, row]
                if flags & np.uint32(IN_PART):
                    kept &= holds(regions, int(row), values, i)
            rows[n_found], queries[n_found] = i, slot
            n_found += np.uint64(kept)
    return int(n_found)
