"""Random programs for the property tests: queries with every option, readings, marks, restarts.

Everything lies on a coarse grid of few values, few names and few times, so that readings meet borders, what is due
meets readings, times are equal or go back, and queries are replaced. There the mistakes are; values of a wide range
never meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.oracle import Definition, Reading
from tests.programs import (
    ALL_FEEDS,
    FEEDS,
    Arrival,
    Bad,
    BadRecord,
    Batch,
    Command,
    Delete,
    Item,
    Mark,
    Put,
)
from tests.strategies_joins import JOIN_KINDS, FeedPair, edited_joins, join_definitions
from tests.strategies_regions import (
    FIRST_TIME,
    conjunctions,
    coordinates,
    durations,
    expiry_times,
    groups,
    latitudes,
    longitudes,
    numbers,
    regions,
    wheres,
)
from tests.strategies_wrong import bad_definitions, bad_records

STREAMS = ["a", "b", "é"]
QUERY_IDS = ["ab", "b", "ba", "é"]  # by UTF-8 bytes: neither by length nor by last letter
N_PARTITIONS = 3

restarts = st.sampled_from([None, None, "snapshot", "replica"])


@dataclass(frozen=True)
class World:
    """What one program is about. Small, so that its queries and streams meet all the time."""

    feeds: tuple[str, ...]
    streams: tuple[str, ...]
    query_ids: tuple[str, ...]
    options: tuple[str, ...]  # which may be asked for; few, so that two of them meet often
    joins: tuple[FeedPair, ...] = ()  # left and right feeds of joins
    kinds_of_joins: tuple[str, ...] = JOIN_KINDS


KINDS_OF_OPTIONS = {
    "plain": ("initial", "streams", "tags"),
    "noise": ("exit_region", "stay_for", "away_for", "cooldown", "max_events", "initial"),
    "life": ("ttl", "expires_at", "stream_ttl", "enabled", "stay_for", "away_for", "transition"),
    "transitions": ("transition", "where", "enabled", "streams", "ttl"),
    "passes": ("passes", "where", "cooldown", "stream_ttl"),
    "scope": ("where", "streams", "enabled", "exit_region", "initial"),
    "levels": ("level", "where", "streams", "enabled", "ttl", "expires_at", "initial"),
    "all": (
        *("initial", "streams", "tags", "exit_region", "stay_for", "away_for", "cooldown", "max_events"),
        *("ttl", "expires_at", "stream_ttl", "enabled", "transition", "where", "passes", "level"),
    ),
}

JOIN_OPTIONS = [("initial", "level", "where"), ("level", "ttl", "tags"), ("stay_for", "stream_ttl", "cooldown")]

worlds = st.builds(
    World,
    st.sampled_from([(feed,) for feed in FEEDS] + [("line", "plane"), ("plane", "cube"), ("line", "brief", "both")]),
    st.sampled_from([("a",), ("a",), ("a", "b"), tuple(STREAMS)]),
    st.sampled_from([("b",), ("b",), ("ab", "b"), ("ba", "b"), tuple(QUERY_IDS)]),
    st.sampled_from(list(KINDS_OF_OPTIONS.values())),
)


join_worlds = st.sampled_from(
    [
        *(
            ("left", "right"),
            ("left", "slow"),
            ("slow", "last"),
            ("quick", "right"),
            ("last", "left"),
            ("quick", "slow"),
        ),
        ("left", "right", "quick"),
    ]
).flatmap(lambda feeds: _worlds_of_joins(feeds, JOIN_OPTIONS))

# A held reading is applied when the clock of its feed says so, whatever the other feed is about.
join_worlds_in_order = st.sampled_from([("left", "right"), ("right", "quick"), ("left", "right", "quick")]).flatmap(
    lambda feeds: _worlds_of_joins(feeds, JOIN_OPTIONS)
)


def _worlds_of_joins(feeds: tuple[str, ...], options: Sequence[tuple[str, ...]]) -> st.SearchStrategy[World]:
    first, second, *others = feeds
    pairs = ((first, second), (second, first), *((first, third) for third in others))
    return st.builds(
        World,
        st.just(feeds),
        st.sampled_from([("a",), ("a", "b"), tuple(STREAMS)]),
        st.sampled_from([("b",), ("ab", "b"), tuple(QUERY_IDS)]),
        st.sampled_from(options),
        st.sampled_from([pairs[:1], pairs]),
        st.sampled_from([JOIN_KINDS, JOIN_KINDS[:1], JOIN_KINDS[1:]]),
    )


# -- definitions ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A definition, and a region that holds its region, for edits that ask for an exit region; of a join empty."""

    definition: Definition
    outer: dict[str, Any]


@st.composite
def definitions(draw: st.DrawFn, world: World) -> Drawn:
    """Draw a query that the service must accept."""
    if world.joins and draw(st.sampled_from([True, True, True, False])):
        return Drawn(draw(join_definitions(world.joins, world.kinds_of_joins)), {})
    feed = draw(st.sampled_from(world.feeds))
    region, outer, ends = draw(regions(feed))
    definition: Definition = {"kind": "border", "feed": feed, "region": region}
    if "level" in world.options and draw(st.booleans()):
        definition["kind"] = draw(st.sampled_from(["match", "select"]))
        definition["any"] = draw(st.lists(conjunctions(feed), min_size=1, max_size=3))
    elif "transition" in world.options and draw(st.booleans()):
        pattern = draw(st.sampled_from(["in_then_out", "out_then_in", "in_not_out", "out_not_in"]))
        definition |= {"kind": "transition", "pattern": pattern, "within": draw(durations)}
    if ends is not None:
        definition["bounds"] = ends
    return Drawn(_allowed(definition | draw(_options(world, outer))), outer)


def _options(world: World, outer: dict[str, Any]) -> st.SearchStrategy[Definition]:
    """Draw some options; what is left out has a default, which may stand there as well."""
    every: dict[str, st.SearchStrategy[Any]] = {
        "initial": st.sampled_from(["emit", "silent"]),
        "streams": st.lists(st.sampled_from(world.streams), min_size=1, max_size=2),
        "tags": st.sampled_from([{}, {"shop": "17"}]),
        "where": st.fixed_dictionaries({"group": wheres}),
        "enabled": st.sampled_from([False, False, True]),
        "ttl": durations,
        "expires_at": expiry_times,
        "stream_ttl": durations,
        "passes": st.just(True),
        "exit_region": st.just(outer),
        "stay_for": durations,
        "away_for": durations,
        "cooldown": durations,
        "max_events": st.integers(1, 3),
    }
    return st.fixed_dictionaries({}, optional={name: every[name] for name in world.options if name in every})


_WATCHED = ("kind", "feed", "region", "any", "pattern", "within", "bounds")
_OPTIONS_OF_ALL = ("kind", "feed", "where", "ttl", "expires_at", "enabled", "tags")
_ALLOWED = {
    "transition": {*_OPTIONS_OF_ALL, "region", "pattern", "within", "bounds", "streams"},
    "match": {*_OPTIONS_OF_ALL, "region", "bounds", "streams"},
    "select": {*_OPTIONS_OF_ALL, "any"},
}


def _allowed(definition: Definition) -> Definition:
    """Return the definition without options that do not go with its kind, its feed or each other."""
    refused = definition.keys() - _ALLOWED.get(definition["kind"], definition.keys())
    if "expires_at" in definition:
        refused.add("ttl")
    if definition["feed"] == "cube" or definition.keys() & {"exit_region", "stay_for", "away_for"}:
        refused.add("passes")
    if "bounds" in definition and definition["bounds"] == "[)":
        refused.add("bounds")
    return {name: value for name, value in definition.items() if name not in refused}


# -- commands ---------------------------------------------------------------------------------------------


@st.composite
def commands(draw: st.DrawFn, world: World, in_force: dict[str, Drawn]) -> Command:
    """Draw a put, an edit, a pause, a delete or a refused definition; ``in_force`` is kept up."""
    query_id = draw(st.sampled_from(world.query_ids))
    kind = draw(st.sampled_from(["put", "put", "put", "edit", "edit", "again", "options", "pause", "delete", "bad"]))
    if kind == "bad":
        return Bad(query_id, *draw(bad_definitions(world.feeds[0], world.joins)))
    if kind == "delete":
        in_force.pop(query_id, None)
        return Delete(query_id)
    drawn = in_force.get(query_id)
    if drawn is None or kind == "put":
        drawn = draw(definitions(world))
    elif kind == "pause":
        drawn = Drawn(drawn.definition | {"enabled": False}, drawn.outer)
    elif kind in ("edit", "options") and drawn.definition["kind"] in JOIN_KINDS:
        drawn = Drawn(draw(edited_joins(drawn.definition)), {})
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
    point = (longitudes, latitudes) if feed == "globe" else (coordinates,) * len(ALL_FEEDS[feed].dimensions)
    attributes = draw(groups) if world.joins or {"where", "level"} & set(world.options) else ()
    attributes += tuple((name, draw(numbers)) for name in ALL_FEEDS[feed].attributes if name != "group")
    return Arrival(feed, partition, Reading(stream, time, tuple(map(draw, point)), attributes))


# -- programs ---------------------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn, some: st.SearchStrategy[World] = worlds) -> list[Batch]:
    """Draw batches whose readings are in any order, late ones included, with restarts in between.

    In some programs streams are behind their feed by any length, partitions are read unevenly, or one clock is ahead.
    """
    world = draw(some)
    behind = draw(st.sampled_from([1, 2, 3]).flatmap(lambda kind: _behind(world, kind)))
    in_force: dict[str, Drawn] = {}
    with_clock: set[str] = set()
    batches = []
    now = FIRST_TIME
    for _ in range(draw(st.integers(2, 7))):
        now += draw(st.sampled_from([0, 1, 1, 2, 4]))
        n_items = draw(st.integers(2, 10) if world.joins else st.integers(0, 5))
        items = [draw(_items(world, with_clock, now, behind)) for _ in range(n_items)]
        batches.append(
            Batch(tuple(draw(st.lists(commands(world, in_force), max_size=3))), tuple(items), draw(restarts))
        )
    return batches


Behind = tuple[dict[str, int], list[int]]  # by how much the clock of each stream and of each partition is ahead


def _behind(world: World, kind: int) -> st.SearchStrategy[Behind]:
    """Draw how far the clocks of streams and partitions are apart; of kind 1: not at all."""
    of_streams = st.sampled_from([0, 0, -3, -7, -20, 9]) if kind == 2 else st.just(0)
    of_partitions = st.sampled_from([0, -5, -12]) if kind == 3 else st.just(0)
    return st.tuples(
        st.fixed_dictionaries(dict.fromkeys(world.streams, of_streams)),
        st.lists(of_partitions, min_size=N_PARTITIONS, max_size=N_PARTITIONS),
    )


@st.composite
def _items(draw: st.DrawFn, world: World, with_clock: set[str], now: int, behind: Behind) -> Item:
    feed, partition = draw(st.sampled_from(world.feeds)), draw(st.integers(0, N_PARTITIONS - 1))
    time = now + draw(st.integers(-2, 1)) + behind[1][partition]
    kind = draw(st.sampled_from(["reading"] * 8 + ["mark", "bad"]))
    if kind == "bad":
        return draw(bad_records(feed, partition, time))
    if kind == "mark" and feed in with_clock:  # the service marks no feed that has no clock
        return Mark(feed, now + draw(st.integers(-1, 4)))
    with_clock.add(feed)
    stream = draw(st.sampled_from(world.streams))
    return draw(_arrivals(world, feed, stream, partition, time + behind[0][stream]))


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
        return draw(bad_records(feed, partition, time))
    clocks[feed] = max(clocks[feed], time)
    if kind == "mark" and feed in with_clock:
        return Mark(feed, time)
    with_clock.add(feed)
    return draw(_arrivals(world, feed, world.streams[number], partition, time))


@st.composite
def join_programs_in_order(draw: st.DrawFn) -> list[Batch]:
    """Draw batches whose readings are in one order over all feeds: that of (event time, feed, partition).

    It cannot matter where such batches end. What ends by the silence of a stream is in that order too: the clock of
    its feed comes to each time first, before those of the other feeds, which may end a query, and before readings.
    """
    world = draw(join_worlds_in_order)
    in_force: dict[str, Drawn] = {}
    with_clock: set[str] = set()
    time = FIRST_TIME
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        items: list[Item] = []
        for _ in range(draw(st.integers(0, 4))):
            time += draw(st.sampled_from([1, 1, 2, 4]))
            silent_first = sorted(with_clock, key=lambda feed: (ALL_FEEDS[feed].stream_ttl is None, feed))
            emitted = [one for one in silent_first if ALL_FEEDS[one].stream_ttl is not None or draw(st.booleans())]
            items += [Mark(feed, time) for feed in emitted]
            items += draw(_items_of_a_time(world, time))
            with_clock |= {item.feed for item in items if isinstance(item, Arrival)}
        batches.append(Batch(tuple(draw(st.lists(commands(world, in_force), max_size=3))), tuple(items)))
    return batches


@st.composite
def _items_of_a_time(draw: st.DrawFn, world: World, time: int) -> list[Arrival | BadRecord]:
    items: list[Arrival | BadRecord] = []
    for _ in range(draw(st.integers(1, 4))):
        feed, number = draw(st.sampled_from(world.feeds)), draw(st.integers(0, len(world.streams) - 1))
        partition = number % N_PARTITIONS
        if draw(st.integers(0, 9)):
            items.append(draw(_arrivals(world, feed, world.streams[number], partition, time)))
        else:
            items.append(draw(bad_records(feed, partition, time)))
    return sorted(items, key=lambda item: (item.feed, item.partition))


@st.composite
def cut_smaller(draw: st.DrawFn, batches: list[Batch]) -> list[Batch]:
    """Draw smaller batches with the same commands and readings in the same order, and restarts in between."""
    smaller: list[Batch] = []
    for batch in batches:
        # Commands of a batch come before its readings, so any neighbours of these pieces may be concatenated.
        pieces = [Batch((command,), ()) for command in batch.commands]
        pieces += [Batch((), (item,)) for item in batch.items]
        for number, piece in enumerate(pieces):
            if number and draw(st.booleans()):
                last = smaller.pop()
                smaller.append(Batch(last.commands + piece.commands, last.items + piece.items, last.restart))
            else:
                smaller.append(Batch(piece.commands, piece.items, draw(restarts)))
    return smaller
