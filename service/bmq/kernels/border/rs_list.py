"""The RS list of one dimension: its borders in order, and what begins or ends at each. Arrays in, numbers out.

    regions            q0 [10, 30)          q1 [20, 30)
    borders            10        20       30  30
              ----------|---------|---------||----------
    RS node       0          1         2   (3)    4
    begins             q0        q1
    ends                                   q0 q1

RS node k lies between borders k - 1 and k; the first and the last RS node are open-ended. The query that begins at the
lower border of an RS node is its +DQ, the query that ends there is its -DQ. An infinite end of a region has no border.

Knows the intervals of one dimension. It must not know streams or query slots.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s


class RsList(NamedTuple):
    """The RS list of one dimension as arrays, with one border for each finite end.

    Attributes
    ----------
    borders : float64[n_borders], ascending and finite. An RS node between two equal borders holds no value.
    deltas : int32[n_borders]
        The one delta query of the RS node above each border: 2 * its row if it is of +DQ, 2 * its row + 1 if of -DQ.
    """

    borders: Float64s
    deltas: Int32s


def build_rs_list(intervals: Float64s) -> RsList:
    """Return the RS list of the intervals [lo, hi), float64[m, 2]; O(m log m).

    Notes
    -----
    Source: Lee et al., BMQ-Index, MDM 2006, section 3.1. Departures: (1) Arrays replace linked RS nodes, so that an RS
    node is a number and no pointer is followed. (2) Each end has a border of its own, so that an RS node has one delta
    query and the delta query sets between two RS nodes are one range. In the paper equal borders are one, and two
    neighbouring borders of an RS node always differ.
    """
    ends = np.ascontiguousarray(intervals, dtype=np.float64).ravel()
    deltas = np.argsort(ends, kind="stable")
    deltas = deltas[np.isfinite(ends[deltas])]
    return RsList(ends[deltas], deltas.astype(np.int32))


@njit(cache=True)
def find_rs_node_near(borders: Float64s, value: float, hint: int) -> int:
    """Return the RS node that holds ``value``, searching outward from ``hint``.

    Readings of one stream lie close together. So a search from the RS node of the stream's last reading costs O(log of
    the RS nodes between). If the list was rebuilt and a hint is worthless, the search costs no more than a binary
    search.

    Parameters
    ----------
    borders : float64[n_borders]
        Ascending and finite.
    value : float
        Never NaN: NaN compares false with every border, so the search would stay near ``hint`` and hide the crossing.
    hint : int
        The RS node to begin at; any number from 0 on.

    Returns
    -------
    int
        RS node, 0..n_borders inclusive.

    Notes
    -----
    Raises nothing; ``wire`` rejects values that are not finite.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3. Departure: the step doubles as long as the value is further
    on. The paper visits the RS nodes one by one; here the delta query sets between two RS nodes are one range, so the
    RS nodes between need no visit.
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


@njit(cache=True, inline="always")
def is_entered(delta: int, up: bool) -> bool:
    """Return whether a move up (or down) across the border of ``delta`` comes into its query's interval.

    A move down swaps +DQ and -DQ. Raises nothing.
    """
    return ((delta & 1) == 0) == up
