"""Random programs for the property tests: queries with every option, readings, marks, restarts.

Everything lies on a coarse grid of few values, few names and few times, so that readings meet borders, what is due
meets readings, times are equal or go back, and queries are replaced. There the mistakes are; values of a wide range
never meet.
"""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.oracle import Definition, Reading
from tests.programs import FEEDS, TOO_FAR_AHEAD, Arrival, Bad, BadRecord, Batch, Command, Delete, Item, Mark, Put

STREAMS = ["a", "b", "é"]
QUERY_IDS = ["ab", "b", "ba", "é"]  # by UTF-8 bytes: neither by length nor by last letter
FIRST_TIME = 10
N_PARTITIONS = 3

grid = st.integers(-3, 3).map(lambda steps: steps / 2)
# -0.0 equals 0.0 but has other bytes.
coordinates = st.sampled_from([-1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5])
# 180 is -180. From 175 to -175 the short way is over the antimeridian.
longitudes = st.sampled_from([-180, -179, -175, -90, 0, 5, 90, 170, 175, 179, 180]).map(float)
latitudes = st.sampled_from([-90, -10, 0, 5, 10, 90]).map(float)
durations = st.sampled_from(["1ms", "2ms", "3ms"])
restarts = st.sampled_from([None, None, "snapshot", "replica"])

# The 5 of a reading equals 5.0; "5" and true do not; a list equals nothing; absent equals null.
groups: st.SearchStrategy[tuple[tuple[str, Any], ...]] = st.sampled_from(
    [(), (("group", "g1"),), (("group", "g2"),), (("group", 5),), (("group", True),), (("group", None),)]
) | st.just((("group", "g1"),))
wheres = st.sampled_from(["g1", ["g1", 5.0], ["g2", "5"], None, [None, True], 5])

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


@dataclass(frozen=True)
class World:
    """What one program is about. Small, so that its queries and streams meet all the time."""

    feeds: tuple[str, ...]
    streams: tuple[str, ...]
    query_ids: tuple[str, ...]
    options: tuple[str, ...]  # which may be asked for; few, so that two of them meet often


KINDS_OF_OPTIONS = {
    "plain": ("initial", "streams", "tags"),
    "noise": ("exit_region", "stay_for", "away_for", "cooldown", "max_events", "initial"),
    "life": ("ttl", "expires_at", "stream_ttl", "enabled", "stay_for", "away_for", "transition"),
    "transitions": ("transition", "where", "enabled", "streams", "ttl"),
    "passes": ("passes", "where", "cooldown", "stream_ttl"),
    "scope": ("where", "streams", "enabled", "exit_region", "initial"),
    "all": (
        *("initial", "streams", "tags", "exit_region", "stay_for", "away_for", "cooldown", "max_events"),
        *("ttl", "expires_at", "stream_ttl", "enabled", "transition", "where", "passes"),
    ),
}

worlds = st.builds(
    World,
    st.sampled_from([(feed,) for feed in FEEDS] + [("line", "plane"), ("plane", "cube"), ("line", "brief", "both")]),
    st.sampled_from([("a",), ("a",), ("a", "b"), tuple(STREAMS)]),
    st.sampled_from([("b",), ("b",), ("ab", "b"), ("ba", "b"), tuple(QUERY_IDS)]),
    st.sampled_from(list(KINDS_OF_OPTIONS.values())),
)


# -- definitions ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A definition, and a region that holds its region, for edits that ask for an exit region."""

    definition: Definition
    outer: dict[str, Any]


@st.composite
def definitions(draw: st.DrawFn, world: World) -> Drawn:
    """Draw a query that the service must accept."""
    feed = draw(st.sampled_from(world.feeds))
    region, outer, bounds = draw(_regions(feed))
    definition: Definition = {"kind": "border", "feed": feed, "region": region}
    if "transition" in world.options and draw(st.booleans()):
        pattern = draw(st.sampled_from(["in_then_out", "out_then_in", "in_not_out", "out_not_in"]))
        definition |= {"kind": "transition", "pattern": pattern, "within": draw(durations)}
    if bounds is not None:
        definition["bounds"] = bounds
    return Drawn(_allowed(definition | draw(_options(world, outer))), outer)


@st.composite
def _regions(draw: st.DrawFn, feed: str) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Draw a region, a larger one, and bounds where there is a choice."""
    if feed == "globe":
        return (*draw(st.sampled_from(GLOBE_SHAPES)), None)
    if feed == "plane" and draw(st.booleans()):
        return (*draw(st.sampled_from(SHAPES)), None)
    bounds = draw(st.sampled_from(["[)", "[)", "[]", "(]", "()"]))
    named = draw(st.lists(st.sampled_from(FEEDS[feed].dimensions), min_size=1, unique=True))
    box = {name: draw(_intervals(may_be_one_point=bounds == "[]")) for name in named}
    margin = draw(st.sampled_from([0.0, 0.5, 1.0]))
    outer = {
        name: [None if lo is None else lo - margin, None if hi is None else hi + margin]
        for name, (lo, hi) in box.items()
    }
    return {"box": box}, {"box": outer}, bounds


@st.composite
def _intervals(draw: st.DrawFn, *, may_be_one_point: bool) -> list[float | None]:
    ends = draw(st.lists(grid, min_size=2, max_size=2, unique=not may_be_one_point))
    lo, hi = sorted(ends)
    unbounded = draw(st.sampled_from(["", "", "", "", "", "below", "above", "both"]))
    return [None if unbounded in ("below", "both") else lo, None if unbounded in ("above", "both") else hi]


def _options(world: World, outer: dict[str, Any]) -> st.SearchStrategy[Definition]:
    """Draw some options; what is left out has a default, which may stand there as well."""
    every: dict[str, st.SearchStrategy[Any]] = {
        "initial": st.sampled_from(["emit", "silent"]),
        "streams": st.lists(st.sampled_from(world.streams), min_size=1, max_size=2),
        "tags": st.sampled_from([{}, {"shop": "17"}]),
        "where": st.fixed_dictionaries({"group": wheres}),
        "enabled": st.sampled_from([False, False, True]),
        "ttl": durations,
        "expires_at": st.integers(FIRST_TIME - 2, FIRST_TIME + 10),
        "stream_ttl": durations,
        "passes": st.just(True),
        "exit_region": st.just(outer),
        "stay_for": durations,
        "away_for": durations,
        "cooldown": durations,
        "max_events": st.integers(1, 3),
    }
    return st.fixed_dictionaries({}, optional={name: every[name] for name in world.options if name in every})


_WATCHED = ("kind", "feed", "region", "pattern", "within", "bounds")
_TRANSITION_OPTIONS = (*_WATCHED, "streams", "where", "ttl", "expires_at", "enabled", "tags")


def _allowed(definition: Definition) -> Definition:
    """Return the definition without options that do not go with its kind, its feed or each other."""
    refused = set()
    if definition["kind"] == "transition":
        refused = definition.keys() - set(_TRANSITION_OPTIONS)
    if "expires_at" in definition:
        refused.add("ttl")
    if definition["feed"] == "cube" or definition.keys() & {"exit_region", "stay_for", "away_for"}:
        refused.add("passes")
    if "bounds" in definition and definition["bounds"] == "[)":
        refused.add("bounds")
    return {name: value for name, value in definition.items() if name not in refused}


# -- commands ---------------------------------------------------------------------------------------------

_bad_values = st.sampled_from(
    [
        (b'{"kind": "border"', "not_json"),
        (b'{"kind": "border", "feed": "nope", "region": {"box": {"x": [0, 1]}}}', "unknown_feed"),
        (b'{"kind": "border", "feed": "line", "region": {"box": {"x": [1, 0]}}}', "bad_region"),
        (b'{"kind": "border", "feed": "line", "region": {"box": {"y": [0, 1]}}}', "unknown_dimension"),
        (
            b'{"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}, "regoin": 1}',
            "unknown_field",
        ),
    ]
)


@st.composite
def commands(draw: st.DrawFn, world: World, in_force: dict[str, Drawn]) -> Command:
    """Draw a put, an edit, a pause, a delete or a refused definition; ``in_force`` is kept up."""
    query_id = draw(st.sampled_from(world.query_ids))
    kind = draw(st.sampled_from(["put", "put", "put", "edit", "edit", "again", "options", "pause", "delete", "bad"]))
    if kind == "bad":
        return Bad(query_id, *draw(_bad_values))
    if kind == "delete":
        in_force.pop(query_id, None)
        return Delete(query_id)
    drawn = in_force.get(query_id)
    if drawn is None or kind == "put":
        drawn = draw(definitions(world))
    elif kind == "pause":
        drawn = Drawn(drawn.definition | {"enabled": False}, drawn.outer)
    elif kind in ("edit", "options"):
        options = draw(_options(world, drawn.outer))
        must = {name: value for name, value in drawn.definition.items() if name in _WATCHED}
        edited = must | options
        if kind == "edit":  # of one option only
            name = draw(st.sampled_from(world.options))
            kept = {other: value for other, value in drawn.definition.items() if other != name}
            edited = kept | {other: value for other, value in options.items() if other == name}
        if "within" in edited and draw(st.booleans()):
            edited["within"] = draw(durations)
        drawn = Drawn(_allowed(edited), drawn.outer)
    in_force[query_id] = drawn
    return Put(query_id, drawn.definition)


# -- readings ---------------------------------------------------------------------------------------------


@st.composite
def _arrivals(draw: st.DrawFn, world: World, feed: str, stream: str, partition: int, time: int) -> Arrival:
    point = (longitudes, latitudes) if feed == "globe" else (coordinates,) * len(FEEDS[feed].dimensions)
    attributes = draw(groups) if "where" in world.options else ()
    return Arrival(feed, partition, Reading(stream, time, tuple(map(draw, point)), attributes))


@st.composite
def _bad_records(draw: st.DrawFn, feed: str, partition: int, time: int) -> BadRecord:
    right = {"id": "a", "ts": time} | dict.fromkeys(FEEDS[feed].dimensions, 0.5)
    first = FEEDS[feed].dimensions[0]
    wrong = [
        (b"[1, 2]", "not_json"),
        (_json(right | {first: None}), "missing_field"),
        (_json(right | {first: "0.5"}), "wrong_type"),
        (_json(right).replace(b"0.5", b"1e999", 1), "not_finite"),
        (_json(right | {"ts": TOO_FAR_AHEAD}), "out_of_range"),
    ]
    if feed == "globe":
        wrong.append((_json(right | {"lat": 90.5}), "out_of_range"))
    return BadRecord(feed, partition, *draw(st.sampled_from(wrong)))


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()


# -- programs ---------------------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> list[Batch]:
    """Draw batches whose readings are in any order, late ones included, with restarts in between."""
    world = draw(worlds)
    in_force: dict[str, Drawn] = {}
    with_clock: set[str] = set()
    batches = []
    now = FIRST_TIME
    for _ in range(draw(st.integers(2, 7))):
        now += draw(st.sampled_from([0, 1, 1, 2, 4]))
        items = [draw(_items(world, with_clock, now)) for _ in range(draw(st.integers(0, 5)))]
        batches.append(
            Batch(tuple(draw(st.lists(commands(world, in_force), max_size=3))), tuple(items), draw(restarts))
        )
    return batches


@st.composite
def _items(draw: st.DrawFn, world: World, with_clock: set[str], now: int) -> Item:
    feed, partition = draw(st.sampled_from(world.feeds)), draw(st.integers(0, N_PARTITIONS - 1))
    time = now + draw(st.integers(-2, 1))
    kind = draw(st.sampled_from(["reading"] * 8 + ["mark", "bad"]))
    if kind == "bad":
        return draw(_bad_records(feed, partition, time))
    if kind == "mark" and feed in with_clock:  # the service marks no feed that has no clock
        return Mark(feed, now + draw(st.integers(-1, 4)))
    with_clock.add(feed)
    return draw(_arrivals(world, feed, draw(st.sampled_from(world.streams)), partition, time))


@st.composite
def programs_in_order(draw: st.DrawFn) -> list[Batch]:
    """Draw batches whose readings are in the order of their feed's event time, so far as its `max_lateness` asks.

    It cannot matter where such batches end. Where nothing puts readings in order, a stream has one partition.
    """
    world = draw(worlds)
    in_force: dict[str, Drawn] = {}
    clocks = dict.fromkeys(world.feeds, FIRST_TIME)
    with_clock: set[str] = set()
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        in_order = [draw(_items_in_order(world, with_clock, clocks)) for _ in range(draw(st.integers(0, 7)))]
        batches.append(Batch(tuple(draw(st.lists(commands(world, in_force), max_size=3))), tuple(in_order)))
    return batches


@st.composite
def _items_in_order(draw: st.DrawFn, world: World, with_clock: set[str], clocks: dict[str, int]) -> Item:
    feed, number = draw(st.sampled_from(world.feeds)), draw(st.integers(0, len(world.streams) - 1))
    lateness = FEEDS[feed].max_lateness
    partition = draw(st.integers(0, N_PARTITIONS - 1)) if lateness else number % N_PARTITIONS
    time = clocks[feed] + draw(st.sampled_from([*range(-lateness, 1), 0, 1, 1, 2, 4]))
    kind = draw(st.sampled_from(["reading"] * 8 + ["mark", "bad"]))
    if kind == "bad":
        return draw(_bad_records(feed, partition, time))
    clocks[feed] = max(clocks[feed], time)
    if kind == "mark" and feed in with_clock:
        return Mark(feed, time)
    with_clock.add(feed)
    return draw(_arrivals(world, feed, world.streams[number], partition, time))


@st.composite
def cut_smaller(draw: st.DrawFn, batches: list[Batch]) -> list[Batch]:
    """Draw smaller batches with the same commands and readings in the same order, and restarts in between."""
    smaller: list[Batch] = []
    for batch in batches:
        # Commands of a batch come before its readings, so any neighbours of these pieces may be joined again.
        pieces = [Batch((command,), ()) for command in batch.commands]
        pieces += [Batch((), (item,)) for item in batch.items]
        for number, piece in enumerate(pieces):
            if number and draw(st.booleans()):
                last = smaller.pop()
                smaller.append(Batch(last.commands + piece.commands, last.items + piece.items, last.restart))
            else:
                smaller.append(Batch(piece.commands, piece.items, draw(restarts)))
    return smaller
