"""Regions of definitions made larger on every side, as exit regions of a forecast.

    box      each interval, by the margin at both ends
    circle   its radius, by the margin
    others   a buffer of the area, whose corners stay corners: rounded ones would cost many vertices

Knows the JSON of a region, and no feed: the caller has the service check what comes out. On a feed of longitudes and
latitudes, the margin is in degrees for boxes and polygons, and in metres for circles.
"""

import re
from dataclasses import dataclass
from typing import Any

import shapely
from shapely.geometry import mapping, shape

from bmq.wire.geojson import find_area

_MARGIN = re.compile(r"(\d+(?:\.\d+)?)(%?)", re.ASCII)
_PERCENT = 100.0
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


def grow(region: dict[str, Any], margin: Margin) -> dict[str, Any] | None:
    """Return a region of a valid definition with its borders moved out; None: a share of an unbounded box.

    A polygon becomes GeoJSON, because a buffer may have holes.
    """
    match {name: value for name, value in region.items() if value is not None}:
        case {"box": dict(box)}:
            intervals = {name: _grow_interval(interval, margin) for name, interval in box.items()}
            return None if None in intervals.values() else {"box": intervals}
        case {"circle": {"center": center, "radius": radius}}:
            return {"circle": {"center": center, "radius": radius + margin.of(2 * radius)}}
        case {"polygon": list(ring)}:
            return _buffered(shapely.Polygon(ring), margin)
        case {"geojson": dict(document)}:
            area, _ = find_area(document, "region")
            return _buffered(shape(area), margin)
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


def _buffered(area: shapely.Geometry, margin: Margin) -> dict[str, Any]:
    if not area.is_valid:
        area = shapely.make_valid(area)
    west, south, east, north = area.bounds
    buffer = area.buffer(margin.of(min(east - west, north - south)), join_style="mitre")
    return {"geojson": mapping(buffer)}
