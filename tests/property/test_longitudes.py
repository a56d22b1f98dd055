"""Boxes on longitude and latitude hold what their borders say, on a circle where 180 is -180."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.records import Feed, Installation, Put, Refused, Region, RegionQuery
from bmq.wire.control import parse_command

FEED = Feed("globe", "globe", "id", ("lon", "lat"), "ts", lonlat=True)
INSTALLATION = Installation({"globe": FEED})
# Neighbouring numbers only where a longitude and 360 more are as fine: further east the sum rounds.
BORDERS = [-180.0, -175.0, math.nextafter(-175.0, 0.0), -0.5, 0.0, 10.0, 170.0, math.nextafter(180.0, 0.0), 180.0]
# Every border that a reading can have, and one between each two.
LONGITUDES = sorted({-180.0 if b == 180.0 else b for b in BORDERS} | {-177.0, -90.0, -0.25, 5.0, 90.0, 175.0})

ends = st.none() | st.sampled_from(BORDERS)
BOUNDS = ["[)", "[]", "(]", "()"]
bounds = st.sampled_from(BOUNDS)


def parse(box: dict[str, Any], bounds: str) -> Put[RegionQuery] | Refused:
    definition = {"kind": "border", "feed": "globe", "region": {"box": box}, "bounds": bounds}
    command = parse_command(b"q", json.dumps(definition).encode(), 4, INSTALLATION)
    assert isinstance(command, Put | Refused)
    if isinstance(command, Refused):
        return command
    assert isinstance(command.query, RegionQuery)
    return Put(command.offset, command.query, command.due)


def is_east_of(longitude: float, lo: float | None, hi: float | None, bounds: str) -> bool:
    """Whether one who walks east from lo to hi comes by; a border that is open is not walked on."""
    if lo is None or hi is None:
        start = -180.0 if lo == 180.0 else lo
        return (start is None or longitude > start or (longitude == start and bounds[0] == "[")) and (
            hi is None or longitude < hi or (longitude == hi and bounds[1] == "]")
        )
    start = -180.0 if lo == 180.0 else lo
    end = -180.0 if lo == hi == 180.0 else hi
    way = Fraction(end) - Fraction(start) + (360 if start > end else 0)
    walked: Fraction = (Fraction(longitude) - Fraction(start)) % Fraction(360)
    places = [walked, Fraction(360)] if walked == 0 else [walked]
    return any(
        0 < place < way
        or (place == 0 and bounds[0] == "[" and (way > 0 or bounds == "[]"))
        or (place == way and bounds[1] == "]" and (way > 0 or bounds == "[]"))
        for place in places
    )


def holds(region: Region, longitude: float, latitude: float) -> bool:
    if region.shape is None:
        return region.lo[0] <= longitude < region.hi[0] and region.lo[1] <= latitude < region.hi[1]
    corners = np.frombuffer(region.shape.vertices, dtype="<f8").reshape(-1, 2)
    (west, south), (east, north) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
    return south <= latitude < north and any(west <= x < east for x in (longitude, longitude + 360.0))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("lo", [None, *BORDERS])
@pytest.mark.parametrize("hi", [None, *BORDERS])
def test_a_box_holds_the_longitudes_on_the_way_east_from_its_first_border_to_its_second(
    lo: float | None, hi: float | None, bounds: str
) -> None:
    inside = {x for x in LONGITUDES if is_east_of(x, lo, hi, bounds)}
    command = parse({"lon": [lo, hi]}, bounds)
    if isinstance(command, Refused):
        assert command.code == "bad_region"
        assert not inside
    else:
        assert {x for x in LONGITUDES if holds(command.query.region, x, 0.0)} == inside
        assert inside


@given(lon=st.sampled_from([[170, -170], [0, 10], [180, 10], [None, 10]]), lo=ends, hi=ends, bounds=bounds)
def test_latitudes_are_as_in_the_plane(
    lon: list[float | None], lo: float | None, hi: float | None, bounds: str
) -> None:
    command = parse({"lon": lon, "lat": [lo and lo / 2, hi and hi / 2]}, bounds)
    assert isinstance(command, Put) or command.code == "bad_region"
    if isinstance(command, Put):
        middle = {170.0: 175.0, 0.0: 5.0, 180.0: -90.0, None: -90.0}[lon[0]]
        plane = parse({"lat": [lo and lo / 2, hi and hi / 2]}, bounds)
        assert isinstance(plane, Put)
        latitudes = [-90.0, -89.0, -10.0, 0.0, 2.5, 5.0, 60.0, 85.0, 89.5, 90.0]
        assert [holds(command.query.region, middle, y) for y in latitudes] == [
            plane.query.region.lo[1] <= y < plane.query.region.hi[1] for y in latitudes
        ]


@given(box=st.sampled_from([{"lon": [181, None]}, {"lon": [0, -180.5]}, {"lat": [None, 91]}, {"lat": [-100, 0]}]))
def test_a_border_that_is_nowhere_on_the_globe_is_refused(box: dict[str, Any]) -> None:
    command = parse(box, "[)")
    assert isinstance(command, Refused)
    assert command.code == "bad_region"
    assert "degrees, where all readings are" in command.message


def test_a_region_over_the_antimeridian_is_not_in_a_box_on_one_side_of_it() -> None:
    definition = {
        "kind": "border",
        "feed": "globe",
        "region": {"box": {"lon": [170, -170]}},
        "exit_region": {"box": {"lon": [-180, 179]}},
    }
    command = parse_command(b"q", json.dumps(definition).encode(), 4, INSTALLATION)
    assert isinstance(command, Refused)
    assert "'exit_region' does not hold all" in command.message


@pytest.mark.parametrize("latitudes", [[-10, 10], [80, None], [None, None]])
@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ([170, -170], [None, None]),
        ([170, -170], [-180, 180]),
        ([None, None], [-180, 180]),
        ([170, None], [160, -170]),
        ([None, -170], [160, -170]),
        ([-180, -170], [None, -170]),
        ([180, -170], [180, -170]),
    ],
)
def test_a_box_that_is_left_may_go_over_the_antimeridian(
    inner: list[float | None], outer: list[float | None], latitudes: list[float | None]
) -> None:
    definition = {
        "kind": "border",
        "feed": "globe",
        "region": {"box": {"lon": inner, "lat": latitudes}},
        "exit_region": {"box": {"lon": outer, "lat": latitudes}},
    }
    assert isinstance(parse_command(b"q", json.dumps(definition).encode(), 4, INSTALLATION), Put)


@pytest.mark.parametrize(
    ("first", "second", "bounds"),
    [
        ({"lat": [0, 90]}, {"lat": [0, None]}, "[]"),
        ({"lat": [-90, 0]}, {"lat": [None, 0], "lon": [-180, 180]}, "[]"),
        ({"lon": [180, 10]}, {"lon": [-180, 10]}, "[)"),
        ({"lon": [170, -180]}, {"lon": [170, None]}, "[)"),
        ({"lon": [180, 180]}, {"lon": [-180, -180]}, "[]"),
    ],
)
def test_boxes_that_are_the_same_on_the_globe_are_the_same_query(
    first: dict[str, list[float]], second: dict[str, list[float | None]], bounds: str
) -> None:
    assert isinstance(parse(first, bounds), Put)
    assert parse(first, bounds) == parse(second, bounds)


def test_a_box_that_closes_behind_itself_holds_all_longitudes() -> None:
    assert parse({"lon": [math.nextafter(10.0, 11.0), 10.0]}, "[]") == parse({"lon": [None, None]}, "[]")


def test_latitudes_in_the_wrong_order_do_not_wrap() -> None:
    command = parse({"lat": [10, -10]}, "[)")
    assert isinstance(command, Refused)
    assert "Swap the two borders" in command.message
