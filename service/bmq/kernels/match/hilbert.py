"""Places along a Hilbert curve in any number of dimensions. Pure: arrays in, numbers out.

5 - 6   9 -10
|   |   |   |       Two dimensions of 4 cells each: neighbours on the curve are neighbours in space,
4   7 - 8  11       so that a run of the curve has a small box.
|           |
3 - 2  13 -12
    |   |
0 - 1  14 -15

Knows coordinates of cells. It must not know what lies in the cells.
"""

import numpy as np
from numba import njit

from bmq.records import Int64s

MAX_BITS = 62  # bits of a key; an int64 has room for 63, but 62 has more divisors


def bits_of_cells(n_dims: int, n_points: int) -> int:
    """Return how many bits a coordinate needs so that ``n_points`` lie in about as many cells; at least 1.

    That is two bits in all more than evenly spread points would need, because points crowd. No key is longer than
    ``MAX_BITS``, unless there are more dimensions than that.
    """
    enough = -(-(max(n_points, 2).bit_length() + 2) // n_dims)
    return max(1, min(enough, MAX_BITS // n_dims))


@njit(cache=True)
def hilbert_keys(cells: Int64s, bits: int) -> Int64s:
    """Return the place of each cell along the Hilbert curve.

    Parameters
    ----------
    cells : int64[d, n]
        Coordinates, 0 .. 2**bits - 1; d >= 1.
    bits : int
        ``d * bits`` is ``MAX_BITS`` at most.

    Returns
    -------
    int64[n]
        0 .. 2**(d * bits) - 1. Cells with neighbouring places differ by one in one coordinate.

    Notes
    -----
    Raises nothing. O(n * d * bits).

    Source: Skilling, *Programming the Hilbert curve*, AIP Conference Proceedings 707 (2004).
    """
    n_dims, n_points = cells.shape
    keys = np.empty(n_points, dtype=np.int64)
    turned = np.empty(n_dims, dtype=np.int64)
    for i in range(n_points):
        for k in range(n_dims):
            turned[k] = cells[k, i]
        _turn(turned, bits)
        key = 0
        for bit in range(bits - 1, -1, -1):
            for k in range(n_dims):
                key = (key << 1) | ((turned[k] >> bit) & 1)
        keys[i] = key
    return keys


@njit(cache=True, inline="always")
def _turn(cell: Int64s, bits: int) -> None:
    """Replace coordinates by the bits of the place: bit b of coordinate k is bit ``b * d + d - 1 - k`` of the place."""
    n_dims = cell.size
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for k in range(n_dims):
            if (cell[k] >> bit) & 1:
                cell[0] ^= below  # mirrored
            else:
                swapped = (cell[0] ^ cell[k]) & below
                cell[0] ^= swapped
                cell[k] ^= swapped
    # The rest is the Gray code of the place.
    for k in range(1, n_dims):
        cell[k] ^= cell[k - 1]
    flips = 0
    for bit in range(bits - 1, 0, -1):
        if (cell[n_dims - 1] >> bit) & 1:
            flips ^= (1 << bit) - 1
    for k in range(n_dims):
        cell[k] ^= flips
