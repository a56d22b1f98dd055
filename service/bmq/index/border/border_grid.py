"""The border grid: the border index of the plane and beyond. A cell lists the queries whose border passes through it.

Knows how fine the grid is to be and why; the scan is `kernels.border.border_grid`, changes are `layered`, the proof is
in docs/indexes.md.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from bmq.index.base import Moves
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import GONE, PackedQueries
from bmq.kernels.border import grid_cells as kernel
from bmq.kernels.border.border_grid import crossed_queries
from bmq.kernels.border.grid_cells import Cells, Entries, step_of
from bmq.records import Bools, Float64s, Int32s

# A strip as wide as the mean side: a border is listed in 2 strips on average, and of two borders that a leg
# looks at, one lies across it. This holds whatever the sides are, since the mean counts in both. In the plane, strips
# half as wide make 1.5 times the entries and were no faster; twice as wide, 10 to 20 % slower.
STRIPS_PER_SIDE = 1.0
# With more axes a leg meets so few regions that strips twice as wide are as fast, and a quarter of the entries saved.
STRIPS_PER_SIDE_BEYOND_THE_PLANE = 0.5
# As many cells as entries: a leg that stays in its cell looks at one border on average. Half as many save 8 bytes a
# query and axis, and were slower by up to 15 %.
ENTRIES_PER_CELL = 1.0


# Empty entries and rows, as a share of those in use, for queries that come later. The grid is built anew (0.6 s for a
# million queries) when a tenth as many have come in; half as many would do it twice as often, twice as many would
# add 13 bytes a query. Those of an eighth made a move slower by 3 to 12 %.
ROOM = 0.1


class BorderGrid(Layered):
    """The `BorderIndex` of two and more dimensions.

    A move costs O(borders in the cells of its d legs). Memory, in d dimensions: 4 d entries of 12 bytes a query (3 d
    beyond the plane), 6 d at most; as many cells of 4 bytes; 16 d + 4 bytes of query table; room for a tenth more.
    So about 190 bytes in the plane, and 75 a dimension beyond, whatever the regions.
    """

    def __init__(
        self, n_dims: int = 2, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER, room: float = ROOM
    ) -> None:
        super().__init__(n_dims, growth=growth, smallest_layer=smallest_layer, room=room)

    def _build(self, table: PackedQueries) -> "GridCells":
        return GridCells(table)


class GridCells:
    """A table's borders by cell: those that divide each axis by strips of another axis.

    There is room for as many more entries, as a share, as there is room for rows in the table.
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
        # Made by numpy and not in the kernel: numpy asks for huge pages, numba does not.
        # One more than the cells hold: the kernel reads the first entry of a cell before it knows if it has one.
        self._entries: Entries = np.empty(stops[-1] + 1, dtype=kernel.ENTRY)
        self._entries["border"] = kernel.NOWHERE
        for axis in range(n_dims):
            kernel.fill_entries(table.regions, places, axis, cells[axis], stops, self._entries)

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and their entries."""
        return self._starts.nbytes + self._entries.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves; a position hint is not needed."""
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
        """Take in the rows of ``table`` from ``first_row`` on; return for which of them there was room."""
        inserted: Bools = np.empty(len(table) - first_row, dtype=np.bool_)
        places = table.places_of_ends(table.regions[first_row:])
        kernel.insert_entries(table.regions, places, first_row, self._cells, self._starts, self._entries, inserted)
        return inserted

    def _check(self, table: PackedQueries) -> None:
        """State every invariant; for tests."""
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
        # Each finite border is listed in its column of every strip between its region's ends, nowhere else. A
        # row that found no room, and so is marked, may be listed in part.
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
    """Return how the borders that divide ``axis`` are sorted into cells."""
    # The partner on which regions are smallest: the fewest lie across a strip.
    partner = min((k for k in range(table.regions.shape[1]) if k != axis), key=lambda k: float(table.mean_sides[k]))
    side = float(table.mean_sides[partner])
    strips_per_side = STRIPS_PER_SIDE if table.regions.shape[1] == 2 else STRIPS_PER_SIDE_BEYOND_THE_PLANE
    n_entries = 2 * len(table) * (strips_per_side + 1)
    # No more strips than entries: where sides are tiny, thinner strips would only be empty ones.
    n_strips = min(strips_per_side / side, n_entries / ENTRIES_PER_CELL) if side > 0 else 1.0
    n_columns = n_entries / ENTRIES_PER_CELL / n_strips
    return Cells(partner, max(1, round(n_strips)), max(1, round(n_columns)), first)
