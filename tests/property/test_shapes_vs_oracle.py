"""The index of shapes against the definition: shapes come and go, streams move, values are looked up."""

import itertools
from typing import Protocol

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy.spatial import Delaunay

from bmq.index.base import Moves
from bmq.index.region_index import Areas
from bmq.index.shape.shape_grid import ShapeIndex
from bmq.records import Feed, Region, Shape, ShapeKind
from bmq.wire.shape_definitions import read_shape, wrapped_box
from tests import shape_oracle as oracle

N_SLOTS, N_STREAMS = 10, 3
PLANE = Feed("plane", "plane", "id", ("x", "y"))
GLOBE = Feed("globe", "globe", "id", ("lon", "lat"), lonlat=True)

# A coarse grid puts readings on vertices and edges; far readings are far beyond all cells.
coarse = st.integers(-5, 5).map(float)
far = st.sampled_from([-1.7e308, -1e9, 0.5, -0.5, 1e9, 1.7e308])
values = st.one_of(coarse, coarse, coarse, far)
# Any closed line is a ring for the even-odd rule, crossings and points that come twice included.
rings = st.lists(st.lists(st.tuples(coarse, coarse), min_size=3, max_size=7), min_size=1, max_size=3)
longitudes = st.integers(-18, 17).map(lambda tens: 10.0 * tens)
latitudes = st.integers(-8, 8).map(lambda tens: 10.0 * tens)


class Definition(Protocol):
    def holds(self, x: float, y: float) -> bool: ...


Drawn = tuple[Region, Definition]


def polygon(rings: list[list[oracle.Point]], *, lonlat: bool = False) -> Region:
    """Return the region of rings, which are not closed."""
    closed = [np.array([*ring, ring[0]]) for ring in rings]
    vertices = np.concatenate(closed)
    starts = (0, *itertools.accumulate(map(len, closed)))
    lo, hi = vertices.min(axis=0), np.nextafter(vertices.max(axis=0), np.inf)
    if lonlat and hi[0] > 180:
        lo[0], hi[0] = -180.0, 180.0
    shape = Shape(ShapeKind.POLYGON, vertices.tobytes(), starts, 0.0, lonlat)
    return Region(tuple(lo.tolist()), tuple(hi.tolist()), shape)


def circle(x: float, y: float, radius: float) -> Region:
    shape = Shape(ShapeKind.CIRCLE, np.array([x, y]).tobytes(), (), radius)
    reach = 1.001 * radius
    return Region((x - reach, y - reach), (x + reach, y + reach), shape)


@st.composite
def shapes_in_plane(draw: st.DrawFn) -> Drawn:
    if draw(st.booleans()):
        drawn = draw(rings)
        return polygon(drawn), oracle.Rings(tuple(map(tuple, drawn)))
    # Right triangles with whole sides put readings on circles.
    x, y, radius = draw(coarse), draw(coarse), draw(st.sampled_from([0.5, 1.0, 2.0, 5.0]))
    return circle(x, y, radius), oracle.Circle(x, y, radius)


@st.composite
def shapes_on_globe(draw: st.DrawFn) -> Drawn:
    """Rings from a longitude on, which may go beyond 180, and circles of about 9, 20 and 45 degrees."""
    west = draw(longitudes)
    steps = st.integers(0, draw(st.sampled_from([3, 20, 36]))).map(lambda tens: west + 10.0 * tens)
    ring = draw(st.lists(st.tuples(steps, latitudes), min_size=3, max_size=6))
    if draw(st.booleans()):
        return polygon([ring], lonlat=True), oracle.RingsOnGlobe((tuple(ring),))
    metres, lat = draw(st.sampled_from([(1e6, 80.0), (2.2e6, -65.0), (2.2e6, 3.0), (5e6, 44.0), (5e6, -44.9)]))
    region = read_shape("circle", {"center": [west, lat], "radius": metres}, GLOBE)
    return region, oracle.CircleOnGlobe(west, lat, metres)


def crossings(moves: Moves) -> list[tuple[int, int, int]]:
    assert (np.diff(moves.rows) >= 0).all()
    assert [moves.rows.dtype, moves.queries.dtype, moves.signs.dtype] == ["int32", "int32", "int8"]
    assert moves.visits >= moves.rows.size
    return sorted(zip(moves.rows.tolist(), moves.queries.tolist(), moves.signs.tolist(), strict=True))


class ShapeMachine(RuleBasedStateMachine):
    shapes = shapes_in_plane()
    coordinates = (values, values)

    def __init__(self) -> None:
        super().__init__()
        # Layers merge often, and half of the moves are longer than is looked at cell by cell.
        self.index = ShapeIndex(growth=2, smallest_layer=2, longest_way=3)
        self.held: dict[int, Definition] = {}

    def point(self) -> st.SearchStrategy[tuple[float, float]]:
        return st.tuples(*self.coordinates)

    @initialize(data=st.data())
    def streams_begin_somewhere(self, data: st.DataObject) -> None:
        self.last = {stream: data.draw(self.point()) for stream in range(N_STREAMS)}

    @precondition(lambda self: len(self.held) < N_SLOTS)
    @rule(data=st.data())
    def register(self, data: st.DataObject) -> None:
        free = sorted(set(range(N_SLOTS)) - set(self.held))
        slots = data.draw(st.lists(st.sampled_from(free), min_size=1, unique=True), label="slots")
        drawn = [data.draw(self.shapes, label=f"shape {slot}") for slot in slots]
        self.index.register(np.array(slots, dtype=np.int32), [region for region, _ in drawn])
        self.held.update(zip(slots, (shape for _, shape in drawn), strict=True))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def deregister(self, data: st.DataObject) -> None:
        slots = data.draw(st.lists(st.sampled_from(sorted(self.held)), min_size=1, unique=True), label="slots")
        self.index.deregister(np.array(slots, dtype=np.int32))
        for slot in slots:
            del self.held[slot]

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        streams = data.draw(st.lists(st.integers(0, N_STREAMS - 1), min_size=1, max_size=6), label="streams")
        previous, current = [], []
        for stream in streams:
            previous.append(self.last[stream])
            self.last[stream] = data.draw(self.point(), label=f"stream {stream} moves to")
            current.append(self.last[stream])
        found = self.index.moves(np.array(streams, dtype=np.int32), np.array(previous).T, np.array(current).T)
        expected = [
            (row, slot, int(now) - int(was))
            for row, (before, after) in enumerate(zip(previous, current, strict=True))
            for slot, shape in self.held.items()
            if (was := shape.holds(*before)) != (now := shape.holds(*after))
        ]
        assert crossings(found) == sorted(expected)

    @rule(data=st.data())
    def stab(self, data: st.DataObject) -> None:
        points = data.draw(st.lists(self.point(), min_size=1, max_size=6), label="values")
        held = [(row, slot) for row, at in enumerate(points) for slot, shape in self.held.items() if shape.holds(*at)]
        assert crossings(self.index.stab(np.array(points).T)) == sorted((row, slot, 1) for row, slot in held)

    @invariant()
    def every_invariant_of_the_index_holds(self) -> None:
        self.index._check()


class GlobeMachine(ShapeMachine):
    shapes = shapes_on_globe()
    # No multiple of 10 degrees of distance is near one of the radii.
    coordinates = (longitudes, st.one_of(latitudes, st.sampled_from([-90.0, 90.0])))


TestShapesInThePlane = ShapeMachine.TestCase
TestShapesOnTheGlobe = GlobeMachine.TestCase


@given(
    points=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12),
    step=st.sampled_from([0.5, 0.25]),
)
def test_a_point_belongs_to_exactly_one_tile_of_a_tiling(points: list[tuple[int, int]], step: float) -> None:
    vertices = np.array(sorted({*points, (0, 0), (0, 8), (8, 0), (8, 8)}), dtype=np.float64)
    tiles = [polygon([vertices[corners].tolist()]) for corners in Delaunay(vertices).simplices]
    areas = Areas(2)
    areas.register(np.arange(len(tiles), dtype=np.int32), tiles)
    at = np.stack(np.meshgrid(*[np.arange(-1.0, 9.5, step)] * 2)).reshape(2, -1)
    n_tiles = np.bincount(areas.stab(at).rows, minlength=at.shape[1])
    assert n_tiles.tolist() == ((at >= 0) & (at < 8)).all(axis=0).astype(int).tolist()


def many_shapes(rng: np.random.Generator, *, lonlat: bool) -> list[Region]:
    """Return shapes of all sizes; on the globe half of them lie near the antimeridian."""
    regions = []
    for _ in range(60):
        size = float(rng.choice([0.3, 3.0, 30.0]))
        x, y = float(rng.choice([rng.uniform(-180, 180), 180.0, -180.0])), rng.uniform(-40, 40)
        if rng.random() < 0.5:
            radius = 111_195.0 * size if lonlat else size
            regions.append(read_shape("circle", {"center": [x, y], "radius": radius}, GLOBE if lonlat else PLANE))
            continue
        angles = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(3, 30)))
        radii = size * rng.uniform(0.3, 1.0, angles.size)
        longitude = x + radii * np.cos(angles)
        longitude += 360.0 if longitude.min() < -180 else 0.0
        regions.append(polygon([np.stack((longitude, y + radii * np.sin(angles)), axis=1).tolist()], lonlat=lonlat))
    return regions


@given(
    seed=st.integers(0, 2**32 - 1),
    step=st.sampled_from([0.1, 2.0, 50.0]),
    longest_way=st.sampled_from([1, 4, 1000]),
    lonlat=st.booleans(),
)
def test_among_many_shapes_a_move_changes_what_holds_one_of_its_ends(
    seed: int, step: float, longest_way: int, lonlat: bool
) -> None:
    rng = np.random.default_rng(seed)
    regions = many_shapes(rng, lonlat=lonlat)
    index = ShapeIndex(longest_way=longest_way)
    slots = np.arange(len(regions), dtype=np.int32)
    index.register(slots, regions)
    before = np.stack((rng.uniform(-180, 180, 1500), rng.uniform(-70, 70, 1500)))
    after = before + rng.normal(0, step, before.shape)
    after[0] = np.mod(after[0] + 180, 360) - 180
    after[1] = np.clip(after[1], -90, 90)
    was, now = (
        index.holds(np.tile(slots, before.shape[1]), np.repeat(ends, slots.size, axis=1)).reshape(-1, slots.size)
        for ends in (before, after)
    )
    expected = [
        (int(row), int(slot), int(now[row, slot]) - int(was[row, slot])) for row, slot in np.argwhere(was != now)
    ]
    assert crossings(index.moves(np.zeros(before.shape[1], dtype=np.int32), before, after)) == expected


@given(
    west=longitudes,
    east=longitudes,
    closed=st.booleans(),
    at=st.lists(st.tuples(st.integers(-36, 35).map(lambda fives: 5.0 * fives), latitudes), min_size=1),
)
def test_a_box_over_the_antimeridian_holds_what_is_east_of_one_border_or_west_of_the_other(
    west: float, east: float, closed: bool, at: list[tuple[float, float]]
) -> None:
    assume(west > east)
    east = np.nextafter(east, np.inf) if closed else east
    region = wrapped_box((west, -20.0), (east, 30.0), GLOBE)
    areas = Areas(2)
    areas.register(np.zeros(1, dtype=np.int32), [region])
    held = [(lon >= west or lon < east) and -20.0 <= lat < 30.0 for lon, lat in at]
    assert areas.stab(np.array(at).T).rows.tolist() == np.flatnonzero(held).tolist()
    assert areas.holds(np.zeros(len(at), dtype=np.int32), np.array(at).T).tolist() == held


@given(seed=st.integers(0, 2**32 - 1), n_vertices=st.integers(4, 40))
def test_a_rounded_point_on_a_shared_edge_is_in_exactly_one_of_both(seed: int, n_vertices: int) -> None:
    rng = np.random.default_rng(seed)
    vertices = np.concatenate((rng.normal(0.0, 100.0, (n_vertices, 2)), [[-999, -999], [-999, 999], [999, 0]]))
    triangles = Delaunay(vertices).simplices
    areas = Areas(2)
    areas.register(
        np.arange(len(triangles), dtype=np.int32), [polygon([vertices[corners].tolist()]) for corners in triangles]
    )
    shares = rng.random((len(triangles), 1))
    at = shares * vertices[triangles[:, 0]] + (1 - shares) * vertices[triangles[:, 1]]
    at = at[np.abs(at).max(axis=1) < 300]  # those at the rim belong to one tile or to none
    assert areas.stab(at.T).rows.tolist() == list(range(len(at)))
