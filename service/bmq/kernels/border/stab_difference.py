"""Finds the regions that hold one end of a move and not the other. Pure: arrays in, numbers out.

Cells on two axes list the regions that reach into them. A region holds a value only if the value's cell lists it:

    axis b |  q1  | q1 q2|  q2  |
           +------+------+------+
           |  q1  | q1 q2|  q2  |
           +------+------+------+ axis a

Knows cells and the query table. It must not know streams, nor how many cells there should be.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.kernels.border.ranks import MAX_PLACE
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

# The number of moves that are looked up together, so that the processor can run many loads at once, as in
# `border_grid`.
BLOCK = 64


class Cells(NamedTuple):
    """Into how many cells the two axes are cut. In one dimension both axes are the same one, and n_b is 1.

    Attributes
    ----------
    n_a, n_b : int
        The number of equal steps of rank on each axis. Cell (step on a, step on b) has the number ``step_a * n_b +
        step_b``.
    """

    n_a: int
    n_b: int


# An entry is a region in a cell: the places of its ends on both axes, and its row of the query table. A place is a rank
# in 31 bits and takes half the memory of a border. Because a place never falls as the value rises, a region that holds
# a value has that value's place between the places of its ends, both included.
ENTRY = np.dtype([("a_lo", np.int32), ("a_hi", np.int32), ("b_lo", np.int32), ("b_hi", np.int32), ("row", np.int32)])
Entries = npt.NDArray[np.void]


@njit(cache=True, inline="always")
def _place_of(rank: float) -> int:
    """Return the place (0..2**31 - 1) of ``rank`` (0..1)."""
    return int(rank * MAX_PLACE)


@njit(cache=True, inline="always")
def step_of(rank: float, n_steps: int) -> int:
    """Return which of ``n_steps`` equal steps holds ``rank`` (0..1)."""
    return min(int(rank * n_steps), n_steps - 1)


@njit(cache=True, inline="always")
def _steps(ranks: Float64s, row: int, n_steps: int) -> range:
    """Return the steps into which the region of ``row`` reaches."""
    return range(step_of(ranks[0, row], n_steps), step_of(ranks[1, row], n_steps) + 1)


@njit(cache=True)
def count_regions(ranks_a: Float64s, ranks_b: Float64s, cells: Cells, starts: Int32s) -> None:
    """Add to ``starts[c]`` the number of regions that reach into cell c. Raises nothing; O(entries).

    Parameters
    ----------
    ranks_a, ranks_b : float64[2, m]
        The ranks of the lower ends, then those of the upper ends, on each of the two axes.
    cells : Cells
    starts : int32[n_cells + 1]
        Written.
    """
    for row in range(ranks_a.shape[1]):
        for step_a in _steps(ranks_a, row, cells.n_a):
            for step_b in _steps(ranks_b, row, cells.n_b):
                starts[step_a * cells.n_b + step_b] += 1


@njit(cache=True)
def list_regions(ranks_a: Float64s, ranks_b: Float64s, cells: Cells, stops: Int32s, entries: Entries) -> None:
    """Write each region into the cells that it reaches into. Raises nothing; O(entries).

    Parameters
    ----------
    ranks_a, ranks_b, cells : as for ``count_regions``
    stops : int32[n_cells + 1]
        On entry, where each cell ends; on return, where it begins.
    entries : ENTRY[n_entries]
        Written.
    """
    for row in range(ranks_a.shape[1] - 1, -1, -1):
        for step_a in _steps(ranks_a, row, cells.n_a):
            for step_b in _steps(ranks_b, row, cells.n_b):
                cell = step_a * cells.n_b + step_b
                stops[cell] -= 1
                entry = entries[stops[cell]]
                entry["a_lo"], entry["a_hi"] = _place_of(ranks_a[0, row]), _place_of(ranks_a[1, row])
                entry["b_lo"], entry["b_hi"] = _place_of(ranks_b[0, row]), _place_of(ranks_b[1, row])
                entry["row"] = row


@njit(cache=True, inline="always")
def _holds(regions: Float64s, row: int, values: Float64s, i: int) -> bool:
    """Return whether the region of ``row`` holds ``values[:, i]``."""
    # & and not `and`, here and below: `and` is a branch, and the processor would have to guess it while the region is
    # still being loaded.
    held = True
    for k in range(regions.shape[1]):
        held &= (regions[row, k, 0] <= values[k, i]) & (values[k, i] < regions[row, k, 1])
    return held


@njit(cache=True)
def differing_queries(
    cells: Cells,
    starts: Int32s,
    entries: Entries,
    regions: Float64s,
    slots: Int32s,
    previous: Float64s,
    current: Float64s,
    ranks_a: Float64s,
    ranks_b: Float64s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that hold exactly one end of each move.

    The moves are handled in blocks, and each block in three steps: (1) find the cells of both ends, (2) keep the
    regions listed there that hold the end's places, (3) test both ends exactly. A query that holds only the previous
    value was left, and a query that holds only the current value was entered. Each is reported from the one end that it
    holds, so it is reported only once.

    Parameters
    ----------
    cells : Cells
    starts : int32[n_cells + 1]
        Cell c holds entries ``starts[c]..starts[c + 1]``.
    entries : ENTRY[n_entries]
    regions : float64[m, d, 2]
        The query table.
    slots : int32[m]
        The query slot of each row; negative if the query was deregistered.
    previous, current : float64[d, n]
        Where each move begins and ends; finite.
    ranks_a, ranks_b : float64[2, n]
        The ranks of ``previous``, then those of ``current``, on each of the two axes.

    Returns
    -------
    rows, queries : int32[k]
        The number of the move, ascending, and the query slot.
    signs : int8[k]
        +1 if the move enters the query's region, -1 if it leaves it.
    visits : int
        How many entries were looked at.

    Notes
    -----
    Raises nothing.
    """
    n_moves = previous.shape[1]
    rows = np.empty(n_moves, dtype=np.int32)
    queries = np.empty(n_moves, dtype=np.int32)
    signs = np.empty(n_moves, dtype=np.int8)
    n_found, visits = 0, 0
    places = np.empty((2 * BLOCK, 2), dtype=np.int32)
    ranges = np.empty((2 * BLOCK, 2), dtype=np.int32)
    kept = np.empty(16 * BLOCK, dtype=np.int32)
    kept_by = np.empty(16 * BLOCK, dtype=np.int32)
    for block in range(0, n_moves, BLOCK):
        n_ends = 2 * min(BLOCK, n_moves - block)
        # 1. Find the cells of both ends. Even numbers are ends at the previous values, odd ones at the current values.
        n_entries = 0
        for end in range(n_ends):
            rank_a, rank_b = ranks_a[end & 1, block + (end >> 1)], ranks_b[end & 1, block + (end >> 1)]
            cell = step_of(rank_a, cells.n_a) * cells.n_b + step_of(rank_b, cells.n_b)
            places[end, 0], places[end, 1] = _place_of(rank_a), _place_of(rank_b)
            ranges[end, 0], ranges[end, 1] = starts[cell], starts[cell + 1]
            n_entries += starts[cell + 1] - starts[cell]
        visits += n_entries
        if n_entries > kept.size:
            kept = np.empty(2 * n_entries, dtype=np.int32)
            kept_by = np.empty(2 * n_entries, dtype=np.int32)
        # 2. Keep the regions that hold the places. Each is written and then counted only if it is kept.
        n_kept = 0
        for end in range(n_ends):
            a, b = places[end, 0], places[end, 1]
            for e in range(ranges[end, 0], ranges[end, 1]):
                entry = entries[e]
                kept[n_kept], kept_by[n_kept] = entry["row"], end
                n_kept += (entry["a_lo"] <= a) & (a <= entry["a_hi"]) & (entry["b_lo"] <= b) & (b <= entry["b_hi"])
        # 3. Test both ends exactly.
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_kept)
        for c in range(n_kept):
            row, i, entered = kept[c], block + (kept_by[c] >> 1), bool(kept_by[c] & 1)
            was, now = _holds(regions, row, previous, i), _holds(regions, row, current, i)
            rows[n_found], queries[n_found], signs[n_found] = i, slots[row], 1 if entered else -1
            n_found += (was != now) & (now == entered) & (slots[row] >= 0)
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
