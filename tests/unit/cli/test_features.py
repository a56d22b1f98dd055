"""Definitions from files of GeoJSON."""

import json
from typing import Any

import pytest

from bmq.cli.features import read_features
from bmq.errors import ServiceError

POLYGON = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 0]]]}
CRS84 = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}

pytestmark = pytest.mark.unit


def feature(**members: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": POLYGON, "properties": {"name": "x", "code": 5}} | members


def collection(*features: Any, **members: Any) -> bytes:
    return json.dumps({"type": "FeatureCollection", "features": features} | members).encode()


def test_each_feature_is_a_border_query_with_its_geometry() -> None:
    definition = {"kind": "border", "feed": "f", "region": {"geojson": POLYGON}}
    document = collection(feature(id="a"), feature(id=7), feature(id=1.5), crs=None)

    assert read_features(document, "f", None) == {"a": definition, "7": definition, "1.5": definition}
    assert read_features(collection(feature()), "f", "name") == {"x": definition}
    assert read_features(b"\xef\xbb\xbf" + json.dumps(feature()).encode(), "f", "code") == {"5": definition}


def test_the_coordinates_that_a_collection_names_hold_for_its_geometries() -> None:
    for document in (collection(feature(id="a"), crs=CRS84), collection(feature(id="a", crs=CRS84))):
        assert read_features(document, "f", None)["a"]["region"]["geojson"] == {"crs": CRS84} | POLYGON


@pytest.mark.parametrize(
    ("document", "id_property", "part"),
    [
        (b"", None, "it is empty"),
        (b"{", None, "no JSON"),
        (b"[1]", None, "The file is [1]"),
        (json.dumps(POLYGON).encode(), None, "no features"),
        (collection(), None, "no features"),
        (collection(3), None, "Feature 1 has no geometry"),
        (collection(feature(id="a"), feature(id="b", geometry=None)), None, "Feature 2 has no geometry"),
        (collection(feature(id="7"), feature(id=7)), None, 'Feature 2 has the id "7" of an earlier feature'),
        (collection(feature()), None, "member 'id' of feature 1 is null"),
        (collection(feature()), None, 'feature 1 has: "name", "code"'),
        (collection(feature(id="")), None, 'is ""'),
        (collection(feature(id=True)), None, "is true"),
        (collection(feature(id="a", properties=None)), "name", 'property "name" of feature 1 is null'),
    ],
)
def test_a_file_of_another_form_is_refused_with_a_way_out(document: bytes, id_property: str | None, part: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        read_features(document, "f", id_property)
    assert part in str(refusal.value)
