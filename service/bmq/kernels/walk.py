"""Walks along the RS list of one dimension. Pure: arrays in, numbers out.

    borders            10        20        30
              ----------|---------|---------|----------
    RS node       0          1         2         3

A reading on a border belongs to the upper RS node. The picture of the delta query sets is in `rs_list`.
"""

import numpy as np
from numba import njit

from bmq.kernels.buffers import make_room
from bmq.kernels.rs_list import RsList, delta_ranges
from bmq.records import Float64s, Int8s, Int32s


@njit(cache=True)
def find_rs_node(borders: Float64s, value: float, hint: int) -> int:
    """Return the RS node that holds ``value``, searching outward from ``hint``.

    Readings of one stream lie close together, so the search from the RS node it was last in costs
    O(log of the nodes between). A hint that a rebuilt list made worthless costs no more than a binary search.

    Parameters
    ----------
    borders : float64[n_borders]
        Strictly increasing and finite.
    value : float
        Never NaN: NaN compares false with every border, so the search would stay near ``hint`` and hide the
        crossing.
    hint : int
        RS node to begin at; any number from 0.

    Returns
    -------
    int
        RS node, 0..n_borders inclusive.

    Notes
    -----
    Raises nothing; ``wire`` refuses values that are not finite.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3. Departure: steps double while the value is further
    on. The paper visits the nodes one by one; here the delta query sets between two nodes are one range, and
    the nodes between need no visit.
    """
    low = min(hint, borders.size)
    high = low
    step = 1
    # >= and not >: a reading on a border belongs to the upper segment.
    while high < borders.size and value >= borders[high]:
        low = high + 1
        high = min(high + step, borders.size)
        step *= 2
    while low > 0 and value < borders[low - 1]:
        high = low - 1
        low = max(low - step, 0)
        step *= 2
    # The RS node is in low..high: borders[low - 1] <= value < borders[high].
    while low < high:
        middle = (low + high) // 2
        if value >= borders[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def net_queries(
    rs_list: RsList,
    regions: Float64s,
    slots: Int32s,
    hints: Int32s,
    streams: Int32s,
    previous: Float64s,
    current: Float64s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that each move enters or leaves in one dimension.

    Parameters
    ----------
    rs_list : RsList
    regions : float64[m, 1, 2]
        The query table: lower and upper border of each row.
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    hints : int32[n_streams]
        RS node of each stream's last reading; written.
    streams : int32[n]
        Which stream moves.
    previous, current : float64[1, n]
        From where, to where; finite.

    Returns
    -------
    rows, queries : int32[k]
        Which of the n moves, ascending, and query slots.
    signs : int8[k]
    visits : int
        How many delta queries were looked at.

    Notes
    -----
    Raises nothing.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3, and BMQ-Processor, lemma 1. Departure: the papers
    subtract the union of -DQ from the union of +DQ to drop the queries that were jumped over. Here one
    comparison with the query table says the same: on the way up a query of +DQ was jumped over exactly if it
    also ends at or below the new value.
    """
    rows = np.empty(2 * streams.size, dtype=np.int32)
    queries = np.empty(2 * streams.size, dtype=np.int32)
    signs = np.empty(2 * streams.size, dtype=np.int8)
    n_found, visits = 0, 0
    for i in range(streams.size):
        before, after = previous[0, i], current[0, i]
        rs_node_before = find_rs_node(rs_list.borders, before, hints[streams[i]])
        rs_node = find_rs_node(rs_list.borders, after, rs_node_before)
        hints[streams[i]] = rs_node
        if rs_node == rs_node_before:
            continue
        plus, plus_stop, minus, minus_stop = delta_ranges(rs_list, rs_node_before, rs_node)
        n_delta = (plus_stop - plus) + (minus_stop - minus)
        visits += n_delta
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_delta)
        # Moving down swaps the two sets: the set says which end to compare, the direction says the sign.
        up = rs_node > rs_node_before
        above = after if up else before
        below = before if up else after
        for e in range(plus, plus_stop):
            row = rs_list.plus_rows[e]
            rows[n_found], queries[n_found], signs[n_found] = i, slots[row], 1 if up else -1
            n_found += 1 if regions[row, 0, 1] > above and slots[row] >= 0 else 0
        for e in range(minus, minus_stop):
            row = rs_list.minus_rows[e]
            rows[n_found], queries[n_found], signs[n_found] = i, slots[row], -1 if up else 1
            n_found += 1 if regions[row, 0, 0] <= below and slots[row] >= 0 else 0
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
