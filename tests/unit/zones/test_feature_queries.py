"""From features to definitions: ids, tags, refusals that stop no other feature, and repairs."""

import json
from functools import partial
from typing import Any

import pytest
import shapely

from bmq.records import Feed, Installation
from bmq.zones.checks import check_definition
from bmq.zones.feature_queries import (
    FeatureQuery,
    RefusedFeature,
    Wishes,
    make_queries,
    n_without_id,
    property_names,
)
from bmq.zones.features import Feature, FeatureLayer
from bmq.zones.repair import repair
from bmq.zones.reprojection import Reproject

pytestmark = pytest.mark.unit

GLOBE = Feed("areas", "areas", "id", ("lon", "lat"), "ts", lonlat=True)
INSTALLATION = Installation({"areas": GLOBE}, "bmq.")
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}


def made(*features: Feature, reproject: Reproject = lambda feature: feature, **wishes: Any) -> list[Any]:
    layer = FeatureLayer("zones", None, features)
    check = partial(check_definition, installation=INSTALLATION)
    return list(make_queries(layer, Wishes("areas", **wishes), reproject, check))


def feature(number: int, own_id: Any = None, geometry: Any = SQUARE, **properties: Any) -> Feature:
    return Feature(number, own_id, properties, geometry)


def definitions(results: list[Any]) -> dict[str, Any]:
    return {one.query_id: json.loads(one.definition) for one in results if isinstance(one, FeatureQuery)}


def test_the_id_is_the_features_own_or_the_layer_and_its_number() -> None:
    features = [feature(1, "a"), feature(2, 7), feature(3, 1.5), feature(4), feature(5, "")]

    assert list(definitions(made(*features))) == ["a", "7", "1.5", "zones-4", "zones-5"]
    assert n_without_id(FeatureLayer("zones", None, features), Wishes("areas")) == 2
    assert list(definitions(made(feature(1, "a", code="x"), id_property="code", id_prefix="berlin/"))) == ["berlin/x"]


def test_a_definition_has_the_geometry_the_tags_and_the_options_of_all() -> None:
    one = feature(1, "a", name="north", rate=2, note={"x": 1})

    (definition,) = definitions(
        made(one, tags=("name", "absent"), options={"stay_for": "30s", "tags": {"by": "gis"}})
    ).values()

    assert definition == {
        "kind": "border",
        "feed": "areas",
        "region": {"geojson": SQUARE},
        "stay_for": "30s",
        "tags": {"by": "gis", "name": "north"},
    }
    assert definitions(made(one, tags=("*",)))["a"]["tags"] == {"name": "north", "rate": 2}
    assert "tags" not in definitions(made(one))["a"]
    assert property_names([one, feature(2, code=1)]) == ["name", "rate", "note", "code"]


@pytest.mark.parametrize(
    ("refused", "wishes", "line"),
    [
        (
            feature(2, "p", {"type": "Point", "coordinates": [13, 52]}),
            {},
            "feature 2 'p' at [13, 52]: bad_region: Field",
        ),
        (
            feature(2, "l", {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}),
            {},
            "feature 2 'l' at [1, 2]: bad_region",
        ),
        (feature(2, "n", None), {}, "feature 2 'n': bad_region: it has no geometry"),
        (
            feature(2, "c", BOW_TIE),
            {},
            "feature 2 'c' at [0, 0]: bad_region: Field 'region.geojson.coordinates' is no area",
        ),
        (feature(2, "a"), {}, "feature 2 'a' at [0, 0]: missing_field: feature 1 has the same id"),
        (feature(2, True), {}, "feature 2 at [0, 0]: missing_field: its id is true"),
        (feature(2, "x"), {"id_property": "code"}, 'feature 2 at [0, 0]: missing_field: its property "code" is null'),
        (feature(2, "t", note={"x": 1}), {"tags": ("note",)}, "feature 2 't' at [0, 0]: wrong_type: Field 'tags"),
    ],
)
def test_a_refused_feature_has_its_number_place_and_reason_and_the_others_go_on(
    refused: Feature, wishes: dict[str, Any], line: str
) -> None:
    before, result, after = made(feature(1, "a", code="a"), refused, feature(3, "z", code="z"), **wishes)

    assert isinstance(result, RefusedFeature)
    assert result.line().startswith(line)
    assert (before.query_id, after.query_id) == ("a", "z")


def test_a_fault_of_reading_or_reprojecting_is_the_reason() -> None:
    (result,) = made(feature(1, "a"), reproject=lambda one: one.failed("its geometry has no place in EPSG:4326"))

    assert result.line().startswith("feature 1 'a' at [0, 0]: bad_region: its geometry has no place in EPSG:4326. ")


def test_a_repair_says_what_it_changed_and_touches_only_what_the_service_refuses() -> None:
    sound, repaired = made(feature(1, "a"), feature(2, "b", BOW_TIE), with_repair=True)

    assert sound.repaired == ""
    assert repaired.repaired.startswith("Self-intersection[1 1]; 1 part with 0 holes became 2 parts with 0 holes, 5 ")
    area = shapely.geometry.shape(json.loads(repaired.definition)["region"]["geojson"])
    assert (area.is_valid, area.area, area.geom_type) == (True, 2.0, "MultiPolygon")


@pytest.mark.parametrize(
    "geometry",
    [
        SQUARE,
        {"type": "Point", "coordinates": [1, 2]},
        {"type": "Polygon", "coordinates": [[1]]},
        {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 2], [0, 0]]]},  # nothing remains of a line
        {"type": "Polygon", "coordinates": [[[170, 0], [-170, 2], [-170, 0], [170, 2], [170, 0]]]},
    ],
)
def test_what_cannot_be_repaired_stays_as_it_is(geometry: dict[str, Any]) -> None:
    assert repair(geometry, lonlat=True) == (geometry, "")


def test_lines_that_a_repair_leaves_over_are_no_part_of_the_region() -> None:
    spike = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [5, 1], [1, 1], [0, 1], [0, 0]]]}

    repaired, change = repair(spike, lonlat=False)

    assert shapely.geometry.shape(repaired).equals(shapely.box(0, 0, 1, 1))
    assert "the area 1 1" in change
