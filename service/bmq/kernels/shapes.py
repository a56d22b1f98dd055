"""Whether a polygon or a circle holds a value. Pure: arrays in, booleans out.

A polygon holds a point if a ray from it to +x crosses an odd number of edges, over all its rings:

        high                     An edge is directed upward, whichever way its ring runs, and has its lower end and
       /        (x, y) ···>      not its upper one. So two polygons that share an edge do the same arithmetic on it,
    low                          and a point on it is in exactly one of them. A horizontal edge has no point.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s

NOTHING, POLYGON, CIRCLE, CIRCLE_ON_GLOBE = 0, 1, 2, 3
EARTH_RADIUS_METRES = 6_371_008.8  # the mean one


class Shapes(NamedTuple):
    """Shapes by query slot.

    Attributes
    ----------
    kinds : int8[n_slots], one of the constants.
    starts, stops : int64[n_slots], the columns of ``edges`` that are the shape's.
    easts : float64[n_slots]
        Where the shape lies over the antimeridian, its largest longitude, above 180; else -inf.
    edges : float64[4, n_columns]
        Of a polygon, a column an edge: x and y of the lower end, x and y of the upper end. Of a circle, one column:
        x and y of the centre, the radius, 0.
    """

    kinds: Int8s
    starts: Int64s
    stops: Int64s
    easts: Float64s
    edges: Float64s


@njit(cache=True)
def shape_holds(shapes: Shapes, slot: int, x: float, y: float) -> bool:
    """Return whether the shape in ``slot`` holds (x, y), which are finite. Raises nothing; O(edges).

    Notes
    -----
    A circle is closed, and on the globe its distances are great circles by the haversine formula.
    """
    kind, edges = shapes.kinds[slot], shapes.edges
    start, stop = shapes.starts[slot], shapes.stops[slot]
    if kind == POLYGON:
        n_crossed = _n_crossed(edges, start, stop, x, y)
        # No part of it lies twice on the globe, so it holds the place under one of its two names at most.
        if x + 360.0 < shapes.easts[slot]:
            n_crossed += _n_crossed(edges, start, stop, x + 360.0, y)
        return bool(n_crossed & 1)
    if kind == CIRCLE:
        dx, dy, radius = x - edges[0, start], y - edges[1, start], edges[2, start]
        return bool(dx * dx + dy * dy <= radius * radius)
    if kind == CIRCLE_ON_GLOBE:
        return bool(haversine_metres(edges[0, start], edges[1, start], x, y) <= edges[2, start])
    return False


@njit(cache=True)
def _n_crossed(edges: Float64s, start: int, stop: int, x: float, y: float) -> int:
    """Return how many edges the ray from (x, y) to +x crosses."""
    n_crossed = 0
    # No branch, so that the compiler takes several edges in one instruction.
    for e in range(start, stop):
        low_x, low_y, high_x, high_y = edges[0, e], edges[1, e], edges[2, e], edges[3, e]
        is_left = (high_x - low_x) * (y - low_y) - (x - low_x) * (high_y - low_y) > 0.0
        n_crossed += (low_y <= y) & (y < high_y) & is_left
    return n_crossed


@njit(cache=True)
def haversine_metres(from_lon: float, from_lat: float, lon: float, lat: float) -> float:
    """Return the great-circle distance of two places in degrees, in metres. Raises nothing."""
    sine_lat = math.sin(math.radians(lat - from_lat) / 2)
    sine_lon = math.sin(math.radians(lon - from_lon) / 2)
    share = sine_lat * sine_lat + math.cos(math.radians(from_lat)) * math.cos(math.radians(lat)) * sine_lon * sine_lon
    return 2 * EARTH_RADIUS_METRES * math.asin(math.sqrt(min(1.0, share)))


@njit(cache=True)
def held_pairs(shapes: Shapes, slots: Int32s, values: Float64s) -> Bools:
    """Return whether the shape in ``slots[i]`` holds ``values[:, i]``, bool[n].

    Parameters
    ----------
    shapes : Shapes
    slots : int32[n]
    values : float64[2, n]
        Finite.

    Notes
    -----
    Raises nothing. O(edges) a pair; who asks has looked at bounding boxes before.
    """
    held = np.empty(slots.size, dtype=np.bool_)
    for i in range(slots.size):
        held[i] = shape_holds(shapes, slots[i], values[0, i], values[1, i])
    return held
