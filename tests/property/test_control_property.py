"""Control commands: any bytes get an answer, and what is said in two ways is the same query."""

import json
import math
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from bmq.errors import ControlCode
from bmq.records import Command, Feed, Installation, Pattern, Put, Refused, RegionQuery
from bmq.wire.control import parse_command
from bmq.wire.frames import pack_commands, unpack_commands
from bmq.wire.kinds import KINDS

FEED = Feed("plane", "plane", "id", ("x", "y"), "ts", attributes=("group", "kind"))
CODES = {code.value for code in ControlCode}
FIELDS = sorted({name for known in KINDS.values() for name in known.definition.model_fields})
FIELDS += ["box", "x", "y", "polygon", "regoin", "window", "left.x", "right.x"]
WORDS = [*KINDS, "plane", "[)", "()", "emit", "silent", "bmq.a", "10s", "left.x", ""]

leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(WORDS))
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=4),
    max_leaves=12,
)
borders = st.none() | st.integers(-3, 3).map(float)
bounds = st.sampled_from(["[)", "[]", "(]", "()"])
boxes = st.dictionaries(st.sampled_from("xy"), st.tuples(borders, borders).map(list), min_size=1)
# One length in every unit that can write it, so that equal durations are drawn.
DURATIONS = {
    "0ms": 0, "0d": 0, "1ms": 1, "1000ms": 1000, "1s": 1000, "120s": 120_000, "2m": 120_000, "24h": 86_400_000,
    "1d": 86_400_000,
}  # fmt: skip
durations = st.sampled_from(list(DURATIONS))
above_zero = durations.filter(lambda text: DURATIONS[text] > 0)
values = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, "1", "a", -0.0])
common: dict[str, st.SearchStrategy[Any]] = {
    "streams": st.lists(st.text(max_size=3), min_size=1, max_size=4),
    "bounds": bounds,
    "where": st.dictionaries(st.sampled_from(FEED.attributes), values | st.lists(values, min_size=1, max_size=4)),
    "enabled": st.booleans(),
    "output_topic": st.from_regex(r"bmq\.[a-z]{1,3}", fullmatch=True),
    "tags": st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.booleans() | st.integers(), max_size=3),
}
ends = st.fixed_dictionaries({"ttl": above_zero}) | st.fixed_dictionaries(
    {}, optional={"expires_at": st.integers(10**11, 10**11 + 9)}
)
of_border: dict[str, st.SearchStrategy[Any]] = {
    "initial": st.sampled_from(["emit", "silent"]),
    "stream_ttl": above_zero,
    "cooldown": durations,
    "max_events": st.integers(1, 9),
}
of_noise: dict[str, st.SearchStrategy[Any]] = {
    "exit_region": st.just({"box": {"x": [None, None]}}),
    "stay_for": durations,
    "away_for": durations,
}
of_transition = {"pattern": st.sampled_from([pattern.text for pattern in Pattern]), "within": above_zero}


def definitions(
    kind: str, needed: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    region = st.fixed_dictionaries({"box": boxes})
    needed = {"kind": st.just(kind), "feed": st.just("plane"), "region": region, **needed}
    whole = st.fixed_dictionaries(needed, optional={**common, **optional})
    return st.builds(lambda one, end: one | end, whole, ends)


good = (
    definitions("border", {}, of_border | of_noise)
    | definitions("border", {}, of_border | {"passes": st.booleans()})
    | definitions("transition", of_transition, {})
    | definitions("match", {}, {})
)


def parse(value: bytes | None, key: bytes | None = b"q") -> Command:
    return parse_command(key, value, 4, Installation({"plane": FEED}, "bmq."))


def encoded(definition: Any) -> bytes:
    return json.dumps(definition).encode()


@given(key=st.none() | st.binary(max_size=300), value=st.none() | st.binary())
def test_any_bytes_get_an_answer_that_can_be_written(key: bytes | None, value: bytes | None) -> None:
    assert_is_an_answer(parse(value, key))


@given(value=json_values)
@example(value={"kind": "border", "feed": {"a" * 990: 1}})
def test_any_json_gets_an_answer_that_can_be_written(value: Any) -> None:
    assert_is_an_answer(parse(encoded(value)))


@given(definition=good, field=st.sampled_from(FIELDS), value=json_values, in_region=st.booleans())
def test_a_good_definition_with_any_one_field_replaced_gets_an_answer(
    definition: dict[str, Any], field: str, value: Any, in_region: bool
) -> None:
    part = definition["region"] if in_region else definition
    part[field] = value
    assert_is_an_answer(parse(encoded(definition)))


def assert_is_an_answer(command: Command) -> None:
    assert command.offset == 4
    assert unpack_commands(pack_commands([command])) == [command]
    if isinstance(command, Refused):
        assert command.code in CODES
        assert len(command.message) < 500
        # Half of a surrogate pair would fail here, and in the reply.
        f"{command.query_id}{command.message}".encode()


@given(depth=st.integers(900, 1100), opening=st.sampled_from(['{"feed":', "["]))
def test_a_definition_near_the_limit_of_nesting_gets_an_answer(depth: int, opening: str) -> None:
    closing = {"{": "}", "[": "]"}[opening[0]]
    nested = opening * depth + "1" + closing * depth
    value = f'{{"kind": "border", "feed": {nested}, "region": {{"box": {{}}}}}}'
    assert_is_an_answer(parse(value.encode()))


@given(definition=good, data=st.data())
def test_what_is_said_in_another_way_is_the_same_query(definition: dict[str, Any], data: st.DataObject) -> None:
    other = dict(data.draw(st.permutations(list(definition.items()))))
    for option in sorted({"ttl", "within", "stay_for", "away_for", "cooldown", "stream_ttl"} & set(definition)):
        same = [text for text, ms in DURATIONS.items() if ms == DURATIONS[definition[option]]]
        other[option] = data.draw(st.sampled_from(same))
    if "streams" in other:
        other["streams"] = data.draw(st.permutations(other["streams"] * 2))
    if "where" in other:
        other["where"] = {
            name: data.draw(st.permutations(value * 2)) if isinstance(value, list) else [value]
            for name, value in reversed(other["where"].items())
        }
    if "tags" in other:
        other["tags"] = dict(data.draw(st.permutations(list(other["tags"].items()))))
    for option in sorted({*common, *of_border, *of_noise, "ttl", "passes"} - set(definition)):
        if data.draw(st.booleans()):
            other[option] = None
    first, second = parse(encoded(definition)), parse(encoded(other))
    if isinstance(first, Put):
        assert isinstance(first.query, RegionQuery)
        assert first == second
        assert json.loads(first.query.tags) == definition.get("tags", {})
    else:
        assert isinstance(second, Refused)


@given(definition=good)
def test_the_query_is_what_the_definition_says(definition: dict[str, Any]) -> None:
    command = parse(encoded(definition))
    if isinstance(command, Refused):
        assert command.code == "bad_region"
        return
    assert isinstance(command, Put)
    query = command.query
    assert isinstance(query, RegionQuery)
    assert (query.query_id, query.version, query.feed, query.kind) == ("q", 5, "plane", definition["kind"])
    assert query.enabled == definition.get("enabled", True)
    assert query.ttl_ms == (DURATIONS[definition["ttl"]] if "ttl" in definition else None)
    assert query.expires_at == definition.get("expires_at")
    assert dict(query.where).keys() == definition.get("where", {}).keys()
    for name, texts in query.where:
        wanted = definition["where"][name]
        wanted = wanted if isinstance(wanted, list) else [wanted]
        found = [json.loads(text) for text in texts]
        # As JSON compares: true is not 1, and 1.0 is.
        assert {(type(v) is bool, v) for v in found} == {(type(v) is bool, v) for v in wanted}
        assert len(found) == len(set(texts))
    if definition["kind"] == "transition":
        assert query.pattern is not None
        assert (query.pattern.text, query.within_ms) == (definition["pattern"], DURATIONS[definition["within"]])
        assert query.is_tracked
    elif definition["kind"] == "match":
        assert query.is_level
        assert not query.is_tracked
    else:
        assert_border_options(query, definition)


def assert_border_options(query: RegionQuery, definition: dict[str, Any]) -> None:
    ms = {name: DURATIONS[definition.get(name, "0ms")] for name in ("stay_for", "away_for", "cooldown")}
    assert (query.stay_for_ms, query.away_for_ms, query.cooldown_ms) == tuple(ms.values())
    assert query.stream_ttl_ms == (DURATIONS[definition["stream_ttl"]] if "stream_ttl" in definition else None)
    assert query.initial.value == definition.get("initial", "emit")
    assert query.max_events == definition.get("max_events")
    assert query.passes == definition.get("passes", False)
    assert (query.exit_region is None) == ("exit_region" not in definition)
    assert query.is_tracked == (any(ms.values()) or "exit_region" in definition or "max_events" in definition)
    assert query.pattern is None


@given(definition=good, name=st.text(min_size=1, max_size=8), value=values, in_region=st.booleans())
def test_an_unknown_field_is_always_named(definition: dict[str, Any], name: str, value: Any, in_region: bool) -> None:
    part = definition["region"] if in_region else definition
    if name in FIELDS:
        name += "_"
    part[name] = value
    command = parse(encoded(definition))
    assert isinstance(command, Refused)
    assert (command.code, f"{name}' is not known. " in command.message) == ("unknown_field", True)


@given(interval=st.tuples(borders, borders), bounds=bounds)
def test_the_half_open_region_holds_what_the_stated_bounds_say(
    interval: tuple[float | None, float | None], bounds: str
) -> None:
    definition = {"kind": "border", "feed": "plane", "region": {"box": {"x": interval}}, "bounds": bounds}
    command = parse(encoded(definition))
    grid = [i / 2 for i in range(-8, 9)]
    around = [math.nextafter(v, to) for v in grid for to in (-math.inf, math.inf)]
    inside = {v for v in (*grid, *around) if is_inside(v, *interval, bounds)}
    if isinstance(command, Refused):
        assert command.code == "bad_region"
        assert not inside
    else:
        assert isinstance(command, Put)
        assert isinstance(command.query, RegionQuery)
        lo, hi = command.query.region.lo[0], command.query.region.hi[0]
        assert {v for v in (*grid, *around) if lo <= v < hi} == inside
        assert inside


def is_inside(value: float, lo: float | None, hi: float | None, bounds: str) -> bool:
    above = lo is None or value > lo or (value == lo and bounds[0] == "[")
    below = hi is None or value < hi or (value == hi and bounds[1] == "]")
    return above and below
