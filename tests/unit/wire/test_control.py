"""The control topic: what a definition becomes, and what is asked of keys."""

import json
import math
from typing import Any

import pytest

from bmq.errors import ControlError
from bmq.records import Delete, Initial, Pattern, Refused, Region, RegionQuery, ShapeKind
from bmq.wire.control import QUERY_ID_LIMIT_BYTES, parse_command, validate_definition
from tests.definitions import INSTALLATION, accepted, border, box, refused, transition


def test_a_definition_becomes_a_query_whose_version_is_the_offset_plus_one() -> None:
    assert accepted(border()) == RegionQuery("q1", 18, "vehicles", Region((0.0, 0.0), (10.0, 10.0)))


def test_null_deletes() -> None:
    assert parse_command(b"q1", None, 17, INSTALLATION) == Delete(17, "q1")


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
        ("1969-12-31T23:59:59.999+00", -1),
        ("1990-12-31T15:59:60-0800", 662_688_000_000),
        (100_000_000_000, 100_000_000_000),
        (253_402_300_799_999, 253_402_300_799_999),
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
        (border(expires_at=10**12), border(expires_at="2001-09-09T01:46:40Z")),
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
    command = parse_command(key, value, 17, INSTALLATION)
    assert isinstance(command, Refused)
    assert (command.code, command.query_id) == (code, query_id)


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(refused(border(**{"n" * 10_000: 1})).message) < 300
    assert len(refused(border(feed=["s"] * 10_000)).message) < 300


def test_a_byte_order_mark_before_a_definition_is_dropped() -> None:
    marked = b"\xef\xbb\xbf" + json.dumps(border()).encode()

    assert validate_definition("q1", marked, INSTALLATION) == validate_definition("q1", border(), INSTALLATION)


def test_a_client_can_validate_before_it_publishes() -> None:
    expected = RegionQuery("q1", 0, "vehicles", Region((0.0, 0.0), (10.0, 10.0)))
    assert validate_definition("q1", border(), INSTALLATION) == expected
    assert validate_definition("q1", json.dumps(border()).encode(), INSTALLATION) == expected


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
        validate_definition(query_id, definition, INSTALLATION)
    assert refusal.value.code == code
