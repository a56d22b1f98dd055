"""Regions of definitions made larger on every side, as exit regions of a forecast.

    box      each interval, by the margin at both ends
    circle   its radius, by the margin
    others   a buffer of the area, whose corners stay corners: rounded ones would cost many vertices

Knows the JSON of a region: the caller has the service check what comes out. On a feed of longitudes and latitudes, the
margin is in degrees for boxes and polygons, and in metres for circles. A plane buffer is wrong at the antimeridian and
at the poles, so a region that touches them is not grown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from shapely.geometry import mapping, shape

from bmq.wire.geojson import find_area

_MARGIN = re.compile(r"(\d+(?:\.\d+)?)(%?)", re.ASCII)
_PERCENT = 100.0
_MOST = (180.0, 90.0)  # degrees of longitude and latitude
_TURN = 360.0  # degrees; a box whose longitudes go down lies over the antimeridian


@dataclass(frozen=True, slots=True)
class Margin:
    """How far the borders of a region move out.

    Attributes
    ----------
    size : above 0; in the unit of the dimensions, or a share of the region's width.
    is_share : whether it is a share.
    """

    size: float
    is_share: bool

    def of(self, width: float) -> float:
        """Return the margin of a region that is so wide, in the unit of the width."""
        return self.size * width if self.is_share else self.size


def read_margin(text: str) -> Margin:
    """Return the margin that a text says, such as "5%" or "0.25".

    Raises
    ------
    ValueError
        It has another form, or is 0.
    """
    parts = _MARGIN.fullmatch(text)
    if parts is None or not float(parts[1]):
        raise ValueError(
            'a margin is a number above 0, or a share of the width of a region; write it like "5%" or "0.25"'
        )
    return Margin(float(parts[1]) / (_PERCENT if parts[2] else 1.0), bool(parts[2]))


def grow(region: dict[str, Any], margin: Margin, lonlat: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return a region of a valid definition with its borders moved out; None: it cannot be grown.

    An unbounded box has no width, so a share of it cannot be computed. On a feed of longitudes and latitudes, three
    more cannot be grown: a box that would reach a pole, a box that would reach the antimeridian or close around the
    earth, and a polygon that touches the antimeridian or a pole. A box that lies over the antimeridian already can. A
    polygon becomes GeoJSON, because a buffer may have holes.

    Parameters
    ----------
    lonlat : the dimensions of longitude and latitude; empty: the feed is plane.
    """
    match {name: value for name, value in region.items() if value is not None}:
        case {"box": dict(box)}:
            intervals = {name: _grow_interval(interval, margin) for name, interval in box.items()}
            if lonlat and not all(
                _is_on_map(box[name], grown, most)
                for name, most in zip(lonlat, _MOST, strict=True)
                if (grown := intervals.get(name)) is not None
            ):
                return None
            return None if None in intervals.values() else {"box": intervals}
        case {"circle": {"center": center, "radius": radius}}:
            return {"circle": {"center": center, "radius": radius + margin.of(2 * radius)}}
        case {"polygon": list(ring)}:
            return _buffered(shapely.Polygon(ring), margin, is_lonlat=bool(lonlat))
        case {"geojson": dict(document)}:
            area, _ = find_area(document, "region")
            return _buffered(shape(area), margin, is_lonlat=bool(lonlat))
    return None


def _grow_interval(interval: list[float | None], margin: Margin) -> list[float | None] | None:
    lo, hi = interval
    if lo is None and hi is None:
        return interval
    if lo is None or hi is None:
        if margin.is_share:
            return None
        width = 0.0
    else:
        width = hi - lo if lo <= hi else hi - lo + _TURN
    move = margin.of(width)
    return [None if lo is None else lo - move, None if hi is None else hi + move]


def _is_on_map(interval: list[float | None], grown: list[float | None], most: float) -> bool:
    """Return whether a grown interval is within -most and most, or still crosses the antimeridian as before."""
    lo, hi = interval
    grown_lo, grown_hi = grown
    if lo is not None and hi is not None and lo > hi:
        assert grown_lo is not None
        assert grown_hi is not None
        return grown_lo > grown_hi
    return (grown_lo is None or grown_lo > -most) and (grown_hi is None or grown_hi < most)


def _buffered(area: shapely.Geometry, margin: Margin, *, is_lonlat: bool) -> dict[str, Any] | None:
    if is_lonlat and _has_jump(area):
        return None
    if not area.is_valid:
        area = shapely.make_valid(area)
    west, south, east, north = area.bounds
    buffer = area.buffer(margin.of(min(east - west, north - south)), join_style="mitre")
    if is_lonlat:
        west, south, east, north = buffer.bounds
        if max(-west, east) >= _MOST[0] or max(-south, north) >= _MOST[1]:
            return None
    return {"geojson": mapping(buffer)}


def _has_jump(area: shapely.Geometry) -> bool:
    """Return whether neighbouring vertices are so far apart that the service reads them as over the antimeridian."""
    rings = [ring for part in shapely.get_parts(area) for ring in (part.exterior, *part.interiors)]
    return any(bool((np.abs(np.diff(shapely.get_coordinates(ring)[:, 0])) > _TURN / 2).any()) for ring in rings)
