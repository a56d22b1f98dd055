"""How much one definition may cost, counted in its JSON before anything that takes long looks at it.

Knows the fields that can be long, and not what they mean: a value of a wrong type counts nothing here, and is refused
later.
"""

from collections.abc import Mapping
from typing import Any

from bmq.errors import ControlCode, ControlError
from bmq.records import Limits


def check_costs(definition: Mapping[str, Any], limits: Limits) -> None:
    """Refuse a definition that costs more than the limits allow.

    Raises
    ------
    ControlError
        `over_limit`, with the field, its number, and the option that has the limit.
    """
    for field in ("region", "exit_region"):
        n_vertices, n_rings = _size_of_shape(definition.get(field))
        _must_fit(f"Field '{field}' has {n_vertices} vertices", n_vertices, limits.vertices, "vertices")
        _must_fit(f"Field '{field}' has {n_rings} rings", n_rings, limits.rings, "rings")
    n_streams = _length(definition.get("streams"))
    _must_fit(f"Field 'streams' has {n_streams} streams", n_streams, limits.streams, "streams")
    n_values = _size_of_where(definition.get("where"))
    _must_fit(f"Field 'where' has {n_values} values", n_values, limits.where_values, "where_values")
    n_conjunctions = _length(definition.get("any"))
    _must_fit(f"Field 'any' has {n_conjunctions} conjunctions", n_conjunctions, limits.conjunctions, "conjunctions")
    for side in ("left", "right"):
        n_readings = _size_of_window(definition.get(side))
        what = f"Field '{side}.window' has {n_readings} readings"
        _must_fit(what, n_readings, limits.window_readings, "window_readings")


def _must_fit(what: str, size: int, limit: int, option: str) -> None:
    if size > limit:
        raise ControlError(
            ControlCode.OVER_LIMIT,
            f"{what}, but at most {limit} are allowed. Use fewer, divide the query, or raise limits.{option} in the "
            "configuration.",
        )


def _size_of_shape(region: Any) -> tuple[int, int]:
    """Return the vertices and the rings of a region."""
    if not isinstance(region, dict):
        return 0, 0
    rings = [region.get("polygon")]
    geometry = region.get("geojson")
    if isinstance(geometry, dict) and geometry.get("type") == "Feature":
        geometry = geometry.get("geometry")
    if isinstance(geometry, dict):
        parts = [geometry.get("coordinates")]
        if geometry.get("type") == "MultiPolygon":
            parts = parts[0] if isinstance(parts[0], list) else []
        rings += [ring for part in parts if isinstance(part, list) for ring in part]
    return sum(map(_length, rings)), sum(isinstance(ring, list) for ring in rings)


def _size_of_where(where: Any) -> int:
    if not isinstance(where, dict):
        return 0
    return sum(len(value) if isinstance(value, list) else 1 for value in where.values())


def _size_of_window(side: Any) -> int:
    """Return the readings of a counted window; a window of time has no number."""
    window = side.get("window") if isinstance(side, dict) else None
    return window if type(window) is int else 0


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0
