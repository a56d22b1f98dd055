"""Larger regions: what they are, and that the service accepts them as exit regions."""

import json
from typing import Any

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from bmq.backtest.grown_regions import Margin, grow, read_margin
from bmq.errors import ControlError
from bmq.records import Feed, Installation
from bmq.zones.checks import check_definition

PLANE = Installation({"plane": Feed("plane", "plane", "id", ("x", "y"), "ts")})
HALF = Margin(0.5, is_share=True)
TWO = Margin(2.0, is_share=False)


@pytest.mark.parametrize(
    ("region", "margin", "grown"),
    [
        ({"box": {"x": [0, 10]}}, HALF, {"box": {"x": [-5.0, 15.0]}}),
        ({"box": {"x": [0, 10], "y": [1, 2]}}, TWO, {"box": {"x": [-2.0, 12.0], "y": [-1.0, 4.0]}}),
        ({"box": {"x": [0, None], "y": [None, None]}}, TWO, {"box": {"x": [-2.0, None], "y": [None, None]}}),
        ({"box": {"x": [0, 10], "y": [None, 5]}}, HALF, None),  # an unbounded interval has no width
        ({"box": {"lon": [170, -170]}}, HALF, {"box": {"lon": [160.0, -160.0]}}),  # 20 degrees, over the antimeridian
        ({"circle": {"center": [1, 2], "radius": 4}}, HALF, {"circle": {"center": [1, 2], "radius": 8.0}}),
        ({"circle": {"center": [1, 2], "radius": 4}, "box": None}, TWO, {"circle": {"center": [1, 2], "radius": 6.0}}),
    ],
)
def test_every_border_moves_out(region: dict[str, Any], margin: Margin, grown: dict[str, Any] | None) -> None:
    assert grow(region, margin) == grown


def test_a_polygon_keeps_its_corners_and_a_hole_shrinks() -> None:
    ring = [[0, 0], [10, 0], [10, 10], [0, 10]]
    hole = [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]
    area = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]], hole]}}

    grown = grow({"polygon": ring}, Margin(0.1, is_share=True))
    with_hole = grow({"geojson": area}, Margin(0.5, is_share=False))

    assert grown is not None
    assert with_hole is not None
    assert shapely.geometry.shape(grown["geojson"]).equals(shapely.box(-1, -1, 11, 11))
    expected = shapely.box(-0.5, -0.5, 10.5, 10.5).difference(shapely.box(4.5, 4.5, 5.5, 5.5))
    assert shapely.geometry.shape(with_hole["geojson"]).equals(expected)


@pytest.mark.parametrize(
    ("text", "margin"), [("5%", Margin(0.05, is_share=True)), ("0.25", Margin(0.25, is_share=False))]
)
def test_a_margin_is_a_number_or_a_share(text: str, margin: Margin) -> None:
    assert read_margin(text) == margin


@pytest.mark.parametrize("text", ["", "0", "0%", "-1", "5 %", "1e3", "nan", "five"])
def test_another_margin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write it like"):
        read_margin(text)


number = st.integers(-50, 50).map(lambda n: n / 4)
boxes = st.tuples(number, number, st.integers(1, 9), st.integers(1, 9)).map(
    lambda box: {"box": {"x": [box[0], box[0] + box[2]], "y": [box[1], box[1] + box[3]]}}
)
circles = st.tuples(number, number, st.integers(1, 9)).map(
    lambda circle: {"circle": {"center": circle[:2], "radius": circle[2]}}
)
polygons = st.lists(st.tuples(number, number), min_size=3, max_size=7, unique=True).map(
    lambda ring: {"polygon": [list(vertex) for vertex in ring]}
)


@given(region=boxes | circles | polygons, margin=st.sampled_from([HALF, TWO, Margin(0.01, is_share=True)]))
def test_the_service_accepts_it_as_exit_region(region: dict[str, Any], margin: Margin) -> None:
    definition: dict[str, Any] = {"kind": "border", "feed": "plane", "region": region}
    try:
        check_definition("q", json.dumps(definition).encode(), PLANE)
    except ControlError:
        return  # a ring that meets itself is no region
    definition["exit_region"] = grow(region, margin)
    check_definition("q", json.dumps(definition).encode(), PLANE)


GLOBE = ("lon", "lat")


def ring(west: float, east: float, north: float = 1) -> list[list[float]]:
    return [[west, 0], [east, 0], [east, north], [west, north]]


@pytest.mark.parametrize(
    ("region", "is_grown"),
    [
        ({"box": {"lon": [170, -170]}}, True),
        ({"box": {"lon": [2, -2]}}, False),  # would close around the earth
        ({"box": {"lon": [170, 179]}}, False),
        ({"box": {"lon": [-179, -170]}}, False),
        ({"box": {"lon": [None, 10], "lat": [0, 87]}}, True),
        ({"box": {"lat": [80, 89]}}, False),
        ({"polygon": ring(170, 177)}, True),
        ({"polygon": ring(170, 179)}, False),
        ({"polygon": ring(170, -170)}, False),
        ({"polygon": ring(0, 10, 89)}, False),
        ({"geojson": {"type": "Polygon", "coordinates": [[*ring(170, -170), [170, 0]]]}}, False),
        ({"circle": {"center": [179.9, 89], "radius": 1}}, True),  # metres on a sphere, which has no corner there
    ],
)
def test_a_region_at_the_antimeridian_or_a_pole_is_grown_only_if_it_is_right(
    region: dict[str, Any], is_grown: bool
) -> None:
    grown = grow(region, TWO, GLOBE)

    assert (grown is not None) == is_grown
    if grown is not None:
        globe = Installation({"globe": Feed("globe", "globe", "id", GLOBE, "ts", lonlat=True)})
        definition = {"kind": "border", "feed": "globe", "region": region, "exit_region": grown}
        check_definition("q", json.dumps(definition).encode(), globe)
