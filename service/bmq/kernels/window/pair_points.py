"""Joined pairs of readings of two windows, and their points in the space of a window join. Arrays in and out.

Each axis of the space is a difference: a number of the left reading less a number of the right reading.

    left.price - right.price     left.price - 0     0 - (-right.qty)     right's time - left's time

Knows rows of readings and differences. It must not know queries or boxes.
"""

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s, Int64s

LARGEST = float(np.finfo(np.float64).max)


@njit(cache=True)
def pairs_of_ranges(
    begins: Int64s, ends: Int64s, order: Int64s, newest: Int64s, start: tuple[int, int], size: int
) -> tuple[Int32s, Int32s, tuple[int, int]]:
    """Return the next pairs of (range, row of the other side) whose row was applied before the reading of the range.

    Parameters
    ----------
    begins, ends : int64[m]
        Range i is the places ``begins[i]`` to ``ends[i]`` of ``order``; it may be empty.
    order : int64[n]
        Rows of the other side.
    newest : int64[m]
        Rows of the other side below ``newest[i]`` were applied before the reading of range i, others were not.
    start : (int, int)
        The range to continue with, and how many of its places were handled already; (0, 0) in the first call.
    size : int
        How many pairs to return at most.

    Returns
    -------
    ranges, rows : int32[k]
        The number of the range, ascending, and the row of the other side.
    next : (int, int)
        The ``start`` of the next call. If its range is m, no pair is left.

    Notes
    -----
    Raises nothing. O(k + rows skipped).
    """
    ranges = np.empty(size, dtype=np.int32)
    rows = np.empty(size, dtype=np.int32)
    n = 0
    i, skipped = start
    while i < begins.size:
        place = begins[i] + skipped
        while place < ends[i] and n < size:
            row = order[place]
            if row < newest[i]:
                ranges[n], rows[n] = i, row
                n += 1
            place += 1
        if place < ends[i]:
            return ranges, rows, (i, place - begins[i])
        i, skipped = i + 1, 0
    return ranges[:n], rows[:n], (i, 0)


@njit(cache=True)
def coordinate(left: float, right: float) -> float:
    """Return the coordinate of a pair on an axis: the number of the left reading less that of the right one.

    Parameters
    ----------
    left, right : float
        A left reading without a number has -inf, a right reading without a number has inf.

    Returns
    -------
    float
        -inf if one of the two has no number; else finite. A difference beyond the range of float64 becomes the largest
        (or smallest) finite float, because an index does not accept inf.

    Notes
    -----
    Raises nothing.
    """
    if left == -np.inf or right == np.inf:
        return -np.inf
    return min(max(left - right, -LARGEST), LARGEST)


@njit(cache=True)
def coordinates(lefts: Float64s, rights: Float64s, left_rows: Int32s, right_rows: Int32s) -> Float64s:
    """Return the points of pairs in the space, float64[d, k].

    Parameters
    ----------
    lefts, rights : float64[d, n_left], float64[d, n_right]
        The number of each reading on each axis, as in ``coordinate``.
    left_rows, right_rows : int32[k]
        The left and the right reading of each pair.

    Notes
    -----
    Raises nothing.
    """
    points = np.empty((lefts.shape[0], left_rows.size))
    for axis in range(lefts.shape[0]):
        for i in range(left_rows.size):
            points[axis, i] = coordinate(lefts[axis, left_rows[i]], rights[axis, right_rows[i]])
    return points
