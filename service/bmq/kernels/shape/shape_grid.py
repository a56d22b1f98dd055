"""Finds the shapes that a move enters or leaves. Pure: arrays in, numbers out.

A move can only change sides of a border that some way from prev to cur meets. Here the way has one corner:

      +------+------+------+
      |      |   a  |  cur |        a and b are looked at, c is not
      +------+------+--|---+
      | prev----a b-----+  |        a border in a cell that the way passes is met only
      +------+------+------+        where it meets the box of the entry, too
      |  c   |  b   |      |
      +------+------+------+

Shapes whose border may be met are tested exactly at both ends of the move.

Knows cells, moves and shapes. It must not know streams, nor how many cells there should be.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.grid_cells import step_of
from bmq.kernels.shape.shape_cells import Entries
from bmq.kernels.shape.shape_tests import Shapes, slab_at, slab_holds
from bmq.kernels.tables.buffers import make_room
from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s

# The number of moves that are looked up together, so that the processor can run many loads at once.
BLOCK = 64


@njit(cache=True)
def crossed_shapes(
    n_columns: int,
    n_rows: int,
    starts: Int32s,
    entries: Entries,
    slots: Int32s,
    shapes: Shapes,
    previous: Float64s,
    current: Float64s,
    previous_places: Int32s,
    current_places: Int32s,
    longest: int,
    last_move: Int64s,
    is_far: Bools,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that each move enters or leaves.

    The moves are handled in blocks, and each block in four steps: (1) find the runs of cells on each way, and their
    entries; (2) keep the entries whose border the way may meet; (3) keep each shape only once for a move; (4) test both
    ends exactly. Within a step no load depends on another one.

    Parameters
    ----------
    n_columns, n_rows : int
        How many columns and rows of cells there are.
    starts : int32[n_cells + 1]
        Cell c lists ``entries[starts[c]:starts[c + 1]]``.
    entries : ENTRY[n_entries + 1]
        The last one belongs to no cell: the kernel reads the first entry of a cell before it knows whether there is
        one.
    slots : int32[m]
        The query slot of each row; negative if the query was deregistered.
    shapes : Shapes
    previous, current : float64[2, n]
        Where each move begins and ends; finite.
    previous_places, current_places : int32[2, n]
        The places of these values, from `kernels.border.ranks.places_of`.
    longest : int
        A move whose way has more cells than this is not looked at.
    last_move : int64[m]
        Zeros on entry; written: 1 + the number of the last move that looked at each row.
    is_far : bool[n]
        Written: whether the move was not looked at.

    Returns
    -------
    rows, queries : int32[k]
        The number of the move, ascending, and the query slot.
    signs : int8[k]
        +1 if the move enters the query's region, -1 if it leaves it.
    visits : int
        How many entries were looked at.

    Notes
    -----
    Raises nothing. A stream whose way does not meet a shape's border does not change sides of it, so any way may be
    used for the search. A border that the way meets in a cell is listed in that cell, because places never fall as
    values rise.
    """
    n_moves = previous.shape[1]
    rows = np.empty(n_moves, dtype=np.int32)
    queries = np.empty(n_moves, dtype=np.int32)
    signs = np.empty(n_moves, dtype=np.int8)
    n_found, visits = 0, 0
    # For each run of cells: its first cell and the one after its last, later its entries instead; and the move of the
    # run.
    firsts = np.empty((longest + 1) * BLOCK, dtype=np.int64)
    stops = np.empty((longest + 1) * BLOCK, dtype=np.int64)
    run_moves = np.empty((longest + 1) * BLOCK, dtype=np.int64)
    touched = np.empty((longest + 1) * BLOCK, dtype=np.int32)  # never read: writing it loads what comes next
    touched_edges = np.empty(64 * BLOCK, dtype=np.float64)
    met_rows, met_moves = np.empty(64 * BLOCK, dtype=np.int64), np.empty(64 * BLOCK, dtype=np.int64)
    met_slots = np.empty(64 * BLOCK, dtype=np.int64)
    # For each candidate: the edges at the height of prev, then those at the height of cur.
    starts_of_edges = np.empty((2, 64 * BLOCK), dtype=np.int64)
    stops_of_edges = np.empty((2, 64 * BLOCK), dtype=np.int64)
    for block in range(0, n_moves, BLOCK):
        # 1. Find the runs of cells on each way, and their entries.
        n_runs = 0
        for i in range(block, min(block + BLOCK, n_moves)):
            from_column = step_of(previous_places[0, i], n_columns)
            to_column = step_of(current_places[0, i], n_columns)
            from_line, to_line = step_of(previous_places[1, i], n_rows), step_of(current_places[1, i], n_rows)
            is_far[i] = abs(to_column - from_column) + abs(to_line - from_line) >= longest
            if is_far[i]:
                continue
            line = from_line * n_columns
            firsts[n_runs], stops[n_runs] = line + min(from_column, to_column), line + max(from_column, to_column) + 1
            run_moves[n_runs] = i
            n_runs += 1
            # Along the column of cur, without the corner, which is in the first run.
            for line in range(min(from_line, to_line), max(from_line, to_line) + 1):
                if line != from_line:
                    cell = line * n_columns + to_column
                    firsts[n_runs], stops[n_runs], run_moves[n_runs] = cell, cell + 1, i
                    n_runs += 1
        # Each kind of load has a loop of its own, so that many loads run at once.
        n_entries = 0
        for run in range(n_runs):
            firsts[run], stops[run] = starts[firsts[run]], starts[stops[run]]
            n_entries += stops[run] - firsts[run]
        for run in range(n_runs):
            touched[run] = entries[firsts[run]]["row"]
        visits += n_entries
        if n_entries > met_rows.size:
            met_rows, met_moves = np.empty(2 * n_entries, dtype=np.int64), np.empty(2 * n_entries, dtype=np.int64)
            met_slots = np.empty(2 * n_entries, dtype=np.int64)
            touched_edges = np.empty(2 * n_entries, dtype=np.float64)
            starts_of_edges = np.empty((2, 2 * n_entries), dtype=np.int64)
            stops_of_edges = np.empty((2, 2 * n_entries), dtype=np.int64)
        # 2. Keep the entries whose border the way may meet. Each is written and then counted only if it is kept, so
        # that no branch has to wait for an entry to be loaded.
        n_met = 0
        for run in range(n_runs):
            i = run_moves[run]
            from_x, to_x = previous_places[0, i], current_places[0, i]
            from_y, to_y = previous_places[1, i], current_places[1, i]
            min_x, max_x, min_y, max_y = min(from_x, to_x), max(from_x, to_x), min(from_y, to_y), max(from_y, to_y)
            for e in range(firsts[run], stops[run]):
                low_x, high_x = entries[e]["low_x"], entries[e]["high_x"]
                low_y, high_y = entries[e]["low_y"], entries[e]["high_y"]
                met_rows[n_met], met_moves[n_met] = entries[e]["row"], i
                is_met = (low_y <= from_y) & (from_y <= high_y) & (low_x <= max_x) & (min_x <= high_x)
                n_met += is_met | ((low_x <= to_x) & (to_x <= high_x) & (low_y <= max_y) & (min_y <= high_y))
        # 3. Keep each shape only once for a move.
        n_new = 0
        for k in range(n_met):
            row, i = met_rows[k], met_moves[k]
            slot = slots[row]
            met_slots[n_new], met_moves[n_new] = slot, i
            n_new += (last_move[row] != i + 1) & (slot >= 0)
            last_move[row] = i + 1
        # 4. Test both ends exactly.
        for k in range(n_new):
            slot, i = met_slots[k], met_moves[k]
            starts_of_edges[0, k] = slab_at(shapes, slot, previous[1, i])
            starts_of_edges[1, k] = slab_at(shapes, slot, current[1, i])
        for k in range(n_new):
            for end in range(2):
                slab = starts_of_edges[end, k]
                starts_of_edges[end, k], stops_of_edges[end, k] = shapes.slabs[slab], shapes.slabs[slab + 1]
        for k in range(n_new):
            touched_edges[k] = shapes.edges[starts_of_edges[0, k], 0] + shapes.edges[starts_of_edges[1, k], 3]
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_new)
        for k in range(n_new):
            slot, i = met_slots[k], met_moves[k]
            was = slab_holds(shapes, slot, starts_of_edges[0, k], stops_of_edges[0, k], previous[0, i], previous[1, i])
            now = slab_holds(shapes, slot, starts_of_edges[1, k], stops_of_edges[1, k], current[0, i], current[1, i])
            rows[n_found], queries[n_found], signs[n_found] = i, slot, 2 * now - 1
            n_found += was != now
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
