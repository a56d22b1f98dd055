"""The control topic: what a definition becomes, and how each fault is refused."""

import json
import math
from typing import Any

import pytest

from bmq.errors import ControlError
from bmq.records import Delete, Feed, Format, Initial, Pattern, Put, Refused, Region, RegionQuery, ShapeKind
from bmq.wire.control import QUERY_ID_LIMIT_BYTES, parse_command, validate_definition

FEEDS = {
    "stocks": Feed("stocks", "stocks", "symbol", ("price",), "ts"),
    "vehicles": Feed("vehicles", "bmq.vehicles", "id", ("x", "y"), "ts", attributes=("group", "kind")),
    "lines": Feed("lines", "lines", "id", ("x",), "ts", Format.CSV, attributes=("group",)),
    "cube": Feed("cube", "cube", "id", ("x", "y", "z"), "ts"),
}
RESERVED = ("bmq.control", "bmq.dead.letter")


def border(**fields: Any) -> dict[str, Any]:
    """A good definition with some fields replaced; ... takes one out."""
    whole = {"kind": "border", "feed": "vehicles", "region": {"box": {"x": [0, 10], "y": [0, 10]}}} | fields
    return {name: value for name, value in whole.items() if value is not ...}


def transition(**fields: Any) -> dict[str, Any]:
    return border(kind="transition", pattern="in_then_out", within="3m") | fields


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


def test_every_option_of_time_noise_life_and_scope_reaches_the_query() -> None:
    definition = border(
        where={"kind": ["taxi", None, 5, "taxi", 5.0, True], "group": "g1"},
        ttl="2h",
        stream_ttl="1d",
        exit_region={"box": {"x": [-1, 11], "y": [0, 10]}},
        stay_for="90s",
        away_for="3m",
        cooldown="250ms",
        max_events=7,
        enabled=False,
    )
    assert accepted(definition) == RegionQuery(
        "q1",
        18,
        "vehicles",
        Region((0.0, 0.0), (10.0, 10.0)),
        where=(("group", ('"g1"',)), ("kind", ('"taxi"', "5.0", "null", "true"))),
        ttl_ms=7_200_000,
        stream_ttl_ms=86_400_000,
        exit_region=Region((-1.0, 0.0), (11.0, 10.0)),
        stay_for_ms=90_000,
        away_for_ms=180_000,
        cooldown_ms=250,
        max_events=7,
        enabled=False,
    )
    assert accepted(border(passes=True)).passes


def test_a_transition_has_a_pattern_and_a_time() -> None:
    query = accepted(transition(pattern="out_not_in", where={"group": None}, ttl="1d", streams=["b", "a"]))
    assert (query.pattern, query.within_ms, query.ttl_ms) == (Pattern.OUT_NOT_IN, 180_000, 86_400_000)
    assert (query.streams, query.where) == (("a", "b"), (("group", ("null",)),))


@pytest.mark.parametrize("name", ["in_then_out", "out_then_in", "in_not_out", "out_not_in"])
def test_every_pattern_is_known_by_its_name(name: str) -> None:
    assert accepted(transition(pattern=name)).pattern == Pattern[name.upper()]


@pytest.mark.parametrize("option", ["stay_for", "away_for", "cooldown"])
def test_a_duration_of_zero_is_an_option_that_is_off(option: str) -> None:
    assert accepted(border(**{option: "0s"})) == accepted(border())


@pytest.mark.parametrize(
    ("time", "ms"),
    [
        (1_700_000_000_000, 1_700_000_000_000),
        (1_700_000_000_000.75, 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20.250+01:00", 1_700_000_000_250),
        (-1, -1),
    ],
)
def test_a_query_expires_at_epoch_milliseconds_or_at_a_time_as_readings_write_it(time: Any, ms: int) -> None:
    assert accepted(border(expires_at=time)).expires_at == ms


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (border(ttl="120s"), border(ttl="2m")),
        (border(where={}), border()),
        (border(where={"group": "g"}), border(where={"group": ["g", "g"]})),
        (border(where={"group": ["a", 1], "kind": 2}), border(where={"kind": 2.0, "group": [1.0, "a"]})),
        (border(expires_at=0), border(expires_at="1970-01-01T00:00:00Z")),
        (border(enabled=True, passes=False, max_events=None), border()),
        (border(bounds="[]", region={"box": {"x": [0, 1]}}), box(x=[0, math.nextafter(1, 2)])),
        (border(feed="lines", region={"box": {"x": [0, 1]}}, where={"group": "17"}),) * 2,
    ],
)
def test_definitions_that_mean_the_same_are_the_same_query(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert accepted(first) == accepted(second)


def test_a_string_that_reads_as_a_number_means_that_number_where_readings_are_csv() -> None:
    in_csv = border(feed="lines", region={"box": {"x": [0, 1]}}, where={"group": ["17", "g", 17]})
    assert accepted(in_csv).where == (("group", ('"g"', "17.0")),)
    assert accepted(border(where={"group": ["17", 17]})).where == (("group", ('"17"', "17.0")),)


def test_a_region_may_be_a_polygon_a_circle_or_geojson() -> None:
    ring = [[0, 0], [10, 0], [0, 10]]
    polygon = accepted(border(region={"polygon": ring}))
    assert polygon.region.shape is not None
    assert polygon == accepted(border(region={"polygon": [*ring, ring[0]], "box": None}))
    assert polygon == accepted(border(region={"geojson": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}}))
    circle = accepted(border(region={"circle": {"center": [5, 5], "radius": 2}})).region.shape
    assert circle is not None
    assert (circle.kind, circle.radius) == (ShapeKind.CIRCLE, 2.0)


def test_what_must_be_left_may_have_another_form_than_what_is_entered() -> None:
    query = accepted(border(exit_region={"circle": {"center": [5, 5], "radius": 10}}))
    assert query.exit_region is not None
    assert query.exit_region.shape is not None


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
        (
            border(kind="boarder"),
            "unknown_kind",
            'Write "kind": "border", "transition", "match", "select", "band_join" or',
        ),
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
        (border(region={"circle": {"centre": [0, 0]}}), "unknown_field", "the nearest known field is 'center'"),
        (border(exit_region={"bx": {}}), "unknown_field", "'exit_region.bx' is not known"),
        (transition(patern=1), "unknown_field", "the nearest known field is 'pattern'"),
        (transition(pattern=None), "missing_field", "'pattern' is missing, but a transition query needs it"),
        ({**transition(), "within": None}, "missing_field", "'within'"),
        (border(region={"circle": {"center": [0, 0]}}), "missing_field", "'region.circle.radius'"),
        (border(ttl=[1]), "wrong_type", "'ttl' is [1], but must be a string"),
        (border(ttl=True), "wrong_type", "'ttl' is true"),
        (border(expires_at=[1]), "wrong_type", "'expires_at' is [1], but must be epoch milliseconds or"),
        (border(expires_at=False), "wrong_type", "'expires_at' is false"),
        (border(enabled="no"), "wrong_type", "'enabled' is \"no\", but must be true or false"),
        (border(passes=1), "wrong_type", "'passes' is 1"),
        (border(max_events=1.5), "wrong_type", "'max_events' is 1.5, but must be a whole number"),
        (border(max_events=True), "wrong_type", "'max_events' is true"),
        (border(where=["group"]), "wrong_type", "'where' is [\"group\"], but must be an object"),
        (border(where={"group": {}}), "wrong_type", "'where.group' is {}, but must be a string, a number"),
        (border(where={"group": [["a"]]}), "wrong_type", "'where.group' is"),
        (border(region={"polygon": 3}), "wrong_type", "'region.polygon' is 3"),
        (
            border(region={"polygon": [["a", 0]]}),
            "wrong_type",
            "'region.polygon[0][0]' is \"a\", but must be a number.",
        ),
        (border(ttl=60), "bad_duration", "'ttl' is 60, but a duration is a whole number with ms, s, m, h or d"),
        (border(ttl="2 h"), "bad_duration", "'ttl' is \"2 h\""),
        (border(stay_for="-5s"), "bad_duration", "'stay_for' is \"-5s\""),
        (border(away_for="1.5h"), "bad_duration", 'write it like "90s"'),
        (border(cooldown="٣s"), "bad_duration", "'cooldown'"),
        (border(cooldown=""), "bad_duration", "'cooldown' is \"\""),
        (border(stream_ttl="0s"), "bad_duration", "above zero"),
        (border(ttl="0ms"), "bad_duration", "above zero"),
        (border(ttl="3652060d"), "bad_duration", "at most 3652059d"),
        (border(ttl="9" * 5000 + "s"), "bad_duration", "at most"),
        (transition(within="0s"), "bad_duration", "'within' is \"0s\""),
        (transition(within=3), "bad_duration", "'within' is 3"),
        (
            border(region={"box": {"x": [0, 1]}, "circle": {"center": [0, 0], "radius": 1}}),
            "bad_region",
            "box and circle",
        ),
        (border(exit_region={}), "bad_region", "'exit_region' has no shape"),
        (border(region={"polygon": [[0, 0, 0]]}), "bad_region", "a point is [x, y]"),
        (border(region={"polygon": []}), "bad_region", "'region.polygon'"),
        (border(exit_region={"polygon": []}), "bad_region", "'exit_region.polygon'"),
        (border(region={"circle": {"center": [0, 0], "radius": 0}}), "bad_region", "'region.circle.radius'"),
        (border(feed="stocks", region={"circle": {"center": [0, 0], "radius": 1}}), "bad_region", "two dimensions"),
        (border(exit_region={"box": {"x": [1, 11], "y": [0, 10]}}), "bad_region", "does not hold all of 'region'"),
        (border(exit_region={"box": {"z": [0, 1]}}), "unknown_dimension", "'y'"),
        (border(region={"polygon": [[0, 0], [1, 0], [0, 1]]}, bounds="[]"), "bad_option", "only a box"),
        (border(bounds="()", exit_region={"circle": {"center": [5, 5], "radius": 9}}), "bad_option", "only a box"),
        (border(ttl="1h", expires_at=5), "bad_option", "both say when the query ends"),
        (border(expires_at="tomorrow"), "bad_option", "'expires_at' is \"tomorrow\": write 2023-11-14T22:13:20.250Z"),
        (border(expires_at=10**400), "bad_option", "'expires_at'"),
        (border(expires_at=10**18), "bad_option", "years 1 to 9999"),
        (border(max_events=0), "bad_option", "'max_events' is 0, but must be 1 to"),
        (border(max_events=2**31), "bad_option", "but must be 1 to 2147483647"),
        (border(where={"grup": "a"}), "bad_option", "the nearest is 'group'"),
        (border(feed="stocks", region={"box": {"price": [0, 1]}}, where={"a": 1}), "bad_option", "Add the attribute"),
        (border(where={"group": []}), "bad_option", "'where.group' is [], which no reading fits"),
        (border(where={"group": 10**400}), "bad_option", "finite"),
        (border(passes=True, stay_for="1s"), "bad_option", "'stay_for'"),
        (border(passes=True, away_for="1s"), "bad_option", "'away_for'"),
        (border(passes=True, exit_region={"box": {"x": [None, None]}}), "bad_option", "'exit_region'"),
        (border(passes=True, feed="cube"), "bad_option", "has 3 dimensions"),
        (border(pattern="in_then_out"), "bad_option", "'pattern' does not apply to kind 'border'"),
        (transition(pattern="in_then"), "bad_option", "'in_then_out', 'out_then_in', 'in_not_out' or 'out_not_in'"),
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


@pytest.mark.parametrize(
    "option",
    ["initial", "passes", "stream_ttl", "exit_region", "stay_for", "away_for", "cooldown", "max_events"],
)
def test_an_option_of_border_queries_does_not_apply_to_transitions_unless_it_is_null(option: str) -> None:
    answer = refused(transition(**{option: "silent"}))
    assert (answer.code, answer.message) == (
        "bad_option",
        f"Field '{option}' does not apply to kind 'transition'. Leave it out.",
    )
    assert accepted(transition(**{option: None})) == accepted(transition())


def test_geojson_that_is_nested_without_end_is_refused() -> None:
    nested = b'{"kind": "border", "feed": "vehicles", "region": {"geojson": {"type": "Polygon", "coordinates": '
    for depth in (300, 900, 950):
        assert refused(nested + b"[" * depth + b"]" * depth + b"}}}").code in ("bad_region", "wrong_type", "not_json")


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (border(kind="bordr", regoin=1), "unknown_kind"),
        (border(regoin=1, region=..., bounds="["), "unknown_field"),
        (border(bounds="[", feed=..., streams=3), "bad_option"),
        (border(feed=..., region=3), "missing_field"),
        (border(streams=3, region={"box": {}}), "wrong_type"),
        (border(region={"box": {}}, feed="nope"), "bad_region"),
        (border(streams=3, ttl="2"), "wrong_type"),
        (border(ttl="2", region={"box": {}}), "bad_duration"),
        (border(ttl="2", region={}), "bad_duration"),
        (border(region={}, ttl="2h", expires_at=3), "bad_region"),
        (border(ttl="2h", expires_at=3, feed="nope"), "bad_option"),
        (border(exit_region={"box": {"q": [0, 1]}}, region={"box": {"x": [1, 0]}}), "unknown_dimension"),
        (border(where={"a": 1}, region={"box": {"x": [1, 0]}}), "bad_region"),
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
