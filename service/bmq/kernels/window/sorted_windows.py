"""A window sorted by several columns, with sets of bits to find the readings in a range of a column. Pure.

    place      0   1   2   3   4   5   6   7   8         a block is some places; set k is what lies before block k:
    number     5   2   9 | 1   4   8 | 7   0   3         set 1 = {5, 2, 9}   set 2 = {5, 2, 9, 1, 4, 8}

The readings in a range of places are the difference of two sets, with the range rounded outward to whole blocks.

Knows numbers of readings and their values. It must not know pairs, boxes or queries.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.tables.bit_sets import WORD
from bmq.records import Float64s, Int32s, UInt64s

# Sets for each column. With more, the difference is nearer to the range; but each batch builds all sets again.
N_BLOCKS = 64

_ONE = np.uint64(1)


class SortedWindow(NamedTuple):
    """The readings of a window in each of o orders; a reading is its number, 0..n - 1.

    Attributes
    ----------
    numbers : int32[o, n], the number of the reading in each place.
    values : float64[o, n], the values by which an order is sorted, ascending.
    sets : uint64[o, N_BLOCKS + 1, n / 64 rounded up], bit b of word w stands for reading 64 w + b.
    block : how many places a block has.
    """

    numbers: Int32s
    values: Float64s
    sets: UInt64s
    block: int


def sort_window(columns: Float64s) -> SortedWindow:
    """Return the readings sorted by each of ``columns`` (float64[o, n]). O(o n (log n + `N_BLOCKS` / 64))."""
    numbers = np.argsort(columns, axis=1).astype(np.int32)
    block = max(1, -(-columns.shape[1] // N_BLOCKS))
    return SortedWindow(numbers, np.take_along_axis(columns, numbers, axis=1), _sets_before(numbers, block), block)


@njit(cache=True)
def _sets_before(numbers: Int32s, block: int) -> UInt64s:
    """Return for each order and each block the set of the readings before the block."""
    n = numbers.shape[1]
    sets = np.zeros((numbers.shape[0], N_BLOCKS + 1, -(-n // WORD)), dtype=np.uint64)
    for order in range(numbers.shape[0]):
        for k in range(N_BLOCKS):
            sets[order, k + 1] = sets[order, k]
            for place in range(min(k * block, n), min((k + 1) * block, n)):
                number = numbers[order, place]
                sets[order, k + 1, number // WORD] |= _ONE << np.uint64(number % WORD)
    return sets
