"""Features from a file of GeoJSON. Needs no package beyond the service's own; the service knows the shapes."""

import json
from typing import Any

from bmq.errors import ServiceError
from bmq.wire.fault_texts import shorten
from bmq.wire.record_texts import read_text
from bmq.zones.features import Feature, FeatureLayer

Json = dict[str, Any]


def read_geojson(document: bytes, name: str) -> FeatureLayer:
    """Return the features of the document.

    Parameters
    ----------
    document : a FeatureCollection or a Feature, in UTF-8.
    name : the name of the layer, for features without an id.

    Raises
    ------
    ServiceError
        The document has another form, or its features are in several coordinate systems.

    Notes
    -----
    A member `crs`, of the GeoJSON before RFC 7946, becomes the system of the layer and leaves the geometry.
    """
    collection = _parse(document)
    features = [collection] if collection.get("type") == "Feature" else collection.get("features")
    if not isinstance(features, list) or not features:
        raise ServiceError("The file has no features. Give a FeatureCollection or a Feature of GeoJSON.")
    members = [feature if isinstance(feature, dict) else {} for feature in features]
    owners = [collection, *members, *map(_geometry, members)]
    names = {_crs_name(owner["crs"]) for owner in owners if owner.get("crs") is not None}
    if len(names) > 1:
        listed = ", ".join(map(shorten, sorted(names)))
        raise ServiceError(f"The features are in {len(names)} coordinate systems: {listed}. Give a file for each.")
    read = [_feature(number, feature) for number, feature in enumerate(features, start=1)]
    return FeatureLayer(name, next(iter(names), None), read)


def _parse(document: bytes) -> Json:
    try:
        read = json.loads(read_text(document))
    except (ValueError, RecursionError) as error:
        raise ServiceError(f"The file is no JSON: {error}. Give a FeatureCollection of GeoJSON.") from None
    if not isinstance(read, dict):
        raise ServiceError(f"The file is {shorten(read)}. Give a FeatureCollection of GeoJSON.")
    return read


def _feature(number: int, feature: Any) -> Feature:
    if not isinstance(feature, dict):
        return Feature(number, None, {}, None, f"it is {shorten(feature)}, which is no Feature")
    properties = feature.get("properties")
    known = properties if isinstance(properties, dict) else {}
    present = {name: value for name, value in known.items() if value is not None}
    geometry = feature.get("geometry")
    if isinstance(geometry, dict):
        geometry = {name: value for name, value in geometry.items() if name != "crs"}
    return Feature(number, feature.get("id"), present, geometry)


def _geometry(feature: Json) -> Json:
    geometry = feature.get("geometry")
    return geometry if isinstance(geometry, dict) else {}


def _crs_name(crs: Any) -> str:
    """Return the name in {"type": "name", "properties": {"name": …}}, or the value itself as text."""
    properties = crs.get("properties") if isinstance(crs, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else crs
    return name if isinstance(name, str) else json.dumps(name)
