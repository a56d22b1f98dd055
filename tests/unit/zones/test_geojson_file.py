"""Features from files of GeoJSON."""

import json
from typing import Any

import pytest

from bmq.errors import ServiceError
from bmq.zones.features import Feature, FeatureLayer, first_position
from bmq.zones.geojson_file import read_geojson

POLYGON = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 0]]]}
CRS84 = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
NAME = "urn:ogc:def:crs:OGC:1.3:CRS84"

pytestmark = pytest.mark.unit


def feature(**members: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": POLYGON, "properties": {"name": "x", "code": 5}} | members


def collection(*features: Any, **members: Any) -> bytes:
    return json.dumps({"type": "FeatureCollection", "features": features} | members).encode()


def test_each_feature_has_its_number_id_properties_and_geometry() -> None:
    document = collection(feature(id="a"), feature(properties={"none": None}), crs=None)

    assert read_geojson(document, "zones") == FeatureLayer(
        "zones",
        None,
        [Feature(1, "a", {"name": "x", "code": 5}, POLYGON), Feature(2, None, {}, POLYGON)],
    )
    alone = b"\xef\xbb\xbf" + json.dumps(feature()).encode()
    assert len(read_geojson(alone, "zones").features) == 1


@pytest.mark.parametrize(
    "document",
    [
        collection(feature(id="a"), crs=CRS84),
        collection(feature(id="a", crs=CRS84)),
        collection(feature(id="a", geometry={"crs": CRS84} | POLYGON)),
    ],
)
def test_the_coordinate_system_of_any_member_is_that_of_the_layer(document: bytes) -> None:
    read = read_geojson(document, "zones")

    assert read.crs == NAME
    assert read.features[0].geometry == POLYGON


def test_a_feature_that_is_no_object_is_a_fault_of_that_feature_alone() -> None:
    bad, good = read_geojson(collection(3, feature(id="a")), "zones").features

    assert bad.fault == "it is 3, which is no Feature"
    assert good.own_id == "a"


@pytest.mark.parametrize(
    ("document", "part"),
    [
        (b"", "it is empty"),
        (b"{", "no JSON"),
        (b"[1]", "The file is [1]"),
        (json.dumps(POLYGON).encode(), "no features"),
        (collection(), "no features"),
        (collection(feature(crs="EPSG:25832"), crs=CRS84), "2 coordinate systems"),
    ],
)
def test_a_file_of_another_form_is_refused_with_a_way_out(document: bytes, part: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        read_geojson(document, "zones")
    assert part in str(refusal.value)


def test_the_first_position_is_found_at_any_depth() -> None:
    assert first_position(POLYGON) == [0, 0]
    assert first_position({"type": "Point", "coordinates": [1, 2, 3]}) == [1, 2]
    nothing: tuple[Any, ...] = (None, {}, {"coordinates": []}, {"coordinates": [[]]}, {"coordinates": "x"})
    for none in nothing:
        assert first_position(none) is None
