"""Random queries, readings and restarts for the property tests.

Everything lies on a coarse grid of few values, few names and few times, so that readings meet borders, times
are equal or go back, and queries are replaced. There the mistakes are; values of a wide range never meet.
"""

import json
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.oracle import Definition, Oracle, Reading

# One feed for each index: the region segment list, the border grid and the n-D BMQ.
FEEDS = {"line": ("x",), "plane": ("x", "y"), "cube": ("x", "y", "z")}

STREAMS = ["a", "b", "é"]
QUERY_IDS = ["ab", "b", "ba", "é"]  # by UTF-8 bytes: neither by length nor by last letter

grid = st.integers(-3, 3).map(lambda steps: steps / 2)
# -0.0 equals 0.0 but has other bytes.
coordinates = st.sampled_from([-1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5])


@dataclass(frozen=True)
class World:
    """What one program is about. Small, so that its queries and streams meet all the time."""

    feeds: tuple[str, ...]
    streams: tuple[str, ...]
    query_ids: tuple[str, ...]


worlds = st.builds(
    World,
    st.sampled_from([("line",), ("plane",), ("cube",), ("line", "plane"), ("plane", "cube"), tuple(FEEDS)]),
    st.sampled_from([("a",), ("a", "b"), tuple(STREAMS)]),
    st.sampled_from([("b",), ("ab", "b"), ("ba", "b"), tuple(QUERY_IDS)]),
)


@dataclass(frozen=True)
class Put:
    """Register or replace a query."""

    query_id: str
    definition: Definition

    @property
    def value(self) -> bytes:
        return json.dumps(self.definition).encode()

    def tell(self, oracle: Oracle, offset: int) -> None:
        oracle.put(offset, self.query_id, self.definition)


@dataclass(frozen=True)
class Delete:
    """Delete a query, known or not."""

    query_id: str
    value: None = None

    def tell(self, oracle: Oracle, offset: int) -> None:
        oracle.delete(offset, self.query_id)


@dataclass(frozen=True)
class Bad:
    """A definition that must be refused with ``code``."""

    query_id: str
    value: bytes
    code: str

    def tell(self, oracle: Oracle, offset: int) -> None:
        oracle.refuse(offset, self.query_id, self.code)


Command = Put | Delete | Bad


@dataclass(frozen=True)
class Batch:
    """What one batch reads; ``restart``: how the service came by its state before it, None: it went on."""

    commands: tuple[Command, ...]
    readings: tuple[tuple[str, Reading], ...]
    restart: str | None = None


@st.composite
def definitions(draw: st.DrawFn, world: World) -> Definition:
    """Draw a border query that the service must accept."""
    feed = draw(st.sampled_from(world.feeds))
    bounds = draw(st.sampled_from(["[)", "[)", "[]", "(]", "()"]))
    named = draw(st.lists(st.sampled_from(FEEDS[feed]), min_size=1, unique=True))
    box = {name: draw(_intervals(may_be_one_point=bounds == "[]")) for name in named}
    return {
        "kind": "border",
        "feed": feed,
        "region": {"box": box},
        "bounds": bounds,
        **draw(_options(world)),
    }


@st.composite
def _intervals(draw: st.DrawFn, *, may_be_one_point: bool) -> list[float | None]:
    ends = draw(st.lists(grid, min_size=2, max_size=2, unique=not may_be_one_point))
    lo, hi = sorted(ends)
    unbounded = draw(st.sampled_from(["", "", "", "", "", "below", "above", "both"]))
    return [None if unbounded in ("below", "both") else lo, None if unbounded in ("above", "both") else hi]


def _options(world: World) -> st.SearchStrategy[Definition]:
    """Draw options that change no region; what is left out has a default, which may stand there as well."""
    return st.fixed_dictionaries(
        {},
        optional={
            "initial": st.sampled_from(["emit", "silent"]),
            "streams": st.lists(st.sampled_from(world.streams), min_size=1, max_size=2),
            "tags": st.sampled_from([{}, {"shop": "17"}]),
        },
    )


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
def commands(draw: st.DrawFn, world: World, in_force: dict[str, Definition]) -> Command:
    """Draw a put, an edit, a delete or a refused definition; ``in_force`` is kept up."""
    query_id = draw(st.sampled_from(world.query_ids))
    kind = draw(st.sampled_from(["put", "put", "again", "options", "delete", "bad"]))
    if kind == "bad":
        return Bad(query_id, *draw(_bad_values))
    if kind == "delete":
        in_force.pop(query_id, None)
        return Delete(query_id)
    definition = in_force.get(query_id)
    if definition is None or kind == "put":
        definition = draw(definitions(world))
    elif kind == "options":
        kept = {name: definition[name] for name in ("kind", "feed", "region", "bounds")}
        definition = kept | draw(_options(world))
    in_force[query_id] = definition
    return Put(query_id, definition)


@st.composite
def readings(draw: st.DrawFn, world: World, event_times: st.SearchStrategy[int]) -> tuple[str, Reading]:
    """Draw a feed and a reading of it."""
    feed = draw(st.sampled_from(world.feeds))
    value = tuple(draw(coordinates) for _ in FEEDS[feed])
    return feed, Reading(draw(st.sampled_from(world.streams)), draw(event_times), value)


@st.composite
def programs(draw: st.DrawFn) -> list[Batch]:
    """Draw batches whose readings are in any order, late ones included, with restarts in between."""
    world = draw(worlds)
    in_force: dict[str, Definition] = {}
    batches = []
    for number in range(draw(st.integers(2, 8))):
        around_now = st.integers(10 + number - 1, 10 + number + 1)
        batches.append(
            Batch(
                tuple(draw(st.lists(commands(world, in_force), max_size=4))),
                tuple(draw(st.lists(readings(world, around_now), max_size=6))),
                draw(st.sampled_from([None, "snapshot", "replica"])),
            )
        )
    return batches


@st.composite
def programs_in_order(draw: st.DrawFn) -> list[Batch]:
    """Draw batches whose readings are in order of event time, so that it cannot matter where batches end."""
    world = draw(worlds)
    in_force: dict[str, Definition] = {}
    batches = []
    now = 10
    for _ in range(draw(st.integers(1, 4))):
        in_order = []
        for _ in range(draw(st.integers(0, 8))):
            now += draw(st.integers(0, 1))
            in_order.append(draw(readings(world, st.just(now))))
        batches.append(Batch(tuple(draw(st.lists(commands(world, in_force), max_size=4))), tuple(in_order)))
    return batches


@st.composite
def cut_smaller(draw: st.DrawFn, batches: list[Batch]) -> list[Batch]:
    """Draw smaller batches with the same commands and readings in the same order, and restarts in between."""
    smaller: list[Batch] = []
    for batch in batches:
        # Commands of a batch come before its readings, so any neighbours of these pieces may be joined again.
        pieces = [Batch((command,), ()) for command in batch.commands]
        pieces += [Batch((), (reading,)) for reading in batch.readings]
        for number, piece in enumerate(pieces):
            if number and draw(st.booleans()):
                last = smaller.pop()
                joined = last.commands + piece.commands, last.readings + piece.readings
                smaller.append(Batch(*joined, last.restart))
            else:
                restart = draw(st.sampled_from([None, "snapshot", "replica"]))
                smaller.append(Batch(piece.commands, piece.readings, restart))
    return smaller
