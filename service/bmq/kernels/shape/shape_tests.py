"""Tests whether a polygon or a circle holds a value. Pure: arrays in, booleans out.

A polygon holds a point if a ray from it to +x crosses an odd number of edges, over all its rings:

    slab 2         high          An edge is directed upward, whichever way its ring runs, and has its lower end and
    slab 1   · (x, y) ···>/      not its upper one. So two polygons that share an edge do the same arithmetic on it,
    slab 0          low          and a point on it is in exactly one of them. A horizontal edge has no point.

The ray can only cross edges at the height of the point. So a polygon is cut into slabs of equal height, and each slab
has copies of the edges that reach into it: a few edges, beside each other in memory.

Knows shapes by query slot and values. It must not know cells, moves or streams.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.records import Bools, Float64s, Int32s, Int64s

NOTHING, POLYGON, CIRCLE, CIRCLE_ON_GLOBE = 0, 1, 2, 3
EARTH_RADIUS_METRES = 6_371_008.8  # the mean radius

# The record of a query slot takes one cache line.
#   kind: one of the constants above
#   n_slabs, first_slab: slab k of the shape begins at edge ``slabs[first_slab + k]``
#   bottom, slabs_per_unit: the lower end of slab 0, and how many slabs there are to one unit of y
#   east: of a polygon on the globe its largest longitude, above 180 if it lies across the antimeridian; else -inf
RECORD = np.dtype(
    [
        ("kind", np.int32),
        ("n_slabs", np.int32),
        ("first_slab", np.int64),
        ("bottom", np.float64),
        ("slabs_per_unit", np.float64),
        ("east", np.float64),
    ]
)
Records = npt.NDArray[np.void]


class Shapes(NamedTuple):
    """Shapes by query slot.

    Attributes
    ----------
    records : RECORD[n_slots]
    slabs : int64[n]
        The number of the first edge of each slab; each shape has one more number, where its last slab ends.
    edges : float64[n_edges, 4]
        Of a polygon: x and y of the lower end, x and y of the upper end. Of a circle, in its one slab: x and y of the
        centre, the radius (on the globe in metres), 0.
    """

    records: Records
    slabs: Int64s
    edges: Float64s


@njit(cache=True, inline="always")
def slab_of(y: float, bottom: float, slabs_per_unit: float, n_slabs: int) -> int:
    """Return the slab at the height ``y``; it never falls as ``y`` rises."""
    position = (y - bottom) * slabs_per_unit
    # NaN, the product of infinity and 0, becomes 0.
    position = position if position > 0.0 else 0.0
    return int(position if position < n_slabs - 1.0 else n_slabs - 1.0)


@njit(cache=True, inline="always")
def edges_of(shapes: Shapes, slot: int) -> tuple[int, int]:
    """Return the first of a shape's edges, and the one behind its last; an edge that is in two slabs comes twice."""
    first = shapes.records[slot]["first_slab"]
    return shapes.slabs[first], shapes.slabs[first + shapes.records[slot]["n_slabs"]]


@njit(cache=True, inline="always")
def slab_at(shapes: Shapes, slot: int, y: float) -> int:
    """Return the number in ``slabs`` of the shape's slab at the height ``y``."""
    record = shapes.records[slot]
    return int(record["first_slab"] + slab_of(y, record["bottom"], record["slabs_per_unit"], record["n_slabs"]))


@njit(cache=True, inline="always")
def slab_holds(shapes: Shapes, slot: int, start: int, stop: int, x: float, y: float) -> bool:
    """Return whether the shape in ``slot`` holds (x, y), given the edges of the slab at that height.

    Parameters
    ----------
    shapes : Shapes
    slot : int
    start, stop : int
        The edges of the slab that ``slab_at`` gives for ``y``.
    x, y : float
        Finite.

    Notes
    -----
    Raises nothing; O(edges of the slab). A circle is closed. Its distances on the globe are great circles by the
    haversine formula.
    """
    kind, edges = shapes.records[slot]["kind"], shapes.edges
    if kind == POLYGON:
        n_crossed = _n_crossed(edges, start, stop, x, y)
        # On the globe, x and x + 360 are the same place. A polygon does not cover a place twice, so it holds at most
        # one of them.
        if x + 360.0 < shapes.records[slot]["east"]:
            n_crossed += _n_crossed(edges, start, stop, x + 360.0, y)
        return bool(n_crossed & 1)
    if kind == CIRCLE:
        dx, dy, radius = x - edges[start, 0], y - edges[start, 1], edges[start, 2]
        return bool(dx * dx + dy * dy <= radius * radius)
    return bool(haversine_metres(edges[start, 0], edges[start, 1], x, y) <= edges[start, 2])


@njit(cache=True, inline="always")
def _n_crossed(edges: Float64s, start: int, stop: int, x: float, y: float) -> int:
    """Return how many edges the ray from (x, y) to +x crosses."""
    n_crossed = 0
    for e in range(start, stop):
        low_x, low_y, high_x, high_y = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        is_left = (high_x - low_x) * (y - low_y) - (x - low_x) * (high_y - low_y) > 0.0
        # A point left of both ends is left of the edge, whatever rounding gives. The bounding box of a shape on the
        # other side of the edge does not hold such a point, and the test must not contradict that box.
        is_left |= x < min(low_x, high_x)
        # & and not `and`: the processor would guess wrong as often as right whether the ray meets an edge.
        n_crossed += (low_y <= y) & (y < high_y) & is_left
    return n_crossed


@njit(cache=True)
def cut_polygon(
    vertices: Float64s, ring_starts: Int64s, edges_per_slab: int, most_copies: int
) -> tuple[float, float, float, Int64s, Float64s]:
    """Return the edges of a polygon, sorted into slabs.

    Parameters
    ----------
    vertices : float64[n, 2]
        The vertices of all rings; each ring is closed and has at least one edge.
    ring_starts : int64[n_rings + 1]
        Ring r has the vertices ``ring_starts[r]`` to ``ring_starts[r + 1]``.
    edges_per_slab : int
        There is one slab for so many edges, unless that makes too many copies.
    most_copies : int
        If edges have more copies than this on average, slabs are made twice as high, until they have not.

    Returns
    -------
    bottom, slabs_per_unit : float
        As in `RECORD`.
    largest_x : float
    starts : int64[n_slabs + 1]
        Where each slab begins in ``copies``.
    copies : float64[n_copies, 4]
        As in ``Shapes.edges``.

    Notes
    -----
    Raises nothing. O(most_copies * n).
    """
    edges = np.empty((len(vertices) - (ring_starts.size - 1), 4), dtype=np.float64)
    n = 0
    for ring in range(ring_starts.size - 1):
        for v in range(ring_starts[ring], ring_starts[ring + 1] - 1):
            is_up = vertices[v, 1] <= vertices[v + 1, 1]
            low, high = (v, v + 1) if is_up else (v + 1, v)
            edges[n, :2], edges[n, 2:] = vertices[low], vertices[high]
            n += 1
    bottom, height = vertices[:, 1].min(), vertices[:, 1].max() - vertices[:, 1].min()
    n_slabs = max(1, n // edges_per_slab)
    stops = np.empty(0, dtype=np.int64)
    slabs_per_unit = 0.0
    while True:
        if height > 0.0:
            slabs_per_unit = n_slabs / height
        stops = np.zeros(n_slabs + 1, dtype=np.int64)
        for e in range(n):
            first = slab_of(edges[e, 1], bottom, slabs_per_unit, n_slabs)
            for slab in range(first, slab_of(edges[e, 3], bottom, slabs_per_unit, n_slabs) + 1):
                stops[slab] += 1
        if n_slabs == 1 or stops.sum() <= most_copies * n:
            break
        n_slabs //= 2
    stops = np.cumsum(stops)
    copies = np.empty((stops[-1], 4), dtype=np.float64)
    for e in range(n):
        first = slab_of(edges[e, 1], bottom, slabs_per_unit, n_slabs)
        for slab in range(first, slab_of(edges[e, 3], bottom, slabs_per_unit, n_slabs) + 1):
            stops[slab] -= 1
            copies[stops[slab]] = edges[e]
    return bottom, slabs_per_unit, vertices[:, 0].max(), stops, copies


@njit(cache=True)
def haversine_metres(from_lon: float, from_lat: float, lon: float, lat: float) -> float:
    """Return the great-circle distance of two places, given in degrees, in metres. Raises nothing."""
    sine_lat = math.sin(math.radians(lat - from_lat) / 2)
    sine_lon = math.sin(math.radians(lon - from_lon) / 2)
    share = sine_lat * sine_lat + math.cos(math.radians(from_lat)) * math.cos(math.radians(lat)) * sine_lon * sine_lon
    return 2 * EARTH_RADIUS_METRES * math.asin(math.sqrt(min(1.0, share)))


@njit(cache=True)
def held_values(shapes: Shapes, slots: Int32s, values: Float64s) -> Bools:
    """Return whether the shape in ``slots[i]`` holds ``values[:, i]``, bool[n].

    Parameters
    ----------
    shapes : Shapes
    slots : int32[n]
    values : float64[2, n]
        Finite.

    Notes
    -----
    Raises nothing. O(edges of a slab) for each value; the caller has tested bounding boxes before.
    """
    held = np.empty(slots.size, dtype=np.bool_)
    for i in range(slots.size):
        slab = slab_at(shapes, slots[i], values[1, i])
        start, stop = shapes.slabs[slab], shapes.slabs[slab + 1]
        held[i] = slab_holds(shapes, slots[i], start, stop, values[0, i], values[1, i])
    return held
