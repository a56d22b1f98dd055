"""The border grid: which borders a move crosses. Pure: arrays in, numbers out.

A move goes from prev to cur in d legs, along one axis after another: leg k runs along axis k, at the new values
of the axes before k and at the old values of those behind. In the plane that is prev → corner → cur. Leg k can
only cross borders that divide axis k, and `grid_cells` has them sorted.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.grid_cells import Cells, Entries, step_of
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

# Moves that are looked up together, so that the processor need not wait for one cell after another. One at a
# time was slower by a third where the grid outgrows the caches; 8 to 4096 were alike.
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

    Three steps for a block of moves: (1) find the range of entries of each leg, (2) keep the borders that the
    leg may cross, (3) test both points exactly. Within a step no load waits for another.

    Parameters
    ----------
    cells : Cells[d]
        Of each axis. A tuple, so that its length is known when the loops over the axes are compiled.
    starts : int32[n_cells + 1]
        Cell c holds entries ``starts[c]..starts[c + 1]``.
    entries : ENTRY[n_entries + 1]
    regions : float64[m, d, 2]
        The query table.
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    previous, current : float64[d, n]
        From where, to where; finite.
    previous_places, current_places : int32[d, n]
        Their places on each axis, from `kernels.border.ranks.places_of`.

    Returns
    -------
    rows, queries : int32[k]
        Which of the n moves, ascending, and query slots.
    signs : int8[k]
    visits : int
        How many entries were looked at.

    Notes
    -----
    Raises nothing. That every crossing is found, and found once, is proved in docs/indexes.md.
    """
    n_dims, n_moves = len(cells), previous.shape[1]
    rows = np.empty(n_moves, dtype=np.int32)
    queries = np.empty(n_moves, dtype=np.int32)
    signs = np.empty(n_moves, dtype=np.int8)
    n_found, visits = 0, 0
    # Flat, and indexed with a number of axes that the compiler knows: a third fewer instructions in step 3.
    ends = regions.reshape(-1)
    points = np.empty(2 * n_dims * BLOCK, dtype=np.float64)
    # Of each leg: its cells, later its entries; the places between which it runs; 2 * its number + 1 if upward.
    firsts, stops = np.empty(n_dims * BLOCK, dtype=np.uint32), np.empty(n_dims * BLOCK, dtype=np.uint32)
    lows, highs = np.empty(n_dims * BLOCK, dtype=np.int32), np.empty(n_dims * BLOCK, dtype=np.int32)
    touched = np.empty(n_dims * BLOCK, dtype=np.int32)  # only to have read what step 2 needs
    legs = np.empty(n_dims * BLOCK, dtype=np.uint32)
    crossed = np.empty(16 * BLOCK, dtype=np.uint32)
    crossed_by = np.empty(16 * BLOCK, dtype=np.uint32)
    for block in range(0, n_moves, BLOCK):
        n_legs = n_dims * min(BLOCK, n_moves - block)
        # 1.
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
        # Each load alone in its loop, so that many are on their way at once: over 100,000 squares, a third less time.
        for leg in range(n_legs):
            firsts[leg], stops[leg] = starts[firsts[leg]], starts[stops[leg]]
            n_entries += stops[leg] - firsts[leg]
        for leg in range(n_legs):
            touched[leg] = entries[firsts[leg]]["border"]
        visits += n_entries
        if n_entries > crossed.size:
            crossed = np.empty(2 * n_entries, dtype=np.uint32)
            crossed_by = np.empty(2 * n_entries, dtype=np.uint32)
        # 2. Written always and counted where crossed: no branch waits for a border.
        n_crossed = 0
        for leg in range(n_legs):
            low, high, leg_and_way = lows[leg], highs[leg], legs[leg]
            for entry in range(firsts[leg], stops[leg]):
                border, opposite = entries[entry]["border"], entries[entry]["opposite"]
                crossed[n_crossed], crossed_by[n_crossed] = entry, leg_and_way
                # A border in a place where the leg ends may be crossed or not. One between those places is:
                # if the opposite border is, the leg jumps over the region, or that border's entry finds it.
                n_crossed += (low <= border) & (border <= high) & ((opposite <= low) | (high <= opposite))
        # 3.
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_crossed)
        for c in range(n_crossed):
            leg, upward = crossed_by[c] >> 1, crossed_by[c] & 1
            b, axis = leg // n_dims, leg % n_dims
            row, is_upper = entries[crossed[c]]["row_and_end"] >> 1, entries[crossed[c]]["row_and_end"] & 1
            was, now, on_leg = True, True, True
            # & and not `and`: a branch on a region that is still on its way from memory is a guess, and a wrong
            # guess throws away the loads behind it.
            for k in range(n_dims):
                lo, hi = ends[2 * (n_dims * row + k)], ends[2 * (n_dims * row + k) + 1]
                before, after = points[2 * n_dims * b + k], points[2 * n_dims * b + n_dims + k]
                was_k, now_k = (lo <= before) & (before < hi), (lo <= after) & (after < hi)
                was, now = was & was_k, now & now_k
                # The leg is at the new values before its axis, at the old ones behind, and changes its own.
                on_leg &= (was_k & (k >= axis)) ^ (now_k & (k <= axis))
            rows[n_found], queries[n_found], signs[n_found] = block + b, slots[row], 2 * now - 1
            # A region is entered upward by its lower border, and so on: the other one does not report it.
            n_found += on_leg & (was != now) & ((is_upper ^ upward) == now) & (slots[row] >= 0)
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
