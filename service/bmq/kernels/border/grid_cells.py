"""The cells of the border grid, which list the borders that pass through them. Pure: arrays in, numbers out.

The borders that divide axis k are sorted by axis k and by one partner axis; all other axes are ignored:

      strip 2   |      |   ·  |      |        strips cut the partner axis, along which a border runs,
                +------+------+------+        columns the axis that it divides;
      strip 1   |   ┆  |   ┆  | ┆    |        a border is listed in each cell (strip, column) it passes,
                +------+------+------+        so a move along axis k reads neighbouring cells of one strip:
      strip 0   |   ┆  |   ┆  |      |        one range of entries

Knows cells, borders and rows. It must not know moves, nor how many cells there should be.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.records import Bools, Float64s, Int32s


class Cells(NamedTuple):
    """How the borders that divide one axis are sorted into cells.

    Attributes
    ----------
    partner : int
        The other axis by which they are sorted.
    n_strips, n_columns : int
        Into how many equal steps of rank the partner axis, and the axis that the borders divide, are cut.
    first : int
        Cell (strip, column) has the number ``first + strip * n_columns + column``.
    """

    partner: int
    n_strips: int
    n_columns: int
    first: int


# An entry is a border in a cell: the place of the border on its axis, the place of the region's other end, and 2 * the
# row of the query table, + 1 for an upper border; all beside each other in memory. A place is a rank in 31 bits. The
# borders themselves would take twice the bytes, and rounded to 4 bytes they would be too coarse for streets far from 0.
ENTRY = np.dtype([("border", np.int32), ("opposite", np.int32), ("row_and_end", np.uint32)])
Entries = npt.NDArray[np.void]
NOWHERE = -1  # "border" of an entry that is free; it is before every place, so no move crosses it
# How many cells behind a full cell are searched for a free entry. If one of ten entries is free, the next free one is
# very near. If thousands of queries register in one place, it is cheaper to rebuild the grid than to shift ever
# further.
MAX_CELLS_ASKED = 1024


@njit(cache=True, inline="always")
def step_of(place: int, n_steps: int) -> int:
    """Return which of ``n_steps`` equal steps of rank holds ``place`` (31 bits); it never falls as the place rises."""
    return int((np.int64(place) * n_steps) >> 31)


@njit(cache=True)
def count_entries(regions: Float64s, places: Int32s, axis: int, cells: Cells, starts: Int32s) -> None:
    """Add to ``starts[c]`` the number of borders dividing ``axis`` that pass cell c. Raises nothing; O(entries).

    Parameters
    ----------
    regions : float64[m, d, 2]
        The query table; an infinite end is not a border.
    places : int32[2, d, m]
        The places of the lower ends on each axis, then those of the upper ends.
    axis : int
    cells : Cells
        The cells of ``axis``.
    starts : int32[n_cells + 1]
        Written.
    """
    for row in range(regions.shape[0]):
        low = step_of(places[0, cells.partner, row], cells.n_strips)
        high = step_of(places[1, cells.partner, row], cells.n_strips)
        for end in range(2):
            if np.isfinite(regions[row, axis, end]):
                column = step_of(places[end, axis, row], cells.n_columns)
                cell = cells.first + low * cells.n_columns + column
                for _ in range(low, high + 1):
                    starts[cell] += 1
                    cell += cells.n_columns


@njit(cache=True)
def fill_entries(regions: Float64s, places: Int32s, axis: int, cells: Cells, stops: Int32s, entries: Entries) -> None:
    """Write the borders dividing ``axis`` into their cells. Raises nothing; O(entries).

    Parameters
    ----------
    regions, places, axis, cells : as for ``count_entries``
    stops : int32[n_cells + 1]
        On entry, where each cell of ``axis`` ends; on return, where its written entries begin. Free entries of a cell
        come before the written ones.
    entries : ENTRY[n_entries + 1]
        Written.
    """
    for row in range(regions.shape[0] - 1, -1, -1):
        low = step_of(places[0, cells.partner, row], cells.n_strips)
        high = step_of(places[1, cells.partner, row], cells.n_strips)
        for end in range(2):
            if np.isfinite(regions[row, axis, end]):
                border, opposite = places[end, axis, row], places[1 - end, axis, row]
                cell = cells.first + low * cells.n_columns + step_of(border, cells.n_columns)
                for _ in range(low, high + 1):
                    stops[cell] -= 1
                    entry = entries[stops[cell]]
                    entry["border"] = border
                    entry["opposite"] = opposite
                    entry["row_and_end"] = 2 * row + end
                    cell += cells.n_columns


@njit(cache=True)
def insert_entries(
    regions: Float64s,
    places: Int32s,
    first_row: int,
    cells: tuple[Cells, ...],
    starts: Int32s,
    entries: Entries,
    inserted: Bools,
) -> None:
    """Write the borders of new rows into their cells. Raises nothing.

    An entry costs O(log entries of its cell); if the cell is full, O(cells up to the next one that is not).

    Parameters
    ----------
    regions : float64[m, d, 2]
        The query table; the new rows are those from ``first_row`` on.
    places : int32[2, d, m - first_row]
        The places of the new rows' ends, as for ``count_entries``.
    first_row : int
    cells : Cells[d]
    starts : int32[n_cells + 1]
        Where each cell begins; written, because cells are shifted to make room.
    entries : ENTRY[n_entries + 1]
        Written. In each cell the free entries come first.
    inserted : bool[m - first_row]
        Written: whether a new row is in all of its cells. If not, it may be in some of them, and the caller must not
        let it be reported.
    """
    for new in range(inserted.size):
        inserted[new] = _insert(regions, places, first_row, new, cells, starts, entries)


@njit(cache=True)
def _insert(
    regions: Float64s,
    places: Int32s,
    first_row: int,
    new: int,
    cells: tuple[Cells, ...],
    starts: Int32s,
    entries: Entries,
) -> bool:
    """Write the borders of new row ``new`` into their cells; return whether there was room in all of them."""
    for axis in range(len(cells)):
        _, n_strips, n_columns, first_cell = cells[axis]
        low = step_of(places[0, cells[axis].partner, new], n_strips)
        high = step_of(places[1, cells[axis].partner, new], n_strips)
        for end in range(2):
            if not np.isfinite(regions[first_row + new, axis, end]):
                continue
            border, opposite = places[end, axis, new], places[1 - end, axis, new]
            cell = first_cell + low * n_columns + step_of(border, n_columns)
            for _ in range(low, high + 1):
                at = _room_in(cell, starts, entries)
                if at < 0:
                    return False
                entry = entries[at]
                entry["border"] = border
                entry["opposite"] = opposite
                entry["row_and_end"] = 2 * (first_row + new) + end
                cell += n_columns
    return True


@njit(cache=True, inline="always")
def _has_room(cell: int, starts: Int32s, entries: Entries) -> bool:
    """Return whether the first entry of ``cell`` is free."""
    return bool(starts[cell] < starts[cell + 1] and entries[starts[cell]]["border"] == NOWHERE)


@njit(cache=True)
def _room_in(cell: int, starts: Int32s, entries: Entries) -> int:
    """Return the number of a free entry of ``cell``, shifting other cells if it is full; -1 if none is free near by.

    The order of entries in a cell is free, except that free entries come first. So, to make room, each cell between the
    full one and the one with room only moves its first entry behind its last one.
    """
    if _has_room(cell, starts, entries):
        free, used = int(starts[cell]), int(starts[cell + 1])
        while used - free > 1:
            middle = (free + used) >> 1
            if entries[middle]["border"] == NOWHERE:
                free = middle
            else:
                used = middle
        return free
    stop = min(cell + MAX_CELLS_ASKED, starts.size - 1)
    holder = cell + 1
    while holder < stop and not _has_room(holder, starts, entries):
        holder += 1
    if holder >= stop:
        return -1
    free = int(starts[holder])
    starts[holder] += 1
    for between in range(holder - 1, cell, -1):
        first = starts[between]
        entries[free]["border"] = entries[first]["border"]
        entries[free]["opposite"] = entries[first]["opposite"]
        entries[free]["row_and_end"] = entries[first]["row_and_end"]
        free = int(first)
        starts[between] += 1
    return free
