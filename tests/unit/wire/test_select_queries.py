"""Definitions of match and select queries: what they become, and how each fault is refused."""

import math
import sys
from typing import Any

import pytest

from bmq.records import Kind, Region, RegionQuery
from tests.definitions import accepted, border, match, refused, select

LARGEST = sys.float_info.max
AFTER_10 = math.nextafter(10.0, math.inf)


def alternatives(*conjunctions: Any, **fields: Any) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    return [(region.lo, region.hi) for region in accepted(select(*conjunctions, **fields)).alternatives]


def test_a_match_query_is_a_region_of_another_kind() -> None:
    query = accepted(match(streams=["b", "a"], where={"group": "g"}, ttl="1h", enabled=False, tags={"a": 1}))

    assert query == RegionQuery(
        "q1",
        18,
        "vehicles",
        Region((0.0, 0.0), (10.0, 10.0)),
        streams=("a", "b"),
        where=(("group", ('"g"',)),),
        ttl_ms=3_600_000,
        enabled=False,
        tags='{"a":1}',
        kind=Kind.MATCH,
    )
    assert query.is_level


def test_a_match_query_has_bounds_and_every_form_of_region() -> None:
    assert accepted(match(bounds="[]")).region.hi == (AFTER_10, AFTER_10)
    circle = accepted(match(region={"circle": {"center": [0, 0], "radius": 1}})).region.shape
    assert circle is not None


@pytest.mark.parametrize("kind", ["match", "select"])
@pytest.mark.parametrize(
    "option",
    ["initial", "passes", "stream_ttl", "exit_region", "stay_for", "away_for", "cooldown", "max_events", "pattern"],
)
def test_options_of_crossings_do_not_apply_to_readings_inside(kind: str, option: str) -> None:
    definition = match() if kind == "match" else select()
    answer = refused(definition | {option: "silent"})

    assert (answer.code, answer.message) == (
        "bad_option",
        f"Field '{option}' does not apply to kind '{kind}'. Leave it out.",
    )
    assert accepted(definition | {option: None}) == accepted(definition)


@pytest.mark.parametrize("option", ["region", "bounds", "streams", "equal", "band", "left"])
def test_a_select_query_has_conjunctions_in_place_of_region_bounds_and_streams(option: str) -> None:
    assert refused(select(**{option: 1})).code == "bad_option"


def test_a_conjunction_is_a_box_over_dimensions_and_then_attributes() -> None:
    found = accepted(select({"x": [None, 0]}, {"y": [10, 20], "kind": [5, None]}, where={"group": "g"}, ttl="1m"))

    assert found.kind is Kind.SELECT
    assert found.where == (("group", ('"g"',)),)
    assert [(region.lo, region.hi) for region in found.alternatives] == [
        ((-math.inf,) * 4, (0.0, math.inf, math.inf, math.inf)),
        ((-math.inf, 10.0, -math.inf, 5.0), (math.inf, 20.0, math.inf, math.inf)),
    ]


@pytest.mark.parametrize("interval", [[None, None], [None, 5], [None, 5, "(]"], [None, 5, "[]"]])
def test_an_interval_of_an_attribute_begins_at_a_number_so_that_no_number_is_in_none(interval: list[Any]) -> None:
    ((lo, hi),) = alternatives({"group": interval})

    assert lo[2] == -LARGEST
    assert lo[:2] == (-math.inf, -math.inf)
    assert lo[3] == -math.inf
    assert hi[2] in (math.inf, 5.0, math.nextafter(5.0, math.inf))


def test_the_region_of_a_select_query_is_a_box_around_all_conjunctions_over_the_dimensions() -> None:
    region = accepted(select({"x": [0, 1], "y": [5, 6]}, {"x": [7, 8], "y": [2, 3]}, {"x": [3, 4], "y": [3, 4]})).region

    assert region == Region((0.0, 2.0), (8.0, 6.0))
    assert accepted(select({"x": [0, 1]}, {"y": [0, 1]})).region == Region((-math.inf,) * 2, (math.inf,) * 2)


@pytest.mark.parametrize(
    ("ends", "lo", "hi"),
    [("[)", 0.0, 10.0), ("[]", 0.0, AFTER_10), ("(]", 5e-324, AFTER_10), ("()", 5e-324, 10.0)],
)
@pytest.mark.parametrize(("name", "place"), [("x", 0), ("group", 2)])
def test_a_third_element_says_which_ends_belong_to_an_interval(
    ends: str, lo: float, hi: float, name: str, place: int
) -> None:
    ((los, his),) = alternatives({name: [0, 10, ends]})

    assert (los[place], his[place]) == (lo, hi)


def test_an_interval_over_the_antimeridian_is_two_boxes() -> None:
    wrapped = alternatives({"lon": [170, -170], "lat": [0, 1]}, feed="globe")

    assert wrapped == [((-180.0, 0.0), (-170.0, 1.0)), ((170.0, 0.0), (180.0, 1.0))]
    assert alternatives({"lon": [170, -180]}, feed="globe") == [((170.0, -math.inf), (180.0, math.inf))]
    assert alternatives({"lon": [-180, 180]}, feed="globe") == [((-math.inf,) * 2, (math.inf,) * 2)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (select({"x": [0, 1]}, {"y": [0, 1]}), select({"y": [0, 1]}, {"x": [0, 1]})),
        (select({"x": [0, 1]}), select({"x": [0, 1]}, {"x": [0.0, 1, "[)"]})),
        (select({"x": [0, 1]}), select({"x": [0, 1], "y": [None, None]})),
        (select({"x": [0, 1, "[]"]}), select({"x": [0, math.nextafter(1, 2)]})),
        (select({"group": [None, 1]}), select({"group": [-LARGEST, 1]})),
    ],
)
def test_selections_that_mean_the_same_are_the_same_query(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert accepted(first) == accepted(second)


def test_an_interval_without_ends_on_an_attribute_asks_for_a_number_and_is_not_the_same_as_none() -> None:
    assert accepted(select({"x": [0, 1]})) != accepted(select({"x": [0, 1], "group": [None, None]}))


@pytest.mark.parametrize(
    ("value", "code", "part"),
    [
        (match(region=...), "missing_field", "'region' is missing, but a match query needs it"),
        (match(any=[]), "bad_option", "'any' does not apply to kind 'match'"),
        (match(regoin=1), "unknown_field", "'region'"),
        (match(region={"box": {"z": [0, 1]}}), "unknown_dimension", "'y'"),
        (select(feed=...), "missing_field", "'feed' is missing, but a select query needs it"),
        (select(any=...), "missing_field", "'any'"),
        (select(any=None), "missing_field", "'any'"),
        (select(anny=[]), "unknown_field", "Did you mean 'any'?"),
        (select(any={"x": [0, 1]}), "wrong_type", "'any' is {\"x\": [0, 1]}, but must be a list"),
        (select([0, 1]), "wrong_type", "'any[0]' is [0, 1], but must be an object"),
        (select({"x": 3}), "wrong_type", "'any[0].x' is 3, but must be a list"),
        (select({"x": None}), "wrong_type", "'any[0].x' is null"),
        (select({"x": ["0", 1]}), "wrong_type", "'any[0].x[0]' is \"0\", but must be a number, or null"),
        (select({"y": [0, True]}), "wrong_type", "'any[0].y[1]' is true"),
        (select({"x": [0, 1, 2]}), "wrong_type", "'any[0].x[2]' is 2, but must be a string"),
        (select({"x": [0, 1]}, {"x": [0, 1, "[["]}), "bad_option", "'any[1].x[2]' is \"[[\", but must be '[)', '[]'"),
        (select(any=[]), "bad_region", "'any' is [], but it holds at least one conjunction"),
        (select({"x": [0, 1]}, {}), "bad_region", "'any[1]' is {}, but it asks nothing"),
        (select({"x": [0]}), "bad_region", "'any[0].x' is [0], but an interval is [lo, hi] or"),
        (select({"x": [0, 1, "[)", 2]}), "bad_region", "an interval is [lo, hi] or"),
        (select({"x": [1, 0]}), "bad_region", "1.0 of 'x' is above upper border 0.0"),
        (select({"x": [1, 1]}), "bad_region", "No number of 'x' lies between"),
        (select({"x": [1, 1, "(]"]}), "bad_region", 'give it both ends, "[]", for a single point'),
        (select({"group": [1, 1, "()"]}), "bad_region", "No number of 'group'"),
        (select({"group": [10**400, None]}), "bad_region", "A border of 'group' is beyond the range"),
        (select({"group": [None, -LARGEST]}), "bad_region", "'group'"),
        (select({"lon": [181, None]}, feed="globe"), "bad_region", "not between -180 and 180 degrees"),
        (select(feed="vehicle"), "unknown_feed", "'vehicles'"),
        (select({"x": [1, 0]}, {"grup": [0, 1]}), "unknown_dimension", "no attribute \"grup\". Did you mean 'group'?"),
        (select({"z": [0, 1]}, feed="stocks"), "unknown_dimension", "'price'"),
        (select({"x": [1, 0]}, where={"z": 1}), "bad_region", "'x'"),
        (select(where={"grup": 1}), "bad_option", "Did you mean 'group'?"),
        (select(ttl="1h", expires_at=5), "bad_option", "both say when the query ends"),
        (select(ttl="0s"), "bad_duration", "above zero"),
        (select(expires_at="soon"), "bad_option", "'expires_at'"),
        (select(output_topic="mine"), "bad_option", "begin with 'bmq.'"),
    ],
)
def test_a_fault_is_refused_with_its_code_and_named(value: dict[str, Any], code: str, part: str) -> None:
    answer = refused(value)

    assert (answer.query_id, answer.code) == ("q1", code)
    assert part in answer.message


def test_one_point_is_an_interval_with_both_ends() -> None:
    ((lo, hi),) = alternatives({"x": [3, 3, "[]"]})

    assert lo[0] <= 3.0 < hi[0]


def test_an_edit_between_kinds_is_another_query() -> None:
    assert accepted(border()).kind is Kind.BORDER
    assert accepted(border()) != accepted(match())
