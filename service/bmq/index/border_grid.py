"""The border grid: the border index of the plane. A cell lists the queries whose border passes through it.

Knows how fine the grid is to be and why; the scan is `kernels.grid`, changes are `layered`, the proof is in
docs/indexes.md.
"""

import numpy as np

from bmq.index.base import Moves
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import PackedQueries
from bmq.kernels import grid as kernel
from bmq.kernels.grid import Cells, Entries, step_of
from bmq.records import Float64s, Int32s

# A strip as wide as the mean side: a border is listed in 2 strips on average, and of two borders that a leg
# looks at, one lies across it. This holds whatever the sides are, since the mean counts in both. Strips half
# as wide make 1.5 times the entries and were no faster; twice as wide, a third slower on dense queries.
STRIPS_PER_SIDE = 1.0
# As many cells as entries: a leg that stays in its cell looks at one border on average. Half as many or twice
# as many changed less than the noise.
ENTRIES_PER_CELL = 1.0


class BorderGrid(Layered):
    """The `BorderIndex` of two dimensions.

    A move costs O(1 + borders in the cells of its two legs). Memory: 8 entries of 24 bytes a query, 12 at
    most; as many cells of 4 bytes; 36 bytes of query table. So about 260 bytes, whatever the regions.
    """

    def __init__(self, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER) -> None:
        super().__init__(2, growth=growth, smallest_layer=smallest_layer)

    def _build(self, table: PackedQueries) -> "GridCells":
        return GridCells(table)


class GridCells:
    """A table's borders by cell: left and right ones by strips of y, lower and upper ones by strips of x."""

    def __init__(self, table: PackedQueries) -> None:
        self._across_x = _cells(table, 0, 0)
        self._across_y = _cells(table, 1, _n_cells(self._across_x))
        ranks = table.ranks_of_ends(table.regions)
        self._starts: Int32s = np.zeros(self._across_y.first + _n_cells(self._across_y) + 1, dtype=np.int32)
        for axis, cells in enumerate((self._across_x, self._across_y)):
            kernel.count_entries(table.regions, ranks, axis, cells, self._starts)
        # Counts become ends, and filling moves each end to where its cell begins.
        np.cumsum(self._starts, out=self._starts)
        # Made by numpy and not in the kernel: numpy asks for huge pages, numba does not.
        self._entries: Entries = np.empty(self._starts[-1], dtype=kernel.ENTRY)
        for axis, cells in enumerate((self._across_x, self._across_y)):
            kernel.fill_entries(table.regions, ranks, axis, cells, self._starts, self._entries)

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and their entries."""
        return self._starts.nbytes + self._entries.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves; a position hint is not needed."""
        found = kernel.crossed_queries(
            self._across_x,
            self._across_y,
            self._starts,
            self._entries,
            table.regions,
            table.slots,
            previous,
            current,
            table.ranks_of(previous),
            table.ranks_of(current),
        )
        return Moves(*found)

    def _check(self, table: PackedQueries) -> None:
        """State every invariant; for tests."""
        cell_of_entry = np.repeat(np.arange(self._starts.size - 1), np.diff(self._starts))
        listed = sorted(
            (int(cell), int(entry["row"]), float(entry["border"]), float(entry["opposite"]))
            for cell, entry in zip(cell_of_entry, self._entries, strict=True)
        )
        # Each finite border is listed in its column of every strip between its region's ends, nowhere else.
        ranks = table.ranks_of_ends(table.regions)
        assert listed == sorted(
            (
                cells.first + strip * cells.n_columns + step_of(ranks[end, axis, row], cells.n_columns),
                row,
                float(region[axis, end]),
                float(region[axis, 1 - end]),
            )
            for axis, cells in enumerate((self._across_x, self._across_y))
            for row, region in enumerate(table.regions)
            for end in range(2)
            if np.isfinite(region[axis, end])
            for strip in range(
                step_of(ranks[0, 1 - axis, row], cells.n_strips),
                step_of(ranks[1, 1 - axis, row], cells.n_strips) + 1,
            )
        )


def _cells(table: PackedQueries, axis: int, first: int) -> Cells:
    """Return how the borders that divide ``axis`` are sorted into cells."""
    side = float(table.mean_sides[1 - axis])
    n_entries = 2 * len(table) * (STRIPS_PER_SIDE + 1)
    # No more strips than entries: where sides are tiny, thinner strips would only be empty ones.
    n_strips = min(STRIPS_PER_SIDE / side, n_entries / ENTRIES_PER_CELL) if side > 0 else 1.0
    n_columns = n_entries / ENTRIES_PER_CELL / n_strips
    return Cells(max(1, round(n_strips)), max(1, round(n_columns)), first)


def _n_cells(cells: Cells) -> int:
    return cells.n_strips * cells.n_columns
