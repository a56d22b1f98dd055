"""The border grid of the plane: which borders a move crosses. Pure: arrays in, numbers out.

A move goes prev → corner → cur: along x at the old y, then along y at the new x. The first leg can only cross
left and right borders, the second only lower and upper ones, so each kind of border has cells of its own:

      strip 2   |      |   ·  |      |        strips cut the axis along which a border runs,
                +------+------+------+        columns the axis that it divides;
      strip 1   |   ┆  |   ┆  | ┆    |        a border is listed in each cell (strip, column) it passes,
                +------+------+------+        so a leg reads neighbouring cells of one strip:
      strip 0   |   ┆  |   ┆  |      |        one range of `borders`
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.kernels.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

# Moves that are looked up together, so that the processor need not wait for one cell after another. One at a
# time was slower by a third where the grid outgrows the caches; 8 to 4096 were alike.
BLOCK = 64


class Cells(NamedTuple):
    """How the borders that divide one axis are sorted into cells.

    Attributes
    ----------
    n_strips, n_columns : int
        Equal steps of rank on the axis along which the borders run, and on the axis that they divide.
    first : int
        Cell (strip, column) is number ``first + strip * n_columns + column``.
    """

    n_strips: int
    n_columns: int
    first: int


# A border in a cell, in one place of memory: the border, the region's other end on the same axis, and the row
# of the query table. A column for each would be three cache lines for a cell instead of one.
ENTRY = np.dtype([("border", np.float64), ("opposite", np.float64), ("row", np.int64)])
Entries = npt.NDArray[np.void]


@njit(cache=True, inline="always")
def step_of(rank: float, n_steps: int) -> int:
    """Return which of ``n_steps`` equal steps holds ``rank`` (0..1)."""
    return min(int(rank * n_steps), n_steps - 1)


@njit(cache=True)
def count_entries(regions: Float64s, ranks: Float64s, axis: int, cells: Cells, starts: Int32s) -> None:
    """Add to ``starts[c]`` the borders dividing ``axis`` in cell c. Raises nothing; O(entries).

    Parameters
    ----------
    regions : float64[m, 2, 2]
        The query table; an infinite end has no border.
    ranks : float64[2, 2, m]
        Ranks of the lower ends on each axis, then of the upper ends.
    axis : int
        0: left and right borders; 1: lower and upper ones.
    cells : Cells
        Of that axis.
    starts : int32[n_cells + 1]
    """
    for row in range(regions.shape[0]):
        low = step_of(ranks[0, 1 - axis, row], cells.n_strips)
        high = step_of(ranks[1, 1 - axis, row], cells.n_strips)
        for end in range(2):
            if np.isfinite(regions[row, axis, end]):
                cell = cells.first + low * cells.n_columns + step_of(ranks[end, axis, row], cells.n_columns)
                for _ in range(low, high + 1):
                    starts[cell] += 1
                    cell += cells.n_columns


@njit(cache=True)
def fill_entries(regions: Float64s, ranks: Float64s, axis: int, cells: Cells, starts: Int32s, entries: Entries) -> None:
    """Write the borders dividing ``axis`` into their cells. Raises nothing; O(entries).

    Parameters
    ----------
    regions, ranks, axis, cells : as for ``count_entries``
    starts : int32[n_cells + 1]
        Where each cell of ``axis`` ends; becomes where it begins.
    entries : ENTRY[n_entries]
    """
    for row in range(regions.shape[0] - 1, -1, -1):
        low = step_of(ranks[0, 1 - axis, row], cells.n_strips)
        high = step_of(ranks[1, 1 - axis, row], cells.n_strips)
        for end in range(2):
            if np.isfinite(regions[row, axis, end]):
                cell = cells.first + low * cells.n_columns + step_of(ranks[end, axis, row], cells.n_columns)
                for _ in range(low, high + 1):
                    starts[cell] -= 1
                    entry = entries[starts[cell]]
                    entry["border"] = regions[row, axis, end]
                    entry["opposite"] = regions[row, axis, 1 - end]
                    entry["row"] = row
                    cell += cells.n_columns


@njit(cache=True, inline="always")
def _within(regions: Float64s, row: int, axis: int, value: float) -> bool:
    # & and not `and`, here and below: a branch on a region that is still on its way from memory is a guess,
    # and a wrong guess throws away the loads behind it.
    return bool((regions[row, axis, 0] <= value) & (value < regions[row, axis, 1]))


@njit(cache=True)
def crossed_queries(
    across_x: Cells,
    across_y: Cells,
    starts: Int32s,
    entries: Entries,
    regions: Float64s,
    slots: Int32s,
    previous: Float64s,
    current: Float64s,
    previous_ranks: Float64s,
    current_ranks: Float64s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that each move in the plane enters or leaves.

    Three steps for a block of moves: (1) find the range of entries of each leg, (2) keep the borders that the
    leg crosses, (3) test both points exactly. Within a step no load waits for another.

    Parameters
    ----------
    across_x, across_y : Cells
        Of axis 0 and of axis 1.
    starts : int32[n_cells + 1]
        Cell c holds entries ``starts[c]..starts[c + 1]``.
    entries : ENTRY[n_entries]
    regions : float64[m, 2, 2]
        The query table.
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    previous, current : float64[2, n]
        From where, to where; finite.
    previous_ranks, current_ranks : float64[2, n]
        Their ranks on each axis.

    Returns
    -------
    rows, queries : int32[k]
        Which of the n moves, ascending, and query slots.
    signs : int8[k]
    visits : int
        How many borders were looked at.

    Notes
    -----
    Raises nothing. That every crossing is found, and found once, is proved in docs/indexes.md.
    """
    n_moves = previous.shape[1]
    rows = np.empty(n_moves, dtype=np.int32)
    queries = np.empty(n_moves, dtype=np.int32)
    signs = np.empty(n_moves, dtype=np.int8)
    n_found, visits = 0, 0
    firsts = np.empty((BLOCK, 2), dtype=np.int32)
    stops = np.empty((BLOCK, 2), dtype=np.int32)
    crossed = np.empty(16 * BLOCK, dtype=np.int32)
    crossed_by = np.empty(16 * BLOCK, dtype=np.int32)
    for block in range(0, n_moves, BLOCK):
        n_legs = 2 * min(BLOCK, n_moves - block)
        # 1. The first leg runs along x at the old y, the second along y at the new x.
        n_entries = 0
        for b in range(n_legs // 2):
            x, y = previous_ranks[0, block + b], previous_ranks[1, block + b]
            new_x, new_y = current_ranks[0, block + b], current_ranks[1, block + b]
            strip = across_x.first + step_of(y, across_x.n_strips) * across_x.n_columns
            first = starts[strip + step_of(min(x, new_x), across_x.n_columns)]
            stop = starts[strip + step_of(max(x, new_x), across_x.n_columns) + 1]
            firsts[b, 0], stops[b, 0] = first, stop
            n_entries += stop - first
            strip = across_y.first + step_of(new_x, across_y.n_strips) * across_y.n_columns
            first = starts[strip + step_of(min(y, new_y), across_y.n_columns)]
            stop = starts[strip + step_of(max(y, new_y), across_y.n_columns) + 1]
            firsts[b, 1], stops[b, 1] = first, stop
            n_entries += stop - first
        visits += n_entries
        if n_entries > crossed.size:
            crossed = np.empty(2 * n_entries, dtype=np.int32)
            crossed_by = np.empty(2 * n_entries, dtype=np.int32)
        # 2. Written always and counted where crossed: no branch waits for a border.
        n_crossed = 0
        for leg in range(n_legs):
            axis = leg & 1
            before, after = previous[axis, block + (leg >> 1)], current[axis, block + (leg >> 1)]
            for e in range(firsts[leg >> 1, axis], stops[leg >> 1, axis]):
                border, opposite = entries[e]["border"], entries[e]["opposite"]
                crossed[n_crossed], crossed_by[n_crossed] = e, leg
                # >= and not >: a reading on a border belongs to the upper side. A leg that crosses the
                # opposite border, too, jumps over the region.
                n_crossed += ((before >= border) != (after >= border)) & ((before >= opposite) == (after >= opposite))
        # 3.
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_crossed)
        for c in range(n_crossed):
            i, axis = block + (crossed_by[c] >> 1), crossed_by[c] & 1
            row = entries[crossed[c]]["row"]
            was_x, was_y = _within(regions, row, 0, previous[0, i]), _within(regions, row, 1, previous[1, i])
            now_x, now_y = _within(regions, row, 0, current[0, i]), _within(regions, row, 1, current[1, i])
            # Where the leg passes beside the region, the other leg has it, or none.
            on_leg = now_x if axis else was_y
            now = now_x & now_y
            rows[n_found], queries[n_found], signs[n_found] = i, slots[row], 1 if now else -1
            n_found += on_leg & ((was_x & was_y) != now) & (slots[row] >= 0)
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
