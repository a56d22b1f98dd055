"""Definitions and readings as commands of Tile38; or the reason why it has no means for them.

Tile38 has points of longitude and latitude, fences (WITHIN … FENCE DETECT …) and fields of a point. So:

    feed          a key                                  stream      an object of it
    x, y          longitude, latitude                    event time  a field: its fences report fields
    x alone       longitude, at latitude 0               attribute   a field
    query         a channel with a fence                 select      WHERE over fields, DETECT inside
    tags          META of the channel

An open end of an interval becomes the next 64-bit number inside, because Tile38's areas hold their borders. One unit of
a plane is 2^-24 degrees: a power of two, so that no number is rounded, and small, so that circles are circles.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bmq.conformance.scenario import ATTRIBUTE, Json
from bmq.records.plane import EAST, LARGEST_DEGREES, PLANE, WEST

UNIT = 2.0**-24  # degrees; 6.6 mm. The far points of clock steps, 10^9 units away, are at 60 degrees.
_WORLD = ("-90", "-180", "90", "180")
_METRES_A_DEGREE = math.pi / 180 * 6_371_000  # on Tile38's sphere
_OPEN = (-math.inf, math.inf)
_ROUNDING = 1 + 1e-9  # of a radius in units: so that no rounding puts a point on the rim outside

_NO_COUNTERPART = {
    "passes": "DETECT cross reports that a line met a fence, but not where and when it entered and left",
    "exit_region": "a fence has one area, and no second one that must be left",
    "stay_for": "a fence reports at once; it cannot wait until an object has stayed",
    "away_for": "a fence reports at once; it cannot wait until an object has stayed away",
    "cooldown": "a fence reports every crossing; it has no pause",
    "max_events": "a fence reports every crossing; it has no limit",
    "stream_ttl": "SET … EX runs by the clock of the machine, and not by event time",
    "ttl": "SETCHAN … EX runs by the clock of the machine, and not by event time",
    "expires_at": "SETCHAN … EX runs by the clock of the machine, and not by event time",
    "output_topic": "a channel has one name, and its messages go nowhere else",
}
_NO_KIND = {
    "transition": "Tile38 has no pattern of two crossings within a time",
    "band_join": "Tile38 compares objects by distance in metres (ROAM), and not two feeds by a band of values",
    "window_join": "Tile38 keeps the last point of an object, and no window of readings",
}


class Inexpressible(Exception):
    """Tile38 has no means for a definition or a reading; the message says which."""


def fence_words(query_id: str, definition: Json, feeds: Mapping[str, Json]) -> list[str]:
    """Return SETCHAN for a definition.

    Parameters
    ----------
    definition : as in docs/wire-format.md; it names one of ``feeds``.
    feeds : feed name -> its options.

    Raises
    ------
    Inexpressible
        Tile38 has no counterpart for the kind, an option or the region.
    """
    kind = definition.get("kind", "")
    if kind in _NO_KIND:
        raise Inexpressible(f"{kind}: {_NO_KIND[kind]}")
    for option, reason in _NO_COUNTERPART.items():
        if definition.get(option) not in (None, False, "0s"):
            raise Inexpressible(f"{option}: {reason}")
    if definition.get("enabled") is False:
        raise Inexpressible("enabled: a channel cannot be paused; it is there or not")
    feed = definition["feed"]
    options = feeds[feed]
    tags = definition.get("tags") or {}
    metas = [word for name, tag in tags.items() for word in ("META", name, json.dumps(tag))]
    words = ["SETCHAN", query_id, *metas, "WITHIN", feed]
    for stream in definition.get("streams") or ():
        words += ["MATCH", "".join("\\" + sign if sign in "*?[]\\" else sign for sign in stream)]
    for name, values in (definition.get("where") or {}).items():
        accepted = [_field(value) for value in (values if isinstance(values, list) else [values])]
        words += ["WHEREIN", name, str(len(accepted)), *accepted]
    fence = ["FENCE", "DETECT", "enter,exit" if kind == "border" else "inside"]
    if kind == "select":
        return [*words, "WHERE", _expression(definition["any"], options), *fence, "BOUNDS", *_WORLD]
    region = definition["region"]
    try:
        where, area = _area(region, definition.get("bounds") or "[)", options)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise Inexpressible(f"no command has the form of the region {json.dumps(region)}") from None
    return [*words, *where, *fence, *area]


def set_words(feed: str, value: bytes, options: Json) -> list[str]:
    """Return SET for a record.

    Parameters
    ----------
    value : the record, as the topic of the feed would have it.
    options : of the feed.

    Raises
    ------
    Inexpressible
        The record is no JSON object with a text as id and a number as event time, so no command can say it.
    """
    try:
        reading = json.loads(value)
        stream, event_time = reading.pop("id"), reading.pop("ts")
    except (ValueError, LookupError, AttributeError, TypeError):
        raise Inexpressible("a command has words, so a record that is no reading cannot be sent") from None
    if not isinstance(stream, str) or isinstance(event_time, bool) or not isinstance(event_time, int):
        raise Inexpressible("an id is a text, and no field reads a time that is a text")
    dimensions = [reading.pop(name, None) for name in options["dimensions"]]
    fields = {"ts": event_time} | {_of_dimension(options, n): number for n, number in enumerate(dimensions)}
    words = ["SET", feed, stream]
    for name, number in fields.items():
        if isinstance(number, int | float):
            words += ["FIELD", name, repr(number)]
    attribute = reading.get(ATTRIBUTE)
    # A field that is not set again keeps its value, and a field of 0 is no field.
    words += ["FIELD", ATTRIBUTE, "0" if attribute is None else _field(attribute)]
    scale = _scale(options)
    # Absent numbers are left out, and others go as they are: Tile38 decides about them.
    point = [_degrees(number, scale) for number in dimensions[:PLANE] if number is not None]
    return [*words, "POINT", *(["0"] if len(options["dimensions"]) == 1 else []), *reversed(point)]


def _area(region: Json, bounds: str, options: Json) -> tuple[list[str], list[str]]:
    """Return the conditions on fields and the area of a region."""
    if "box" in region:
        return _box(region["box"], bounds, options)
    if len(options["dimensions"]) != PLANE:
        raise Inexpressible("points have a longitude and a latitude, so no shape has another number of dimensions")
    scale = _scale(options)
    match region:
        case {"circle": {"center": [x, y], "radius": radius}}:
            metres = radius if _is_globe(options) else radius * scale * _METRES_A_DEGREE * _ROUNDING
            return [], ["CIRCLE", repr(y * scale), repr(x * scale), repr(metres)]
        case {"polygon": ring}:
            closed = ring if ring[:1] == ring[-1:] else [*ring, ring[0]]
            return [], _object({"type": "Polygon", "coordinates": _scaled([closed], scale)})
        case {"geojson": shape}:
            if "coordinates" in shape:
                shape = shape | {"coordinates": _scaled(shape["coordinates"], scale)}
            elif not _is_globe(options):
                raise ValueError("coordinates that are not to be scaled")
            return [], _object(shape)
    raise ValueError("not exactly one of the four forms")


def _box(box: Json, bounds: str, options: Json) -> tuple[list[str], list[str]]:
    where = [
        word
        for n, name in enumerate(options["dimensions"][PLANE:], start=PLANE)
        for word in ("WHERE", _of_dimension(options, n), *map(_number, _closed(box.get(name), bounds)))
    ]
    # A line has no second dimension; its points are at latitude 0.
    named = (*options["dimensions"], "")[:PLANE]
    (west, east), (south, north) = (
        (max(lo, -limit), min(hi, limit))
        for (lo, hi), limit in zip(
            (_closed(box.get(name), bounds, _scale(options)) for name in named), LARGEST_DEGREES, strict=True
        )
    )
    if west > east and _is_globe(options):
        halves = [_rectangle(west, south, EAST, north), _rectangle(WEST, south, east, north)]
        return where, _object({"type": "MultiPolygon", "coordinates": halves})
    return where, ["BOUNDS", *map(repr, (south, west, north, east))]


def _rectangle(west: float, south: float, east: float, north: float) -> list[list[list[float]]]:
    return [[[west, south], [east, south], [east, north], [west, north], [west, south]]]


def _closed(ends: Sequence[float | None] | None, bounds: str, scale: float = 1.0) -> tuple[float, float]:
    """Return the first and the last number of an interval, in units of ``scale``."""
    lo, hi = (
        (default if end is None else end * scale) for end, default in zip(ends or (None, None), _OPEN, strict=True)
    )
    # Scaled before it is moved: next to 0, the other way round, the scale would round the number back to the border.
    first = lo if bounds[0] == "[" else math.nextafter(lo, math.inf)
    last = hi if bounds[1] == "]" else math.nextafter(hi, -math.inf)
    return (lo if lo == -math.inf else first), (hi if hi == math.inf else last)


def _expression(conjunctions: Sequence[Json], options: Json) -> str:
    """Return the conjunctions of a select query as an expression over fields."""
    return " || ".join(f"({' && '.join(_conditions(one, options))})" for one in conjunctions)


def _conditions(conjunction: Json, options: Json) -> Iterator[str]:
    for name, (lo, hi, *ends) in conjunction.items():
        if name not in options["dimensions"]:
            raise Inexpressible("a field that an object does not have counts as 0, so no interval can ask for a number")
        field = _of_dimension(options, options["dimensions"].index(name))
        first, last = _closed((lo, hi), ends[0] if ends else "[)")
        sides = [f"{field} >= {first!r}"] * (lo is not None) + [f"{field} <= {last!r}"] * (hi is not None)
        wraps = _is_globe(options) and lo is not None and hi is not None and lo > hi
        yield f"({(' || ' if wraps else ' && ').join(sides) or 'true'})"


def _field(value: Any) -> str:
    """Return the value of an attribute as the word of a field.

    Tile38 reads a word as a number, true or false if it can, and a field of 0 is no field.
    """
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
        raise Inexpressible(f"a field is not the text {value!r}: Tile38 reads this word as another type")
    if isinstance(value, int | float) and value != 0:
        return json.dumps(value)
    raise Inexpressible(f"a field is a text, true or a number other than 0, and not {json.dumps(value)}")


def _of_dimension(options: Json, n: int) -> str:
    # Not the plain name: Tile38 keeps `z` for itself.
    return f"dim_{options['dimensions'][n]}"


def _is_globe(options: Json) -> bool:
    return options.get("space") == "lonlat"


def _scale(options: Json) -> float:
    return 1.0 if _is_globe(options) else UNIT


def _scaled(coordinates: Any, scale: float) -> Any:
    if isinstance(coordinates, list):
        return [_scaled(part, scale) for part in coordinates]
    return coordinates * scale


def _degrees(number: Any, scale: float) -> str:
    return repr(number * scale) if isinstance(number, int | float) else str(number)


def _number(number: float) -> str:
    return {math.inf: "+inf", -math.inf: "-inf"}.get(number, repr(number))


def _object(shape: Json) -> list[str]:
    return ["OBJECT", json.dumps(shape)]
