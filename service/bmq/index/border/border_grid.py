"""The border grid, for two and more dimensions. A cell lists the queries whose border passes through it.

Knows how fine the grid must be and why. The search is `kernels.border.border_grid`, changes are `layered`, and the
proof is in docs/indexes.md.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from bmq.index.base import Moves
from bmq.index.packed import GONE, PackedQueries
from bmq.kernels.border import grid_cells as kernel
from bmq.kernels.border.border_grid import crossed_queries
from bmq.kernels.border.grid_cells import Cells, Entries, step_of
from bmq.records import Bools, Float64s, Int32s
from bmq.records.plane import PLANE

# A strip is as wide as the mean side. Then a border is listed in 2 strips on average, and of two borders that a leg
# looks at, one lies across it. This holds whatever the sides are, because the mean counts in both. In the plane, strips
# half as wide make 1.5 times the entries and were not faster; twice as wide, 10 to 20 % slower.
STRIPS_PER_SIDE = 1.0
# With more axes, a leg meets so few regions that strips twice as wide are as fast, and save a quarter of the entries.
STRIPS_PER_SIDE_BEYOND_THE_PLANE = 0.5
# As many cells as entries: a leg that stays in its cell looks at one border on average. Half as many cells save 8 bytes
# a query and axis, and were slower by up to 15 %.
ENTRIES_PER_CELL = 1.0


# Free entries and rows for queries that come later, as a share of those in use. The grid is rebuilt (0.6 s for a
# million queries) when a tenth more queries have come. Half the room would build it twice as often; twice the room
# would add 13 bytes a query. Room for an eighth made a move slower by 3 to 12 %.
ROOM = 0.1


class GridCells:
    """A table's borders by cell: those that divide each axis by strips of another axis.

    A move costs O(borders in the cells of its d legs). Memory, in d dimensions: 4 d entries of 12 bytes a query (3 d
    beyond the plane), 6 d at most; as many cells of 4 bytes; 16 d + 4 bytes of query table; and room for a tenth more.
    That is about 190 bytes a query in the plane, and 75 a dimension beyond, whatever the regions are.

    The cells have room for more entries, by the same share as the table has room for more rows.
    """

    def __init__(self, table: PackedQueries) -> None:
        n_dims = table.regions.shape[1]
        n_cells = 0
        cells: list[Cells] = []
        for axis in range(n_dims):
            cells.append(_cells(table, axis, n_cells))
            n_cells += cells[-1].n_strips * cells[-1].n_columns
        self._cells = tuple(cells)
        places = table.places_of_ends(table.regions)
        stops = np.zeros(n_cells + 1, dtype=np.int32)
        for axis in range(n_dims):
            kernel.count_entries(table.regions, places, axis, cells[axis], stops)
        np.cumsum(stops, out=stops)
        stops += (stops * (table.room / len(table))).astype(np.int32)
        self._starts: Int32s = np.append(np.int32(0), stops[:-1])
        # Made by numpy and not in the kernel, because numpy asks for huge pages and numba does not. One entry more than
        # the cells hold: the kernel reads the first entry of a cell before it knows whether there is one.
        self._entries: Entries = np.empty(stops[-1] + 1, dtype=kernel.ENTRY)
        self._entries["border"] = kernel.NOWHERE
        for axis in range(n_dims):
            kernel.fill_entries(table.regions, places, axis, cells[axis], stops, self._entries)

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and their entries."""
        return self._starts.nbytes + self._entries.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves; ``streams`` is not used."""
        found = crossed_queries(
            self._cells,
            self._starts,
            self._entries,
            table.regions,
            table.slots,
            previous,
            current,
            table.places_of(previous),
            table.places_of(current),
        )
        return Moves(*found)

    def insert(self, table: PackedQueries, first_row: int) -> Bools:
        """Insert the rows of ``table`` from ``first_row`` on; return for each whether there was room, bool[n]."""
        inserted: Bools = np.empty(len(table) - first_row, dtype=np.bool_)
        places = table.places_of_ends(table.regions[first_row:])
        kernel.insert_entries(table.regions, places, first_row, self._cells, self._starts, self._entries, inserted)
        return inserted

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        assert (np.diff(self._starts) >= 0).all()
        assert (self._starts[0], self._starts[-1]) == (0, self._entries.size - 1)
        cell_of_entry = np.repeat(np.arange(self._starts.size - 1), np.diff(self._starts))
        # In each cell the free entries come first.
        is_free = self._entries[:-1]["border"] == kernel.NOWHERE
        assert not (is_free[1:] & ~is_free[:-1] & (cell_of_entry[1:] == cell_of_entry[:-1])).any()
        listed = [
            (int(cell), int(entry["row_and_end"]), int(entry["border"]), int(entry["opposite"]))
            for cell, entry in zip(cell_of_entry, self._entries[:-1], strict=True)
            if entry["border"] != kernel.NOWHERE
        ]
        # Each finite border is listed in its column of every strip between the ends of its region, and nowhere else. A
        # row that found no room is marked, and may be listed in part.
        allowed = list(self._places_of_borders(table, range(len(table))))
        needed = self._places_of_borders(table, np.flatnonzero(table.slots != GONE).tolist())
        assert len(set(listed)) == len(listed)
        assert set(needed) <= set(listed) <= set(allowed)

    def _places_of_borders(self, table: PackedQueries, rows: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
        """Yield (cell, row and end, border, opposite) of each entry that ``rows`` should have; for tests."""
        places = table.places_of_ends(table.regions)
        for axis, (partner, n_strips, n_columns, first) in enumerate(self._cells):
            for row, end in product(rows, range(2)):
                if np.isfinite(table.regions[row, axis, end]):
                    border, opposite = places[end, axis, row], places[1 - end, axis, row]
                    low, high = (step_of(places[side, partner, row], n_strips) for side in range(2))
                    for strip in range(low, high + 1):
                        cell = first + strip * n_columns + step_of(border, n_columns)
                        yield cell, 2 * row + end, border, opposite


def _cells(table: PackedQueries, axis: int, first: int) -> Cells:
    """Return how the borders that divide ``axis`` are sorted into cells; ``first`` is the number of the first cell."""
    # The partner is the axis on which regions are smallest, so that the fewest lie across a strip.
    partner = min((k for k in range(table.regions.shape[1]) if k != axis), key=lambda k: float(table.mean_sides[k]))
    side = float(table.mean_sides[partner])
    strips_per_side = STRIPS_PER_SIDE if table.regions.shape[1] == PLANE else STRIPS_PER_SIDE_BEYOND_THE_PLANE
    n_entries = 2 * len(table) * (strips_per_side + 1)
    # Not more strips than entries: where sides are tiny, thinner strips would only be empty.
    n_strips = min(strips_per_side / side, n_entries / ENTRIES_PER_CELL) if side > 0 else 1.0
    n_columns = n_entries / ENTRIES_PER_CELL / n_strips
    return Cells(partner, max(1, round(n_strips)), max(1, round(n_columns)), first)
