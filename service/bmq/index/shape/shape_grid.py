"""The border index of shapes: a grid whose cells list the shapes whose border passes through, and exact tests.

Knows how fine the grid must be and why. The exact test is `kernels.shape.shape_tests`; changes are `layered`. The query
table has the bounding box of each shape.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bmq.index.base import Moves, concat_moves
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import PackedQueries
from bmq.index.shape.shape_store import ShapeStore
from bmq.kernels.border.grid_cells import step_of
from bmq.kernels.shape import shape_cells as kernel
from bmq.kernels.shape.shape_grid import crossed_shapes
from bmq.kernels.shape.shape_tests import POLYGON
from bmq.records import Bools, Float64s, Int32s, Int64s, Region, Shape
from bmq.records.column_records import take
from bmq.records.plane import EAST, TURN

# Cells on the mean side of the bounding boxes. Half as many made moves of a sixteenth of a side slower by a quarter.
# Twice as many made moves of half a side slower by a tenth, and the lists twice as long.
CELLS_PER_SIDE = 4.0
# The most cells for each entry: where shapes are tiny, smaller cells would only be empty.
CELLS_PER_ENTRY = 4.0
# The limit that large shapes must not exceed on average: a star of many rays can have its border in every cell.
MOST_ENTRIES_PER_SHAPE = 64
# The most cells on the way of a move. If there are more, both ends are searched in the tree of bounding boxes instead.
LONGEST_WAY = 32
ROWS_AT_ONCE = 8192  # shapes cut up together; the parts of a million shapes would fill the memory


class ShapeIndex:
    """The `BorderIndex` of the plane, and of longitude and latitude, for regions that have a shape.

    A move costs O(borders in the cells on its way), and O(edges of a slab) for each shape whose border it may meet
    there. Memory: 32 bytes an edge, 36 of query table, and 4 bytes for each cell that a border passes through.

    Parameters
    ----------
    growth, smallest_layer : as for `Layers`.
    longest_way : as the constant; tests set it low.
    """

    n_dims = 2

    def __init__(
        self, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER, longest_way: int = LONGEST_WAY
    ) -> None:
        self._store = ShapeStore()
        self._boxes = _BoundingBoxes(self._store, growth, smallest_layer, longest_way)

    def register(self, slots: Int32s, regions: Sequence[Region]) -> None:
        """Add queries with regions that have a shape; slots and errors are as for `MatchIndex.register`."""
        lo, hi = (np.array(ends, dtype=np.float64).T for ends in zip(*((r.lo, r.hi) for r in regions), strict=True))
        self._boxes.register(slots, lo, hi)
        self._store.add(slots, [_shape_of(region) for region in regions])

    def deregister(self, slots: Int32s) -> None:
        """Remove queries, as `MatchIndex.deregister`."""
        self._boxes.deregister(slots)
        self._store.remove(slots)

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        return self._boxes.moves(streams, previous, current)

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        return _held(self._store, self._boxes.stab(values), values)

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the region of ``slots[i]`` holds ``values[:, i]``: bool[n]."""
        held = self._boxes.holds(slots, values)
        asked = np.flatnonzero(held)
        held[asked] = self._store.holds(slots[asked], values[:, asked])
        return held

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of which the index consists."""
        return self._boxes.nbytes + self._store.nbytes

    def _check(self) -> None:
        """Assert every invariant; for tests."""
        self._boxes._check()
        self._store._check()


class _BoundingBoxes(Layered):
    """The bounding boxes of all shapes, in layers whose structures are `ShapeGrid`s."""

    def __init__(self, store: ShapeStore, growth: int, smallest_layer: int, longest_way: int) -> None:
        super().__init__(2, growth=growth, smallest_layer=smallest_layer)
        self._store = store
        self._longest_way = longest_way

    def _build(self, table: PackedQueries) -> "ShapeGrid":
        return ShapeGrid(table, self._store, self._longest_way)


class ShapeGrid:
    """The shapes of a table by cell: each cell lists the shapes whose border passes through it."""

    def __init__(self, table: PackedQueries, store: ShapeStore, longest_way: int = LONGEST_WAY) -> None:
        self._store = store
        self._longest_way = longest_way
        self._n_columns, self._n_rows = _shape_of_grid(table)
        while not self._list(table):
            self._n_columns, self._n_rows = -(-self._n_columns // 2), -(-self._n_rows // 2)

    def _list(self, table: PackedQueries) -> bool:
        """List all shapes in cells of the present size; return whether the lists stayed within the limit."""
        n_cells = self._n_columns * self._n_rows
        last_entry: Int32s = np.empty(n_cells, dtype=np.int32)
        parts: list[tuple[Int32s, kernel.Entries]] = []
        n_left = MOST_ENTRIES_PER_SHAPE * len(table)
        for first in range(0, len(table), ROWS_AT_ONCE):
            lows, highs, rows = self._boxes_of_borders(table, first)
            places = table.places_of(lows), table.places_of(highs)
            parts.append(kernel.listed_entries(*places, rows, self._n_columns, self._n_rows, last_entry))
            n_left -= parts[-1][0].size
            if n_left < 0 and n_cells > 1:
                return False
        cells, listed = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._starts = np.cumsum(np.bincount(cells, minlength=n_cells + 1)).astype(np.int32)
        self._entries: kernel.Entries = np.empty(listed.size + 1, dtype=kernel.ENTRY)
        kernel.sort_by_cell(cells, listed, self._starts, self._entries)
        return True

    def _boxes_of_borders(self, table: PackedQueries, first: int) -> tuple[Float64s, Float64s, Int32s]:
        """Return boxes that together hold the borders of the rows from ``first`` on, `ROWS_AT_ONCE` at most.

        Returns
        -------
        lows, highs : float64[2, n]
            The lower and the upper corner of each box.
        rows : int32[n]
            The row of each box, ascending.
        """
        slots = table.slots[first : first + ROWS_AT_ONCE]
        on_globe = self._store.on_globe
        segments, rows, is_straight = kernel.border_segments(self._store.shapes, slots, on_globe)
        # One part for each cell that a segment may cross, so that the box of a part meets few cells besides its own.
        columns_0, columns_1 = (self._steps(table, 0, segments[k]) for k in (0, 2))
        lines_0, lines_1 = (self._steps(table, 1, segments[k]) for k in (1, 3))
        n_parts = 1 + np.maximum(np.abs(columns_1 - columns_0), np.abs(lines_1 - lines_0))
        lows, highs, rows = kernel.parts_of(segments, rows, is_straight, n_parts.astype(np.int32), on_globe)
        return lows, highs, rows + np.int32(first)

    def _steps(self, table: PackedQueries, axis: int, values: Float64s) -> Int64s:
        """Return the column (axis 0) or the row of cells (axis 1) of each value."""
        n_steps = self._n_rows if axis else self._n_columns
        return (table.ranks_on(axis, np.ascontiguousarray(values)) * n_steps).astype(np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and their entries."""
        return self._starts.nbytes + self._entries.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves; the slots of streams are not used."""
        is_far: Bools = np.empty(streams.size, dtype=np.bool_)
        found = crossed_shapes(
            self._n_columns,
            self._n_rows,
            self._starts,
            self._entries,
            table.slots,
            self._store.shapes,
            previous,
            current,
            table.places_of(previous),
            table.places_of(current),
            self._longest_way,
            np.zeros(len(table), dtype=np.int64),
            is_far,
        )
        far = np.flatnonzero(is_far).astype(np.int32)
        if not far.size:
            return Moves(*found)
        return concat_moves([Moves(*found), self._far_moves(table, far, previous[:, far], current[:, far])])

    def _far_moves(self, table: PackedQueries, numbers: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return what moves enter and leave that go too far to look at all cells on their way.

        Parameters
        ----------
        table : PackedQueries
        numbers : int32[n], the number of each of the moves in the call.
        previous, current : float64[2, n], where they begin and end.
        """
        left, entered = (_held(self._store, table.stab(ends), ends) for ends in (previous, current))
        rows = np.concatenate((left.rows, entered.rows))
        queries = np.concatenate((left.queries, entered.queries))
        # A (row, query) that is found at both ends now has its two entries next to each other; such queries are
        # dropped.
        order = np.lexsort((queries, rows))
        is_first = np.ones(order.size + 1, dtype=np.bool_)
        is_first[1:-1] = (np.diff(rows[order]) != 0) | (np.diff(queries[order]) != 0)
        alone = order[is_first[:-1] & is_first[1:]]
        signs = np.where(alone < left.rows.size, np.int8(-1), np.int8(1))
        return Moves(numbers[rows[alone]], queries[alone], signs, left.visits + entered.visits)

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        assert (np.diff(self._starts) >= 0).all()
        assert (self._starts[0], self._starts[-1]) == (0, self._entries.size - 1)
        cell_of_entry = np.repeat(np.arange(self._starts.size - 1), np.diff(self._starts))
        listed = set(zip(cell_of_entry.tolist(), self._entries["row"][:-1].tolist(), strict=True))
        assert len(listed) == self._entries.size - 1
        assert set(self._cells_of_corners(table)) <= listed

    def _cells_of_corners(self, table: PackedQueries) -> Iterator[tuple[int, int]]:
        """Yield (cell, row) of each corner of a polygon: some of the entries that must be there; for tests."""
        records = self._store.shapes.records
        for row in np.flatnonzero((table.slots >= 0) & (records["kind"][table.slots] == POLYGON)).tolist():
            ends = self._store.corners(table.slots[row])
            ends[0] -= np.where(ends[0] >= EAST, TURN, 0.0) if self._store.on_globe else 0.0
            places = table.places_of(ends)
            for x, y in places.T.tolist():
                yield step_of(y, self._n_rows) * self._n_columns + step_of(x, self._n_columns), row


def _shape_of_grid(table: PackedQueries) -> tuple[int, int]:
    """Return how many columns and rows of cells there should be; a cell is shaped like the mean bounding box."""
    n_steps = CELLS_PER_SIDE / np.maximum(table.mean_sides, 1e-9)
    most = CELLS_PER_ENTRY * 4 * CELLS_PER_SIDE * len(table)
    n_steps *= min(1.0, float(np.sqrt(most / n_steps.prod())))
    n_columns, n_rows = np.maximum(1, n_steps.astype(np.int64)).tolist()
    return min(n_columns, int(most)), min(n_rows, int(most) // n_columns + 1)


def _held(store: ShapeStore, found: Moves, values: Float64s) -> Moves:
    """Return those of ``found``, by bounding boxes, whose shape holds its value ``values[:, found.rows]``, too."""
    held = store.holds(found.queries, values[:, found.rows])
    return take(found, held)


def _shape_of(region: Region) -> Shape:
    if region.shape is None:
        raise ValueError(f"The region {region} is a box: register it with the index of boxes.")
    return region.shape
