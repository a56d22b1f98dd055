"""Rings of vertices: from JSON to closed arrays, unwrapped on longitude and latitude.

    170       180       190          From vertex to vertex a longitude changes by less than 180 degrees, the short way:
     o---------|---------o           after 170, the longitude -170 becomes 190. A reading has -170, so the test whether
     |         |         |           a reading is inside must try -170 and 190.
     o---------|---------o

Knows one polygon at a time, and does not check whether it is valid.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bmq.errors import ControlCode, ControlError
from bmq.records import Feed, Float64s, Int64s
from bmq.records.plane import EAST, HALF_TURN, LARGEST_DEGREES, PLANE, POLE, TURN, WEST
from bmq.wire.fault_texts import shorten

# The product of two differences of coordinates must be finite, and no map needs larger numbers.
LARGEST_COORDINATE = 1e150
SMALLEST_RING = 3  # different vertices


def read_polygon(rings: Sequence[Any], paths: Sequence[str], feed: Feed, more: bool = False) -> list[Float64s]:
    """Return the rings of one polygon, the outer one first: float64[n, 2], each closed.

    Parameters
    ----------
    rings : JSON as Python reads it, unchecked; each may be closed or not.
    paths : the path of each ring in the definition, for messages.
    more : whether a position may have more than two numbers; those after the first two are ignored.

    Returns
    -------
    list of float64[n, 2]
        On longitude and latitude, the smallest longitude of the outer ring is in [-180, 180), and the holes are shifted
        by whole turns to lie within the outer ring.

    Raises
    ------
    ControlError
        `wrong_type`; `bad_region`: numbers that are too large or not degrees; fewer than 3 vertices; two neighbouring
        vertices that are 180 degrees of longitude apart; a ring around a pole.

    Notes
    -----
    A multiple of 360 is added once, to the number in the definition. So a vertex that two polygons share is the same
    number in both, unless one polygon lies further than 52 degrees beyond the antimeridian, because the addition then
    rounds.
    """
    closed = [_read_ring(ring, path, feed, more) for ring, path in zip(rings, paths, strict=True)]
    if not feed.lonlat:
        return closed
    turns = [_turns(ring, path) for ring, path in zip(closed, paths, strict=True)]
    wests = [float((ring[:, 0] + TURN * turn).min()) for ring, turn in zip(closed, turns, strict=True)]
    first = -math.floor((wests[0] - WEST) / TURN)
    for ring, turn, west in zip(closed, turns, wests, strict=True):
        # A hole begins no further west than its polygon, and less than one turn east of that.
        shift = first if ring is closed[0] else math.ceil((wests[0] + TURN * first - west) / TURN)
        ring[:, 0] += TURN * (turn + shift)
    return closed


def read_position(value: Any, path: str, feed: Feed, more: bool = False) -> tuple[float, float]:
    """Return x and y of one position; ``more`` and errors as in `read_polygon`."""
    if not isinstance(value, list) or len(value) < PLANE or (len(value) > PLANE and not more):
        raise wrong_type(value, path, "a list of two numbers" + (" or more" if more else ""))
    x, y = read_number(value[0], path), read_number(value[1], path)
    if feed.lonlat:
        is_out = abs(x) > LARGEST_DEGREES[0] or abs(y) >= LARGEST_DEGREES[1]
    else:
        is_out = abs(x) > LARGEST_COORDINATE or abs(y) > LARGEST_COORDINATE
    if is_out:
        raise _beyond(value, path, feed)
    return x, y


def read_number(value: Any, path: str) -> float:
    """Return a JSON number as a float; infinite if it is beyond a float's range.

    Raises
    ------
    ControlError
        `wrong_type`: the value is not a number.
    """
    if type(value) not in (int, float):
        raise wrong_type(value, path, "a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def wrong_type(value: Any, path: str, expected: str) -> ControlError:
    """Return the error for a value that does not have the ``expected`` type."""
    return ControlError(
        ControlCode.WRONG_TYPE, f"Field '{path}' is {shorten(value)}, but must be {expected}. Change it."
    )


def bad_region(message: str) -> ControlError:
    """Return the error for a region that is not valid."""
    return ControlError(ControlCode.BAD_REGION, message)


def _read_ring(ring: Any, path: str, feed: Feed, more: bool) -> Float64s:
    if not isinstance(ring, list):
        raise wrong_type(ring, path, "a list of positions")
    positions = [read_position(position, f"{path}[{k}]", feed, more) for k, position in enumerate(ring)]
    if len(set(positions)) < SMALLEST_RING:
        raise bad_region(
            f"Field '{path}' is {shorten(ring)}, but a ring has at least {SMALLEST_RING} different vertices. "
            "Add the others."
        )
    if positions[0] != positions[-1]:
        positions.append(positions[0])
    return np.array(positions, dtype=np.float64)


def _beyond(value: Any, path: str, feed: Feed) -> ControlError:
    if not feed.lonlat:
        rule = f"but coordinates are at most {LARGEST_COORDINATE:g}. Write a smaller number."
    elif abs(value[1]) == POLE and abs(value[0]) <= EAST:
        rule = "which is a pole, and no shape may hold or touch one. Stay below it, or use region.box with latitudes."
    else:
        rule = "but longitudes are from -180 to 180 and latitudes between -90 and 90. Write degrees in this order."
    return bad_region(f"Field '{path}' is {shorten(value)}, {rule}")


def _turns(ring: Float64s, path: str) -> Int64s:
    """Return for each vertex of a closed ring how many times 360 degrees must be added to its longitude."""
    steps = np.diff(ring[:, 0])
    half = np.flatnonzero(np.abs(steps) == HALF_TURN)
    if half.size:
        before, after = ring[half[0]].tolist(), ring[half[0] + 1].tolist()
        raise bad_region(
            f"In '{path}' the vertices {shorten(before)} and {shorten(after)} are 180 degrees of longitude apart, so "
            "that both ways are equally short. Put a vertex between them."
        )
    turns = np.zeros(len(ring), dtype=np.int64)
    np.cumsum(np.where(steps > HALF_TURN, -1, np.where(steps < -HALF_TURN, 1, 0)), out=turns[1:])
    if turns[-1]:
        raise bad_region(
            f"The ring '{path}' goes once around a pole, and no shape may hold one. Use region.box with latitudes, "
            "or split it in two."
        )
    return turns
