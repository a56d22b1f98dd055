"""One new reading against the other side's window: each box that can hold a pair of it asks the window. Pure.

The window is sorted once by each axis, so that a box asks for a range of the axis on which it wants the fewest
readings, and only these are looked at on all axes:

    in order of application   0 1 2 3 [4 5 6 7 8 9]       within the last 6
    by right.price            7 3 [9 0 5] 1 8 2 6 4       price within 1 of 10
    by right.qty              [5 2 9 1 4 8 7] 0 3 6       qty below 100
"""

import numpy as np
from numba import njit

from bmq.kernels.window_pairs import coordinate
from bmq.records import Float64s, Int32s, Int64s


@njit(cache=True)
def probe(
    side: int,
    readings: Int64s,
    newest: Int64s,
    starts: Int64s,
    stops: Int64s,
    boxes: Int32s,
    ends: Float64s,
    lefts: Float64s,
    rights: Float64s,
    axes: Int64s,
    rank_axis: int,
    others: Int64s,
    orders: Int32s,
    in_order: Float64s,
) -> tuple[Int32s, Int32s, Int32s, int]:
    """Return the pairs of each new reading that boxes hold.

    Parameters
    ----------
    side : int
        Of the new readings: 0 left, 1 right.
    readings, newest : int64[m], int64[m]
        Rows of the new readings; only rows of the other side below ``newest`` were applied before.
    starts, stops : int64[m], int64[m]
        The boxes to be asked about reading i are ``boxes[starts[i]:stops[i]]``: those that hold what depends on the
        reading alone.
    boxes : int32[]
    ends : float64[n_boxes, d, 2]
        Lower and upper ends of boxes.
    lefts, rights : float64[d, n_left], float64[d, n_right]
        As in `window_pairs.coordinates`.
    axes : int64[a]
        The axes that depend on the other side's reading, that of ranks left out.
    rank_axis : int
        The axis of ranks; -1: there is none.
    others : int64[n]
        Rows of the other side that may take part, ascending.
    orders, in_order : int32[a, n], float64[a, n]
        Rows of ``others`` sorted by what they bring to each of ``axes``, and that.

    Returns
    -------
    found_boxes, found_readings, found_others : int32[k]
        Which box holds the pair of which rows; no three come twice.
    visits : int
        How many pairs were looked at.

    Notes
    -----
    Raises nothing. O(a log n) for each box asked, and the shortest of its ranges.
    """
    found = np.empty((3, 1024), dtype=np.int32)
    n_found, visits = 0, 0
    asked = np.empty(axes.size, dtype=np.int64)
    own_parts, other_parts = (lefts, rights) if side == 0 else (rights, lefts)
    for i in range(readings.size):
        last = np.searchsorted(others, newest[i])
        for box in boxes[starts[i] : stops[i]]:
            # The ranks of others are above 0 where the other is the left one.
            longest = np.inf
            if rank_axis >= 0:
                longest = -ends[box, rank_axis, 0] if side == 0 else np.ceil(ends[box, rank_axis, 1]) - 1
            begin, stop, best, n_asked = 0, last, -1, 0
            if longest < newest[i]:
                begin = np.searchsorted(others, newest[i] - np.int64(longest))
            for a in range(axes.size):
                if stop <= begin:
                    break
                lo, hi = ends[box, axes[a], 0], ends[box, axes[a], 1]
                if lo == -np.inf and hi == np.inf:
                    continue
                asked[n_asked] = axes[a]
                n_asked += 1
                first, behind = _range(side, own_parts[axes[a], readings[i]], lo, hi, in_order[a])
                if behind - first < stop - begin:
                    begin, stop, best = first, behind, a
            if stop <= begin:
                continue
            if n_found + stop - begin > found.shape[1]:
                longer = np.empty((3, max(n_found + stop - begin, 2 * found.shape[1])), dtype=np.int32)
                longer[:, :n_found] = found[:, :n_found]
                found = longer
            visits += stop - begin
            for place in range(begin, stop):
                row = others[place] if best < 0 else np.int64(orders[best, place])
                if row >= newest[i] or newest[i] - row > longest:
                    continue
                holds = True
                for k in range(n_asked):
                    axis = asked[k]
                    own, other = own_parts[axis, readings[i]], other_parts[axis, row]
                    at = coordinate(own, other) if side == 0 else coordinate(other, own)
                    if not ends[box, axis, 0] <= at < ends[box, axis, 1]:
                        holds = False
                        break
                if holds:
                    found[0, n_found], found[1, n_found], found[2, n_found] = box, readings[i], row
                    n_found += 1
    return found[0, :n_found], found[1, :n_found], found[2, :n_found], visits


@njit(cache=True)
def _range(side: int, own: float, lo: float, hi: float, in_order: Float64s) -> tuple[int, int]:
    """Return the range of ``in_order`` outside which no coordinate is in [lo, hi). Raises nothing.

    A range may hold too much, never too little: a rounded difference is in [lo, hi) only if the exact one is above the
    float below lo, and the ends of the range are rounded, too.
    """
    if not np.isfinite(own):
        return 0, 0  # no number is in no interval that is asked
    above = np.nextafter(lo, -np.inf)
    least, most = (own - hi, own - above) if side == 0 else (own + above, own + hi)
    first = np.searchsorted(in_order, np.nextafter(least, -np.inf))
    behind = np.searchsorted(in_order, np.nextafter(most, np.inf), side="right")
    return int(first), int(behind)
