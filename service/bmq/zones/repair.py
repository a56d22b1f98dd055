"""Repairs areas that cross or touch themselves, and says what it changed."""

import json
from itertools import pairwise
from typing import Any

import shapely
import shapely.geometry

_AREAS = ("Polygon", "MultiPolygon")
_HALF_TURN = 180.0


def repair(geometry: Any, *, lonlat: bool) -> tuple[Any, str]:
    """Return a valid geometry and what changed; ("" and the same geometry) if there is nothing that this can repair.

    Rings that cross are divided, and rings that overlap are joined. Lines and points that remain are left out, because
    a region is an area.

    Parameters
    ----------
    geometry : GeoJSON as Python reads it, unchecked.
    lonlat : whether x is a longitude. A ring over the antimeridian is not repaired, because it looks torn in a plane.
    """
    if not isinstance(geometry, dict) or geometry.get("type") not in _AREAS:
        return geometry, ""
    try:
        area = shapely.geometry.shape(geometry)
    except Exception:  # the service has refused it, and its message says more than shapely's
        return geometry, ""
    if area.is_valid or (lonlat and _is_over_antimeridian(area)):
        return geometry, ""
    reason = shapely.is_valid_reason(area)
    repaired = _areas_of(shapely.make_valid(area, method="structure", keep_collapsed=False))
    if repaired.is_empty:
        return geometry, ""
    change = (
        f"{reason}; {_parts(area)} became {_parts(repaired)}, {shapely.get_num_coordinates(area)} vertices "
        f"{shapely.get_num_coordinates(repaired)}, and the area {area.area:.6g} {repaired.area:.6g}"
    )
    return json.loads(shapely.to_geojson(repaired)), change


def _areas_of(geometry: Any) -> Any:
    if geometry.geom_type in _AREAS:
        return geometry
    parts = [part for part in shapely.get_parts(geometry) if part.geom_type in _AREAS]
    return shapely.union_all(parts)


def _parts(area: Any) -> str:
    n_parts = shapely.get_num_geometries(area)
    n_holes = sum(map(len, (part.interiors for part in shapely.get_parts(area))))
    return f"{n_parts} {'part' if n_parts == 1 else 'parts'} with {n_holes} {'hole' if n_holes == 1 else 'holes'}"


def _is_over_antimeridian(area: Any) -> bool:
    rings = [ring for part in shapely.get_parts(area) for ring in (part.exterior, *part.interiors)]
    return any(abs(after[0] - before[0]) > _HALF_TURN for ring in rings for before, after in pairwise(ring.coords))
