"""GeoJSON as tools write it: finds the area in it, and refuses coordinates that are not WGS 84.

    {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": …, "crs": null}, "properties": …}
                                    └── the area ─────────────────────────────────┘

Knows RFC 7946, and the member `crs` of the GeoJSON before it. Members that it does not know are ignored, as section 6.1
says. Knows no feed, and does not check coordinates.
"""

import re
from typing import Any

from bmq.errors import ControlCode, ControlError
from bmq.wire.fault_texts import shorten
from bmq.wire.rings import bad_region, wrong_type

_AREAS = ("Polygon", "MultiPolygon")
# Longitude and latitude of WGS 84, as OGC and EPSG name it: urn:ogc:def:crs:OGC:1.3:CRS84, EPSG:4326,
# http://www.opengis.net/def/crs/EPSG/0/4326. Before RFC 7946, GeoJSON named EPSG:4326 with the longitude first, too.
_WGS84 = re.compile(
    r"""(?: urn:(?:x-)?ogc:def:crs: | https?://www\.opengis\.net/def/crs/ )?
        (?: OGC [:/] (?:[\d.]*[:/])? CRS84h? | EPSG [:/] (?:[\d.]*[:/])? 4326 )
    |   https?://www\.opengis\.net/gml/srs/epsg\.xml\#4326
    |   CRS84""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


def find_area(value: Any, path: str) -> tuple[dict[str, Any], str]:
    """Return the Polygon or MultiPolygon in a GeoJSON object, with "coordinates", and its path.

    Parameters
    ----------
    value : JSON as Python reads it, unchecked.
    path : the path of ``value`` in the definition, for messages.

    Raises
    ------
    ControlError
        `wrong_type`, `missing_field`: a member has another type, or is absent. `bad_region`: another type of object, a
        Feature without a geometry, or another `crs` than WGS 84.
    """
    if not isinstance(value, dict):
        raise wrong_type(value, path, "an object")
    kind = _member(value, "type", path)
    if not isinstance(kind, str):
        raise wrong_type(kind, f"{path}.type", "a string")
    if kind == "FeatureCollection":
        raise bad_region(
            f"Field '{path}' is a FeatureCollection, but a query has one region. 'bmq query import FILE' puts a query "
            "for each feature; or give one of them."
        )
    if kind != "Feature" and kind not in _AREAS:
        raise bad_region(
            f"Field '{path}.type' is {shorten(kind)}, but a region is a Polygon, a MultiPolygon, or a Feature of one. "
            "Give the geometry of an area."
        )
    _check_crs(value.get("crs"), f"{path}.crs")
    if kind in _AREAS:
        _member(value, "coordinates", path)
        return value, path
    if value.get("geometry") is None:
        raise bad_region(f"Field '{path}' is a Feature without a geometry, so it is nowhere. Give one with an area.")
    geometry, path = value["geometry"], f"{path}.geometry"
    if isinstance(geometry, dict) and geometry.get("type") == "Feature":
        raise bad_region(f"Field '{path}' is a Feature, but a Feature holds a geometry. Take the inner one.")
    return find_area(geometry, path)


def is_wgs84(name: str) -> bool:
    """Return whether a name is one of longitude and latitude in WGS 84."""
    return _WGS84.fullmatch(name.strip()) is not None


def _member(value: dict[str, Any], name: str, path: str) -> Any:
    if value.get(name) is None:
        raise ControlError(
            ControlCode.MISSING_FIELD, f"Field '{path}.{name}' is missing, but GeoJSON needs it. Add it."
        )
    return value[name]


def _check_crs(crs: Any, path: str) -> None:
    """Raise ControlError unless the coordinate reference system is absent, null or WGS 84."""
    if crs is None:
        return
    if not isinstance(crs, dict | str):
        raise wrong_type(crs, path, "an object")
    properties = crs.get("properties") if isinstance(crs, dict) else {"name": crs}
    name = properties.get("name") if isinstance(properties, dict) else None
    if not isinstance(name, str) or not is_wgs84(name):
        raise bad_region(
            f"Field '{path}' is {shorten(crs if name is None else name)}, but GeoJSON is in WGS 84. Reproject to "
            "WGS 84 (EPSG:4326, longitude first); on a feed of a plane, leave crs out if the numbers are of that plane."
        )
