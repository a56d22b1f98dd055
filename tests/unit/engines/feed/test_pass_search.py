"""Passes, rule by rule: the examples a person would ask about."""

import math
from typing import Any, cast

import numpy as np
import pytest

from bmq.engines.feed.pass_search import Passes
from bmq.records import Feed, Region
from bmq.wire.shape_definitions import read_shape, wrapped_box

PLANE = Feed("plane", "plane", "id", ("x", "y"))
GLOBE = Feed("globe", "globe", "id", ("lon", "lat"), lonlat=True)
DEGREE_METRES = math.radians(1) * 6_371_008.8

BOX = Region((0.0, 0.0), (10.0, 10.0))
SQUARE = read_shape("polygon", [[0, 0], [10, 0], [10, 10], [0, 10]], PLANE)
OUTER, HOLE = ([[a, a], [b, a], [b, b], [a, b], [a, a]] for a, b in ((0, 10), (4, 6)))
WITH_HOLE = read_shape("geojson", {"type": "Polygon", "coordinates": [OUTER, HOLE]}, PLANE)
ROUND = read_shape("circle", {"center": [5, 5], "radius": 5}, PLANE)

Point = tuple[float, ...]


def visits(region: Region, begin: Point, end: Point, *, lonlat: bool = False) -> list[tuple[float, float]]:
    """Return where the way goes through the region, and the same for its way back."""
    passes = Passes(len(begin), lonlat=lonlat)
    passes.put(3, region)
    there, back = np.array([begin, end]).T, np.array([end, begin]).T
    found = passes.find(there, back)
    forth = found.rows == 0
    ways = list(zip(found.begins[forth].tolist(), found.ends[forth].tolist(), strict=True))
    ways_back = [
        (1 - b, 1 - a) for a, b in zip(found.begins[~forth].tolist(), found.ends[~forth].tolist(), strict=True)
    ]
    assert ways_back[::-1] == [pytest.approx(way, abs=1e-9) for way in ways]
    assert set(found.queries.tolist()) <= {3}
    assert found.numbers.tolist() == [*range(1, len(ways) + 1)] * 2
    return ways


def test_a_jump_over_an_interval_is_a_pass() -> None:
    assert visits(Region((1.0,), (2.0,)), (0.0,), (4.0,)) == [(0.25, 0.5)]


@pytest.mark.parametrize("region", [BOX, SQUARE, ROUND])
def test_a_way_through_the_middle_is_a_pass(region: Region) -> None:
    assert visits(region, (-10.0, 5.0), (30.0, 5.0)) == [(0.25, 0.5)]


@pytest.mark.parametrize("region", [BOX, SQUARE, ROUND])
@pytest.mark.parametrize("end", [(5.0, 5.0), (0.0, 5.0), (-1.0, 5.0)])
def test_a_move_with_an_end_inside_or_beside_the_region_is_none(region: Region, end: Point) -> None:
    assert visits(region, (-10.0, 5.0), end) == []


@pytest.mark.parametrize("region", [BOX, SQUARE])
def test_along_a_border_the_lower_and_the_left_one_belong_to_the_region(region: Region) -> None:
    assert visits(region, (-10.0, 0.0), (30.0, 0.0)) == [(0.25, 0.5)]
    assert visits(region, (0.0, -10.0), (0.0, 30.0)) == [(0.25, 0.5)]
    assert visits(region, (-10.0, 10.0), (30.0, 10.0)) == []
    assert visits(region, (10.0, -10.0), (10.0, 30.0)) == []


@pytest.mark.parametrize("region", [BOX, SQUARE])
def test_a_touched_corner_is_no_pass(region: Region) -> None:
    assert visits(region, (-1.0, 1.0), (1.0, -1.0)) == []
    assert visits(region, (-1.0, 9.0), (1.0, 11.0)) == []


def test_a_corner_touched_far_from_the_origin_is_no_pass() -> None:
    """Projected coordinates in metres: what touches in decimals goes through as floats, by less than a roundoff."""
    box = Region((500_000.0, 499_999.9), (500_000.4, 500_000.4))
    corners = [[499_999.9, 500_000.1], [500_000.4, 499_999.9], [500_000.1, 500_000.3]]
    triangle = read_shape("polygon", corners, PLANE)

    assert visits(box, (500_000.9, 500_000.8), (499_999.1, 500_000.0)) == []
    assert visits(triangle, (500_000.1, 499_999.3), (499_999.7, 500_000.9)) == []


def test_the_largest_floats_are_passed_like_others() -> None:
    far = 1.6e308
    box = Region((-far / 2, -far / 2), (far / 2, far / 2))

    assert visits(Region((-far / 2,), (far / 2,)), (-far,), (far,)) == [(0.25, 0.75)]
    assert visits(box, (-far, -far), (far, far)) == [(0.25, 0.75)]
    assert visits(BOX, (-far, 0.0), (far, 1.0)) == []  # too short a part of the way
    assert visits(ROUND, (-far, 0.0), (far, 1.0)) == []


def test_who_rests_or_goes_along_a_border_at_zero_that_belongs_to_no_region_passes_nothing() -> None:
    behind_zero = np.nextafter(0.0, 1.0)

    assert visits(Region((behind_zero,), (1.0,)), (0.0,), (0.0,)) == []
    assert visits(Region((behind_zero, 0.0), (1.0, 1.0)), (0.0, -1.0), (0.0, 3.0)) == []
    assert visits(Region((-1.0, 0.0), (behind_zero, 1.0)), (0.0, -1.0), (0.0, 3.0)) == [(0.25, 0.5)]


def test_on_a_line_the_smallest_region_between_is_passed() -> None:
    point = Region((5.0,), (np.nextafter(5.0, np.inf),))

    assert visits(point, (0.0,), (10.0,)) == [(0.5, cast(float, pytest.approx(0.5)))]
    assert visits(point, (1e308,), (-1e308,)) == [(0.5, 0.5)]
    assert visits(point, (5.0,), (10.0,)) == visits(point, (10.0,), (np.nextafter(5.0, np.inf),)) == []
    assert visits(Region((0.0,), (10.0,)), (-1e15,), (1e15,)) == [(0.5, cast(float, pytest.approx(0.5)))]


def test_a_touched_circle_is_no_pass() -> None:
    assert visits(ROUND, (-1.0, 10.0), (11.0, 10.0)) == []
    assert visits(ROUND, (-1.0, 11.0), (11.0, 11.0)) == []


def test_a_way_over_a_hole_is_two_visits() -> None:
    assert visits(WITH_HOLE, (-10.0, 5.0), (30.0, 5.0)) == [(0.25, 0.35), (0.4, 0.5)]


def test_a_way_along_the_border_of_a_hole_is_one_visit_where_it_belongs_to_the_region() -> None:
    # The lower border of the hole belongs to the hole, as that of any region.
    assert visits(WITH_HOLE, (-10.0, 4.0), (30.0, 4.0)) == [(0.25, 0.35), (0.4, 0.5)]
    assert visits(WITH_HOLE, (-10.0, 6.0), (30.0, 6.0)) == [(0.25, 0.5)]


def test_a_region_without_an_end_is_passed_over_its_other_corner() -> None:
    quadrant = Region((0.0, 0.0), (np.inf, np.inf))

    assert visits(quadrant, (-1.0, 3.0), (3.0, -1.0)) == [(0.25, 0.75)]
    assert visits(Region((-np.inf, 0.0), (np.inf, 1.0)), (7.0, -1.0), (7.0, 3.0)) == [(0.25, 0.5)]


def test_a_stream_that_stays_passes_nothing() -> None:
    assert visits(BOX, (-1.0, 5.0), (-1.0, 5.0)) == []


def test_on_the_globe_a_way_goes_the_short_way_round() -> None:
    europe, pacific = Region((0.0, 0.0), (20.0, 60.0)), wrapped_box((175.0, 0.0), (-175.0, 60.0), GLOBE)

    assert visits(europe, (-170.0, 5.0), (170.0, 5.0), lonlat=True) == []
    assert visits(pacific, (-170.0, 5.0), (170.0, 5.0), lonlat=True) == [(0.25, 0.75)]
    assert visits(Region((175.0, 0.0), (180.0, 60.0)), (-170.0, 5.0), (170.0, 5.0), lonlat=True) == [(0.5, 0.75)]


def test_half_around_the_globe_a_way_stays_within_its_longitudes() -> None:
    assert visits(Region((0.0, 0.0), (45.0, 60.0)), (-90.0, 5.0), (90.0, 5.0), lonlat=True) == [(0.5, 0.75)]


@pytest.mark.parametrize("lon", [7.0, 179.5, -180.0])
def test_a_circle_on_the_globe_is_met_at_its_radius_in_metres(lon: float) -> None:
    circle: Any = {"center": [lon, 0], "radius": DEGREE_METRES}
    region = read_shape("circle", circle, GLOBE)
    west, east = ((lon + step + 180) % 360 - 180 for step in (-2, 2))

    assert visits(region, (west, 0.0), (east, 0.0), lonlat=True) == [pytest.approx((0.25, 0.75), abs=1e-9)]
    assert visits(region, (lon, -2.0), (lon, 2.0), lonlat=True) == [pytest.approx((0.25, 0.75), abs=1e-9)]
    assert visits(region, (west, 1.01), (east, 1.01), lonlat=True) == []


def test_near_a_pole_a_circle_is_wide_in_degrees() -> None:
    region = read_shape("circle", {"center": [0, 80], "radius": 2 * DEGREE_METRES}, GLOBE)

    ((begin, end),) = visits(region, (-20.0, 80.0), (20.0, 80.0), lonlat=True)

    # Two degrees of a great circle are this much of the parallel.
    half = math.degrees(2 * math.asin(math.sin(math.radians(1)) / math.cos(math.radians(80))))
    assert (begin, end) == pytest.approx((0.5 - half / 40, 0.5 + half / 40), abs=1e-9)


def test_a_region_that_was_replaced_or_removed_is_passed_no_more() -> None:
    passes = Passes(1, lonlat=False)
    move = np.array([[0.0]]), np.array([[10.0]])
    passes.put(0, Region((1.0,), (2.0,)))
    passes.put(1, Region((8.0,), (9.0,)))
    assert passes.find(*move).queries.tolist() == [0, 1]

    passes.remove(0)
    passes.put(0, Region((5.0,), (6.0,)))
    assert passes.find(*move).begins.tolist() == [0.5, 0.8]

    passes.remove(0)
    assert passes.find(*move).queries.tolist() == [1]
    passes.remove(1)
    assert not passes
    assert passes.find(*move).queries.tolist() == []


def test_each_move_is_asked_of_its_own_neighbourhood() -> None:
    passes = Passes(2, lonlat=False)
    corners = [(10.0 * i, 10.0 * k) for i in range(30) for k in range(30)]
    for slot, (x, y) in enumerate(corners):
        passes.put(slot, Region((x, y), (x + 1.0, y + 1.0)))
    begins, ends = (np.array(corners).T + np.array([[x], [0.5]]) for x in (-1.0, 3.0))

    found = passes.find(begins, ends)

    assert found.rows.tolist() == found.queries.tolist() == list(range(900))
    assert set(found.begins.tolist()) == {0.25}
