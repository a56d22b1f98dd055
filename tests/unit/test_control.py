"""The control topic: what a definition becomes, and how each fault is refused."""

import json
import math
from typing import Any

import pytest

from bmq.errors import ControlError
from bmq.records import Delete, Feed, Initial, Put, Refused, Region, RegionQuery
from bmq.wire.control import QUERY_ID_LIMIT_BYTES, parse_command, validate_definition
from bmq.wire.definitions import KINDS_NOT_BUILT

FEEDS = {
    "stocks": Feed("stocks", "stocks", "symbol", ("price",), "ts"),
    "vehicles": Feed("vehicles", "bmq.vehicles", "id", ("x", "y"), "ts"),
}
RESERVED = ("bmq.control", "bmq.dead.letter")


def border(**fields: Any) -> dict[str, Any]:
    """A good definition with some fields replaced; ... takes one out."""
    whole = {"kind": "border", "feed": "vehicles", "region": {"box": {"x": [0, 10], "y": [0, 10]}}} | fields
    return {name: value for name, value in whole.items() if value is not ...}


def box(**intervals: Any) -> dict[str, Any]:
    return border(region={"box": intervals})


def accepted(definition: dict[str, Any]) -> RegionQuery:
    command = parse_command(b"q1", json.dumps(definition).encode(), 17, FEEDS, "bmq.", RESERVED)
    assert isinstance(command, Put), command
    return command.query


def refused(value: dict[str, Any] | bytes, key: bytes | None = b"q1") -> Refused:
    encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
    command = parse_command(key, encoded, 17, FEEDS, "bmq.", RESERVED)
    assert isinstance(command, Refused), command
    assert command.offset == 17
    return command


def test_a_definition_becomes_a_query_whose_version_is_the_offset_plus_one() -> None:
    assert accepted(border()) == RegionQuery("q1", 18, "vehicles", Region((0.0, 0.0), (10.0, 10.0)))


def test_null_deletes() -> None:
    assert parse_command(b"q1", None, 17, FEEDS, "bmq.") == Delete(17, "q1")


def test_every_option_reaches_the_query() -> None:
    definition = border(
        streams=["b", "a", "b"],
        bounds="[)",
        initial="silent",
        output_topic="bmq.mine",
        tags={"shop": "17", "big": True, "area": 1.5, "floor": 2},
    )
    query = accepted(definition)
    assert query.streams == ("a", "b")
    assert query.initial is Initial.SILENT
    assert query.output_topic == "bmq.mine"
    assert query.tags == '{"area":1.5,"big":true,"floor":2,"shop":"17"}'


def test_null_in_an_option_is_the_same_as_leaving_it_out() -> None:
    options = dict.fromkeys(["streams", "bounds", "initial", "output_topic", "tags"])
    assert accepted(border(**options)) == accepted(border())


def test_a_dimension_that_is_null_or_not_named_is_unbounded() -> None:
    assert accepted(box(x=[None, 40])).region.lo == (-math.inf, -math.inf)
    assert accepted(box(x=[None, 40])).region.hi == (40.0, math.inf)
    assert accepted(box(x=[None, None])).region.hi == (math.inf, math.inf)


def test_bounds_become_half_open_with_the_next_number() -> None:
    after = math.nextafter(10.0, math.inf)
    intervals = {"x": [0, 10], "y": [None, None]}
    ends = {b: accepted(border(region={"box": intervals}, bounds=b)) for b in ("[)", "[]", "(]", "()")}
    assert {b: (query.region.lo[0], query.region.hi[0]) for b, query in ends.items()} == {
        "[)": (0.0, 10.0),
        "[]": (0.0, after),
        "(]": (5e-324, after),
        "()": (5e-324, 10.0),
    }
    assert all((query.region.lo[1], query.region.hi[1]) == (-math.inf, math.inf) for query in ends.values())


def test_one_point_is_a_region_with_both_ends_closed() -> None:
    query = accepted(border(region={"box": {"x": [3, 3]}}, bounds="[]"))
    assert query.region.lo[0] <= 3.0 < query.region.hi[0]


@pytest.mark.parametrize("bounds", ["[)", "(]", "()"])
def test_an_interval_of_equal_borders_holds_nothing_otherwise(bounds: str) -> None:
    assert refused(border(region={"box": {"x": [3, 3]}}, bounds=bounds)).code == "bad_region"


def test_an_open_interval_between_neighbouring_numbers_holds_nothing() -> None:
    interval = [1.0, math.nextafter(1.0, 2.0)]
    assert refused(border(region={"box": {"x": interval}}, bounds="()")).code == "bad_region"


@pytest.mark.parametrize(
    ("value", "code", "part"),
    [
        (b"", "not_json", "no JSON object"),
        (b"{", "not_json", "no JSON object"),
        (b"\xff", "not_json", "UTF-8"),
        (b'{"a": "\\ud800"}', "not_json", "UTF-8"),
        (b"[" * 100_000, "not_json", "nested too deeply"),
        (b"[1]", "not_json", "[1] is no object"),
        (b'{"kind": "border", "kind": "border"}', "not_json", '"kind" stands twice'),
        (b'{"kind": NaN}', "not_json", "NaN is no JSON number"),
        (border(kind=...), "missing_field", "'kind'"),
        (border(kind=None), "missing_field", "'kind'"),
        (border(kind=3), "wrong_type", "'kind' is 3"),
        (border(kind="boarder"), "unknown_kind", 'Write "kind": "border" or "transition".'),
        (border(regoin=1), "unknown_field", "'region'"),
        (
            border(region={"bxo": {}}),
            "unknown_field",
            "'region.bxo' is not known; the nearest known field is 'box'",
        ),
        (border(feed=...), "missing_field", "'feed'"),
        (border(feed=None), "missing_field", "'feed'"),
        (border(region={}), "bad_region", "no shape"),
        (border(feed=7), "wrong_type", "'feed' is 7"),
        (border(region=[0, 10]), "wrong_type", "'region' is [0, 10]"),
        (border(region={"box": [0, 10]}), "wrong_type", "'region.box'"),
        (box(x=3), "wrong_type", "'region.box.x' is 3"),
        (box(x=["0", 10]), "wrong_type", "'region.box.x[0]' is \"0\""),
        (box(x=[True, 10]), "wrong_type", "'region.box.x[0]' is true"),
        (border(streams="a"), "wrong_type", "'streams' is \"a\""),
        (border(streams=["a", 1]), "wrong_type", "'streams[1]' is 1"),
        (border(bounds=3), "wrong_type", "'bounds' is 3"),
        (border(output_topic=3), "wrong_type", "'output_topic' is 3"),
        (border(tags=[]), "wrong_type", "'tags' is []"),
        (border(tags={"a": None}), "wrong_type", "'tags.a' is null"),
        (border(tags={"a": [1]}), "wrong_type", "'tags.a' is [1]"),
        (border(feed="vehicle"), "unknown_feed", "'vehicles'"),
        (box(X=[0, 10]), "unknown_dimension", "'x'"),
        (box(), "bad_region", "at least one dimension"),
        (box(x=[1]), "bad_region", "[lo, hi]"),
        (box(x=[1, 2, 3]), "bad_region", "[lo, hi]"),
        (box(x=[10, 0]), "bad_region", "10.0 of 'x' is above upper border 0.0"),
        (box(x=[10**400, None]), "bad_region", "beyond the range"),
        (border(streams=[]), "bad_option", "watches nothing"),
        (border(bounds="[["), "bad_option", "'[)', '[]', '(]' or '()'"),
        (border(initial="loud"), "bad_option", "'emit' or 'silent'"),
        (border(output_topic="mine"), "bad_option", "begin with 'bmq.'"),
        (border(output_topic="bmq.a b"), "bad_option", "letters"),
        (border(output_topic="bmq.control"), "bad_option", "the service itself uses"),
        (border(output_topic="bmq.dead_letter"), "bad_option", "the service itself uses"),
        (border(output_topic="bmq.vehicles"), "bad_option", "the service itself uses"),
        (border(tags={"a": 10**400}), "bad_option", "finite"),
        (border(tags={"a": "x" * 20_000}), "bad_option", "16384 are the most"),
        (border(output_topic="__consumer_offsets"), "bad_option", "begin with"),
    ],
)
def test_a_fault_is_refused_with_its_code_and_named(value: dict[str, Any] | bytes, code: str, part: str) -> None:
    answer = refused(value)
    assert (answer.query_id, answer.code) == ("q1", code)
    assert part in answer.message


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"9" * 5000])
def test_a_border_beyond_the_range_of_a_float_is_a_bad_region(number: bytes) -> None:
    value = b'{"kind": "border", "feed": "vehicles", "region": {"box": {"x": [%s, null]}}}' % number
    assert refused(value).code == "bad_region"


@pytest.mark.parametrize("kind", KINDS_NOT_BUILT)
def test_a_kind_that_is_not_built_is_refused_by_name(kind: str) -> None:
    answer = refused({"kind": kind, "left": "stocks"})
    assert answer.code == "unknown_kind"
    assert f"'{kind}' is not built yet" in answer.message


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (border(kind="bordr", regoin=1), "unknown_kind"),
        (border(regoin=1, region=..., bounds="["), "unknown_field"),
        (border(bounds="[", feed=..., streams=3), "bad_option"),
        (border(feed=..., region=3), "missing_field"),
        (border(streams=3, region={"box": {}}), "wrong_type"),
        (border(region={"box": {}}, feed="nope"), "bad_region"),
        (border(feed="nope", region={"box": {"z": [10, 0]}}), "unknown_feed"),
        (box(x=[10, 0], z=[0, 10]), "unknown_dimension"),
        (border(region={"box": {"x": [10, 0]}}, output_topic="mine"), "bad_region"),
    ],
)
def test_of_several_faults_the_first_in_the_documented_order_is_told(definition: dict[str, Any], code: str) -> None:
    assert refused(definition).code == code


@pytest.mark.parametrize(
    ("key", "code", "query_id"),
    [
        (None, "missing_field", ""),
        (b"", "missing_field", ""),
        (b"a\xff", "wrong_type", "a\ufffd"),
        (b"a" * (QUERY_ID_LIMIT_BYTES + 1), "wrong_type", "a" * QUERY_ID_LIMIT_BYTES),
    ],
)
@pytest.mark.parametrize("value", [None, json.dumps(border()).encode()])
def test_a_bad_key_refuses_puts_and_deletes(key: bytes | None, code: str, query_id: str, value: bytes | None) -> None:
    command = parse_command(key, value, 17, FEEDS, "bmq.")
    assert isinstance(command, Refused)
    assert (command.code, command.query_id) == (code, query_id)


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(refused(border(**{"n" * 10_000: 1})).message) < 300
    assert len(refused(border(feed=["s"] * 10_000)).message) < 300


def test_a_client_can_validate_before_it_publishes() -> None:
    expected = RegionQuery("q1", 0, "vehicles", Region((0.0, 0.0), (10.0, 10.0)))
    assert validate_definition("q1", border(), FEEDS, "bmq.") == expected
    assert validate_definition("q1", json.dumps(border()).encode(), FEEDS, "bmq.") == expected


@pytest.mark.parametrize(
    ("query_id", "definition", "code"),
    [
        ("q1", border(regoin=1), "unknown_field"),
        ("q1", box(x=[math.nan, 1]), "not_json"),
        ("q1", border(tags={"a": object()}), "not_json"),
        ("", border(), "missing_field"),
        ("\ud800", border(), "wrong_type"),
    ],
)
def test_the_client_gets_the_code_that_the_service_would_answer(
    query_id: str, definition: dict[str, Any], code: str
) -> None:
    with pytest.raises(ControlError) as refusal:
        validate_definition(query_id, definition, FEEDS, "bmq.")
    assert refusal.value.code == code
