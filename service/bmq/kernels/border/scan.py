"""Finds the regions that hold exactly one end of a move, by testing every region. Pure: arrays in, numbers out.

Knows regions by column. It has no structure to build and must not know streams.
"""

import numpy as np
from numba import njit

from bmq.kernels.tables.buffers import make_room
from bmq.records import Bytes, Float64s, Int8s, Int32s

# The number of rows is padded to a multiple of this, so that the flags of eight rows are read as one 64-bit number.
LANES = 8


@njit(cache=True, inline="always")
def _compare(ends: Float64s, k: int, before: float, after: float, was: Bytes, now: Bytes) -> None:
    """Clear the flags of the rows whose interval in dimension ``k`` does not hold ``before`` (``after``)."""
    for row in range(was.size):
        lo, hi = ends[0, k, row], ends[1, k, row]
        was[row] &= np.uint8((lo <= before) & (before < hi))
        now[row] &= np.uint8((lo <= after) & (after < hi))


@njit(cache=True)
def scanned_queries(
    ends: Float64s, slots: Int32s, previous: Float64s, current: Float64s
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that hold exactly one end of each move.

    Parameters
    ----------
    ends : float64[2, d, n_rows]
        Lower ends, then upper ends. Rows behind the last query hold no value. ``n_rows`` is a multiple of ``LANES``.
    slots : int32[m]
        The query slot of each row; negative if the query was deregistered.
    previous, current : float64[d, n]
        Where each move begins and ends; finite.

    Returns
    -------
    rows, queries : int32[k]
        The number of the move, ascending, and the query slot.
    signs : int8[k]
        +1 if the move enters the query's region, -1 if it leaves it.
    visits : int
        n times the number of queries.

    Notes
    -----
    Raises nothing. There is no branch before the flags are complete, so the compiler compares several rows in one
    instruction.
    """
    n_dims, n_moves = previous.shape
    rows = np.empty(2 * n_moves, dtype=np.int32)
    queries = np.empty(2 * n_moves, dtype=np.int32)
    signs = np.empty(2 * n_moves, dtype=np.int8)
    was = np.empty(ends.shape[2], dtype=np.uint8)
    now = np.empty(ends.shape[2], dtype=np.uint8)
    was_lanes, now_lanes = was.view(np.uint64), now.view(np.uint64)
    n_found = 0
    for i in range(n_moves):
        before, after = previous[0, i], current[0, i]
        for row in range(was.size):
            lo, hi = ends[0, 0, row], ends[1, 0, row]
            was[row] = (lo <= before) & (before < hi)
            now[row] = (lo <= after) & (after < hi)
        for k in range(1, n_dims):
            _compare(ends, k, previous[k, i], current[k, i], was, now)
        for lanes in range(was_lanes.size):
            if was_lanes[lanes] == now_lanes[lanes]:
                continue
            rows, queries, signs = make_room(rows, queries, signs, n_found, LANES)
            for row in range(LANES * lanes, min(LANES * (lanes + 1), slots.size)):
                rows[n_found], queries[n_found], signs[n_found] = i, slots[row], 1 if now[row] else -1
                n_found += (was[row] != now[row]) & (slots[row] >= 0)
    return rows[:n_found], queries[:n_found], signs[:n_found], n_moves * slots.size
