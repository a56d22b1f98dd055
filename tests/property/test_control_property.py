"""Control commands: any bytes get an answer, and what is said in two ways is the same query."""

import json
import math
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from bmq.errors import ControlCode
from bmq.records import Delete, Feed, Put, Refused
from bmq.wire.control import parse_command
from bmq.wire.definition_models import BorderDefinition, TransitionDefinition

FEED = Feed("plane", "plane", "id", ("x", "y"), "ts")
CODES = {code.value for code in ControlCode}
FIELDS = [*BorderDefinition.model_fields, *TransitionDefinition.model_fields, "box", "x", "y", "polygon", "regoin"]
WORDS = ["border", "plane", "[)", "()", "emit", "silent", "bmq.a", "match", ""]

leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(WORDS))
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=4),
    max_leaves=12,
)
borders = st.none() | st.integers(-3, 3).map(float)
bounds = st.sampled_from(["[)", "[]", "(]", "()"])
good = st.fixed_dictionaries(
    {
        "kind": st.just("border"),
        "feed": st.just("plane"),
        "region": st.fixed_dictionaries(
            {"box": st.dictionaries(st.sampled_from("xy"), st.tuples(borders, borders).map(list), min_size=1)}
        ),
    },
    optional={
        "streams": st.lists(st.text(max_size=3), min_size=1, max_size=4),
        "bounds": bounds,
        "initial": st.sampled_from(["emit", "silent"]),
        "output_topic": st.from_regex(r"bmq\.[a-z]{1,3}", fullmatch=True),
        "tags": st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.booleans() | st.integers(), max_size=3),
    },
)


def parse(value: bytes | None, key: bytes | None = b"q") -> Put | Delete | Refused:
    return parse_command(key, value, 4, {"plane": FEED}, "bmq.")


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


def assert_is_an_answer(command: Put | Delete | Refused) -> None:
    assert command.offset == 4
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
def test_the_order_of_names_and_streams_means_nothing(definition: dict[str, Any], data: st.DataObject) -> None:
    other = dict(data.draw(st.permutations(list(definition.items()))))
    if "streams" in other:
        other["streams"] = data.draw(st.permutations(other["streams"] * 2))
    if "tags" in other:
        other["tags"] = dict(data.draw(st.permutations(list(other["tags"].items()))))
    first, second = parse(encoded(definition)), parse(encoded(other))
    if isinstance(first, Put):
        assert first == second
        assert json.loads(first.query.tags) == definition.get("tags", {})
    else:
        assert isinstance(second, Refused)


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
        lo, hi = command.query.region.lo[0], command.query.region.hi[0]
        assert {v for v in (*grid, *around) if lo <= v < hi} == inside
        assert inside


def is_inside(value: float, lo: float | None, hi: float | None, bounds: str) -> bool:
    above = lo is None or value > lo or (value == lo and bounds[0] == "[")
    below = hi is None or value < hi or (value == hi and bounds[1] == "]")
    return above and below
