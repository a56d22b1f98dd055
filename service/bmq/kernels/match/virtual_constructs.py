"""Virtual constructs: intervals and rectangles that are laid out beforehand. A query region is cut into them.

    overflow | unit 0 | unit 1 | unit 2 | ... | unit R-1 | overflow        cells of an axis, R + 2
                      [========]                                           length 1    at each cell begins one
                      [=================]                                  length 2    construct of each length
                      [==========================]                         length 3    (VCR: 1, 2, 4, ...)

A construct is a rectangle of cells; an interval is a rectangle one cell high. This module knows cells and the numbers
of constructs. The lists of queries are in `construct_lists`.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, sections 2.2 to 2.4, 3.2 to 3.4.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.records import Bools, Float64s, Int32s, Int64s

UInt32s = npt.NDArray[np.uint32]


class Axis(NamedTuple):
    """The attribute range of one dimension: ``n_units`` times ``unit`` from ``origin``; the paper's a_0 and R."""

    origin: float
    unit: float
    n_units: int

    @property
    def n_cells(self) -> int:
        """Its units and the two overflow cells, which hold all values below and above the range."""
        return self.n_units + 2


class Constructs(NamedTuple):
    """All virtual constructs of a grid, by number.

    Attributes
    ----------
    lengths_x, lengths_y : int64[], ascending from 1, in cells; each pair of them is a shape.
    width, height : int
        Places at which constructs begin. Place p is cell ``p - (longest - 1)``: the places below cell 0 stay empty
        and are there so that the first cells have as many covering constructs as all others.
    stride_x, stride_y, stride_shape : int
        How far apart the numbers of neighbouring places and of successive shapes are.
    """

    lengths_x: Int64s
    lengths_y: Int64s
    width: int
    height: int
    stride_x: int
    stride_y: int
    stride_shape: int

    @property
    def n_shapes(self) -> int:
        """Constructs that begin at one place; the paper's L (SCI), k + 1 (LCI), B (VCR)."""
        return self.lengths_x.size * self.lengths_y.size

    @property
    def n_constructs(self) -> int:
        """Constructs in all."""
        return self.width * self.height * self.n_shapes


def make_constructs(n_cells_x: int, n_cells_y: int, lengths_x: Int64s, lengths_y: Int64s) -> Constructs:
    """Return the virtual constructs over a grid of cells; a grid of intervals has one cell and one length in y.

    Notes
    -----
    Departure: the paper numbers all shapes that begin at a point, then goes to the next point. Here all points of one
    shape are numbered, row by row, then the next shape. So the constructs of one shape that cover a value are
    neighbours, and `difference_table` has fewer runs.
    """
    width, height = n_cells_x + int(lengths_x[-1]) - 1, n_cells_y + int(lengths_y[-1]) - 1
    return Constructs(lengths_x, lengths_y, width, height, 1, width, width * height)


@njit(cache=True, inline="always")
def construct_id(constructs: Constructs, cell_x: int, cell_y: int, length_x: int, length_y: int) -> int:
    """Return the number of the construct that begins at a cell and has the lengths numbered so.

    Notes
    -----
    Raises nothing. The strides decide the order. With those of the paper's order (a = place on the x axis, b on the y
    axis) this is section 2.2's (a - a_0) L + (b - a) - 1 for SCI, and section 3.2's formula (1),
    ``B * (a + b * width) + j * (k + 1) + i``, for VCR. The strides of `make_constructs` are others.
    """
    place_x = cell_x + constructs.lengths_x[-1] - 1
    place_y = cell_y + constructs.lengths_y[-1] - 1
    shape = length_y * constructs.lengths_x.size + length_x
    return int(place_x * constructs.stride_x + place_y * constructs.stride_y + shape * constructs.stride_shape)


@njit(cache=True)
def pivots_of(constructs: Constructs, cells: Int32s) -> UInt32s:
    """Return the number of each cell's pivot construct, uint32[n] for int32[2, n] cells. Raises nothing.

    The pivot construct is the 1 x 1 that begins at the first place (lowest x, lowest y) from which a construct reaches
    the cell (section 3.4). That is the place with the cell's own number.
    """
    pivots = np.empty(cells.shape[1], dtype=np.uint32)
    for i in range(pivots.size):
        pivots[i] = cells[0, i] * constructs.stride_x + cells[1, i] * constructs.stride_y
    return pivots


def difference_table(constructs: Constructs) -> tuple[UInt32s, UInt32s]:
    """Return what to add to the pivot's number to have the numbers of all constructs that cover its cell.

    Returns
    -------
    firsts, stops : uint32[n_runs]
        The covering constructs are ``pivot + firsts[r] .. pivot + stops[r] - 1`` for each run r, ascending.

    Notes
    -----
    Source: sections 2.4 and 3.4 (difference table D, difference array D). Departures: it holds runs of neighbouring
    numbers, since the lists of neighbours are one range of entries; and the difference is to the pivot also in one
    dimension, where the paper has the least number of a covering construct. The cells below an attribute range are
    numbered, so one table serves the boundary, too.
    """
    # A construct of length l that covers the cell begins 0 .. l-1 before it; the pivot longest-1 before it.
    numbers = np.sort(
        [
            (constructs.lengths_x[-1] - 1 - back_x) * constructs.stride_x
            + (constructs.lengths_y[-1] - 1 - back_y) * constructs.stride_y
            + (length_y * constructs.lengths_x.size + length_x) * constructs.stride_shape
            for length_y, n_back_y in enumerate(constructs.lengths_y)
            for length_x, n_back_x in enumerate(constructs.lengths_x)
            for back_y in range(n_back_y)
            for back_x in range(n_back_x)
        ]
    )
    begins = np.flatnonzero(np.diff(numbers, prepend=-2) > 1)
    ends = np.append(begins[1:], numbers.size) - 1
    return numbers[begins].astype(np.uint32), (numbers[ends] + 1).astype(np.uint32)


@njit(cache=True)
def cells_of(axis: Axis, values: Float64s) -> Int32s:
    """Return the cell that holds each value: 0 below the range, 1..R in it, R + 1 above. Raises nothing.

    Infinite ends of regions may be asked for, NaN may not.

    Notes
    -----
    All that answers rest on is that the cell never falls as the value rises. Rounded division has that, and the
    correction keeps it: of two values with the same quotient, what moves the lower one up moves the higher one, too;
    and of two with neighbouring quotients, one line parts them. The correction is there so that a line of the grid
    parts cells exactly: from -1e6, the largest float below 0 is a million units away, as is 0.
    """
    cells = np.empty(values.size, dtype=np.int32)
    for i in range(values.size):
        unit = min(max(np.floor((values[i] - axis.origin) / axis.unit), -1.0), float(axis.n_units))
        if unit >= 0 and values[i] < axis.origin + unit * axis.unit:
            unit -= 1
        elif unit < axis.n_units and values[i] >= axis.origin + (unit + 1) * axis.unit:
            unit += 1
        cells[i] = int(unit) + 1
    return cells


class CellRanges(NamedTuple):
    """The cells ``first..last`` (int32[m]) that hold some value of each interval; whether they hold others, too."""

    first: Int32s
    last: Int32s
    inexact_first: Bools
    inexact_last: Bools


def cell_ranges(axis: Axis, intervals: Float64s) -> CellRanges:
    """Return each of the intervals [lo, hi), float64[m, 2], expanded to whole cells.

    Notes
    -----
    Source: section 2.1, "we can expand them to the nearest integers [...] a final checking is needed". Departure: the
    paper's intervals are closed, ours are half-open, and so are cells. An end is exact if it parts cells: the largest
    float below it is in another cell than itself. An infinite end is exact, since no value is beyond it.
    """
    lo, hi = np.ascontiguousarray(intervals[:, 0]), np.ascontiguousarray(intervals[:, 1])
    first, last = cells_of(axis, lo), cells_of(axis, np.nextafter(hi, -np.inf))
    inexact_first = (cells_of(axis, np.nextafter(lo, -np.inf)) == first) & np.isfinite(lo)
    inexact_last = (cells_of(axis, hi) == last) & np.isfinite(hi)
    return CellRanges(first, last, inexact_first, inexact_last)


class Pieces(NamedTuple):
    """Ranges of cells, each put together of lengths.

    Attributes
    ----------
    starts : int64[m + 1]
        Range r consists of pieces ``starts[r]..starts[r + 1]``, left to right.
    cells, lengths : int32[n_pieces]
        Where each piece begins, and the number of its length.
    inexact : bool[n_pieces]
        Whether the piece has a cell of which the interval has only a part.
    """

    starts: Int64s
    cells: Int32s
    lengths: Int32s
    inexact: Bools


@njit(cache=True)
def count_cut(ranges: CellRanges, lengths: Int64s) -> Int64s:
    """Return how many pieces ``cut`` makes of each range, int64[m]. Raises nothing; O(m * lengths)."""
    counts = np.zeros(ranges.first.size, dtype=np.int64)
    for r in range(counts.size):
        n_cells = ranges.last[r] - ranges.first[r] + 1
        for length in lengths[::-1]:
            counts[r] += n_cells // length
            n_cells %= length
    return counts


@njit(cache=True)
def cut(ranges: CellRanges, lengths: Int64s) -> Pieces:
    """Return the ranges cut from the left: always the longest length that fits. Raises nothing; O(pieces).

    Notes
    -----
    Source: section 2.3 (SCI: the remnant is one piece, because every length up to L is there), section 3.3 (simple
    decomposition, each axis: the remnant's binary digits). Two slips of the paper: a query of length w has floor(w / L)
    pieces of length L, not ceil((w - 1) / L), which is too many for w = L + 2; and a remnant of 7 is 4 + 2 + 1, not
    1 + 2 + 3.
    """
    pieces = empty_pieces(count_cut(ranges, lengths))
    for r in range(ranges.first.size):
        cell, p = ranges.first[r], pieces.starts[r]
        for number in range(lengths.size - 1, -1, -1):
            length = lengths[number]
            while cell + length - 1 <= ranges.last[r]:
                put_piece(pieces, p, ranges, r, cell, number, length)
                cell += length
                p += 1
    return pieces


@njit(cache=True)
def empty_pieces(counts: Int64s) -> Pieces:
    """Return room for as many pieces of each range as ``counts`` (int64[m]) says. Raises nothing."""
    starts = np.zeros(counts.size + 1, dtype=np.int64)
    starts[1:] = np.cumsum(counts)
    return Pieces(
        starts,
        np.empty(starts[-1], dtype=np.int32),
        np.empty(starts[-1], dtype=np.int32),
        np.empty(starts[-1], dtype=np.bool_),
    )


@njit(cache=True, inline="always")
def put_piece(pieces: Pieces, p: int, ranges: CellRanges, r: int, cell: int, number: int, length: int) -> None:
    """Write piece ``p`` of range ``r``: from ``cell`` on, the length with that number. Raises nothing."""
    pieces.cells[p], pieces.lengths[p] = cell, number
    pieces.inexact[p] = (ranges.inexact_first[r] and cell == ranges.first[r]) or (
        ranges.inexact_last[r] and cell + length - 1 == ranges.last[r]
    )
