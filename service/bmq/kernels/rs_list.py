"""Builds the RS list of one dimension: its borders, and the delta query sets between them.

    regions            q0 [10, 30)          q1 [20, 30)
    borders            10        20        30
              ----------|---------|---------|----------
    RS node       0          1         2         3
    +DQ           -         q0        q1         -
    -DQ           -          -         -       q0 q1

RS node k is [borders[k-1], borders[k]); the first and the last are open-ended. What begins at the lower
border of a node is in its +DQ, what ends there is in its -DQ. Infinite ends have no border.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s


class RsList(NamedTuple):
    """The RS list of one dimension as arrays.

    Attributes
    ----------
    borders : float64[n_borders], strictly increasing and finite.
    plus_starts, minus_starts : int32[n_borders + 2].
        The +DQ of RS node k is ``plus_rows[plus_starts[k]:plus_starts[k + 1]]``; node 0 has empty sets. So
        the delta query sets of neighbouring nodes are one range.
    plus_rows, minus_rows : int32[], rows of the regions, ascending by lower and by upper border.
    """

    borders: Float64s
    plus_starts: Int32s
    plus_rows: Int32s
    minus_starts: Int32s
    minus_rows: Int32s


@njit(cache=True, inline="always")
def delta_ranges(rs_list: RsList, rs_node_before: int, rs_node: int) -> tuple[int, int, int, int]:
    """Return where +DQ and -DQ of the RS nodes whose lower border was crossed begin and stop, whichever way.

    (first and stop in ``plus_rows``, first and stop in ``minus_rows``). Raises nothing; O(1).
    """
    first, last = min(rs_node_before, rs_node) + 1, max(rs_node_before, rs_node) + 1
    return (
        rs_list.plus_starts[first],
        rs_list.plus_starts[last],
        rs_list.minus_starts[first],
        rs_list.minus_starts[last],
    )


def build_rs_list(lo: Float64s, hi: Float64s) -> RsList:
    """Return the RS list of the intervals [lo, hi); O(m log m).

    Parameters
    ----------
    lo, hi : float64[m]
        ``lo < hi``; -inf and inf are ends without a border.

    Notes
    -----
    Source: Lee et al., BMQ-Index, MDM 2006, section 3.1. Departure: arrays in place of linked RS nodes, so
    that a node is a number, a walk over nodes is a scan of one range, and no pointer is followed.
    """
    plus_rows = _finite_ascending(lo)
    minus_rows = _finite_ascending(hi)
    borders, plus_starts, minus_starts = _merge_borders(lo[plus_rows], hi[minus_rows])
    return RsList(borders, plus_starts, plus_rows, minus_starts, minus_rows)


def _finite_ascending(ends: Float64s) -> Int32s:
    order = np.argsort(ends)
    return order[np.isfinite(ends[order])].astype(np.int32)


@njit(cache=True)
def _merge_borders(lower: Float64s, upper: Float64s) -> tuple[Float64s, Int32s, Int32s]:
    """Return the distinct borders of two ascending arrays, and where each one's delta query sets start."""
    borders = np.empty(lower.size + upper.size, dtype=np.float64)
    plus_starts = np.zeros(borders.size + 2, dtype=np.int32)
    minus_starts = np.zeros(borders.size + 2, dtype=np.int32)
    n_borders, i, j = 0, 0, 0
    while i < lower.size or j < upper.size:
        border = lower[i] if j == upper.size or (i < lower.size and lower[i] < upper[j]) else upper[j]
        borders[n_borders] = border
        n_borders += 1
        while i < lower.size and lower[i] == border:
            i += 1
        while j < upper.size and upper[j] == border:
            j += 1
        plus_starts[n_borders + 1] = i
        minus_starts[n_borders + 1] = j
    n_starts = n_borders + 2
    return borders[:n_borders].copy(), plus_starts[:n_starts].copy(), minus_starts[:n_starts].copy()
