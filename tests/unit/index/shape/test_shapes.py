"""What a shape in a definition may be, why others are refused, and what the region then holds."""

import math
from typing import Any

import numpy as np
import pytest

from bmq.errors import ControlError
from bmq.index.region_index import Areas
from bmq.index.shape.shape_grid import ShapeIndex
from bmq.index.shape.shape_store import region_holds
from bmq.records import Feed, Float64s, Region, Shape, ShapeKind
from bmq.wire.shape_definitions import read_shape, region_covers, wrapped_box

PLANE = Feed("plane", "plane", "id", ("x", "y"))
GLOBE = Feed("globe", "globe", "id", ("lon", "lat"), lonlat=True)
SQUARE = [[0, 0], [10, 0], [10, 10], [0, 10]]
DEGREE_METRES = math.radians(1) * 6_371_008.8


def holds(region: Region, *points: tuple[float, float]) -> list[bool]:
    areas = Areas(2)
    areas.register(np.array([3], dtype=np.int32), [region])
    values = np.array(points, dtype=np.float64).T
    held: list[bool] = areas.holds(np.full(len(points), 3, dtype=np.int32), values).tolist()
    assert areas.stab(values).rows.tolist() == np.flatnonzero(held).tolist()
    assert region_holds(region, values).tolist() == held
    return held


def refusal(kind: str, value: Any, feed: Feed) -> tuple[str, str]:
    with pytest.raises(ControlError) as error:
        read_shape(kind, value, feed)
    return error.value.code, str(error.value)


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "code", "said"),
    [
        ("polygon", "x", "wrong_type", 'region.polygon\' is "x"'),
        ("polygon", [[0, 0], [1, 0], [1, "1"]], "wrong_type", "region.polygon[2]"),
        ("polygon", [[0, 0], [1, 0], [1, True]], "wrong_type", "region.polygon[2]"),
        ("polygon", [[0, 0], [1, 0], [1, 1, 5]], "wrong_type", "region.polygon[2]"),
        ("polygon", [], "bad_region", "at least 3"),
        ("polygon", [[0, 0], [1, 0], [0, 0], [1, 0]], "bad_region", "at least 3"),
        ("polygon", [[0, 0], [1, 1], [2, 2]], "bad_region", "no area"),
        ("polygon", [[0, 0], [9, 9], [9, 0], [0, 9]], "bad_region", "Self-intersection[4.5 4.5]"),
        ("polygon", [[0, 0], [1, math.inf], [1, 0]], "bad_region", "region.polygon[1]"),
        ("polygon", [[0, 0], [1, 10**400], [1, 0]], "bad_region", "region.polygon[1]"),
        ("polygon", [[0, 0], [1, 1e200], [1, 0]], "bad_region", "at most 1e+150"),
        ("circle", [5, 5, 2], "wrong_type", "an object"),
        ("circle", {"center": [5, 5]}, "missing_field", "region.circle.radius"),
        ("circle", {"centre": [5, 5], "radius": 1}, "unknown_field", "Did you mean 'center'?"),
        ("circle", {"center": [5, 5], "radius": 0}, "bad_region", "above 0"),
        ("circle", {"center": [5, 5], "radius": -1}, "bad_region", "above 0"),
        ("circle", {"center": [5, 5], "radius": 1e-200}, "bad_region", "above 0"),
        ("geojson", {"type": "Point", "coordinates": [0, 0]}, "bad_region", '"Point"'),
        ("geojson", {"type": "GeometryCollection", "geometries": []}, "bad_region", '"GeometryCollection"'),
        ("geojson", {"type": "Feature", "coordinates": []}, "bad_region", "without a geometry"),
        ("geojson", {"type": "Feature", "geometry": None}, "bad_region", "without a geometry"),
        ("geojson", {"type": "Feature", "geometry": []}, "wrong_type", "region.geojson.geometry"),
        ("geojson", {"type": "Feature", "geometry": {"type": "Point"}}, "bad_region", 'geometry.type\' is "Point"'),
        ("geojson", {"type": "Feature", "geometry": {"type": "Feature"}}, "bad_region", "inner one"),
        ("geojson", {"type": "FeatureCollection", "features": [], "more": 1}, "bad_region", "'bmq query import FILE'"),
        ("geojson", {"type": 3, "tpye": 1}, "wrong_type", "region.geojson.type' is 3"),
        ("geojson", {"coordinates": []}, "missing_field", "region.geojson.type"),
        ("geojson", [], "wrong_type", "an object"),
        ("geojson", {"type": "Polygon"}, "missing_field", "region.geojson.coordinates"),
        ("geojson", {"type": "Polygon", "coordinates": []}, "bad_region", "holds nothing"),
        ("geojson", {"type": "MultiPolygon", "coordinates": []}, "bad_region", "holds nothing"),
        ("geojson", {"type": "Polygon", "coordinates": [[[0], [1, 0], [1, 1]]]}, "wrong_type", "two numbers or more"),
        ("geojson", {"type": "Polygon", "coordinates": [SQUARE], "crs": 4326}, "wrong_type", "crs' is 4326"),
        ("geojson", {"type": "Polygon", "coordinates": [SQUARE], "crs": {}}, "bad_region", "crs' is {}"),
        ("geojson", {"type": "MultiPolygon", "coordinates": [[SQUARE], [SQUARE]]}, "bad_region", "no area"),
        ("geojson", {"type": "Polygon", "coordinates": [SQUARE, [[20, 20], [21, 20], [21, 21]]]}, "bad_region", "Hole"),
    ],
)
def test_what_is_no_shape_is_refused_with_its_place_and_its_rule(kind: str, value: Any, code: str, said: str) -> None:
    found, message = refusal(kind, value, PLANE)
    assert (found, said in message) == (code, True), message


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("polygon", [[170, 0], [190, 0], [190, 10]], "longitudes are from -180 to 180"),
        ("polygon", [[10, 50], [20, 91], [30, 50]], "latitudes between -90 and 90"),
        ("polygon", [[10, 50], [20, 90], [30, 50]], "a pole"),
        ("polygon", [[0, 80], [120, 80], [-120, 80]], "goes once around a pole"),
        ("polygon", [[0, 10], [180, 10], [90, 20]], "180 degrees of longitude apart"),
        ("circle", {"center": [0, 89], "radius": 1.001 * DEGREE_METRES}, "reaches a pole"),
        ("circle", {"center": [0, -89], "radius": 1.001 * DEGREE_METRES}, "reaches a pole"),
        ("circle", {"center": [0, 0], "radius": 1e150}, "reaches a pole"),
    ],
)
def test_what_is_no_shape_on_the_globe_is_refused(kind: str, value: Any, said: str) -> None:
    code, message = refusal(kind, value, GLOBE)
    assert (code, said in message) == ("bad_region", True), message


def test_parts_that_overlap_once_around_the_globe_are_refused() -> None:
    over = [[170, 0], [-170, 0], [-170, 10], [170, 10]]
    beyond = [[-175, 2], [-172, 2], [-172, 5]]
    assert refusal("geojson", {"type": "MultiPolygon", "coordinates": [[over], [beyond]]}, GLOBE)[0] == "bad_region"


def test_a_shape_needs_two_dimensions() -> None:
    code, message = refusal("polygon", SQUARE, Feed("stocks", "stocks", "symbol", ("price",)))
    assert (code, "Use region.box" in message) == ("bad_region", True)


# -- what is held -----------------------------------------------------------------------------------------


def test_a_rectangle_as_a_polygon_is_half_open_whichever_way_it_runs_and_wherever_it_begins() -> None:
    for ring in (SQUARE, SQUARE[::-1], SQUARE[2:] + SQUARE[:2], [*SQUARE, SQUARE[0]]):
        region = read_shape("polygon", ring, PLANE)
        assert holds(region, (0, 0), (0, 5), (5, 0), (10, 5), (5, 10), (10, 10)) == [True] * 3 + [False] * 3


def test_a_hole_is_outside_with_its_lower_borders() -> None:
    hole = [[2, 2], [4, 2], [4, 4], [2, 4]]
    region = read_shape("geojson", {"type": "Polygon", "coordinates": [SQUARE, hole]}, PLANE)
    assert holds(region, (1, 3), (2, 2), (3, 3), (4, 3), (3, 4)) == [True, False, False, True, True]


@pytest.mark.parametrize("more", [[99], [99, 1000], [None], ["2020-01-01", {}]])
def test_what_a_geojson_position_has_after_two_numbers_is_ignored(more: list[Any]) -> None:
    flat = read_shape("geojson", {"type": "Polygon", "coordinates": [SQUARE]}, PLANE)
    high = read_shape("geojson", {"type": "Polygon", "coordinates": [[[x, y, *more] for x, y in SQUARE]]}, PLANE)
    assert high == flat


def named(name: str) -> dict[str, Any]:
    return {"type": "name", "properties": {"name": name}}


@pytest.mark.parametrize("feed", [PLANE, GLOBE])
@pytest.mark.parametrize(
    "crs",
    [
        None,
        named("urn:ogc:def:crs:OGC:1.3:CRS84"),
        named("urn:ogc:def:crs:OGC::CRS84"),
        named("urn:ogc:def:crs:EPSG::4326"),
        named("urn:ogc:def:crs:EPSG:6.18:4326"),
        named("urn:x-ogc:def:crs:EPSG:4326"),
        named("EPSG:4326"),
        named("epsg:4326"),
        named("OGC:CRS84"),
        named("CRS84"),
        named("http://www.opengis.net/def/crs/OGC/1.3/CRS84"),
        named("https://www.opengis.net/def/crs/EPSG/0/4326"),
        named("http://www.opengis.net/gml/srs/epsg.xml#4326"),
        "EPSG:4326",
    ],
)
def test_geojson_may_name_the_coordinates_that_it_has_anyway(crs: Any, feed: Feed) -> None:
    area = {"type": "Polygon", "coordinates": [SQUARE]}

    assert read_shape("geojson", area | {"crs": crs}, feed) == read_shape("geojson", area, feed)
    whole = {"type": "Feature", "id": 5, "properties": None, "crs": crs, "geometry": area | {"bbox": [], "name": {}}}
    assert read_shape("geojson", whole, feed) == read_shape("geojson", area, feed)


@pytest.mark.parametrize(
    "crs",
    [
        named("urn:ogc:def:crs:EPSG::3857"),
        named("EPSG:43260"),
        named("EPSG:14326"),
        named("urn:ogc:def:crs:OGC:1.3:CRS83"),
        named(""),
        {"type": "name", "properties": {"name": 4326}},
        {"type": "name", "properties": None},
        {"type": "link", "properties": {"href": "http://example.com/crs/42", "type": "proj4"}},
        "EPSG:25832",
    ],
)
def test_geojson_of_other_coordinates_is_refused(crs: Any) -> None:
    area = {"type": "Polygon", "coordinates": [SQUARE]}

    for value in (area | {"crs": crs}, {"type": "Feature", "geometry": area | {"crs": crs}}):
        code, message = refusal("geojson", value, GLOBE)
        assert (code, "Reproject to WGS 84" in message) == ("bad_region", True)


def test_a_circle_is_closed() -> None:
    region = read_shape("circle", {"center": [5, 5], "radius": 5}, PLANE)
    assert holds(region, (8, 9), (10, 5), (5, 0), (8.001, 9)) == [True, True, True, False]


def test_a_circle_on_the_globe_is_in_metres_and_goes_over_the_antimeridian() -> None:
    region = read_shape("circle", {"center": [179.99, 60.0], "radius": 1000}, GLOBE)
    assert holds(region, (-179.993, 60.0), (-179.991, 60.0), (179.975, 60.0), (179.99, 60.0085)) == [
        True,
        False,
        True,
        True,
    ]


def test_a_polygon_over_the_antimeridian_is_one_region_whichever_way_it_runs() -> None:
    ring = [[170, 0], [-170, 0], [-170, 10], [170, 10]]
    for given in (ring, ring[::-1], ring[1:] + ring[:1]):
        region = read_shape("polygon", given, GLOBE)
        assert holds(region, (170, 5), (-180, 5), (-170.001, 5), (-170, 5), (0, 5)) == [True] * 3 + [False] * 2


def test_a_hole_and_a_part_on_the_other_side_of_the_antimeridian_are_where_they_are() -> None:
    outer = [[170, 0], [-160, 0], [-160, 10], [170, 10]]
    hole = [[-175, 2], [-170, 2], [-170, 5], [-175, 5]]
    part = [[-178, 20], [-150, 20], [-150, 30]]
    region = read_shape("geojson", {"type": "MultiPolygon", "coordinates": [[outer, hole], [part]]}, GLOBE)
    assert holds(region, (-172, 3), (-172, 7), (-165, 3), (-160, 22), (160, 22)) == [False, True, True, True, False]


def test_two_polygons_meet_at_the_antimeridian_without_a_gap() -> None:
    west = read_shape("polygon", [[170, 0], [180, 0], [180, 10], [170, 10]], GLOBE)
    east = read_shape("polygon", [[-180, 0], [-170, 0], [-170, 10], [-180, 10]], GLOBE)
    assert holds(west, (179.999, 5), (-180, 5)) == [True, False]
    assert holds(east, (179.999, 5), (-180, 5)) == [False, True]


def test_a_box_on_the_globe_may_touch_poles() -> None:
    region = wrapped_box((170.0, -math.inf), (-170.0, math.inf), GLOBE)
    assert holds(region, (175, 90), (-175, -90), (0, 90)) == [True, True, False]


# -- exit regions -----------------------------------------------------------------------------------------


def box(*ends: float) -> Region:
    return Region((ends[0], ends[1]), (ends[2], ends[3]))


def circle(x: float, y: float, radius: float, feed: Feed = PLANE) -> Region:
    return read_shape("circle", {"center": [x, y], "radius": radius}, feed)


def polygon(ring: list[list[float]], feed: Feed = PLANE) -> Region:
    return read_shape("polygon", ring, feed)


@pytest.mark.parametrize(
    ("outer", "inner", "covers"),
    [
        (box(0, 0, 9, 9), box(0, 0, 9, 9), True),
        (box(0, 0, 9, 9), box(0, 0, 9, 10), False),
        (box(0, 0, 10, 10), polygon([[0, 0], [10, 0], [0, 10]]), True),
        (box(0, 0, 9, 10), polygon([[0, 0], [10, 0], [0, 10]]), False),
        (box(0, 0, math.inf, math.inf), circle(5, 5, 5), True),
        (box(0, 0, 10, 10), circle(5, 5, 5), False),  # closed: it holds (10, 5)
        (polygon([[0, 0], [10, 0], [0, 10]]), box(0, 0, 5, 5), True),
        (polygon([[0, 0], [10, 0], [0, 10]]), box(0, 0, 5, 6), False),
        (polygon([[0, 0], [10, 0], [0, 10]]), box(-math.inf, 0, 5, 5), False),
        (polygon([[0, 0], [20, 0], [0, 20]]), circle(5, 5, 4.9), True),
        (polygon([[0, 0], [20, 0], [0, 20]]), circle(5, 5, 5), False),
        (polygon([[0, 0], [20, 0], [0, 20]]), polygon([[0, 0], [10, 0], [0, 10]]), True),
        (circle(0, 0, 5), circle(3, 0, 2), True),
        (circle(0, 0, 5), circle(3, 0, 2.1), False),
        (circle(0, 0, 5), box(-3, -4, 3, 4), True),
        (circle(0, 0, 5), polygon([[0, 0], [4, 4], [0, 4]]), False),
        (circle(0, 0, DEGREE_METRES, GLOBE), circle(0, 0.5, DEGREE_METRES / 2.001, GLOBE), True),
        (circle(0, 0, DEGREE_METRES, GLOBE), circle(0, 0.5, DEGREE_METRES / 1.999, GLOBE), False),
        (circle(180, 0, DEGREE_METRES, GLOBE), polygon([[179.5, 0], [-179.5, 0], [180, 0.5]], GLOBE), True),
        (circle(180, 0, DEGREE_METRES, GLOBE), polygon([[179.5, 0], [-178.5, 0], [180, 0.5]], GLOBE), False),
        (polygon([[170, 0], [-170, 0], [-170, 9], [170, 9]], GLOBE), box(-180, 1, -175, 8), True),
        (polygon([[170, 0], [-170, 0], [-170, 9], [170, 9]], GLOBE), box(-180, 1, -165, 8), False),
        (polygon([[170, 0], [-170, 0], [-170, 9], [170, 9]], GLOBE), circle(-179, 4, 1e5, GLOBE), True),
        (box(-math.inf, -90, math.inf, 90), polygon([[170, 0], [-170, 0], [-170, 9]], GLOBE), True),
        (box(-180, -90, 179, 90), polygon([[170, 0], [-170, 0], [-170, 9]], GLOBE), False),
    ],
)
def test_an_exit_region_has_to_hold_the_region(outer: Region, inner: Region, covers: bool) -> None:
    assert region_covers(outer, inner) == covers


# -- the index --------------------------------------------------------------------------------------------


def star(x: float, y: float, radius: float, n_rays: int) -> Region:
    """Return a star whose rays reach from near its centre to ``radius``: its border is everywhere."""
    angles = np.linspace(0, 2 * np.pi, 2 * n_rays, endpoint=False)
    radii = np.where(np.arange(2 * n_rays) % 2, radius, radius / 100)
    vertices = np.stack((x + radii * np.cos(angles), y + radii * np.sin(angles)), axis=1)
    return region_of(np.concatenate((vertices, vertices[:1])))


def region_of(ring: Float64s) -> Region:
    shape = Shape(ShapeKind.POLYGON, ring.tobytes(), (0, len(ring)))
    return Region(tuple(ring.min(axis=0).tolist()), tuple(np.nextafter(ring.max(axis=0), np.inf).tolist()), shape)


def test_shapes_with_a_border_everywhere_do_not_fill_the_memory() -> None:
    index = ShapeIndex()
    n_rays = 2_000
    stars = [star(x, x, 1e6, n_rays) for x in range(30)]
    index.register(np.arange(30, dtype=np.int32), stars)
    far, near = np.array([[-1e300], [1.0]]), np.array([[15.0], [15.5]])
    found = index.moves(np.zeros(1, dtype=np.int32), far, near)
    assert sorted(found.queries.tolist()) == sorted(index.stab(near).queries.tolist())
    assert found.queries.size > 20
    # 120,000 edges of 32 bytes, of which there are three copies and twice the room at most.
    assert index.nbytes < 120_000 * 32 * 3 * 2 + 5e6


def test_one_shape_over_everything_beside_many_tiny_ones_is_found() -> None:
    tiny = [region_of(np.array([[x, x], [x + 0.1, x], [x, x + 0.1], [x, x]])) for x in map(float, range(2_000))]
    whole = region_of(np.array([[-1e9, -1e9], [1e9, -1e9], [0.0, 1e9], [-1e9, -1e9]]))
    index = ShapeIndex()
    index.register(np.arange(2_001, dtype=np.int32), [*tiny, whole])
    path = np.array([[-2e9, 1500.02, 700.01, 0.0, 0.0], [0.0, 1500.02, 700.01, 5.0, 2e9]])
    found = index.moves(np.zeros(4, dtype=np.int32), path[:, :-1], path[:, 1:])
    moves = sorted(zip(found.rows.tolist(), found.queries.tolist(), found.signs.tolist(), strict=True))
    assert moves == [(0, 1500, 1), (0, 2000, 1), (1, 700, 1), (1, 1500, -1), (2, 700, -1), (3, 2000, -1)]
    assert index.nbytes < 5e6


def test_removed_shapes_give_their_memory_back() -> None:
    index = ShapeIndex()
    slots = np.arange(50, dtype=np.int32)
    for _ in range(30):
        index.register(slots, [star(0, 0, 1, 100)] * slots.size)
        index.deregister(slots)
    assert index.nbytes < 4 * 50 * 200 * 32 * 3


def test_a_slot_holds_one_region_at_a_time_whatever_its_form() -> None:
    areas = Areas(2)
    slot = np.zeros(1, dtype=np.int32)
    for first, second in ((circle(0, 0, 1), box(0, 0, 9, 9)), (box(0, 0, 9, 9), circle(0, 0, 1))):
        areas.register(slot, [first])
        with pytest.raises(ValueError, match="registered already"):
            areas.register(slot, [second])
        areas.deregister(slot)
        with pytest.raises(ValueError, match="not registered"):
            areas.deregister(slot)
    assert len(areas) == 0
