"""The query lists of virtual constructs: filling them, and finding the queries that hold a value.

    construct      0      1      2      3                the lists of constructs with neighbouring numbers are
    starts         0      2      2      5                neighbours, so a run of constructs, empty ones or not,
    entries       [q3 q7][      ][q1 q3 q9][             is one range of entries

An entry is a row of the query table and a flag, in one number: ``row << 1 | flag``. Pure: arrays in, numbers out.
`virtual_constructs` says what constructs are, and how a region is cut into them.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.cross_check import holds
from bmq.kernels.match.virtual_constructs import Constructs, Pieces, UInt32s, construct_id
from bmq.records import Float64s, Int32s, Int64s

FLAG_BITS = 1
MAX_ROWS = 1 << (31 - FLAG_BITS)
IN_PART = 1  # the flag of an entry: the query has only a part of some cell of the construct

# Entries copied from each run whether it has them or not: a loop over so few is mostly guesses at its end. Runs of a
# covering set hold 1 entry on average on the paper's grid, and few hold more than 8; 4 were slower by a tenth.
COPIED_AHEAD = 8


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
                starts[construct_of(constructs, pieces_x, pieces_y, x, y)] += 1


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
                construct = construct_of(constructs, pieces_x, pieces_y, x, y)
                starts[construct] -= 1
                entries[starts[construct]] = row << FLAG_BITS | (pieces_x.inexact[x] | pieces_y.inexact[y])


@njit(cache=True, inline="always")
def construct_of(constructs: Constructs, pieces_x: Pieces, pieces_y: Pieces, x: int, y: int) -> int:
    """Return the number of the construct of piece ``x`` and piece ``y``. Raises nothing."""
    return construct_id(constructs, pieces_x.cells[x], pieces_y.cells[y], pieces_x.lengths[x], pieces_y.lengths[y])


@njit(cache=True)
def count_candidates(starts: UInt32s, firsts: UInt32s, stops: UInt32s, pivots: UInt32s) -> UInt32s:
    """Return how many entries the constructs that cover each cell have, uint32[n] for uint32[n] pivots.

    Parameters are as for ``matching_queries``. Raises nothing; O(n * runs).
    """
    counts = np.zeros(pivots.size, dtype=np.uint32)
    for i in range(pivots.size):
        for run in range(firsts.size):
            counts[i] += starts[pivots[i] + stops[run]] - starts[pivots[i] + firsts[run]]
    return counts


@njit(cache=True)
def matching_queries(
    starts: UInt32s,
    entries: Int32s,
    firsts: UInt32s,
    stops: UInt32s,
    regions: Float64s,
    slots: Int32s,
    values: Float64s,
    pivots: UInt32s,
    order: Int64s,
    places: Int64s,
    gathered: Int32s,
    rows: Int32s,
    queries: Int32s,
) -> int:
    """Find the queries that hold each value, in the lists of the constructs that cover its cell; return how many.

    Two steps for a value: (1) gather the entries of all covering constructs, (2) keep those that hold it, in the
    value's place. At last (3) the places are moved together, where some entry was not kept.

    Parameters
    ----------
    starts : uint32[n_constructs + 1]
    entries : int32[n_entries + COPIED_AHEAD]
    firsts, stops : uint32[n_runs]
        The difference table.
    regions : float64[m, d, 2]
        The query table.
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    values : float64[d, n]
        Finite.
    pivots : uint32[n]
        Their pivot constructs.
    order : int64[n]
        In which order to take them: ascending by pivot, they find in the processor's caches what the ones before
        have fetched. In the order they came in, 20,000 took twice as long.
    places : int64[n + 1]
        Value i has ``rows[places[i]:places[i + 1]]``, as ``count_candidates`` says.
    gathered : int32[most candidates of a value + COPIED_AHEAD]
        Scratch. It comes from outside, since an array that may grow inside the loop made this half as fast.
    rows, queries : int32[places[n]]
        Written: which of the n values, ascending, and query slots.

    Returns
    -------
    int
        How many of them are used.

    Notes
    -----
    Raises nothing. Source: sections 2.4 and 3.4. Departure: only an entry that is flagged `IN_PART` gets the final
    check; the paper checks all candidates if the ends of any query are not on the grid. Numbers are unsigned
    throughout: an index that may be negative costs a comparison in each access, which made this half as fast.
    """
    kept_until = np.empty(order.size, dtype=np.int64)
    for i in order:
        # 1.
        n_gathered = gather_entries(starts, entries, firsts, stops, pivots[i], gathered)
        # 2.
        place = np.uint64(places[i])
        for g in range(n_gathered):
            entry = np.uint32(gathered[g])
            row = entry >> np.uint32(FLAG_BITS)
            slot = slots[row]
            kept = slot >= 0
            if entry & np.uint32(IN_PART):
                kept &= holds(regions, int(row), values, i)
            queries[place] = slot
            place += np.uint64(kept)
        kept_until[i] = place
    # 3.
    return close_gaps(places, kept_until, rows, queries)


@njit(cache=True, inline="always")
def gather_entries(
    starts: UInt32s, entries: Int32s, firsts: UInt32s, stops: UInt32s, pivot: np.uint32, gathered: Int32s
) -> np.uint64:
    """Write the entries of all constructs that cover the pivot's cell to ``gathered``; return how many there are.

    Parameters are as for ``matching_queries``. Raises nothing.
    """
    n_gathered = np.uint64(0)
    for run in range(firsts.size):
        first = np.uint64(starts[pivot + firsts[run]])
        n_entries = np.uint64(starts[pivot + stops[run]]) - first
        _copy_ahead(entries, first, gathered, n_gathered)
        if n_entries > np.uint64(COPIED_AHEAD):
            for e in range(np.uint64(COPIED_AHEAD), n_entries):
                gathered[n_gathered + e] = entries[first + e]
        n_gathered += n_entries
    return n_gathered


@njit(cache=True, inline="always")
def close_gaps(places: Int64s, kept_until: Int64s, rows: Int32s, queries: Int32s) -> int:
    """Move together what was kept in each value's places, write ``rows``, and return how many queries there are.

    Parameters
    ----------
    places, rows, queries : as for ``matching_queries``
    kept_until : int64[n]
        Value i has ``queries[places[i]:kept_until[i]]``.

    Notes
    -----
    Raises nothing.
    """
    n_found = 0
    for i in range(kept_until.size):
        n_kept = kept_until[i] - places[i]
        if n_found < places[i]:
            for e in range(n_kept):
                queries[n_found + e] = queries[places[i] + e]
        rows[n_found : n_found + n_kept] = i
        n_found += n_kept
    return n_found


@njit(cache=True, inline="always")
def _copy_ahead(entries: Int32s, first: np.uint64, gathered: Int32s, at: np.uint64) -> None:
    """Copy ``COPIED_AHEAD`` entries. All are read before one is written: then the processor takes them as one."""
    entry_0, entry_1 = entries[first], entries[first + np.uint64(1)]
    entry_2, entry_3 = entries[first + np.uint64(2)], entries[first + np.uint64(3)]
    entry_4, entry_5 = entries[first + np.uint64(4)], entries[first + np.uint64(5)]
    entry_6, entry_7 = entries[first + np.uint64(6)], entries[first + np.uint64(7)]
    gathered[at], gathered[at + np.uint64(1)] = entry_0, entry_1
    gathered[at + np.uint64(2)], gathered[at + np.uint64(3)] = entry_2, entry_3
    gathered[at + np.uint64(4)], gathered[at + np.uint64(5)] = entry_4, entry_5
    gathered[at + np.uint64(6)], gathered[at + np.uint64(7)] = entry_6, entry_7
