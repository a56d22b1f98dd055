"""Finds the readings of a window that make a pair with a new reading of the other side within a box. Pure.

Once a batch, the window is sorted by each column that matters. A box restricts each of its axes to a range:

    in order of application   0 1 2 3 [4 5 6 7 8 9]       within the last 6
    by right.price            7 3 [9 0 5 1] 8 2 6 4       price within 1 of 10
    by right.qty              [5 2 9 1 4 8 7] 0 3 6       qty below 100

If one of the ranges is short, each reading in it is tested. Else the readings in all ranges are found as sets of bits.

Knows readings by number, boxes and axes. It must not know queries or streams.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.tables.bit_sets import WORD, lowest_bit
from bmq.kernels.window.pair_points import coordinate
from bmq.kernels.window.sorted_windows import N_BLOCKS, SortedWindow
from bmq.records import Float64s, Int32s, Int64s, UInt64s

SHORT = 16  # readings; testing one takes as long as the words of some hundred readings

_ONE = np.uint64(1)
_ALL = ~np.uint64(0)


class Probes(NamedTuple):
    """New readings, and for each of them the boxes to ask.

    Attributes
    ----------
    side : 0 if the new readings are left ones, 1 if they are right ones.
    parts : float64[d, m], the number of each reading on each axis.
    newest : int64[m], rows of the other side below this were applied before the reading.
    starts, stops, boxes : int64[m], int64[m], int32[]
        The boxes of reading i are ``boxes[starts[i]:stops[i]]``: those that hold it on the axes that depend on it
        alone.
    """

    side: int
    parts: Float64s
    newest: Int64s
    starts: Int64s
    stops: Int64s
    boxes: Int32s


class Others(NamedTuple):
    """The readings of the other side that may be in a pair, by number.

    Attributes
    ----------
    rows : int64[n], ascending.
    parts : float64[d, n], the number of each reading on each axis.
    axes, orders : int64[a]
        The axes that depend on these readings, without the axis of ranks, and which order of ``window`` is by each.
    window : the same readings, sorted.
    """

    rows: Int64s
    parts: Float64s
    axes: Int64s
    orders: Int64s
    window: SortedWindow


@njit(cache=True)
def probe(probes: Probes, others: Others, ends: Float64s, rank_axis: int) -> tuple[Int32s, int]:
    """Return the pairs of a new reading and another one that are in a box.

    Parameters
    ----------
    probes : Probes
    others : Others
    ends : float64[n_boxes, d, 2]
        The lower and upper ends of the boxes.
    rank_axis : int
        The axis of ranks, on which a window counts readings; -1 if there is none.

    Returns
    -------
    found : int32[3, k]
        The box, the number of the new reading, the number of the other one; no three of them come twice.
    visits : int
        How many pairs were tested.

    Notes
    -----
    Raises nothing. O(a log n) for each box asked; then O(readings in its shortest range) if that range is short, else
    O(n / 64) for each range.
    """
    found = np.empty((3, 1024), dtype=np.int32)
    n_found, visits = 0, 0
    n_axes = others.axes.size
    asked = np.empty(n_axes, dtype=np.int64)
    ranges = np.empty((n_axes, 2), dtype=np.int64)
    words = np.empty(others.window.sets.shape[2], dtype=np.uint64)
    for i in range(probes.newest.size):
        newest = probes.newest[i]
        stop = np.searchsorted(others.rows, newest)
        for box in probes.boxes[probes.starts[i] : probes.stops[i]]:
            begin = _first_in_count(probes.side, ends, box, rank_axis, newest, others.rows)
            length, shortest, n_asked = stop - begin, -1, 0
            for a in range(n_axes):
                if length <= 0:
                    break
                axis = others.axes[a]
                lo, hi = ends[box, axis, 0], ends[box, axis, 1]
                if lo == -np.inf and hi == np.inf:
                    continue
                values = others.window.values[others.orders[a]]
                ranges[n_asked] = _range(probes.side, probes.parts[axis, i], lo, hi, values)
                if ranges[n_asked, 1] - ranges[n_asked, 0] < length:
                    length, shortest = ranges[n_asked, 1] - ranges[n_asked, 0], n_asked
                asked[n_asked] = a
                n_asked += 1
            if length <= 0:
                continue
            if n_found + length > found.shape[1]:
                longer = np.empty((3, max(n_found + length, 2 * found.shape[1])), dtype=np.int32)
                longer[:, :n_found] = found[:, :n_found]
                found = longer
            if length <= SHORT:
                first = begin if shortest < 0 else ranges[shortest, 0]
                for place in range(first, first + length):
                    number = int(place)
                    if shortest >= 0:
                        number = int(others.window.numbers[others.orders[asked[shortest]], place])
                    if begin <= number < stop:
                        visits += 1
                        found[0, n_found], found[1, n_found], found[2, n_found] = box, i, number
                        n_found += _holds(probes, others, ends, box, i, number, asked[:n_asked])
                continue
            _intersect(others, asked[:n_asked], ranges, begin, stop, words)
            for w in range(begin // WORD, -(-stop // WORD)):
                word = words[w]
                while word:
                    number = w * WORD + int(lowest_bit(word))
                    word &= word - _ONE
                    visits += 1
                    found[0, n_found], found[1, n_found], found[2, n_found] = box, i, number
                    n_found += _holds(probes, others, ends, box, i, number, asked[:n_asked])
    return found[:, :n_found], visits


@njit(cache=True)
def _first_in_count(side: int, ends: Float64s, box: int, rank_axis: int, newest: int, rows: Int64s) -> int:
    """Return the number of the first reading that is in the counted window of a box. Raises nothing."""
    if rank_axis < 0:
        return 0
    # A rank is above 0 if the other reading is the left one. The upper end is not in the box.
    longest = -ends[box, rank_axis, 0] if side == 0 else np.ceil(ends[box, rank_axis, 1]) - 1.0
    return int(np.searchsorted(rows, newest - np.int64(longest))) if longest < newest else 0


@njit(cache=True)
def _range(side: int, own: float, lo: float, hi: float, values: Float64s) -> tuple[int, int]:
    """Return a range of places of ``values`` outside of which no coordinate is in [lo, hi). Raises nothing.

    The range may hold too many places, but never too few. A rounded difference is in [lo, hi) only if the exact
    difference is above the next float below lo; and the limits that are computed here are rounded, too.
    """
    if not np.isfinite(own):
        return 0, 0  # a reading without a number is in no interval that restricts an axis
    above = np.nextafter(lo, -np.inf)
    least, most = (own - hi, own - above) if side == 0 else (own + above, own + hi)
    first = np.searchsorted(values, np.nextafter(least, -np.inf))
    behind = np.searchsorted(values, np.nextafter(most, np.inf), side="right")
    return int(first), int(behind)


@njit(cache=True)
def _intersect(others: Others, asked: Int64s, ranges: Int64s, begin: int, stop: int, words: UInt64s) -> None:
    """Set ``words`` to the readings ``begin`` to ``stop`` that are in all ranges, rounded to blocks. Raises nothing."""
    first, last = begin // WORD, (stop - 1) // WORD
    words[first : last + 1] = _ALL
    words[first] &= _ALL << np.uint64(begin % WORD)
    words[last] &= _ALL >> np.uint64(WORD - 1 - (stop - 1) % WORD)
    for k in range(asked.size):
        low = ranges[k, 0] // others.window.block
        high = min(-(-ranges[k, 1] // others.window.block), N_BLOCKS)
        below, upto = (
            others.window.sets[others.orders[asked[k]], low],
            others.window.sets[others.orders[asked[k]], high],
        )
        for w in range(first, last + 1):
            words[w] &= upto[w] & ~below[w]


@njit(cache=True)
def _holds(probes: Probes, others: Others, ends: Float64s, box: int, reading: int, number: int, asked: Int64s) -> bool:
    """Return whether a box holds a pair on the axes that are asked. Raises nothing."""
    for k in range(asked.size):
        axis = others.axes[asked[k]]
        own, other = probes.parts[axis, reading], others.parts[axis, number]
        at = coordinate(own, other) if probes.side == 0 else coordinate(other, own)
        if not ends[box, axis, 0] <= at < ends[box, axis, 1]:
            return False
    return True
