"""Overlapped decomposition: query lists of constructs of one size, of which the last overlaps the one before.

An entry is a row of the query table and three flags, in one number: ``row << 3 | flags``.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, section 3.3.
"""

from typing import ClassVar

import numpy as np
from numba import njit

from bmq.index.match.construct_lists import ConstructLists, room_for
from bmq.index.packed import PackedQueries
from bmq.kernels.border.cross_check import holds
from bmq.kernels.match.construct_lists import IN_PART, close_gaps, construct_of, gather_entries
from bmq.kernels.match.virtual_constructs import CellRanges, Constructs, Pieces, UInt32s, empty_pieces, put_piece
from bmq.records import Bools, Float64s, Int32s, Int64s

FLAG_BITS = 3
FLAGS = (1 << FLAG_BITS) - 1
# Beside IN_PART: the construct overlaps, in x or in y, the one before it.
SHIFTED_X, SHIFTED_Y = 2, 4


class OverlappedLists(ConstructLists):
    """The query lists of an overlapped decomposition. Memory: 8 bytes a query more than `ConstructLists`."""

    _flag_bits: ClassVar[int] = FLAG_BITS

    def _pieces(self, table: PackedQueries) -> tuple[Pieces, Pieces]:
        in_x, in_y = self._ranges(table)
        pieces_x, self._shifted_x, own_from_x = cut_overlapped(in_x, self.constructs.lengths_x)
        pieces_y, self._shifted_y, own_from_y = cut_overlapped(in_y, self.constructs.lengths_y)
        self._own_from: Int32s = np.stack((own_from_x, own_from_y))
        return pieces_x, pieces_y

    def _fill(self, pieces_x: Pieces, pieces_y: Pieces) -> None:
        fill_shifted(self.constructs, pieces_x, pieces_y, self._shifted_x, self._shifted_y, self._starts, self._entries)
        del self._shifted_x, self._shifted_y

    @property
    def nbytes(self) -> int:
        """Bytes of the lists, of the cells' counts, of the difference table, and of where shifted constructs count."""
        return super().nbytes + self._own_from.nbytes

    def _search(
        self, table: PackedQueries, values: Float64s, cells: Int32s, pivots: UInt32s, places: Int64s
    ) -> tuple[Int32s, Int32s]:
        gathered, rows, queries = room_for(places)
        n_found = matching_once(
            self._starts,
            self._entries,
            self._firsts,
            self._stops,
            self._own_from,
            table.regions,
            table.slots,
            values,
            cells,
            pivots,
            np.argsort(pivots),
            places,
            gathered,
            rows,
            queries,
        )
        return rows[:n_found], queries[:n_found]

    def _own_begin(self, axis: int, begin: Int64s) -> Int64s:
        entries = self._entries[: self.n_entries]
        shifted = entries & (SHIFTED_X, SHIFTED_Y)[axis] != 0
        own: Int64s = np.where(shifted, self._own_from[axis][entries >> FLAG_BITS], begin)
        return own


@njit(cache=True)
def count_overlapped(ranges: CellRanges, lengths: Int64s) -> Int64s:
    """Return how many pieces ``cut_overlapped`` makes of each range, int64[m]. Raises nothing."""
    counts = np.zeros(ranges.first.size, dtype=np.int64)
    for r in range(counts.size):
        n_cells = ranges.last[r] - ranges.first[r] + 1
        length = lengths[_longest_within(lengths, n_cells)]
        counts[r] = (n_cells + length - 1) // length
    return counts


@njit(cache=True, inline="always")
def _longest_within(lengths: Int64s, n_cells: int) -> int:
    number = lengths.size - 1
    while lengths[number] > n_cells:
        number -= 1
    return number


@njit(cache=True)
def cut_overlapped(ranges: CellRanges, lengths: Int64s) -> tuple[Pieces, Bools, Int32s]:
    """Return the ranges as pieces of one length each, the last shifted back to end with the range. O(pieces).

    Returns
    -------
    pieces : Pieces
    shifted : bool[n_pieces]
        Whether the piece overlaps the one before it.
    own_from : int32[m]
        The first cell of each range that only its last piece has, if that piece is shifted.

    Notes
    -----
    Raises nothing. Source: section 3.3 (overlapped decomposition, each axis): the length is the longest that fits.
    """
    pieces = empty_pieces(count_overlapped(ranges, lengths))
    shifted = np.zeros(pieces.cells.size, dtype=np.bool_)
    own_from = np.zeros(ranges.first.size, dtype=np.int32)
    for r in range(ranges.first.size):
        n_cells = ranges.last[r] - ranges.first[r] + 1
        number = _longest_within(lengths, n_cells)
        length = lengths[number]
        own_from[r] = ranges.first[r] + n_cells // length * length
        for p in range(pieces.starts[r], pieces.starts[r + 1]):
            cell = ranges.first[r] + (p - pieces.starts[r]) * length
            shifted[p] = cell + length - 1 > ranges.last[r]
            put_piece(pieces, p, ranges, r, ranges.last[r] - length + 1 if shifted[p] else cell, number, length)
    return pieces, shifted, own_from


@njit(cache=True)
def fill_shifted(
    constructs: Constructs,
    pieces_x: Pieces,
    pieces_y: Pieces,
    shifted_x: Bools,
    shifted_y: Bools,
    starts: UInt32s,
    entries: Int32s,
) -> None:
    """Write the regions' rows into the lists of their constructs, as `fill_entries`. Raises nothing; O(entries).

    ``shifted_x`` and ``shifted_y`` come from ``cut_overlapped``.
    """
    for row in range(pieces_x.starts.size - 2, -1, -1):
        for y in range(pieces_y.starts[row], pieces_y.starts[row + 1]):
            for x in range(pieces_x.starts[row], pieces_x.starts[row + 1]):
                construct = construct_of(constructs, pieces_x, pieces_y, x, y)
                flags = IN_PART * (pieces_x.inexact[x] | pieces_y.inexact[y])
                flags += SHIFTED_X * shifted_x[x] + SHIFTED_Y * shifted_y[y]
                starts[construct] -= 1
                entries[starts[construct]] = row << FLAG_BITS | flags


@njit(cache=True)
def matching_once(
    starts: UInt32s,
    entries: Int32s,
    firsts: UInt32s,
    stops: UInt32s,
    own_from: Int32s,
    regions: Float64s,
    slots: Int32s,
    values: Float64s,
    cells: Int32s,
    pivots: UInt32s,
    order: Int64s,
    places: Int64s,
    gathered: Int32s,
    rows: Int32s,
    queries: Int32s,
) -> int:
    """Find the queries that hold each value, each once; return how many.

    As `bmq.kernels.match.construct_lists.matching_queries`. But a value may lie in a shifted construct and in the one
    before it. An entry of a shifted construct has a flag, and counts only from the first cell that the construct before
    does not have.

    Parameters
    ----------
    own_from : int32[2, m]
        In x and in y: the first cell of each query that only its last construct has, if that construct is shifted.
    cells : int32[2, n]
        The cells of the values.

    Notes
    -----
    Raises nothing.
    """
    kept_until = np.empty(order.size, dtype=np.int64)
    for i in order:
        n_gathered = gather_entries(starts, entries, firsts, stops, pivots[i], gathered)
        place = np.uint64(places[i])
        for g in range(n_gathered):
            entry = np.uint32(gathered[g])
            row = entry >> np.uint32(FLAG_BITS)
            flags = entry & np.uint32(FLAGS)
            slot = slots[row]
            kept = slot >= 0
            if flags:
                if flags & np.uint32(SHIFTED_X):
                    kept &= cells[0, i] >= own_from[0, row]
                if flags & np.uint32(SHIFTED_Y):
                    kept &= cells[1, i] >= own_from[1, row]
                if flags & np.uint32(IN_PART):
                    kept &= holds(regions, int(row), values, i)
            queries[place] = slot
            place += np.uint64(kept)
        kept_until[i] = place
    return close_gaps(places, kept_until, rows, queries)
