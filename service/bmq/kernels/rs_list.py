"""Builds the RS list of one dimension: its borders in order, and what begins or ends at each.

    regions            q0 [10, 30)          q1 [20, 30)
    borders            10        20       30  30
              ----------|---------|---------||----------
    RS node       0          1         2   (3)    4
    begins             q0        q1
    ends                                   q0 q1

RS node k lies between borders k - 1 and k; the first and the last are open-ended. What begins at its lower border is
its +DQ, what ends there its -DQ. Infinite ends have no border.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s


class RsList(NamedTuple):
    """The RS list of one dimension as arrays, one border a finite end.

    Attributes
    ----------
    borders : float64[n_borders], ascending and finite. Between equal ones lie RS nodes that hold no value.
    deltas : int32[n_borders]
        The one delta query of the RS node above each border: twice its row for one of +DQ, and one more for -DQ.
    """

    borders: Float64s
    deltas: Int32s


def build_rs_list(intervals: Float64s) -> RsList:
    """Return the RS list of the intervals [lo, hi), float64[m, 2]; O(m log m).

    Notes
    -----
    Source: Lee et al., BMQ-Index, MDM 2006, section 3.1. Departures: arrays in place of linked RS nodes, so that a
    node is a number and no pointer is followed; and a border for each end, so that a node has one delta query and the
    delta query sets between two nodes are one range. The paper has one node between two different borders.
    """
    ends = np.ascontiguousarray(intervals, dtype=np.float64).ravel()
    deltas = np.argsort(ends, kind="stable")
    deltas = deltas[np.isfinite(ends[deltas])]
    return RsList(ends[deltas], deltas.astype(np.int32))


@njit(cache=True, inline="always")
def is_entered(delta: int, up: bool) -> bool:
    """Return whether a move up (or down) over the border of ``delta`` comes into its query's interval.

    Moving down swaps +DQ and -DQ. Raises nothing.
    """
    return ((delta & 1) == 0) == up
