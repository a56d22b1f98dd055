"""The border grid: finds the borders that a move crosses. Pure: arrays in, numbers out.

A move goes from prev to cur in d legs, one axis after another. Leg k runs along axis k. On the axes before k it is at
the values of cur, on the axes after k it is still at the values of prev. In the plane the way is prev → corner → cur.
Leg k can only cross borders that divide axis k, and `kernels.border.grid_cells` keeps those sorted into cells.

Knows moves, cells and the query table. It must not know streams, nor how fine the cells are chosen.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.grid_cells import Cells, Entries, step_of
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

# The number of moves that are looked up together, so that the processor can load one cell while it waits for others.
# Moves one at a time took a third longer on grids larger than the caches; sizes from 8 to 4096 were equally fast.
BLOCK = 64


@njit(cache=True)
def crossed_queries(
    cells: tuple[Cells, ...],
    starts: Int32s,
    entries: Entries,
    regions: Float64s,
    slots: Int32s,
    previous: Float64s,
    current: Float64s,
    previous_places: Int32s,
    current_places: Int32s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that each move enters or leaves.

    The moves are handled in blocks, and each block in three steps: (1) find the range of entries of each leg, (2) keep
    the borders that the leg may cross, (3) test both ends of the move exactly. Within a step no load depends on another
    one.

    Parameters
    ----------
    cells : Cells[d]
        How the borders that divide each axis are sorted. A tuple, so that its length is known when numba compiles the
        loops over the axes.
    starts : int32[n_cells + 1]
        Cell c holds entries ``starts[c]..starts[c + 1]``.
    entries : ENTRY[n_entries + 1]
        The last one belongs to no cell: the kernel reads the first entry of a leg before it knows whether there is one.
    regions : float64[m, d, 2]
        The query table: the lower and the upper border of each row on each axis.
    slots : int32[m]
        The query slot of each row; negative if the query was deregistered.
    previous, current : float64[d, n]
        Where each move begins and ends; finite.
    previous_places, current_places : int32[d, n]
        The places of these values on each axis, from `kernels.border.ranks.places_of`.

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
    Raises nothing. docs/indexes.md proves that every crossing is found, and found only once.
    """
    n_dims, n_moves = len(cells), previous.shape[1]
    rows = np.empty(n_moves, dtype=np.int32)
    queries = np.empty(n_moves, dtype=np.int32)
    signs = np.empty(n_moves, dtype=np.int8)
    n_found, visits = 0, 0
    # A flat array, indexed with a number of axes that the compiler knows: step 3 then takes a third fewer instructions.
    ends = regions.reshape(-1)
    points = np.empty(2 * n_dims * BLOCK, dtype=np.float64)
    # For each leg: its first cell and the one after its last, later its entries instead; the least and the greatest
    # place on its way; and 2 * its number, + 1 if it runs upward.
    firsts, stops = np.empty(n_dims * BLOCK, dtype=np.uint32), np.empty(n_dims * BLOCK, dtype=np.uint32)
    lows, highs = np.empty(n_dims * BLOCK, dtype=np.int32), np.empty(n_dims * BLOCK, dtype=np.int32)
    touched = np.empty(n_dims * BLOCK, dtype=np.int32)  # never read: writing it loads what step 2 needs
    legs = np.empty(n_dims * BLOCK, dtype=np.uint32)
    crossed = np.empty(16 * BLOCK, dtype=np.uint32)
    crossed_by = np.empty(16 * BLOCK, dtype=np.uint32)
    for block in range(0, n_moves, BLOCK):
        n_legs = n_dims * min(BLOCK, n_moves - block)
        # 1. Find the range of entries of each leg.
        n_entries = 0
        for b in range(min(BLOCK, n_moves - block)):
            for axis in range(n_dims):
                leg, i, partner = n_dims * b + axis, block + b, cells[axis].partner
                before, after = previous_places[axis, i], current_places[axis, i]
                low, high = min(before, after), max(before, after)
                at = current_places[partner, i] if partner < axis else previous_places[partner, i]
                strip = cells[axis].first + step_of(at, cells[axis].n_strips) * cells[axis].n_columns
                lows[leg], highs[leg] = low, high
                firsts[leg] = strip + step_of(low, cells[axis].n_columns)
                stops[leg] = strip + step_of(high, cells[axis].n_columns) + 1
                legs[leg] = 2 * leg + (previous[axis, i] < current[axis, i])
                points[2 * n_dims * b + axis] = previous[axis, i]
                points[2 * n_dims * b + n_dims + axis] = current[axis, i]
        # Each kind of load has a loop of its own, so that many loads run at once: a third less time over 100,000
        # squares.
        for leg in range(n_legs):
            firsts[leg], stops[leg] = starts[firsts[leg]], starts[stops[leg]]
            n_entries += stops[leg] - firsts[leg]
        for leg in range(n_legs):
            touched[leg] = entries[firsts[leg]]["border"]
        visits += n_entries
        if n_entries > crossed.size:
            crossed = np.empty(2 * n_entries, dtype=np.uint32)
            crossed_by = np.empty(2 * n_entries, dtype=np.uint32)
        # 2. Keep the borders that the leg may cross. Each is written and then counted only if it is crossed, so that no
        # branch has to wait for a border to be loaded.
        n_crossed = 0
        for leg in range(n_legs):
            low, high, leg_and_way = lows[leg], highs[leg], legs[leg]
            for entry in range(firsts[leg], stops[leg]):
                border, opposite = entries[entry]["border"], entries[entry]["opposite"]
                crossed[n_crossed], crossed_by[n_crossed] = entry, leg_and_way
                # The leg may or may not cross a border whose place is that of an end of the leg. It does cross every
                # border at a place between these two. So a border is dropped if its opposite border is at a place
                # between them: either the leg jumps over the region, or the entry of the opposite border finds the
                # crossing.
                n_crossed += (low <= border) & (border <= high) & ((opposite <= low) | (high <= opposite))
        # 3. Test both ends of the move exactly.
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_crossed)
        for c in range(n_crossed):
            leg, upward = crossed_by[c] >> 1, crossed_by[c] & 1
            b, axis = leg // n_dims, leg % n_dims
            row, is_upper = entries[crossed[c]]["row_and_end"] >> 1, entries[crossed[c]]["row_and_end"] & 1
            was, now, on_leg = True, True, True
            # & and not `and`: `and` is a branch, and the processor would have to guess it while the region is still
            # being loaded. A wrong guess throws away the loads behind it.
            for k in range(n_dims):
                lo, hi = ends[2 * (n_dims * row + k)], ends[2 * (n_dims * row + k) + 1]
                before, after = points[2 * n_dims * b + k], points[2 * n_dims * b + n_dims + k]
                was_k, now_k = (lo <= before) & (before < hi), (lo <= after) & (after < hi)
                was, now = was & was_k, now & now_k
                # The leg is at the new values on the axes before its own, at the old ones after it, and changes its own
                # axis.
                on_leg &= (was_k & (k >= axis)) ^ (now_k & (k <= axis))
            rows[n_found], queries[n_found], signs[n_found] = block + b, slots[row], 2 * now - 1
            # An upward leg enters a region by its lower border and leaves it by its upper one, and a downward leg the
            # other way round. The opposite border does not report the crossing, so it is found only once.
            n_found += on_leg & (was != now) & ((is_upper ^ upward) == now) & (slots[row] >= 0)
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
