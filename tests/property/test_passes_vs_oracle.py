"""Passes against exact fractions: regions come and go, moves go through them, along their borders and past them."""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.engines.feed.pass_events import times_on_way
from bmq.engines.feed.pass_search import Passes
from bmq.records import Feed, Region, Shape, ShapeKind
from bmq.wire.shape_definitions import read_shape
from tests import oracle_regions as oracle

pytestmark = pytest.mark.property

N_SLOTS = 5
GLOBE = Feed("globe", "globe", "id", ("lon", "lat"), lonlat=True)
BOUNDS = ("[)", "[]", "(]", "()")

Drawn = tuple[Region, oracle.Region]
Move = tuple[tuple[float, ...], tuple[float, ...]]

# A coarse grid leads moves through corners and along borders.
coarse = st.integers(-5, 5).map(float)
intervals = st.lists(coarse, min_size=2, max_size=2, unique=True).map(sorted)
open_intervals = st.tuples(intervals, st.sampled_from(["", "", "", "lo", "hi", "both"])).map(
    lambda drawn: (
        -np.inf if drawn[1] in ("lo", "both") else drawn[0][0],
        np.inf if drawn[1] in ("hi", "both") else drawn[0][1],
    )
)
# Any closed line is a ring for the even-odd rule, crossings and points that come twice included.
rings = st.lists(st.lists(st.tuples(coarse, coarse), min_size=3, max_size=6), min_size=1, max_size=3)
longitudes = st.integers(-18, 17).map(lambda tens: 10.0 * tens)
two_longitudes = st.lists(longitudes, min_size=2, max_size=2, unique=True)
latitudes = st.integers(-8, 8).map(lambda tens: 10.0 * tens)


def polygon(drawn: Sequence[Sequence[oracle.Value]], *, lonlat: bool = False) -> Region:
    """Return the region of rings, which are not closed."""
    closed = [np.array([*ring, ring[0]]) for ring in drawn]
    vertices = np.concatenate(closed)
    lo, hi = vertices.min(axis=0), np.nextafter(vertices.max(axis=0), np.inf)
    if lonlat and hi[0] > 180:
        lo[0], hi[0] = -180.0, 180.0
    starts = (0, *itertools.accumulate(map(len, closed)))
    shape = Shape(ShapeKind.POLYGON, vertices.tobytes(), starts, 0.0, lonlat)
    return Region(tuple(lo.tolist()), tuple(hi.tolist()), shape)


@st.composite
def boxes(draw: st.DrawFn, n_dims: int) -> Drawn:
    """Boxes with every kind of bounds; the half-open ones that stand for them are one step of a float larger."""
    ends = [draw(open_intervals) for _ in range(n_dims)]
    bounds = draw(st.sampled_from(BOUNDS))
    if n_dims == 1 and bounds == "[]" and draw(st.booleans()):
        ends = [(ends[0][0], ends[0][0])] if np.isfinite(ends[0][0]) else ends  # one point
    lo = tuple(float(np.nextafter(a, np.inf)) if bounds[0] == "(" and a > -np.inf else a for a, _ in ends)
    hi = tuple(float(np.nextafter(b, np.inf)) if bounds[1] == "]" and b < np.inf else b for _, b in ends)
    named = {str(k): [None if np.isinf(end) else end for end in pair] for k, pair in enumerate(ends)}
    return Region(lo, hi), oracle.read_region({"box": named}, list(named), bounds, lonlat=False)


@st.composite
def shapes_in_plane(draw: st.DrawFn) -> Drawn:
    if draw(st.booleans()):
        drawn = draw(rings)
        return polygon(drawn), oracle.Polygon(tuple(map(tuple, drawn)))
    x, y, radius = draw(coarse), draw(coarse), draw(st.sampled_from([0.5, 1.0, 2.0, 5.0]))
    shape = Shape(ShapeKind.CIRCLE, np.array([x, y]).tobytes(), (), radius)
    reach = 1.001 * radius
    return Region((x - reach, y - reach), (x + reach, y + reach), shape), oracle.Circle((x, y), radius)


@st.composite
def shapes_on_globe(draw: st.DrawFn) -> Drawn:
    """Boxes, rings from a longitude on, which may go beyond 180, and circles of about 20 and 45 degrees."""
    kind = draw(st.sampled_from(["box", "polygon", "circle"]))
    if kind == "box":
        (west, east), (south, north) = sorted(draw(two_longitudes)), draw(intervals)
        box = Region((west, 10 * south), (east, 10 * north))
        cuts = tuple(((lo, 0), (hi, 0)) for lo, hi in zip(box.lo, box.hi, strict=True))
        return box, oracle.BoxOnGlobe(cuts)
    west = draw(longitudes)
    if kind == "circle":
        metres, lat = draw(st.sampled_from([(2.2e6, -64.9), (2.2e6, 3.1), (5e6, 44.3)]))
        region = read_shape("circle", {"center": [west + 0.7, lat], "radius": metres}, GLOBE)
        return region, oracle.CircleOnGlobe((west + 0.7, lat), metres)
    steps = st.integers(0, 17).map(lambda tens: west + 10.0 * tens)
    ring = draw(st.lists(st.tuples(steps, latitudes), min_size=3, max_size=6))
    return polygon([ring], lonlat=True), oracle.PolygonOnGlobe((tuple(ring),))


def moves_of(*coordinates: st.SearchStrategy[float]) -> st.SearchStrategy[list[Move]]:
    points = st.tuples(*coordinates)
    return st.lists(st.tuples(points, points), min_size=1, max_size=5)


def found(passes: Passes, moves: list[Move]) -> list[tuple[int, int, int, float, float]]:
    previous, current = (np.array(ends, dtype=np.float64).T for ends in zip(*moves, strict=True))
    visits = passes.find(previous, current)
    assert [visits.rows.dtype, visits.queries.dtype, visits.numbers.dtype] == ["int32", "int32", "int32"]
    columns = (visits.rows, visits.queries, visits.numbers, visits.begins, visits.ends)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def expected(
    held: dict[int, oracle.Region], moves: list[Move], *, lonlat: bool
) -> Iterator[tuple[int, int, int, float, float]]:
    for row, (begin, end) in enumerate(moves):
        for slot, region in sorted(held.items()):
            if region.holds(begin) or region.holds(end):
                continue
            for number, (enters, leaves) in enumerate(oracle.visits(region, begin, end, lonlat=lonlat), 1):
                yield row, slot, number, float(enters), float(leaves)


def play(data: st.DataObject, passes: Passes, drawn: st.SearchStrategy[Drawn], moves: st.SearchStrategy[list[Move]],
         *, lonlat: bool = False, near: float = 1e-12) -> None:  # fmt: skip
    held: dict[int, oracle.Region] = {}
    for _ in range(data.draw(st.integers(1, 3), label="steps")):
        for slot in data.draw(st.sets(st.sampled_from(sorted(held))), label="removed") if held else ():
            passes.remove(slot)
            del held[slot]
        for slot in data.draw(st.sets(st.integers(0, N_SLOTS - 1), min_size=not held), label="put") - held.keys():
            region, held[slot] = data.draw(drawn, label=f"region {slot}")
            passes.put(slot, region)
        assert bool(passes) == bool(held)
        if held:
            ways = data.draw(moves, label="moves")
            visits = found(passes, ways)
            right = list(expected(held, ways, lonlat=lonlat))
            assert [visit[:3] for visit in visits] == [visit[:3] for visit in right]
            np.testing.assert_allclose([visit[3:] for visit in visits], [visit[3:] for visit in right], 0, near)


@given(data=st.data())
def test_on_a_line_every_region_between_both_ends_is_passed(data: st.DataObject) -> None:
    play(data, Passes(1, lonlat=False), boxes(1), moves_of(coarse))


@given(data=st.data())
def test_in_the_plane_visits_are_those_of_the_exact_line(data: st.DataObject) -> None:
    play(data, Passes(2, lonlat=False), st.one_of(boxes(2), shapes_in_plane()), moves_of(coarse, coarse))


@given(data=st.data())
def test_on_the_globe_lines_go_the_short_way_round(data: st.DataObject) -> None:
    # A circle on the globe is met to a hundredth of a millimetre in a way of half the globe.
    play(data, Passes(2, lonlat=True), shapes_on_globe(), moves_of(longitudes, latitudes), lonlat=True, near=1e-9)


@given(
    slope=st.tuples(st.sampled_from([3.0, 7.0, -3.0]), st.sampled_from([1.0, -1.0])),
    apex=st.tuples(coarse, coarse),
    before=st.integers(1, 9),
    behind=st.integers(1, 9),
)
def test_along_an_edge_a_line_is_inside_where_its_points_are(
    slope: tuple[float, float], apex: tuple[float, float], before: int, behind: int
) -> None:
    """Few points of such a line are floats, and the others are not to be on one side of it or the other."""
    triangle = [(0.0, 0.0), slope, apex]
    ends = [(slope[0] * times, slope[1] * times) for times in (-before, 1 + behind)]
    moves: list[Move] = [(ends[0], ends[1]), (ends[1], ends[0])]
    passes = Passes(2, lonlat=False)
    passes.put(0, polygon([triangle]))

    visits = found(passes, moves)

    right = list(expected({0: oracle.Polygon((tuple(triangle),))}, moves, lonlat=False))
    assert [visit[:3] for visit in visits] == [visit[:3] for visit in right]


@given(begin=st.integers(-3, 1_700_000_000_000), took=st.integers(0, 90_000), way=st.integers(1, 500), data=st.data())
def test_the_time_of_a_pass_is_rounded_half_to_even(begin: int, took: int, way: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, way))

    assert time_at(begin, took, part, way) == begin + round(Fraction(took * part, way))


@pytest.mark.parametrize(("took", "part", "way"), [(45, 7, 10), (1500, 11, 40), (5, 1, 2), (7, 1, 2), (19, 21, 38)])
def test_a_half_is_one_whatever_its_quotient_was_rounded_to(took: int, part: int, way: int) -> None:
    assert time_at(0, took, part, way) == round(Fraction(took * part, way))


def time_at(begin: int, took: int, part: int, way: int) -> int:
    begins, ends = np.array([begin]), np.array([begin + took])
    return int(times_on_way(begins, ends, np.array([part / way]))[0])
