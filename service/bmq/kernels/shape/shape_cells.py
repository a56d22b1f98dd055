"""The cells of the plane that list the shapes whose border passes through them. Pure: arrays in, arrays out.

Each border is cut into parts, and a part is listed in all cells that its bounding box meets. These may be more cells
than the part passes through, but never fewer. An entry has the box around all parts of a border in its cell:

      +--------+--------+        cell (row, column) is number ``row * n_columns + column``
      |  ┌────┐|        |
      |  |   /||        |        a polygon is cut at even distances, a circle into slices
      |  | /  ||        |
      |  └/───┘|        |
      +-/------+--------+

Knows borders of shapes and cells. It must not know moves, nor how many cells there should be.
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.kernels.border.grid_cells import step_of
from bmq.kernels.shape.shape_tests import EARTH_RADIUS_METRES, POLYGON, Shapes, edges_of
from bmq.records import Bools, Float64s, Int32s

# A circle is cut into slices of equal angle, on both sides. Fewer slices make boxes that reach further from the border,
# more slices make registering slower; no answer depends on the number.
SLICES = 32
# How far the border that the test computes may be from the true border, as a share of the coordinates: the error of the
# test is below 16 roundings, of 2 ** -53 each.
SLACK = 2.0**-48
CIRCLE_SLACK = 2.0**-30  # includes the errors of sines and square roots; as a share of the coordinates and the radius

# An entry of a cell: a row of the query table, and the least and greatest places of its border within the cell.
ENTRY = np.dtype([(name, np.int32) for name in ("row", "low_x", "high_x", "low_y", "high_y")])
Entries = npt.NDArray[np.void]


@njit(cache=True)
def border_segments(shapes: Shapes, slots: Int32s, on_globe: bool) -> tuple[Float64s, Int32s, Bools]:
    """Return the segments of which the borders of shapes consist.

    Parameters
    ----------
    shapes : Shapes
    slots : int32[m]
        Query slots by row; a row with a negative slot has no border.
    on_globe : bool
        Whether x and y are longitude and latitude.

    Returns
    -------
    segments : float64[5, k]
        x and y of one end, x and y of the other end, and how far the computed border may be from the true one.
    rows : int32[k]
        The row of each segment, ascending.
    is_straight : bool[k]
        True: the border is the straight line between both ends. False: it is somewhere in the box with the ends as
        corners.

    Notes
    -----
    Raises nothing. A slice of a circle lies between two latitudes (or y). Its half-width changes from the one at the
    first latitude to the one at the second; in the slice where the circle is widest it reaches the largest half-width.
    """
    n_segments = 0
    for slot in slots:
        if slot >= 0:
            start, stop = edges_of(shapes, slot)
            n_segments += stop - start if shapes.records[slot]["kind"] == POLYGON else 2 * SLICES
    segments = np.empty((5, n_segments), dtype=np.float64)
    rows = np.empty(n_segments, dtype=np.int32)
    is_straight = np.empty(n_segments, dtype=np.bool_)
    # The test may add 360 to degrees before it compares them.
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
        # On the globe, a circle is widest on a latitude beyond that of its centre.
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
    """Return half the width at height ``at`` of a circle around (any, ``y``); on the globe in degrees throughout."""
    if not on_globe:
        return math.sqrt(max(0.0, radius * radius - (at - y) * (at - y)))
    lat, centre = math.radians(at), math.radians(y)
    cosine = (math.cos(math.radians(radius)) - math.sin(lat) * math.sin(centre)) / (math.cos(lat) * math.cos(centre))
    return math.degrees(math.acos(min(1.0, max(-1.0, cosine))))


@njit(cache=True)
def _widest_latitude(lat: float, radius: float) -> float:
    """Return the latitude at which a circle around latitude ``lat`` is widest; all numbers are in degrees."""
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
        Into how many parts to cut each straight segment.
    on_globe : bool
        Whether boxes that reach beyond longitude -180 or 180 continue on the other side.

    Returns
    -------
    lows, highs : float64[2, n]
        The lower and the upper corner of each box.
    rows : int32[n]
        The row of each box, ascending.

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
            # Not computed by adding steps: the last part has to end exactly where the segment ends.
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
    """Return the entries of the cells: each row at most once in a cell, with the box around all its parts there.

    Parameters
    ----------
    low_places, high_places : int32[2, n]
        The places of the corners of boxes, from `kernels.border.ranks.places_of`.
    rows : int32[n]
        The row of each box, ascending.
    n_columns, n_rows : int
        How many columns and rows of cells there are.
    last_entry : int32[n_cells]
        Scratch with any content; afterwards the last entry of each cell.

    Returns
    -------
    cells : int32[k]
        The cell of each entry.
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
    """Write the entries sorted by their cells. Raises nothing; O(k).

    Parameters
    ----------
    cells : int32[k]
        The cell of each entry.
    listed : ENTRY[k]
    stops : int32[n_cells + 1]
        On entry, where each cell ends; on return, where it begins.
    entries : ENTRY[k + 1]
        Written; the last one belongs to no cell, as ``crossed_shapes`` needs.
    """
    for k in range(cells.size - 1, -1, -1):
        stops[cells[k]] -= 1
        entries[stops[cells[k]]] = listed[k]
