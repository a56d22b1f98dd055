"""Virtual constructs over a query table: the match structure of SCI and VCR.

This module knows constructs and their query lists. `kernels.match.construct_lists` fills and searches the lists,
`kernels.match.virtual_constructs` cuts regions into constructs, `construct_indexes` says which lengths there are.
"""

from typing import ClassVar

import numpy as np

from bmq.index.base import Moves
from bmq.index.layered import GROWTH, SMALLEST_LAYER, LayeredMatches
from bmq.index.match.virtual_grid import VirtualGrid, choose_grid
from bmq.index.packed import PackedQueries
from bmq.kernels.match import construct_lists as kernel
from bmq.kernels.match.virtual_constructs import (
    CellRanges,
    Constructs,
    Pieces,
    UInt32s,
    cell_ranges,
    cells_of,
    cut,
    difference_table,
    make_constructs,
    pivots_of,
)
from bmq.records import Float64s, Int32s, Int64s

MAX_ENTRIES = np.iinfo(np.uint32).max  # a list begins at a uint32
N_ASKED = 4096  # regions that an estimate asks, some 2 ms
MAX_CONSTRUCTS = np.iinfo(np.int32).max  # their numbers are uint32 in the kernels, also of what lies beside the last


class VirtualConstructIndex(LayeredMatches):
    """The `MatchIndex` of virtual constructs, in one or two dimensions: what SCI and VCR have in common.

    A value costs O(runs of the difference table + matches). Memory: 4 bytes a construct and a cell, in each layer, 4 an
    entry; the query table. Each layer has a grid of its own, chosen from its regions.

    Parameters are as for `Layers`.
    """

    _n_dims: ClassVar[int]
    _lengths: Int64s  # of a construct's sides, ascending from 1, in units

    def __init__(self, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER) -> None:
        super().__init__(self._n_dims, growth=growth, smallest_layer=smallest_layer)

    @classmethod
    def n_listed(cls, regions: Float64s, values: Float64s) -> float:
        """Return how many entries the lists have that cover a value, on the grid that would be chosen: an estimate.

        Parameters
        ----------
        regions : float64[m, d, 2], m >= 1; a sample of them is asked.
        values : float64[d, n], n >= 1; the mean over these.
        """
        grid = choose_grid(regions, cls._lengths)
        asked = regions[:: 1 + len(regions) // N_ASKED]
        covers = np.ones((values.shape[1], len(asked)), dtype=np.bool_)
        for k, axis in enumerate(grid.axes):
            ranges, cells = cell_ranges(axis, asked[:, k]), cells_of(axis, values[k])[:, None]
            covers &= (ranges.first <= cells) & (cells <= ranges.last)
        return float(covers.mean()) * len(regions)

    def _build(self, table: PackedQueries) -> "ConstructLists":
        return ConstructLists(table, choose_grid(table.regions, self._lengths), self._lengths)


class ConstructLists:
    """The query lists of a table's virtual constructs. Subclasses may number the constructs or cut regions otherwise.

    Raises
    ------
    ValueError
        The grid has too many constructs, the table too many rows, or their lists too many entries, for 32 bits.
    """

    _flag_bits: ClassVar[int] = kernel.FLAG_BITS

    def __init__(self, table: PackedQueries, grid: VirtualGrid, lengths: Int64s) -> None:
        self._grid = grid
        n_cells_x, lengths_x = grid.axes[0].n_cells, lengths
        # An interval is a rectangle one cell high.
        n_cells_y, lengths_y = (grid.axes[1].n_cells, lengths) if len(grid.axes) > 1 else (1, lengths[:1])
        self.constructs = self._number(n_cells_x, n_cells_y, lengths_x, lengths_y)
        if self.constructs.n_constructs > MAX_CONSTRUCTS or len(table) > kernel.MAX_ROWS:
            raise ValueError(
                f"{self.constructs.n_constructs} constructs for {len(table)} queries are too many: "
                "make the unit of the grid larger."
            )
        self._firsts, self._stops = difference_table(self.constructs)
        pieces = self._pieces(table)
        n_pieces_x, n_pieces_y = (np.diff(axis.starts).astype(np.int64) for axis in pieces)
        n_entries = int(n_pieces_x @ n_pieces_y)
        if n_entries > MAX_ENTRIES:
            raise ValueError(
                f"{n_entries} entries for {len(table)} queries are too many, {MAX_ENTRIES} at most: "
                "make the unit of the grid or its longest construct larger."
            )
        self._starts: UInt32s = np.zeros(self.constructs.n_constructs + 1, dtype=np.uint32)
        kernel.count_entries(self.constructs, *pieces, self._starts)
        # Counts become ends, and filling moves each end to where its list begins.
        np.cumsum(self._starts, out=self._starts)
        self._entries: Int32s = np.zeros(n_entries + kernel.COPIED_AHEAD, dtype=np.int32)
        self._fill(*pieces)
        # Counted once for each cell, so that a search need not read all starts twice.
        self._n_cells_x = n_cells_x
        cells_y, cells_x = np.indices((n_cells_y, n_cells_x), dtype=np.int32)
        pivots = pivots_of(self.constructs, np.stack((cells_x.ravel(), cells_y.ravel())))
        self._n_candidates: UInt32s = kernel.count_candidates(self._starts, self._firsts, self._stops, pivots)

    def _number(self, n_cells_x: int, n_cells_y: int, lengths_x: Int64s, lengths_y: Int64s) -> Constructs:
        """Return the numbered constructs."""
        return make_constructs(n_cells_x, n_cells_y, lengths_x, lengths_y)

    def _pieces(self, table: PackedQueries) -> tuple[Pieces, Pieces]:
        """Return what the regions are put together of, in x and in y."""
        in_x, in_y = self._ranges(table)
        return cut(in_x, self.constructs.lengths_x), cut(in_y, self.constructs.lengths_y)

    def _fill(self, pieces_x: Pieces, pieces_y: Pieces) -> None:
        """Write the entries, and move the starts from the ends of the lists to where they begin."""
        kernel.fill_entries(self.constructs, pieces_x, pieces_y, self._starts, self._entries)

    def _ranges(self, table: PackedQueries) -> tuple[CellRanges, CellRanges]:
        """Return the cells of the regions, in x and in y; an interval is one cell high."""
        ranges = [cell_ranges(axis, table.regions[:, k]) for k, axis in enumerate(self._grid.axes)]
        zeros, no = np.zeros(len(table), dtype=np.int32), np.zeros(len(table), dtype=np.bool_)
        in_x, in_y = (*ranges, CellRanges(zeros, zeros, no, no))[:2]
        return in_x, in_y

    @property
    def n_entries(self) -> int:
        """Entries of all query lists; the papers' storage cost is these and one pointer a construct."""
        return int(self._starts[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the lists, of the cells' counts, and of the difference table."""
        parts = (self._starts, self._entries, self._firsts, self._stops, self._n_candidates)
        return sum(part.nbytes for part in parts)

    def cells_of(self, values: Float64s) -> Int32s:
        """Return the cells of float64[d, n] values, int32[2, n]; y is 0 in one dimension."""
        cells: Int32s = np.zeros((2, values.shape[1]), dtype=np.int32)
        for k, axis in enumerate(self._grid.axes):
            cells[k] = cells_of(axis, values[k])
        return cells

    def stab(self, table: PackedQueries, values: Float64s) -> Moves:
        """Return the queries of ``table`` that hold each of ``values`` (float64[d, n])."""
        cells = self.cells_of(values)
        pivots = pivots_of(self.constructs, cells)
        counts = self._n_candidates[cells[1] * self._n_cells_x + cells[0]]
        places = np.append(0, np.cumsum(counts, dtype=np.int64))
        rows, queries = self._search(table, values, cells, pivots, places)
        return Moves(rows, queries, np.ones(rows.size, dtype=np.int8), int(places[-1]))

    def _search(
        self, table: PackedQueries, values: Float64s, cells: Int32s, pivots: UInt32s, places: Int64s
    ) -> tuple[Int32s, Int32s]:
        """Return which of ``values`` is held by which queries, int32[k] each.

        ``cells`` and ``pivots`` are those of the values; ``places`` is as for `kernel.matching_queries`.
        """
        gathered, rows, queries = room_for(places)
        n_found = kernel.matching_queries(
            self._starts,
            self._entries,
            self._firsts,
            self._stops,
            table.regions,
            table.slots,
            values,
            pivots,
            np.argsort(pivots),
            places,
            gathered,
            rows,
            queries,
        )
        return rows[:n_found], queries[:n_found]

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        starts, constructs = self._starts, self.constructs
        assert starts[0] == 0
        assert (starts[1:] >= starts[:-1]).all()
        assert self._entries.size == starts[-1] + kernel.COPIED_AHEAD
        # Each construct has one number.
        longest = constructs.lengths_x[-1], constructs.lengths_y[-1]
        y, x, j, i = np.indices(
            (constructs.height, constructs.width, constructs.lengths_y.size, constructs.lengths_x.size)
        )
        shapes = j * constructs.lengths_x.size + i
        numbers = (x * constructs.stride_x + y * constructs.stride_y + shapes * constructs.stride_shape).ravel()
        order = np.argsort(numbers)
        assert (numbers[order] == np.arange(constructs.n_constructs)).all()
        # Each entry's construct lies within the region's cells; its flags say what it is.
        of_entry = order[np.repeat(np.arange(constructs.n_constructs), np.diff(starts))]
        entries = self._entries[: self.n_entries]
        rows = entries >> self._flag_bits
        in_part = np.zeros(rows.size, dtype=np.bool_)
        n_own, n_covered = np.ones((2, rows.size), dtype=np.int64)
        n_cells = np.ones(len(table), dtype=np.int64)
        for k, (ranges, lengths, place, number) in enumerate(
            zip(self._ranges(table), (constructs.lengths_x, constructs.lengths_y), (x, y), (i, j), strict=True)
        ):
            begin = place.ravel()[of_entry] - longest[k] + 1
            stop = begin + lengths[number.ravel()[of_entry]]
            assert (ranges.first[rows] <= begin).all()
            assert (stop <= ranges.last[rows] + 1).all()
            n_covered *= stop - begin
            in_part |= ranges.inexact_first[rows] & (begin == ranges.first[rows])
            in_part |= ranges.inexact_last[rows] & (stop == ranges.last[rows] + 1)
            n_own *= stop - self._own_begin(k, begin)
            n_cells *= ranges.last.astype(np.int64) - ranges.first + 1
        assert (in_part == (entries & kernel.IN_PART != 0)).all()
        # An entry is a candidate in each cell of its construct.
        assert self._n_candidates.sum(dtype=np.int64) == n_covered.sum()
        # A query's constructs have each of its cells once: as they are disjoint, it is enough to count.
        assert (np.bincount(rows, n_own, len(table)) == n_cells).all()

    def _own_begin(self, axis: int, begin: Int64s) -> Int64s:
        """Return from which cell on each entry counts, int64[n_entries]; ``begin`` is where its construct begins."""
        return begin


def room_for(places: Int64s) -> tuple[Int32s, Int32s, Int32s]:
    """Return the arrays that a search over ``places`` (int64[n + 1]) writes: scratch, rows and queries."""
    most = int(np.diff(places).max(initial=0))
    rows, queries = np.empty((2, places[-1]), dtype=np.int32)
    return np.empty(most + kernel.COPIED_AHEAD, dtype=np.int32), rows, queries
