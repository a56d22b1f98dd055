"""Random values, and regions and conjunctions that meet them, on a coarse grid: for `tests.strategies`."""

from typing import Any

from hypothesis import strategies as st

from tests.oracle_queries import time_text
from tests.programs import ALL_FEEDS

FIRST_TIME = 10

durations = st.sampled_from(["1ms", "2ms", "3ms"])
expiry_times = st.integers(FIRST_TIME - 2, FIRST_TIME + 10).map(time_text)
grid = st.integers(-3, 3).map(lambda steps: steps / 2)
# -0.0 equals 0.0 but has other bytes.
coordinates = st.sampled_from([-1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5])
# 180 is -180. From 175 to -175 the short way is over the antimeridian.
longitudes = st.sampled_from([-180, -179, -175, -90, 0, 5, 90, 170, 175, 179, 180]).map(float)
latitudes = st.sampled_from([-90, -10, 0, 5, 10, 90]).map(float)
# The 5 of a reading equals 5.0; "5" and true do not; a list equals nothing; absent equals null.
groups: st.SearchStrategy[tuple[tuple[str, Any], ...]] = st.sampled_from(
    [
        *((), (("group", "g1"),), (("group", "g2"),), (("group", 5),), (("group", True),), (("group", None),)),
        *((("group", 0.5),), (("group", 1),)),
    ]
) | st.just((("group", "g1"),))
wheres = st.sampled_from(["g1", ["g1", 5.0], ["g2", "5"], None, [None, True], 5])
numbers = st.sampled_from([-1, -0.5, -0.0, 0, 0.5, 1, 5, True, "1", None, [1]])
bounds = st.sampled_from(["[)", "[)", "[]", "(]", "()"])

# (region, a larger one). The grid has points on their borders and corners, but none on a rim, and no line through
# two of its points only touches a circle.
SHAPES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"polygon": [[-1, -1], [1, -1], [0, 1]]},
        {"polygon": [[-1.5, -1.5], [1.5, -1.5], [1.5, 1.5], [-1.5, 1.5]]},
    ),
    (
        {"polygon": [[-1, -1], [1, -1], [1, 1], [0.5, 1], [0.5, -0.5], [-0.5, -0.5], [-0.5, 1], [-1, 1]]},
        {"polygon": [[-1, -1], [1, -1], [1, 1], [-1, 1]]},
    ),
    (
        {"polygon": [[0, -1], [1, 0], [0, 1], [-1, 0], [0, -1]]},
        {"circle": {"center": [0, 0], "radius": 1.27}},
    ),
    (
        {"circle": {"center": [0.25, 0], "radius": 0.83}},
        {"circle": {"center": [0.25, 0], "radius": 1.41}},
    ),
    (
        {
            "geojson": {
                "type": "Polygon",
                "coordinates": [
                    [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]],
                    [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]],
                ],
            }
        },
        {"box": {"x": [-1, 1], "y": [-1, 1.5]}},
    ),
    (
        {
            "geojson": {
                "type": "MultiPolygon",
                "coordinates": [
                    [[[-1, -1], [0, -1], [0, 0], [-1, 0], [-1, -1]]],
                    [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]],
                ],
            }
        },
        {"box": {"x": [None, 1.5]}},
    ),
]
GLOBE_SHAPES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"box": {"lon": [170, -175], "lat": [-10, 10]}}, {"box": {"lon": [90, -90]}}),
    ({"box": {"lon": [175, 180]}}, {"box": {"lon": [90, -175]}}),
    ({"box": {"lon": [-180, -90], "lat": [0, None]}}, {"box": {"lat": [0, None]}}),
    ({"box": {"lon": [None, 5], "lat": [-10, 5]}}, {"box": {"lat": [-10, 10]}}),
    ({"polygon": [[170, -10], [-170, -10], [-170, 10], [170, 10]]}, {"box": {"lon": [90, -90]}}),
    (
        {"polygon": [[-5, -5], [5, -5], [5, 5], [0, 10]]},
        {"polygon": [[-80, -20], [80, -20], [80, 20], [-80, 20]]},
    ),
    (
        {"circle": {"center": [179, 0], "radius": 500_000}},
        {"circle": {"center": [179, 0], "radius": 1_200_000}},
    ),
]


@st.composite
def regions(draw: st.DrawFn, feed: str) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Draw a region, a larger one, and bounds where there is a choice."""
    if feed == "globe":
        return (*draw(st.sampled_from(GLOBE_SHAPES)), None)
    if feed == "plane" and draw(st.booleans()):
        return (*draw(st.sampled_from(SHAPES)), None)
    ends = draw(bounds)
    named = draw(st.lists(st.sampled_from(ALL_FEEDS[feed].dimensions), min_size=1, unique=True))
    box = {name: draw(intervals(may_be_one_point=ends == "[]")) for name in named}
    margin = draw(st.sampled_from([0.0, 0.5, 1.0]))
    outer = {
        name: [None if lo is None else lo - margin, None if hi is None else hi + margin]
        for name, (lo, hi) in box.items()
    }
    return {"box": box}, {"box": outer}, ends


@st.composite
def conjunctions(draw: st.DrawFn, feed: str) -> dict[str, list[Any]]:
    """Draw intervals of some dimensions and attributes of a feed, with ends of their own."""
    columns = (*ALL_FEEDS[feed].dimensions, *ALL_FEEDS[feed].attributes)
    named = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True))
    return {name: draw(longitude_intervals if name == "lon" else intervals_with_ends()) for name in named}


@st.composite
def intervals_with_ends(draw: st.DrawFn) -> list[Any]:
    """Draw an interval as conjunctions have it."""
    ends = draw(bounds)
    interval = draw(intervals(may_be_one_point=ends == "[]"))
    return [*interval, ends] if ends != "[)" or draw(st.booleans()) else [*interval]


longitude_intervals: st.SearchStrategy[list[Any]] = st.sampled_from(
    [[170, -175], [90, -90, "(]"], [175, 179, "[]"], [-180, -90], [None, 5], [5, None, "()"], [None, None]]
)


@st.composite
def intervals(draw: st.DrawFn, *, may_be_one_point: bool) -> list[float | None]:
    ends = draw(st.lists(grid, min_size=2, max_size=2, unique=not may_be_one_point))
    lo, hi = sorted(ends)
    unbounded = draw(st.sampled_from(["", "", "", "", "", "below", "above", "both"]))
    return [None if unbounded in ("below", "both") else lo, None if unbounded in ("above", "both") else hi]
