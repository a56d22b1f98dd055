"""Polygons, circles, GeoJSON, and boxes over the antimeridian: from a definition to a `Region`.

Knows what a valid shape is, in the plane and on longitude and latitude. Nothing of how readings meet it.
"""

from collections.abc import Sequence
from typing import Any

from bmq.records import Feed, Region


def read_shape(kind: str, value: Any, feed: Feed) -> Region:
    """Return the region of a shape in a definition.

    Parameters
    ----------
    kind : "polygon": a ring of [x, y]. "circle": {"center": [x, y], "radius": r}. "geojson": a GeoJSON geometry.
    value : JSON as Python reads it, unchecked.

    Raises
    ------
    ControlError
        `bad_region`: what is wrong with it, the rule, and the way out.
    """
    raise NotImplementedError


def wrapped_box(lo: Sequence[float], hi: Sequence[float], feed: Feed) -> Region:
    """Return the region of a box on longitude and latitude; where ``lo[0] > hi[0]`` it crosses the antimeridian.

    Parameters
    ----------
    lo, hi : half-open, as from `regions.half_open_box`, but with longitudes in either order.
    """
    raise NotImplementedError


def region_covers(outer: Region, inner: Region) -> bool:
    """Return whether every value in ``inner`` is in ``outer``."""
    raise NotImplementedError
