"""Cells of the plane that list the shapes whose border passes through them. Pure: arrays in, numbers out.

Whoever stays clear of a shape's border does not change sides. So a move only has to look at the cells on some way
from prev to cur, here by the corner (cur's x, prev's y), and test both ends of what these list:

      +------+------+------+
      |      |   a  |  cur |      row by row: cell (row, column) is number ``row * n_columns + column``
      +------+------+--|---+
      | prev----a b-----+  |      a and b are looked at, c is not
      +------+------+------+
      |  c   |  b   |      |
      +------+------+------+

The border is cut into parts, and a part is listed in all cells that its bounding box meets: more than it passes
through, and never fewer.
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.kernels.buffers import make_room
from bmq.kernels.grid_cells import step_of
from bmq.kernels.shapes import EARTH_RADIUS_METRES, POLYGON, Shapes, edges_of, slab_at, slab_holds
from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s

# A circle is cut into slices of equal angle, on both sides; 32 of them list a circle that is 10 cells wide in a
# third more cells than its border meets.
SLICES = 32
# How far the test of a float may be from the true border, as a share of the coordinates: its error is below 16
# roundings, of 2 ** -53 each.
SLACK = 2.0**-48
CIRCLE_SLACK = 2.0**-30  # of sines and square roots; as a share of the coordinates and the radius

# What a cell lists: a row of the query table, and the places between which its border is there.
ENTRY = np.dtype([(name, np.int32) for name in ("row", "low_x", "high_x", "low_y", "high_y")])
Entries = npt.NDArray[np.void]

# Moves that are looked up together, so that the processor need not wait for one load after another.
BLOCK = 64


@njit(cache=True)
def border_segments(shapes: Shapes, slots: Int32s, on_globe: bool) -> tuple[Float64s, Int32s, Bools]:
    """Return what the borders of shapes are made of.

    Parameters
    ----------
    shapes : Shapes
    slots : int32[m]
        Query slots by row; a negative one has no border.
    on_globe : bool
        Whether x and y are longitude and latitude.

    Returns
    -------
    segments : float64[5, k]
        x and y of one end, of the other end, and how far the tested border may be from the true one.
    rows : int32[k]
        Ascending.
    is_straight : bool[k]
        Whether the border is the line between both ends, else it is anywhere in the box that has them as corners.

    Notes
    -----
    Raises nothing. A slice of a circle lies between two latitudes (or y); its half-width changes from that of one
    to that of the other, and where the circle is widest up to the largest one.
    """
    n_segments = 0
    for slot in slots:
        if slot >= 0:
            start, stop = edges_of(shapes, slot)
            n_segments += stop - start if shapes.records[slot]["kind"] == POLYGON else 2 * SLICES
    segments = np.empty((5, n_segments), dtype=np.float64)
    rows = np.empty(n_segments, dtype=np.int32)
    is_straight = np.empty(n_segments, dtype=np.bool_)
    # Degrees are compared after 360 was added, perhaps.
    least_scale = 360.0 if on_globe else 0.0
    k = 0
    for row in range(slots.size):
        slot = slots[row]
        if slot < 0:
            continue
        start, stop = edges_of(shapes, slot)
        if shapes.records[slot]["kind"] == POLYGON:
            for e in range(start, stop):
                segments[:4, k] = shapes.edges[e]
                segments[4, k] = SLACK * max(least_scale, np.abs(shapes.edges[e]).max())
                rows[k], is_straight[k] = row, True
                k += 1
            continue
        x, y, radius = shapes.edges[start, 0], shapes.edges[start, 1], shapes.edges[start, 2]
        if on_globe:
            radius = math.degrees(radius / EARTH_RADIUS_METRES)
        slack = CIRCLE_SLACK * (max(abs(x), abs(y), least_scale) + radius)
        # On the globe a circle is widest beyond its centre's latitude.
        widest_y = _widest_latitude(y, radius) if on_globe else y
        low_y, low_width = y - radius, 0.0
        for part in range(SLICES):
            high_y = y + radius if part == SLICES - 1 else y - radius * math.cos(math.pi * (part + 1) / SLICES)
            high_width = _half_width(on_globe, y, radius, high_y)
            wide, narrow = max(low_width, high_width), min(low_width, high_width)
            if low_y <= widest_y <= high_y:
                wide = max(wide, _half_width(on_globe, y, radius, widest_y))
            for side in (-1.0, 1.0):
                segments[0, k], segments[1, k] = x + side * narrow, low_y
                segments[2, k], segments[3, k] = x + side * wide, high_y
                segments[4, k], rows[k], is_straight[k] = slack, row, False
                k += 1
            low_y, low_width = high_y, high_width
    return segments, rows, is_straight


@njit(cache=True)
def _half_width(on_globe: bool, y: float, radius: float, at: float) -> float:
    """Return half the width of a circle around (any, ``y``) at ``at``; all in degrees on the globe."""
    if not on_globe:
        return math.sqrt(max(0.0, radius * radius - (at - y) * (at - y)))
    lat, centre = math.radians(at), math.radians(y)
    cosine = (math.cos(math.radians(radius)) - math.sin(lat) * math.sin(centre)) / (math.cos(lat) * math.cos(centre))
    return math.degrees(math.acos(min(1.0, max(-1.0, cosine))))


@njit(cache=True)
def _widest_latitude(lat: float, radius: float) -> float:
    """Return the latitude at which a circle on the globe is widest; all three in degrees."""
    return math.degrees(math.asin(math.sin(math.radians(lat)) / math.cos(math.radians(radius))))


@njit(cache=True)
def parts_of(
    segments: Float64s, rows: Int32s, is_straight: Bools, n_parts: Int32s, on_globe: bool
) -> tuple[Float64s, Float64s, Int32s]:
    """Return boxes that together hold every border.

    Parameters
    ----------
    segments, rows, is_straight : from ``border_segments``
    n_parts : int32[k]
        Into how many boxes to cut each segment that is straight.
    on_globe : bool
        Whether boxes that reach beyond longitudes -180 and 180 come back on the other side.

    Returns
    -------
    lows, highs : float64[2, n]
    rows : int32[n]
        Ascending.

    Notes
    -----
    Raises nothing.
    """
    n_most = 0
    for k in range(rows.size):
        n_most += (3 if on_globe else 1) * (n_parts[k] if is_straight[k] else 1)
    lows = np.empty((2, n_most), dtype=np.float64)
    highs = np.empty((2, n_most), dtype=np.float64)
    rows_of_parts = np.empty(n_most, dtype=np.int32)
    n = 0
    for k in range(rows.size):
        from_x, from_y, to_x, to_y, slack = segments[:, k]
        n_of_this = n_parts[k] if is_straight[k] else 1
        begin_x, begin_y = from_x, from_y
        for part in range(n_of_this):
            share = (part + 1) / n_of_this
            # Not from the step: the last one has to end where the segment does.
            end_x = to_x if part == n_of_this - 1 else from_x + share * (to_x - from_x)
            end_y = to_y if part == n_of_this - 1 else from_y + share * (to_y - from_y)
            low_x, high_x = min(begin_x, end_x) - slack, max(begin_x, end_x) + slack
            low_y, high_y = min(begin_y, end_y) - slack, max(begin_y, end_y) + slack
            for turn in range(-1 if on_globe else 0, 2 if on_globe else 1):
                low, high = low_x + 360.0 * turn, high_x + 360.0 * turn
                if on_globe and (high < -180.0 or low > 180.0):
                    continue
                lows[0, n], highs[0, n] = low, high
                lows[1, n], highs[1, n] = low_y, high_y
                rows_of_parts[n] = rows[k]
                n += 1
            begin_x, begin_y = end_x, end_y
    return lows[:, :n].copy(), highs[:, :n].copy(), rows_of_parts[:n]


@njit(cache=True)
def listed_entries(
    low_places: Int32s, high_places: Int32s, rows: Int32s, n_columns: int, n_rows: int, last_entry: Int32s
) -> tuple[Int32s, Entries]:
    """Return what the cells list: each row once in a cell, with the box around all its parts there.

    Parameters
    ----------
    low_places, high_places : int32[2, n]
        Of the ends of boxes, from `kernels.ranks.places_of`.
    rows : int32[n]
        Whose boxes they are, ascending.
    n_columns, n_rows : int
    last_entry : int32[n_cells]
        Any numbers; written: the last entry of each cell.

    Returns
    -------
    cells : int32[k]
    entries : ENTRY[k]

    Notes
    -----
    Raises nothing. O(cells that the boxes meet).
    """
    cells = np.empty(2 * rows.size + 16, dtype=np.int32)
    entries = np.empty(2 * rows.size + 16, dtype=ENTRY)
    n = 0
    for part in range(rows.size):
        low_x, high_x = low_places[0, part], high_places[0, part]
        low_y, high_y = low_places[1, part], high_places[1, part]
        for line in range(step_of(low_y, n_rows), step_of(high_y, n_rows) + 1):
            for column in range(step_of(low_x, n_columns), step_of(high_x, n_columns) + 1):
                cell = line * n_columns + column
                last = last_entry[cell]
                if 0 <= last < n and cells[last] == cell and entries[last]["row"] == rows[part]:
                    entry = entries[last]
                    entry["low_x"], entry["high_x"] = min(entry["low_x"], low_x), max(entry["high_x"], high_x)
                    entry["low_y"], entry["high_y"] = min(entry["low_y"], low_y), max(entry["high_y"], high_y)
                    continue
                if n == cells.size:
                    cells = np.append(cells, np.empty(n, dtype=np.int32))
                    longer = np.empty(2 * n, dtype=ENTRY)
                    longer[:n] = entries
                    entries = longer
                last_entry[cell], cells[n] = n, cell
                entry = entries[n]
                entry["row"], entry["low_x"], entry["high_x"] = rows[part], low_x, high_x
                entry["low_y"], entry["high_y"] = low_y, high_y
                n += 1
    return cells[:n], entries[:n]


@njit(cache=True)
def sort_by_cell(cells: Int32s, listed: Entries, stops: Int32s, entries: Entries) -> None:
    """Write each of ``listed`` to its cell. Raises nothing; O(k).

    Parameters
    ----------
    cells : int32[k]
    listed : ENTRY[k]
    stops : int32[n_cells + 1]
        Where each cell ends; becomes where it begins.
    entries : ENTRY[k + 1]
        Written; one more than the cells hold, as ``crossed_shapes`` needs.
    """
    for k in range(cells.size - 1, -1, -1):
        stops[cells[k]] -= 1
        entries[stops[cells[k]]] = listed[k]


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

    Four steps for a block of moves: (1) find the runs of cells on each way, and their entries; (2) keep those whose
    border the way may meet; (3) and that have an end in their bounding box; (4) test both ends exactly.

    Parameters
    ----------
    n_columns, n_rows : int
    starts : int32[n_cells + 1]
        Cell c lists ``entries[starts[c]:starts[c + 1]]``.
    entries : ENTRY[n_entries + 1]
        The first entry of a cell is read before it is known whether it has one.
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    shapes : Shapes
    previous, current : float64[2, n]
        From where, to where; finite.
    previous_places, current_places : int32[2, n]
        Their places, from `kernels.ranks.places_of`.
    longest : int
        A move that would meet more cells is not looked at.
    last_move : int64[m]
        Zeros; written: the last move that looked at each row, plus 1.
    is_far : bool[n]
        Written: which moves were not looked at.

    Returns
    -------
    rows, queries : int32[k]
        Which of the n moves, ascending, and query slots.
    signs : int8[k]
    visits : int
        How many entries were looked at.

    Notes
    -----
    Raises nothing.
    """
    n_moves = previous.shape[1]
    rows = np.empty(n_moves, dtype=np.int32)
    queries = np.empty(n_moves, dtype=np.int32)
    signs = np.empty(n_moves, dtype=np.int8)
    n_found, visits = 0, 0
    # Of each run of cells: the first and the last one, later its entries; and whose it is.
    firsts = np.empty((longest + 1) * BLOCK, dtype=np.int64)
    stops = np.empty((longest + 1) * BLOCK, dtype=np.int64)
    run_moves = np.empty((longest + 1) * BLOCK, dtype=np.int64)
    touched = np.empty((longest + 1) * BLOCK, dtype=np.int32)  # only to have read what comes next
    touched_edges = np.empty(64 * BLOCK, dtype=np.float64)
    met_rows, met_moves = np.empty(64 * BLOCK, dtype=np.int64), np.empty(64 * BLOCK, dtype=np.int64)
    met_slots = np.empty(64 * BLOCK, dtype=np.int64)
    # Of each candidate: the edges at the height of prev, then of cur.
    starts_of_edges, stops_of_edges = (
        np.empty((2, 64 * BLOCK), dtype=np.int64),
        np.empty((2, 64 * BLOCK), dtype=np.int64),
    )
    for block in range(0, n_moves, BLOCK):
        # 1.
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
            # Along the column of cur without the corner, which was met.
            for line in range(min(from_line, to_line), max(from_line, to_line) + 1):
                if line != from_line:
                    cell = line * n_columns + to_column
                    firsts[n_runs], stops[n_runs], run_moves[n_runs] = cell, cell + 1, i
                    n_runs += 1
        # Each load alone in its loop, so that many are on their way at once.
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
        # 2. Written always and counted where met: no branch waits for an entry.
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
        # 3.
        n_new = 0
        for k in range(n_met):
            row, i = met_rows[k], met_moves[k]
            slot = slots[row]
            met_slots[n_new], met_moves[n_new] = slot, i
            n_new += (last_move[row] != i + 1) & (slot >= 0)
            last_move[row] = i + 1
        # 4.
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
