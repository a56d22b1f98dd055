"""Walks along one of the d RS lists of the n-D BMQ and cross-checks the delta queries. Arrays in, numbers out.

Knows one RS list, the query table, and the hint of each stream. It must not know the RS lists of the other dimensions.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.rs_list import RsList, find_rs_node_near, is_entered
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s


@njit(cache=True, inline="always")
def holds(regions: Float64s, row: int, values: Float64s, i: int) -> bool:
    """Return whether the region of ``row``, half-open in every dimension, holds the value ``values[:, i]``."""
    for k in range(regions.shape[1]):  # noqa: SIM110 - numba has no generators here
        if not regions[row, k, 0] <= values[k, i] < regions[row, k, 1]:
            return False
    return True


@njit(cache=True, inline="always")
def _first_outside(regions: Float64s, row: int, values: Float64s, i: int) -> int:
    """Return the lowest dimension in which the region of ``row`` does not hold ``values[:, i]``, or else d."""
    for k in range(regions.shape[1]):
        if not regions[row, k, 0] <= values[k, i] < regions[row, k, 1]:
            return k
    return int(regions.shape[1])


@njit(cache=True)
def cross_checked_queries(
    rs_list: RsList,
    dimension: int,
    regions: Float64s,
    slots: Int32s,
    hints: Int32s,
    streams: Int32s,
    previous: Float64s,
    current: Float64s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that each move enters or leaves and that ``dimension`` has to report.

    Parameters
    ----------
    rs_list : RsList
        The RS list of ``dimension``.
    dimension : int
        0..d - 1.
    regions : float64[m, d, 2]
        The query table.
    slots : int32[m]
        The query slot of each row; negative if the query was deregistered.
    hints : int32[n_streams]
        The RS node of each stream's last reading in ``dimension``; written.
    streams : int32[n]
        The stream slot of each move.
    previous, current : float64[d, n]
        Where each move begins and ends; finite.

    Returns
    -------
    rows, queries : int32[k]
        The number of the move, ascending, and the query slot.
    signs : int8[k]
        +1 if the move enters the query's region, -1 if it leaves it.
    visits : int
        How many delta queries were looked at.

    Notes
    -----
    Raises nothing.

    Source: Lee et al., BMQ-Index, MDM 2006, section 4.3. A query of +XQ is checked with the current values, one of -XQ
    with the previous ones. Departure: the papers take the union of the queries found in each dimension. Here only one
    dimension reports a query: the lowest one in which the stream was outside (if it enters) or is outside (if it
    leaves). So the union has no duplicates. That dimension does meet the query in its delta query sets, because in that
    dimension the stream is outside before and inside after the move, or the reverse.
    """
    rows = np.empty(2 * streams.size, dtype=np.int32)
    queries = np.empty(2 * streams.size, dtype=np.int32)
    signs = np.empty(2 * streams.size, dtype=np.int8)
    n_found, visits = 0, 0
    for i in range(streams.size):
        rs_node_before = find_rs_node_near(rs_list.borders, previous[dimension, i], hints[streams[i]])
        rs_node = find_rs_node_near(rs_list.borders, current[dimension, i], rs_node_before)
        hints[streams[i]] = rs_node
        if rs_node == rs_node_before:
            continue
        up = rs_node > rs_node_before
        first, stop = min(rs_node_before, rs_node), max(rs_node_before, rs_node)
        visits += stop - first
        rows, queries, signs = make_room(rows, queries, signs, n_found, stop - first)
        for e in range(first, stop):
            row = rs_list.deltas[e] >> 1
            if is_entered(rs_list.deltas[e], up):
                crossed = holds(regions, row, current, i) and _first_outside(regions, row, previous, i) == dimension
                sign = 1
            else:
                crossed = holds(regions, row, previous, i) and _first_outside(regions, row, current, i) == dimension
                sign = -1
            if crossed and slots[row] >= 0:
                rows[n_found], queries[n_found], signs[n_found] = i, slots[row], sign
                n_found += 1
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
