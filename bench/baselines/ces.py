"""CES, containment-encoded squares: a range query index of the plane that stores a query in many squares of a grid.

Knows virtual squares, their numbers and the queries listed in them; each stream's last answer is `diff_rmq`'s.

    a block of 4 x 4 cells           its virtual squares: one of 4 x 4, four of 2 x 2, sixteen of 1 x 1
    +---+---+---+---+
    |   |   |   |   |                                0
    +---+---+---+---+                 1        2          3         4
    |   | a | b   b |              5 6 7 8  9 .. 12   13 .. 16   17 .. 20
    +---+---+       |
    |   | a | b   b |              The parent of square s is (s - 1) >> 2, so the squares around a point
    +---+---+---+---+              are the cell that holds it and its ancestors.
    |   | c | d | e |
    +---+---+---+---+              A query is listed in the largest squares that make up its cells: a, a, b, c, d, e.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bench.baselines.rmq import nbytes_of
from bmq.records import Float64s, Int32s

Ranges = npt.NDArray[np.int32]  # int32[2, 2, m], the first and the last cell of each row on each axis


class CesArrays(NamedTuple):
    """What ``collect`` searches.

    Attributes
    ----------
    starts : int32[n_squares + 1], where each virtual square's list begins in ``entries``; block by block.
    entries : int32[n_entries], rows; then ``~row`` for those whose region may not hold all of the square.
    lo, hi : float64[2, m], the regions, for the final check; float64[2, 0] where no row needs one.
    left, lower : the corner of the grid.
    unit : the side of a cell.
    n_cells : cells along an axis.
    depth : the depth k of a block's tree, so a block has ``2 ** k`` cells along an axis.
    """

    starts: Int32s
    entries: Int32s
    lo: Float64s
    hi: Float64s
    left: float
    lower: float
    unit: float
    n_cells: int
    depth: int


class Ces:
    """An RMQ index for `DiffRmq`: ID lists of virtual squares.

    A search reads k + 1 lists. Memory: 4 bytes for each of the (4/3) n_cells^2 virtual squares, and 4 bytes for each
    square that a query is listed in, and 32 a query if any has a border off the grid lines. Larger blocks need fewer
    list entries and more lists to read.

    Parameters
    ----------
    lo, hi : float64[2, m], the regions.
    unit : side of a cell.
    length : L, cells along a block, a power of two.
    origin : left and lower end of the grid.
    extent : side of the grid. What is beyond belongs to the outer cells.

    Raises
    ------
    ValueError
        ``length`` is no power of two, or there are more list entries than an int32 can count.

    Notes
    -----
    Source: Wu, Chen, Yu, *Incremental processing of continual range queries over moving objects* (2006). Departures:
    children are numbered from 4 s + 1 and not from 4 s, so that no number is left out; lists are ranges of one array
    in place of linked lists; borders need not be on grid lines: the region is then widened to the grid, and rows from
    a square at its rim get a final check.
    """

    def __init__(
        self, lo: Float64s, hi: Float64s, *, unit: float, length: int, origin: tuple[float, float], extent: float
    ) -> None:
        depth = length.bit_length() - 1
        if length != 1 << depth:
            raise ValueError(f"blocks of {length} cells have no virtual squares: take a power of two.")
        n_cells = int(np.ceil(extent / unit))
        outer, inner = _cells_of(lo, hi, unit, n_cells, origin)
        n_blocks = -(-n_cells // length)
        counts = np.zeros(n_blocks**2 * _first_of_depth(depth + 1) + 1, dtype=np.int64)
        _count(outer, n_blocks, depth, counts)
        ends = np.cumsum(counts, out=counts)
        if ends[-1] > np.iinfo(np.int32).max:
            raise ValueError(f"{ends[-1]} list entries are too many: take a larger unit or longer blocks.")
        starts = ends.astype(np.int32)
        entries = np.empty(starts[-1], dtype=np.int32)
        # Filling moves each end to where its list begins.
        _fill(outer, inner, n_blocks, depth, starts, entries)
        _sort_certain_first(starts, entries)
        if entries.min(initial=0) >= 0:
            lo, hi = np.empty((2, 0)), np.empty((2, 0))
        self.arrays = CesArrays(starts, entries, lo, hi, *origin, unit, n_cells, depth)

    @property
    def nbytes(self) -> int:
        """Bytes of the ID lists, of where they begin, and of the regions if any row needs a final check."""
        return nbytes_of(self.arrays)


@njit(cache=True)
def collect(arrays: CesArrays, values: Float64s, i: int, out: Int32s, n_out: int) -> int:
    """Write the rows whose region holds ``values[:, i]`` behind ``out[:n_out]``; return how many there are then.

    Raises nothing. O(k + rows found + rows at whose rim the point is).
    """
    x, y = values[0, i], values[1, i]
    column = _cell(x, arrays.left, arrays.unit, arrays.n_cells)
    strip = _cell(y, arrays.lower, arrays.unit, arrays.n_cells)
    n_blocks = ((arrays.n_cells - 1) >> arrays.depth) + 1
    block = _first_of_block(column, strip, n_blocks, arrays.depth)
    square = _square(column, strip, 0, arrays.depth)
    for _ in range(arrays.depth + 1):
        first, stop = arrays.starts[block + square], arrays.starts[block + square + 1]
        while stop > first and arrays.entries[stop - 1] < 0:
            stop -= 1
            row = ~arrays.entries[stop]
            out[n_out] = row
            n_out += (
                (arrays.lo[0, row] <= x) & (x < arrays.hi[0, row]) & (arrays.lo[1, row] <= y) & (y < arrays.hi[1, row])
            )
        out[n_out : n_out + stop - first] = arrays.entries[first:stop]
        n_out += stop - first
        square = (square - 1) >> 2
    return n_out


def _cells_of(
    lo: Float64s, hi: Float64s, unit: float, n_cells: int, origin: tuple[float, float]
) -> tuple[Ranges, Ranges]:
    """Return the cells that each region reaches into, and those that lie in it (with first > last if none does)."""
    outer = np.empty((2, 2, lo.shape[1]), dtype=np.int32)
    inner = np.empty_like(outer)
    for axis in range(2):
        # Asked of the numbers beside the borders, so that rounding in `_cell` cannot make a cell wrongly certain.
        first = _cells(lo[axis], origin[axis], unit, n_cells)
        below = _cells(np.nextafter(lo[axis], -np.inf), origin[axis], unit, n_cells)
        last = _cells(np.nextafter(hi[axis], -np.inf), origin[axis], unit, n_cells)
        above = _cells(hi[axis], origin[axis], unit, n_cells)
        outer[axis] = first, last
        inner[axis, 0] = first + ((below == first) & (lo[axis] > -np.inf))
        inner[axis, 1] = last - ((above == last) & (hi[axis] < np.inf))
    return outer, inner


@njit(cache=True)
def _cells(values: Float64s, origin: float, unit: float, n_cells: int) -> Int32s:
    cells = np.empty(values.size, dtype=np.int32)
    for i in range(values.size):
        cells[i] = _cell(values[i], origin, unit, n_cells)
    return cells


@njit(cache=True, inline="always")
def _cell(value: float, origin: float, unit: float, n_cells: int) -> int:
    """Return the cell of a coordinate; it never falls as the coordinate rises."""
    # Clipped before it becomes an integer: no integer holds the largest floats.
    return int(min(max((value - origin) / unit, 0.0), n_cells - 1.0))


@njit(cache=True)
def _count(outer: Ranges, n_blocks: int, depth: int, counts: npt.NDArray[np.int64]) -> None:
    """Count the entries of each virtual square, int64[n_squares + 1]. Raises nothing; O(entries)."""
    for row in range(outer.shape[2]):
        for square, _, _, _ in _largest_squares(outer[:, :, row], n_blocks, depth):
            counts[square] += 1


@njit(cache=True)
def _fill(outer: Ranges, inner: Ranges, n_blocks: int, depth: int, starts: Int32s, entries: Int32s) -> None:
    """Write the entries of each virtual square, whose ``starts`` say where its list ends, and then where it begins."""
    for row in range(outer.shape[2] - 1, -1, -1):
        (left, right), (bottom, top) = inner[:, :, row]
        for square, column, strip, side in _largest_squares(outer[:, :, row], n_blocks, depth):
            certain = (left <= column) & (column + side - 1 <= right) & (bottom <= strip) & (strip + side - 1 <= top)
            starts[square] -= 1
            entries[starts[square]] = row if certain else ~row


@njit(cache=True)
def _sort_certain_first(starts: Int32s, entries: Int32s) -> None:
    """Move each list's rows that need a final check behind the others, so that a search copies those in one go."""
    for square in range(starts.size - 1):
        stop = starts[square]
        for e in range(starts[square], starts[square + 1]):
            if entries[e] >= 0:
                entries[stop], entries[e] = entries[e], entries[stop]
                stop += 1


@njit(cache=True)
def _largest_squares(cells: Int32s, n_blocks: int, depth: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the largest virtual squares that make up a rectangle of cells, int32[2, 2].

    Each is (number, first column, first strip, side in cells). Raises nothing; O(squares).
    """
    (left, right), (bottom, top) = cells
    for height in range(depth + 1):
        side = 1 << height
        # Squares of this side that lie in the rectangle, half-open, in units of the side ...
        first_x, stop_x = (left + side - 1) >> height, (right + 1) >> height
        first_y, stop_y = (bottom + side - 1) >> height, (top + 1) >> height
        # ... and those among them whose parent does.
        within_x, beyond_x = (first_x + 1) >> 1 << 1, stop_x >> 1 << 1
        within_y, beyond_y = (first_y + 1) >> 1 << 1, stop_y >> 1 << 1
        any_parent = height < depth and within_x < beyond_x
        for y in range(first_y, stop_y):
            skip = any_parent and within_y <= y < beyond_y
            x = first_x
            while x < stop_x:
                if skip and x == within_x:
                    x = beyond_x
                    continue
                number = _first_of_block(x << height, y << height, n_blocks, depth) + _square(x, y, height, depth)
                yield number, x << height, y << height, side
                x += 1


@njit(cache=True, inline="always")
def _first_of_block(column: int, strip: int, n_blocks: int, depth: int) -> int:
    """Return the number of the largest virtual square of the block that holds a cell."""
    return ((strip >> depth) * n_blocks + (column >> depth)) * _first_of_depth(depth + 1)


@njit(cache=True, inline="always")
def _square(x: int, y: int, height: int, depth: int) -> int:
    """Return the number within its block of a square of side ``2 ** height`` at (x, y), in units of the side."""
    mask = (1 << (depth - height)) - 1
    return _first_of_depth(depth - height) + (_spread(x & mask) | (_spread(y & mask) << 1))


@njit(cache=True, inline="always")
def _first_of_depth(depth: int) -> int:
    """Return how many squares of a block are larger than those at ``depth``: 1 + 4 + 16 + ..."""
    return ((1 << (2 * depth)) - 1) // 3


@njit(cache=True, inline="always")
def _spread(bits: int) -> int:
    """Return the 16 lowest bits with a zero before each."""
    bits = (bits | (bits << 8)) & 0x00FF00FF
    bits = (bits | (bits << 4)) & 0x0F0F0F0F
    bits = (bits | (bits << 2)) & 0x33333333
    return (bits | (bits << 1)) & 0x55555555
