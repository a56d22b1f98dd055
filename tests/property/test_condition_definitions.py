"""Selections and joins: any definition gets an answer, and the query holds exactly what the definition says."""

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bmq.records import Command, Feed, Installation, JoinQuery, Put, Refused, Region, RegionQuery
from bmq.wire.control import parse_command
from bmq.wire.frames import pack_commands, unpack_commands

FEEDS = {
    "plane": Feed("plane", "plane", "id", ("x", "y"), "ts", attributes=("a",)),
    "left": Feed("left", "left", "id", ("x",), "ts", attributes=("a",), join=True),
    "right": Feed("right", "right", "@key", ("x", "y"), "ts", join=True),
}
COLUMNS = {"plane": ["x", "y", "a"], "left": ["x", "a"], "right": ["x", "y"]}
ENDS = ["[)", "[]", "(]", "()"]
NO_NUMBER = -math.inf

ends = st.sampled_from(ENDS)
borders = st.none() | st.integers(-3, 3).map(float)
intervals = st.tuples(borders, borders).map(list) | st.tuples(borders, borders, ends).map(list)


def asked(feed: str, prefix: str = "", at_least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from([prefix + name for name in COLUMNS[feed]])
    return st.dictionaries(names, intervals, min_size=at_least, max_size=2)


band_names = st.tuples(
    st.sampled_from(["left." + name for name in COLUMNS["left"]]),
    st.sampled_from(["right." + name for name in COLUMNS["right"]]),
)
bands = st.builds(lambda names, interval: [*names, *interval], band_names, intervals)
join_conjunctions = st.builds(
    lambda left, right, found: left | right | ({"band": found} if found else {}),
    asked("left", "left."),
    asked("right", "right."),
    st.lists(bands, max_size=2),
).filter(lambda conjunction: len(conjunction) > 0)
of_joins: dict[str, st.SearchStrategy[Any]] = {
    "equal": st.fixed_dictionaries(
        {"left": st.sampled_from(["id", "x", "a"]), "right": st.sampled_from(["@key", "x", "y"])}
    ),
    "where": st.dictionaries(st.just("left.a"), st.sampled_from([None, 1, "b", [1, None]])),
}
of_all: dict[str, st.SearchStrategy[Any]] = {
    "ttl": st.sampled_from(["1s", "2h"]),
    "enabled": st.booleans(),
    "tags": st.dictionaries(st.text(max_size=3), st.integers(0, 5), max_size=2),
}
windows = st.sampled_from(["0s", "10s", 1, 7])
selections = st.fixed_dictionaries(
    {
        "kind": st.just("select"),
        "feed": st.just("plane"),
        "any": st.lists(asked("plane", at_least=1), min_size=1, max_size=3),
    },
    optional=of_all | {"where": st.just({"a": 1})},
)
band_joins = st.fixed_dictionaries(
    {
        "kind": st.just("band_join"),
        "left": st.just("left"),
        "right": st.just("right"),
        "on": st.fixed_dictionaries({"left": st.just("x"), "right": st.sampled_from("xy")}),
        "band": st.tuples(borders, borders).map(list),
    },
    optional=of_all | of_joins | {"report": st.sampled_from(["pairs", "queries"])},
)
window_joins = st.fixed_dictionaries(
    {
        "kind": st.just("window_join"),
        "left": st.fixed_dictionaries({"feed": st.just("left"), "window": windows}),
        "right": st.fixed_dictionaries({"feed": st.just("right"), "window": windows}),
        "any": st.lists(join_conjunctions, min_size=1, max_size=3),
    },
    optional=of_all | of_joins,
)
good = selections | band_joins | window_joins

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
words = st.sampled_from(["left", "right", "left.x", "right.x", "x", "band", "[)", "10s", "id", "feed", "window"])
junk = st.recursive(
    leaves | words,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def parse(definition: Any) -> Command:
    return parse_command(b"q", json.dumps(definition).encode(), 4, Installation(FEEDS, "bmq."))


def places(node: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) inside a definition."""
    keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


@given(definition=good, data=st.data())
def test_a_definition_with_anything_put_anywhere_gets_an_answer(definition: Any, data: st.DataObject) -> None:
    definition = json.loads(json.dumps(definition))
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from(places(definition)))
        if data.draw(st.booleans()) and isinstance(container, dict):
            container[data.draw(words | st.text(max_size=3))] = data.draw(junk)
        else:
            container[key] = data.draw(junk)

    command = parse(definition)

    assert unpack_commands(pack_commands([command])) == [command]
    if isinstance(command, Refused):
        assert len(command.message) < 500
        command.message.encode()


@given(definition=good)
def test_a_good_definition_is_refused_only_where_nothing_can_be_in_an_interval(definition: Any) -> None:
    command = parse(definition)

    if isinstance(command, Refused):
        assert command.code == "bad_region"
    else:
        assert isinstance(command, Put)
        query = command.query
        assert isinstance(query, RegionQuery if definition["kind"] == "select" else JoinQuery)
        assert (query.query_id, query.version, query.kind) == ("q", 5, definition["kind"])
        assert json.loads(query.tags) == definition.get("tags", {})
        assert query.enabled == definition.get("enabled", True)


@given(definition=good, data=st.data(), name=st.text(min_size=1, max_size=6))
def test_an_unknown_field_is_named_wherever_fields_are_fixed(definition: Any, data: st.DataObject, name: str) -> None:
    fixed = [definition] + [definition[part] for part in ("on", "equal", "left", "right") if part in definition]
    if definition["kind"] == "window_join":
        fixed += definition["any"]
    data.draw(st.sampled_from([part for part in fixed if isinstance(part, dict)]))[name + "_"] = 1

    command = parse(definition)

    assert isinstance(command, Refused)
    assert (command.code, f"{name}_' is not known. " in command.message) == ("unknown_field", True)


@given(definition=good, data=st.data())
def test_what_is_said_in_another_order_is_the_same_query(definition: Any, data: st.DataObject) -> None:
    other = dict(data.draw(st.permutations(list(definition.items()))))
    if "any" in other:
        repeated = other["any"] + other["any"][:1]
        other["any"] = [dict(reversed(one.items())) for one in data.draw(st.permutations(repeated))]
        for one in other["any"]:
            if "band" in one:
                one["band"] = data.draw(st.permutations(one["band"] * 2))
    first, second = parse(definition), parse(other)

    assert first == second or (isinstance(first, Refused) and isinstance(second, Refused))


GRID = [step / 2 for step in range(-8, 9)]
numbers = st.builds(
    math.nextafter, st.sampled_from(GRID), st.sampled_from([-math.inf, 0.0, math.inf])
) | st.sampled_from(GRID)


def is_in(number: float, interval: list[Any], usual: str) -> bool:
    """The definition of an interval, written to be obviously right."""
    lo, hi, said = (*interval, usual)[:3]
    above = lo is None or number > lo or (number == lo and said[0] == "[")
    below = hi is None or number < hi or (number == hi and said[1] == "]")
    return number != NO_NUMBER and above and below


def holds(region: Region, point: dict[str, float], columns: list[str]) -> bool:
    return all(lo <= point[name] < hi for name, lo, hi in zip(columns, region.lo, region.hi, strict=True))


def points(feed: str) -> st.SearchStrategy[dict[str, float]]:
    return st.fixed_dictionaries(
        {name: numbers | st.just(NO_NUMBER) if name == "a" else numbers for name in COLUMNS[feed]}
    )


@given(definition=selections, point=points("plane"))
def test_the_alternatives_hold_a_reading_where_all_intervals_of_some_conjunction_do(
    definition: Any, point: dict[str, float]
) -> None:
    command = parse(definition)
    if isinstance(command, Refused):
        return
    assert isinstance(command, Put)
    query = command.query
    assert isinstance(query, RegionQuery)

    wanted = any(all(is_in(point[name], one[name], "[)") for name in one) for one in definition["any"])
    assert any(holds(region, point, COLUMNS["plane"]) for region in query.alternatives) == wanted
    if wanted:
        assert all(lo <= point[name] < hi for name, lo, hi in zip("xy", query.region.lo, query.region.hi, strict=True))


@given(definition=window_joins, left=points("left"), right=points("right"))
def test_the_conjunctions_hold_a_pair_where_all_intervals_and_bands_do(
    definition: Any, left: dict[str, float], right: dict[str, float]
) -> None:
    command = parse(definition)
    if isinstance(command, Refused):
        return
    assert isinstance(command, Put)
    query = command.query
    assert isinstance(query, JoinQuery)
    point = {f"left.{name}": number for name, number in left.items()}
    point |= {f"right.{name}": number for name, number in right.items()}

    def fits(conjunction: dict[str, Any]) -> bool:
        in_intervals = all(is_in(point[name], one, "[)") for name, one in conjunction.items() if name != "band")
        return in_intervals and all(
            is_in(point[one] - point[other], interval, "[]") for one, other, *interval in conjunction.get("band", [])
        )

    def found(conjunction: Any) -> bool:
        differences = [
            (left[COLUMNS["left"][band.left]] - right[COLUMNS["right"][band.right]], band) for band in conjunction.bands
        ]
        return (
            holds(conjunction.left, left, COLUMNS["left"])
            and holds(conjunction.right, right, COLUMNS["right"])
            and all(difference != NO_NUMBER and band.lo <= difference <= band.hi for difference, band in differences)
        )

    assert any(map(found, query.alternatives)) == any(map(fits, definition["any"]))
