"""Whether one region covers another one: an exit region must cover its region.

Knows regions as geometries. If rounding or approximation leaves a doubt, the answer is no.
"""

import math
from functools import reduce

import numpy as np
import shapely

from bmq.records import Float64s, Region, Shape, ShapeKind
from bmq.records.plane import TURN

EARTH_RADIUS_METRES = 6_371_008.8  # the mean radius
# To compare a circle on the globe with another shape, the circle becomes a polygon of N_VERTICES vertices. Its radius
# is reduced (as the outer region) or enlarged (as the inner region) by GLOBE_MARGIN, which is far more than the
# distance between a chord and its arc.
N_VERTICES = 720
GLOBE_MARGIN = 1e-3
# Stands for "unbounded": beyond all coordinates of shapes, and small enough that products stay finite.
FAR = 1e152


def region_covers(outer: Region, inner: Region) -> bool:
    """Return whether every value in ``inner`` is in ``outer``; both over the same feed.

    On the globe, if the other region is not a circle, a circle counts as a thousandth smaller as ``outer`` and a
    thousandth larger as ``inner``. In all other cases the answer is exact except for rounding.
    """
    around, within = outer.shape, inner.shape
    if around is None:
        lo, hi = _ends(inner)
        return all(a <= b for a, b in zip(outer.lo + hi, lo + outer.hi, strict=True))
    if within is not None and around.kind is within.kind is ShapeKind.CIRCLE:
        return _distance(around, within) + within.radius <= around.radius
    if around.lonlat:
        area = _area(outer, 1 - GLOBE_MARGIN)
        everywhere = shapely.union_all([_turned(area, degrees) for degrees in (-TURN, 0.0, TURN)])
        return bool(everywhere.covers(_area(inner, 1 + GLOBE_MARGIN)))
    if around.kind is ShapeKind.CIRCLE:
        # A circle is convex, so it covers a shape if it holds the corners of the shape.
        corners = shapely.get_coordinates(_area(inner))
        return bool((np.hypot(*(corners - _vertices(around)).T) <= around.radius).all())
    area = _area(outer)
    if within is not None and within.kind is ShapeKind.CIRCLE:
        centre = shapely.Point(_vertices(within)[0])
        # > and not >=: a circle is closed, but part of a polygon's border is outside the polygon.
        return bool(area.covers(centre) and area.boundary.distance(centre) > within.radius)
    return bool(area.covers(_area(inner)))


def _ends(region: Region) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the smallest box that holds all of ``region``, half-open."""
    shape = region.shape
    if shape is None or (shape.lonlat and shape.kind is ShapeKind.CIRCLE):
        return region.lo, region.hi
    vertices = _vertices(shape)
    if shape.kind is ShapeKind.CIRCLE:
        return tuple(vertices[0] - shape.radius), tuple(np.nextafter(vertices[0] + shape.radius, np.inf))
    # No value on the upper ends is inside. For a polygon over the antimeridian the eastern end is beyond 180; only a
    # box of all longitudes reaches that far.
    return tuple(vertices.min(axis=0)), tuple(vertices.max(axis=0))


def _area(region: Region, share_of_radius: float = 1.0) -> shapely.Geometry:
    """Return the region as polygons. A circle must be on the globe; its radius is scaled by ``share_of_radius``."""
    shape = region.shape
    if shape is None:
        return shapely.box(*np.clip((*region.lo, *region.hi), -FAR, FAR))
    if shape.kind is ShapeKind.CIRCLE:
        return shapely.Polygon(_circle_on_globe(shape, share_of_radius))
    rings = np.split(_vertices(shape), shape.ring_starts[1:-1])
    # Even-odd rule: a point is inside if an odd number of rings surrounds it.
    return reduce(shapely.symmetric_difference, map(shapely.Polygon, rings))


def _turned(area: shapely.Geometry, degrees: float) -> shapely.Geometry:
    return shapely.transform(area, lambda vertices: vertices + np.array([degrees, 0.0]))


def _circle_on_globe(shape: Shape, share_of_radius: float) -> Float64s:
    """Return points on a circle, float64[N_VERTICES, 2] in degrees, with unwrapped longitudes."""
    lon, lat = np.radians(_vertices(shape)[0])
    angle = share_of_radius * shape.radius / EARTH_RADIUS_METRES
    bearings = np.linspace(0.0, 2 * math.pi, N_VERTICES, endpoint=False)
    sines = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * np.cos(bearings)
    easts = np.arctan2(np.sin(bearings) * math.sin(angle) * math.cos(lat), math.cos(angle) - math.sin(lat) * sines)
    places: Float64s = np.degrees(np.stack((lon + easts, np.arcsin(sines)), axis=1))
    return places


def _distance(a: Shape, b: Shape) -> float:
    """Return the distance between the centres of two circles; in metres on the globe."""
    (ax, ay), (bx, by) = _vertices(a)[0].tolist(), _vertices(b)[0].tolist()
    if not a.lonlat:
        return math.hypot(bx - ax, by - ay)
    half_lat, half_lon = math.radians(by - ay) / 2, math.radians(bx - ax) / 2
    share = math.sin(half_lat) ** 2 + math.cos(math.radians(ay)) * math.cos(math.radians(by)) * math.sin(half_lon) ** 2
    return 2 * EARTH_RADIUS_METRES * math.asin(math.sqrt(min(1.0, share)))


def _vertices(shape: Shape) -> Float64s:
    return np.frombuffer(shape.vertices, dtype="<f8").reshape(-1, 2)
