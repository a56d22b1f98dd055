"""A window sorted by several columns, and as sets of bits: which readings are in a range of one of them. Pure.

    place      0   1   2   3   4   5   6   7   8         a block is some places; set k is what lies before block k:
    number     5   2   9 | 1   4   8 | 7   0   3         set 1 = {5, 2, 9}   set 2 = {5, 2, 9, 1, 4, 8}

A range of places is the difference of two sets, rounded to blocks.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.tables.bit_sets import WORD
from bmq.records import Float64s, Int32s, UInt64s

# Sets of a column: more are nearer to the range asked for, and take longer to build, which each batch does anew.
N_BLOCKS = 64

_ONE = np.uint64(1)


class SortedWindow(NamedTuple):
    """Readings by number in each of some orders.

    Attributes
    ----------
    numbers : int32[o, n], of the reading in each place.
    values : float64[o, n], ascending: what the orders are by.
    sets : uint64[o, N_BLOCKS + 1, n / 64 rounded up], bit b of word w is reading 64 w + b.
    block : places in a block.
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
    n = numbers.shape[1]
    sets = np.zeros((numbers.shape[0], N_BLOCKS + 1, -(-n // WORD)), dtype=np.uint64)
    for order in range(numbers.shape[0]):
        for k in range(N_BLOCKS):
            sets[order, k + 1] = sets[order, k]
            for place in range(min(k * block, n), min((k + 1) * block, n)):
                number = numbers[order, place]
                sets[order, k + 1, number // WORD] |= _ONE << np.uint64(number % WORD)
    return sets
