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
from numba import njit

from bmq.kernels.buffers import make_room
from bmq.kernels.grid_cells import step_of
from bmq.kernels.shapes import EARTH_RADIUS_METRES, POLYGON, Shapes, shape_holds
from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s

# A circle is cut into slices of equal angle, on both sides; 32 of them list a circle that is 10 cells wide in a
# third more cells than its border meets.
SLICES = 32
# How far the test of a float may be from the true border, as a share of the coordinates: its error is below 16
# roundings, of 2 ** -53 each.
SLACK = 2.0**-48
CIRCLE_SLACK = 2.0**-30  # of sines and square roots; as a share of the coordinates and the radius


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
            n_segments += shapes.stops[slot] - shapes.starts[slot] if shapes.kinds[slot] == POLYGON else 2 * SLICES
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
        start, stop = shapes.starts[slot], shapes.stops[slot]
        if shapes.kinds[slot] == POLYGON:
            for e in range(start, stop):
                segments[:4, k] = shapes.edges[:, e]
                segments[4, k] = SLACK * max(least_scale, np.abs(shapes.edges[:, e]).max())
                rows[k], is_straight[k] = row, True
                k += 1
            continue
        x, y, radius = shapes.edges[0, start], shapes.edges[1, start], shapes.edges[2, start]
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
def listed_cells(
    low_places: Int32s, high_places: Int32s, rows: Int32s, n_columns: int, n_rows: int, last_row: Int32s
) -> tuple[Int32s, Int32s]:
    """Return the cells that each row is listed in, each once.

    Parameters
    ----------
    low_places, high_places : int32[2, n]
        Of the ends of boxes, from `kernels.ranks.places_of`.
    rows : int32[n]
        Whose boxes they are, ascending.
    n_columns, n_rows : int
    last_row : int32[n_cells]
        The row listed last in each cell, -1 before the first; written.

    Returns
    -------
    cells, rows : int32[k]

    Notes
    -----
    Raises nothing. O(cells that the boxes meet).
    """
    cells = np.empty(2 * rows.size + 16, dtype=np.int32)
    listed = np.empty(2 * rows.size + 16, dtype=np.int32)
    n = 0
    for part in range(rows.size):
        first_column = step_of(low_places[0, part], n_columns)
        last_column = step_of(high_places[0, part], n_columns)
        for line in range(step_of(low_places[1, part], n_rows), step_of(high_places[1, part], n_rows) + 1):
            for column in range(first_column, last_column + 1):
                cell = line * n_columns + column
                if last_row[cell] == rows[part]:
                    continue
                last_row[cell] = rows[part]
                if n == cells.size:
                    cells = np.append(cells, np.empty(n, dtype=np.int32))
                    listed = np.append(listed, np.empty(n, dtype=np.int32))
                cells[n], listed[n] = cell, rows[part]
                n += 1
    return cells[:n], listed[:n]


@njit(cache=True)
def list_rows(cells: Int32s, rows: Int32s, stops: Int32s, entries: Int32s) -> None:
    """Write each row into its cell. Raises nothing; O(k).

    Parameters
    ----------
    cells, rows : int32[k]
        From ``listed_cells``.
    stops : int32[n_cells + 1]
        Where each cell ends; becomes where it begins.
    entries : int32[k]
    """
    for k in range(cells.size - 1, -1, -1):
        stops[cells[k]] -= 1
        entries[stops[cells[k]]] = rows[k]


@njit(cache=True)
def crossed_shapes(
    n_columns: int,
    n_rows: int,
    starts: Int32s,
    entries: Int32s,
    regions: Float64s,
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

    Parameters
    ----------
    n_columns, n_rows : int
    starts : int32[n_cells + 1]
        Cell c lists ``entries[starts[c]:starts[c + 1]]``.
    entries : int32[n_entries]
        Rows of the query table.
    regions : float64[m, 2, 2]
        Bounding boxes of the shapes.
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
    for i in range(n_moves):
        from_column, to_column = step_of(previous_places[0, i], n_columns), step_of(current_places[0, i], n_columns)
        from_line, to_line = step_of(previous_places[1, i], n_rows), step_of(current_places[1, i], n_rows)
        n_across, n_along = abs(to_column - from_column), abs(to_line - from_line)
        is_far[i] = n_across + n_along >= longest
        if is_far[i]:
            continue
        # Cell by cell: first along the line of prev, then along the column of cur without the corner, which was met.
        across, along = 1 if to_column > from_column else -1, n_columns if to_line > from_line else -n_columns
        cell = from_line * n_columns + from_column
        for step in range(n_across + n_along + 1):
            first, stop = starts[cell], starts[cell + 1]
            visits += stop - first
            rows, queries, signs = make_room(rows, queries, signs, n_found, stop - first)
            for entry in range(first, stop):
                row = entries[entry]
                # Both bounding box tests first: most of what is listed in a cell is far from both ends.
                near_before = _is_in_box(regions, row, previous[0, i], previous[1, i])
                near_after = _is_in_box(regions, row, current[0, i], current[1, i])
                if not (near_before | near_after) or last_move[row] == i + 1 or slots[row] < 0:
                    continue
                last_move[row] = i + 1
                slot = slots[row]
                was = near_before and shape_holds(shapes, slot, previous[0, i], previous[1, i])
                now = near_after and shape_holds(shapes, slot, current[0, i], current[1, i])
                if was != now:
                    rows[n_found], queries[n_found], signs[n_found] = i, slot, 1 if now else -1
                    n_found += 1
            cell += across if step < n_across else along
    return rows[:n_found], queries[:n_found], signs[:n_found], visits


@njit(cache=True, inline="always")
def _is_in_box(regions: Float64s, row: int, x: float, y: float) -> bool:
    # & and not `and`: a branch for each comparison is guessed wrong too often.
    in_x = (regions[row, 0, 0] <= x) & (x < regions[row, 0, 1])
    return bool(in_x & (regions[row, 1, 0] <= y) & (y < regions[row, 1, 1]))
