"""Definitions from a file of GeoJSON: one query for each feature. Knows the file; the service knows the shapes."""

import json
from typing import Any

from bmq.errors import ServiceError
from bmq.wire.fault_texts import shorten
from bmq.wire.record_texts import read_text

Json = dict[str, Any]


def read_features(document: bytes, feed: str, id_property: str | None) -> dict[str, Json]:
    """Return the definition of a border query for each feature of the document, by query id.

    Parameters
    ----------
    document : a FeatureCollection or a Feature, in UTF-8.
    feed : the feed that the queries watch.
    id_property : the property of a feature that is its query id; None: its member `id`.

    Raises
    ------
    ServiceError
        The document has another form, or a feature has no id, the id of another feature, or no geometry.
    """
    collection = _parse(document)
    features = [collection] if collection.get("type") == "Feature" else collection.get("features")
    if not isinstance(features, list) or not features:
        raise ServiceError("The file has no features. Give a FeatureCollection or a Feature of GeoJSON.")
    definitions: dict[str, Json] = {}
    for number, feature in enumerate(features, start=1):
        if not isinstance(feature, dict) or not isinstance(feature.get("geometry"), dict):
            raise ServiceError(f"Feature {number} has no geometry, so it is nowhere. Take it out of the file.")
        query_id = _query_id(feature, number, id_property)
        if query_id in definitions:
            raise ServiceError(
                f"Feature {number} has the id {shorten(query_id)} of an earlier feature, but each is a query. Change "
                "it, or name another property with --id-property."
            )
        # A system of coordinates that the collection names holds for all its geometries.
        crs = next((one["crs"] for one in (feature, collection) if one.get("crs") is not None), None)
        geometry = feature["geometry"] if crs is None else {"crs": crs} | feature["geometry"]
        definitions[query_id] = {"kind": "border", "feed": feed, "region": {"geojson": geometry}}
    return definitions


def _parse(document: bytes) -> Json:
    try:
        read = json.loads(read_text(document))
    except (ValueError, RecursionError) as error:
        raise ServiceError(f"The file is no JSON: {error}. Give a FeatureCollection of GeoJSON.") from None
    if not isinstance(read, dict):
        raise ServiceError(f"The file is {shorten(read)}. Give a FeatureCollection of GeoJSON.")
    return read


def _query_id(feature: Json, number: int, id_property: str | None) -> str:
    given = feature.get("properties")
    properties = given if isinstance(given, dict) else {}
    found = feature.get("id") if id_property is None else properties.get(id_property)
    if isinstance(found, str) and found:
        return found
    if isinstance(found, int | float) and not isinstance(found, bool):
        return json.dumps(found)
    place = "member 'id'" if id_property is None else f"property {shorten(id_property)}"
    names = ", ".join(map(shorten, properties)) or "none"
    raise ServiceError(
        f"The {place} of feature {number} is {shorten(found)}, but a query id is a text or a number. Name a property "
        f"with --id-property; feature {number} has: {names}."
    )
