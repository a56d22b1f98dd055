"""Features from files that GDAL writes, and what becomes of their coordinates."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio.raw
import pytest
import shapely

from bmq.errors import ServiceError, SetupError
from bmq.zones.features import Feature, FeatureLayer
from bmq.zones.layer_file import read_layer
from bmq.zones.reprojection import reprojection

pytestmark = pytest.mark.unit

HOLED = shapely.Polygon([(0, 0), (9, 0), (9, 9), (0, 9)], [[(1, 1), (2, 1), (2, 2), (1, 2)]])
SQUARE = shapely.box(20, 20, 21, 21)
BOTH = shapely.MultiPolygon([HOLED, SQUARE])
NAMES = ["north", "süd"]
NUMBERS = [7, 8]


def write(
    path: Path, shapes: list[Any], *, layer: str = "zones", crs: str | None = "EPSG:4326", **options: Any
) -> Path:
    """Write a shape a row, with the fields `name` and `number`."""
    pyogrio.raw.write(
        path,
        geometry=np.array(shapely.to_wkb(shapes), dtype=object),
        field_data=[np.array((NAMES * len(shapes))[: len(shapes)], dtype=object), np.arange(7, 7 + len(shapes))],
        fields=["name", "number"],
        layer=layer,
        geometry_type="Unknown" if path.suffix != ".shp" else "Polygon",
        crs=crs,
        **options,
    )
    return path


def areas(layer: FeatureLayer) -> list[Any]:
    return [shapely.geometry.shape(feature.geometry) for feature in layer.features]


@pytest.mark.parametrize("suffix", [".gpkg", ".shp", ".fgb"])
def test_every_format_gives_the_same_features(tmp_path: Path, suffix: str) -> None:
    read = read_layer(write(tmp_path / f"zones{suffix}", [HOLED, BOTH], layer="zones"), None)

    assert (read.name, read.crs) == ("zones", "EPSG:4326")
    assert sorted(feature.number for feature in read.features) == [1, 2]
    by_name = {feature.properties["name"]: feature for feature in read.features}
    assert {name: feature.properties["number"] for name, feature in by_name.items()} == {"north": 7, "süd": 8}
    assert shapely.geometry.shape(by_name["north"].geometry).equals(HOLED)
    assert shapely.geometry.shape(by_name["süd"].geometry).equals(BOTH)


def test_kml_has_its_names_and_no_columns_of_gdal(tmp_path: Path) -> None:
    path = tmp_path / "zones.kml"
    path.write_text(
        """<?xml version="1.0" encoding="UTF-8"?>
        <kml xmlns="http://www.opengis.net/kml/2.2"><Document><Folder><name>zones</name>
        <Placemark><name>north</name><ExtendedData><Data name="code"><value>17</value></Data></ExtendedData>
        <Polygon><outerBoundaryIs><LinearRing><coordinates>20,20,5 21,20,5 21,21,5 20,21,5 20,20,5</coordinates>
        </LinearRing></outerBoundaryIs></Polygon></Placemark></Folder></Document></kml>"""
    )

    read = read_layer(path, None)

    (feature,) = read.features
    assert (read.crs, feature.properties["Name"], feature.properties["code"]) == ("EPSG:4326", "north", "17")
    assert set(feature.properties) <= {"Name", "code", "description"}
    assert areas(read)[0].equals(SQUARE)  # without the heights


def test_csv_with_wkt_has_no_coordinate_system(tmp_path: Path) -> None:
    path = tmp_path / "zones.csv"
    path.write_text(f'id,geometry,rate\na,"{HOLED.wkt}",1.5\nb,"{SQUARE.wkt}",\nc,nonsense,2\n')

    read = read_layer(path, None)

    assert read.crs is None
    assert [feature.own_id for feature in read.features] == ["a", "b", "c"]
    assert [feature.properties.get("rate") for feature in read.features] == [1.5, None, 2.0]
    assert read.features[2].geometry is None
    assert shapely.geometry.shape(read.features[0].geometry).equals(HOLED)


def test_a_geopackage_numbers_its_features_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "zones.gpkg", [SQUARE, HOLED])
    write(path, [HOLED, SQUARE], layer="more", append=False)

    assert [feature.number for feature in read_layer(path, "zones").features] == [1, 2]
    with pytest.raises(ServiceError, match=r"has 2 layers: 'zones', 'more'\. Name one with --layer"):
        read_layer(path, None)
    with pytest.raises(ServiceError, match=r"no layer 'zone'\. Did you mean 'zones'\?"):
        read_layer(path, "zone")


def test_numbers_of_a_column_with_gaps_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "zones.csv"
    path.write_text(f'number,WKT\n7,"{SQUARE.wkt}"\n,"{SQUARE.wkt}"\n')

    first, second = read_layer(path, None).features

    assert json.dumps(first.properties) == '{"number": 7}'
    assert second.properties == {}


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("zones.gpkg", b"no package", "GDAL cannot read"),
        ("zones.xyz", b"", "GDAL cannot read"),
        ("zones.csv", b"a,b\n1,2\n", "has no geometry"),
    ],
)
def test_a_file_without_areas_is_refused_with_a_way_out(tmp_path: Path, name: str, content: bytes, part: str) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ServiceError, match=part):
        read_layer(tmp_path / name, None)
    with pytest.raises(ServiceError, match="There is no file"):
        read_layer(tmp_path / "absent.gpkg", None)


def test_without_the_extra_the_way_out_is_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "zones.gpkg", [SQUARE])
    for name in ("pyogrio", "pyproj"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(SetupError, match=r'pip install "bmq\[gis\]"'):
        read_layer(path, None)
    with pytest.raises(SetupError, match=r'pip install "bmq\[gis\]"'):
        reprojection("EPSG:25832", "EPSG:4326")
    assert reprojection("urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326")(feature_of(SQUARE)) == feature_of(SQUARE)


def feature_of(shape: Any) -> Feature:
    return Feature(1, None, {}, json.loads(shapely.to_geojson(shape)))


def test_utm_becomes_longitude_and_latitude_in_this_order() -> None:
    # The origin of UTM zone 32: 9 degrees east, and 500 km is its false easting.
    moved = reprojection("EPSG:25832", "EPSG:4326")(feature_of(shapely.box(500_000, 5_538_630, 500_100, 5_538_730)))

    west, south, east, north = shapely.geometry.shape(moved.geometry).bounds
    assert west == pytest.approx(9.0, abs=1e-9)
    assert south == pytest.approx(50.0, abs=1e-4)
    assert (east - west) == pytest.approx(100 / 71_700, rel=0.01)
    assert (north - south) == pytest.approx(100 / 111_200, rel=0.01)


def test_a_feature_without_a_place_in_the_other_system_is_a_fault() -> None:
    reproject = reprojection("EPSG:4326", "EPSG:3857")

    assert "no place in EPSG:3857" in reproject(feature_of(shapely.box(0, -90, 1, 95))).fault
    assert "cannot be reprojected" in reproject(Feature(1, None, {}, {"type": "Polygon", "coordinates": [1]})).fault
    with pytest.raises(ServiceError, match="'EPSG:1' is not known"):
        reprojection("EPSG:1", "EPSG:4326")
