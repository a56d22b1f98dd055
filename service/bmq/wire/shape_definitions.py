"""Polygons, circles, GeoJSON, and boxes over the antimeridian: from a definition to a `Region`.

Knows which shapes are valid, in the plane and on longitude and latitude; does not know how readings are tested.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import shapely

from bmq.errors import ControlCode, ControlError
from bmq.records import Feed, Float64s, Region, Shape, ShapeKind
from bmq.records.plane import EAST, LARGEST_DEGREES, PLANE, POLE, TURN, WEST
from bmq.wire.covers import EARTH_RADIUS_METRES
from bmq.wire.covers import region_covers as region_covers
from bmq.wire.fault_texts import shorten, suggestion
from bmq.wire.geojson import find_area
from bmq.wire.rings import (
    LARGEST_COORDINATE,
    bad_region,
    read_number,
    read_polygon,
    read_position,
    wrong_type,
)

# Enlarges the bounding box of a circle, which must never be too small: sines and cosines round. In degrees on the
# globe; in the plane a share of the largest of radius and coordinates.
CIRCLE_MARGIN = 1e-9
# Degrees; beyond all latitudes, stands for "unbounded".
BEYOND_POLE = 91.0


def read_shape(kind: str, value: Any, feed: Feed, field: str = "region") -> Region:
    """Return the region of a shape in a definition; its x is the feed's first dimension.

    Parameters
    ----------
    kind : "polygon": a ring of [x, y]. "circle": {"center": [x, y], "radius": r}, r in metres on longitude and
        latitude. "geojson": a Polygon, a MultiPolygon, or a Feature of one; see `geojson`.
    value : JSON as Python reads it, unchecked.
    field : the field of the definition that has the shape, for messages.

    Raises
    ------
    ControlError
        `wrong_type`, `missing_field`, `unknown_field`: the value does not have the structure of ``kind``.
        `bad_region`: the feed does not have exactly two dimensions; GeoJSON is no area, or has another `crs`; numbers
        are too large or not degrees; the rings do not enclose an area; the shape contains or touches a pole.
    """
    if len(feed.dimensions) != PLANE:
        raise bad_region(
            f"Field '{field}.{kind}' is a shape, which needs two dimensions, but feed '{feed.name}' has "
            f"{len(feed.dimensions)}. Use {field}.box."
        )
    path = f"{field}.{kind}"
    if kind == "circle":
        return _read_circle(value, feed, path)
    if kind == "geojson":
        return _read_geojson(value, feed, path)
    return _region([read_polygon([value], [path], feed)], feed, path)


def wrapped_box(lo: Sequence[float], hi: Sequence[float], feed: Feed) -> Region:
    """Return the region of a box on longitude and latitude; if ``lo[0] > hi[0]``, it crosses the antimeridian.

    Parameters
    ----------
    lo, hi : half-open, as from `region_definitions.read_interval`, with longitudes in either order.

    Raises
    ------
    ControlError
        `bad_region`: a border is not a longitude or not a latitude.

    Notes
    -----
    A box may touch the poles. It becomes a polygon only if it crosses the antimeridian. If the sum of 360 and its
    eastern border must be rounded, it is rounded up.
    """
    for dimension, largest, ends in zip(feed.dimensions, LARGEST_DEGREES, zip(lo, hi, strict=True), strict=True):
        for border in ends:
            # Bounds `(` and `]` replace a border by the next double, so the largest border may be one double beyond.
            if math.isfinite(border) and abs(border) > math.nextafter(largest, math.inf):
                raise bad_region(
                    f"Border {border} of '{dimension}' is not between {-largest:g} and {largest:g} degrees, where all "
                    "readings are. Write degrees in this range; a box from 170 to -170 crosses the antimeridian."
                )
    # 180 and -180 are the same meridian, and readings have -180.
    west = lo[0] if lo[0] < EAST else WEST if lo[0] == EAST else math.nextafter(WEST, math.inf)
    east = hi[0] if hi[0] != WEST else EAST
    if west < east:
        return Region((west, lo[1]), (east, hi[1]))
    shifted = east + TURN
    if shifted - TURN < east:
        shifted = math.nextafter(shifted, math.inf)
    south, north = max(lo[1], -BEYOND_POLE), min(hi[1], BEYOND_POLE)
    ring = np.array([[west, south], [shifted, south], [shifted, north], [west, north], [west, south]])
    return _region([[ring]], feed, "region.box")


# -- circles ----------------------------------------------------------------------------------------------


def _read_circle(value: Any, feed: Feed, path: str) -> Region:
    members = _members(value, ("center", "radius"), path)
    x, y = read_position(members["center"], f"{path}.center", feed)
    radius = read_number(members["radius"], f"{path}.radius")
    # If the square of the radius were 0 or infinite, the circle would contain nothing or everything.
    if not (0.0 < radius <= LARGEST_COORDINATE and radius * radius > 0.0):
        raise bad_region(
            f"Field '{path}.radius' is {shorten(members['radius'])}, but a radius is above 0 and at most "
            f"{LARGEST_COORDINATE:g}. Change it."
        )
    shape = Shape(ShapeKind.CIRCLE, np.array([x, y], dtype="<f8").tobytes(), (), radius, feed.lonlat)
    if not feed.lonlat:
        reach = radius + CIRCLE_MARGIN * max(radius, abs(x), abs(y))
        return Region((x - reach, y - reach), (x + reach, y + reach), shape)
    angle = radius / EARTH_RADIUS_METRES
    height = math.degrees(angle) + CIRCLE_MARGIN
    if abs(y) + height >= POLE:
        to_pole = math.radians(POLE - abs(y)) * EARTH_RADIUS_METRES
        raise bad_region(
            f"The circle of {radius:g} m around {shorten(members['center'])} reaches a pole, which is {to_pole:.0f} m "
            "away, and no shape may. Make the radius smaller, or use region.box with latitudes."
        )
    # The circle is widest at the latitude of the meridians that touch it, which is nearer to the pole than the centre.
    width = math.degrees(math.asin(math.sin(angle) / math.cos(math.radians(y)))) + CIRCLE_MARGIN
    west, east = x - width, x + width
    if west < WEST or east >= EAST:
        west, east = WEST, EAST
    return Region((west, y - height), (east, y + height), shape)


# -- polygons ---------------------------------------------------------------------------------------------


def _read_geojson(value: Any, feed: Feed, path: str) -> Region:
    geometry, path = find_area(value, path)
    path = f"{path}.coordinates"
    coordinates = geometry["coordinates"]
    if geometry["type"] == "Polygon":
        return _region([_read_part(coordinates, feed, path)], feed, path)
    parts = [_read_part(part, feed, f"{path}[{k}]") for k, part in enumerate(_filled_list(coordinates, path))]
    return _region(parts, feed, path)


def _read_part(rings: Any, feed: Feed, path: str) -> list[Float64s]:
    paths = [f"{path}[{k}]" for k in range(len(_filled_list(rings, path)))]
    return read_polygon(rings, paths, feed, more=True)


def _region(parts: Sequence[list[Float64s]], feed: Feed, path: str) -> Region:
    """Return the region of polygons, each a list of closed rings with the outer one first."""
    polygons = [shapely.Polygon(rings[0], rings[1:]) for rings in parts]
    _check_valid(polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons), path)
    rings = [ring for part in parts for ring in part]
    vertices = np.concatenate(rings).astype("<f8")
    (west, south), (east, north) = vertices.min(axis=0).tolist(), vertices.max(axis=0).tolist()
    east, north = math.nextafter(east, math.inf), math.nextafter(north, math.inf)
    if feed.lonlat and east > EAST:
        _check_on_globe(parts, polygons, path)
        west, east = WEST, EAST
    starts = tuple(accumulate(map(len, rings), initial=0))
    return Region((west, south), (east, north), Shape(ShapeKind.POLYGON, vertices.tobytes(), starts, 0.0, feed.lonlat))


def _check_valid(area: shapely.Polygon | shapely.MultiPolygon, path: str) -> None:
    if not area.is_valid:
        raise bad_region(
            f"Field '{path}' is no area: {shapely.is_valid_reason(area)}. Rings must neither cross nor share edges, "
            "and a hole must be in its polygon. Repair it, or split it."
        )
    if not area.area > 0.0:
        raise bad_region(f"Field '{path}' has the area 0, so no reading could be in it. Move its vertices apart.")


def _check_on_globe(parts: Sequence[list[Float64s]], polygons: Sequence[shapely.Polygon], path: str) -> None:
    """Raise ControlError if a polygon, or two of them, overlap after a turn around the globe."""
    for rings in parts:
        width = float(np.ptp(rings[0][:, 0]))
        if width > TURN:
            raise bad_region(
                f"Field '{path}' is {width:g} degrees wide, more than once around the globe. Split it, or correct it."
            )
    is_over = [rings[0][:, 0].max() > EAST for rings in parts]
    if not all(is_over):
        # Shift the parts that do not cross the antimeridian by 360 degrees, next to the parts that do.
        shifted = [
            polygon if over else shapely.transform(polygon, lambda vertices: vertices + np.array([TURN, 0.0]))
            for polygon, over in zip(polygons, is_over, strict=True)
        ]
        _check_valid(shapely.MultiPolygon(shifted), path)


def _members(value: Any, needed: tuple[str, ...], path: str) -> dict[str, Any]:
    """Return ``value`` after a check: an object with all members ``needed``, and no others."""
    if not isinstance(value, dict):
        raise wrong_type(value, path, "an object")
    for name in value:
        if name not in needed:
            raise ControlError(
                ControlCode.UNKNOWN_FIELD,
                f"Field '{path}.{name[:40]}' is not known. {suggestion(name, needed)}",
            )
    for name in needed:
        if value.get(name) is None:
            raise ControlError(
                ControlCode.MISSING_FIELD, f"Field '{path}.{name}' is missing, but the shape needs it. Add it."
            )
    return value


def _filled_list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type(value, path, "a list")
    if not value:
        raise bad_region(f"Field '{path}' is [], which holds nothing. Add a polygon with its rings.")
    return value
