"""Regions of a definition to regions of a feed: the only module that knows bounds other than `[)`.

Its result is a box [lo, hi) in every dimension, with -inf and inf for "unbounded". `shape_definitions` reads polygons
and circles.
"""

import math
import sys
from collections.abc import Iterable, Sequence

from bmq.errors import ControlCode, ControlError
from bmq.records import Feed, Region
from bmq.records.plane import EAST, LARGEST_DEGREES, POLE, WEST
from bmq.wire import definition_models as models
from bmq.wire.condition_models import Bounds
from bmq.wire.fault_texts import shorten, suggestion
from bmq.wire.shape_definitions import read_shape, wrapped_box

_LARGEST = sys.float_info.max


def check_dimensions(regions: Iterable[models.Region], feed: Feed) -> None:
    """Raise ControlError with `unknown_dimension` if a box names a dimension that the feed does not have."""
    for dimension in (dimension for region in regions for dimension in region.box or ()):
        if dimension not in feed.dimensions:
            raise ControlError(
                ControlCode.UNKNOWN_DIMENSION,
                f"Feed '{feed.name}' has no dimension {shorten(dimension)}. {suggestion(dimension, feed.dimensions)}",
            )


def read_region(region: models.Region, bounds: Bounds, feed: Feed, field: str) -> Region:
    """Return the region in the dimensions of the feed; `check_dimensions` has checked the names.

    Parameters
    ----------
    field : the name of the region's field in the definition, for messages.
    bounds : which of the two borders of an interval belong to a box.

    Raises
    ------
    ControlError
        `bad_region`: a border that is not finite, borders in the wrong order, an interval that contains no number, or
        a border that is not a valid longitude or latitude. For shapes, as `read_shape`.
    """
    if region.box is None:
        return _shape(region, feed, field)
    intervals = [read_interval(name, region.box.get(name, (None, None)), bounds, feed) for name in feed.dimensions]
    if not feed.lonlat or intervals[0][0] < intervals[0][1]:
        return _box(intervals)
    (west, east), (south, north) = intervals
    return wrapped_box((west, south), (east, north), feed)


def read_interval(dimension: str, interval: Sequence[float | None], bounds: Bounds, feed: Feed) -> tuple[float, float]:
    """Return the interval of a dimension as [lo, hi), with -inf and inf for "unbounded".

    For a longitude the result is [west, east); if west >= east, the interval crosses the antimeridian.

    Raises
    ------
    ControlError
        `bad_region`, as `read_region`.
    """
    check_finite(dimension, interval)
    if not feed.lonlat:
        return _half_open(dimension, interval, bounds)
    of_longitude = dimension == feed.dimensions[0]
    _check_degrees(dimension, interval, LARGEST_DEGREES[0 if of_longitude else 1])
    return (_half_open_longitudes if of_longitude else _half_open_latitudes)(dimension, interval, bounds)


def read_attribute_interval(attribute: str, interval: Sequence[float | None], bounds: Bounds) -> tuple[float, float]:
    """Return the interval of an attribute as [lo, hi) with a finite lower end.

    The columns have -inf for an attribute that is not a number, so -inf must be in no interval.

    Raises
    ------
    ControlError
        `bad_region`, as `read_region`.
    """
    check_finite(attribute, interval)
    lo, hi = interval
    return (
        _half_open(attribute, (-_LARGEST, hi), f"[{bounds[1]}")
        if lo is None
        else _half_open(attribute, (lo, hi), bounds)
    )


def _shape(region: models.Region, feed: Feed, field: str) -> Region:
    if region.circle is not None:
        circle = {"center": region.circle.center, "radius": region.circle.radius}
        return read_shape("circle", circle, feed, field)
    if region.polygon is not None:
        return read_shape("polygon", region.polygon, feed, field)
    return read_shape("geojson", region.geojson, feed, field)


def _box(intervals: Sequence[tuple[float, float]]) -> Region:
    return Region(tuple(lo for lo, _ in intervals), tuple(hi for _, hi in intervals))


def check_finite(name: str, interval: Sequence[float | None]) -> None:
    """Raise ControlError with `bad_region` if an end of the interval is infinite; the message has ``name``."""
    if not all(border is None or math.isfinite(border) for border in interval):
        raise _bad_region(
            f"A border of '{name}' is beyond the range of a 64-bit float, but borders are finite. "
            "Write null where the region is unbounded."
        )


def _check_degrees(dimension: str, interval: Sequence[float | None], largest: float) -> None:
    for border in interval:
        if border is not None and abs(border) > largest:
            raise _bad_region(
                f"Border {border} of '{dimension}' is not between {-largest:g} and {largest:g} degrees, where all "
                "readings are. Write null where it is unbounded; a box from 170 to -170 crosses the antimeridian."
            )


def _half_open(dimension: str, interval: Sequence[float | None], bounds: str) -> tuple[float, float]:
    lo, hi = interval
    if lo is not None and hi is not None and lo > hi:
        raise _bad_region(f"Lower border {lo} of '{dimension}' is above upper border {hi}. Swap the two borders.")
    # No double lies between a border and the next double up, so > lo equals >= next(lo), and <= hi equals < next(hi).
    lower = -math.inf if lo is None else math.nextafter(lo, math.inf) if bounds[0] == "(" else lo
    upper = math.inf if hi is None else math.nextafter(hi, math.inf) if bounds[1] == "]" else hi
    if lower >= upper:
        raise _bad_region(
            f"No number of '{dimension}' lies between {lo} and {hi} with bounds {bounds}. "
            'Widen it, or give it both ends, "[]", for a single point.'
        )
    return lower, upper


def _half_open_latitudes(dimension: str, interval: Sequence[float | None], bounds: Bounds) -> tuple[float, float]:
    """Return (south, north); an unbounded end becomes the pole, which belongs to the box."""
    (lo, hi), (opening, closing) = interval, bounds
    if lo is None:
        lo, opening = -POLE, "["
    if hi is None:
        hi, closing = POLE, "]"
    return _half_open(dimension, (lo, hi), opening + closing)


def _half_open_longitudes(dimension: str, interval: Sequence[float | None], bounds: Bounds) -> tuple[float, float]:
    """Return (west, east): the longitudes in [west, east); if west >= east, the box crosses the antimeridian.

    Readings have longitudes in [-180, 180), because the decoder turns 180 into -180. A border at 180 is treated the
    same way, so a box whose closed eastern border is 180 contains the readings at -180. If the box contains all
    longitudes, the result is (-inf, inf). In no other case is a border infinite: such a box would continue beyond the
    antimeridian.
    """
    (lo, hi), (opening, closing) = interval, bounds
    if lo == EAST:
        lo, hi = WEST, WEST if hi == EAST else hi
    if lo is None:
        lo, opening = WEST, "["
    if hi is None:
        hi, closing = EAST, ")"
    if lo == WEST and hi == EAST and (opening, closing) != ("(", ")"):
        return -math.inf, math.inf
    if hi == EAST and closing == "]":
        hi = WEST
    elif lo > hi == WEST and closing == ")":
        hi = EAST
    if lo <= hi:
        return _half_open(dimension, (lo, hi), opening + closing)
    west = math.nextafter(lo, math.inf) if opening == "(" else lo
    east = math.nextafter(hi, math.inf) if closing == "]" else hi
    if west == east:
        return -math.inf, math.inf
    return west, east


def _bad_region(message: str) -> ControlError:
    return ControlError(ControlCode.BAD_REGION, message)
