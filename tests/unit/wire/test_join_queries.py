"""Definitions of joins: what they become, and how each fault is refused."""

import math
from typing import Any

import pytest

from bmq.errors import ControlError
from bmq.records import Band, Conjunction, Installation, JoinQuery, JoinSide, Kind, Region
from bmq.wire.control import validate_definition
from tests.definitions import FEEDS, accepted_join, band_join, refused, window_join

INF = math.inf
ANY_LEFT = Region((-INF,) * 4, (INF,) * 4)  # price, size, group, qty
ANY_RIGHT = Region((-INF,) * 2, (INF,) * 2)  # price, group


def conjunctions(*asked: Any, **fields: Any) -> tuple[Conjunction, ...]:
    return accepted_join(window_join(*asked, **fields)).alternatives


def test_a_band_join_is_one_band_of_a_dimension_of_each_side() -> None:
    assert accepted_join(band_join()) == JoinQuery(
        "q1",
        18,
        Kind.BAND_JOIN,
        JoinSide("left"),
        JoinSide("right"),
        (Conjunction(ANY_LEFT, ANY_RIGHT, (Band(0, 0, -1.0, 1.0),)),),
    )
    (size,) = accepted_join(band_join(on={"left": "size", "right": "price"})).alternatives
    assert size.bands == (Band(1, 0, -1.0, 1.0),)


@pytest.mark.parametrize(
    ("band", "lo", "hi"), [([0, 0], 0, 0), ([None, 2], -INF, 2), ([-2, None], -2, INF), ([None, None], -INF, INF)]
)
def test_a_band_has_both_its_ends_and_null_is_unbounded(band: list[Any], lo: float, hi: float) -> None:
    (alternative,) = accepted_join(band_join(band=band)).alternatives

    assert (alternative.bands[0].lo, alternative.bands[0].hi) == (lo, hi)


@pytest.mark.parametrize("make", [band_join, window_join])
def test_every_option_of_a_join_reaches_the_query(make: Any) -> None:
    query = accepted_join(
        make(
            where={"right.group": ["b", 1], "left.qty": 2, "left.group": None},
            equal={"left": "group", "right": "@key"},
            ttl="2h",
            enabled=False,
            output_topic="bmq.mine",
            tags={"b": 1, "a": True},
        )
    )

    assert (query.left.where, query.right.where) == (
        (("group", ("null",)), ("qty", ("2.0",))),
        (("group", ('"b"', "1.0")),),
    )
    assert (query.left.equal, query.right.equal) == ("group", "@key")
    assert (query.ttl_ms, query.enabled, query.output_topic) == (7_200_000, False, "bmq.mine")
    assert query.tags == '{"a":true,"b":1}'


@pytest.mark.parametrize(
    ("field", "of"), [("id", "what names streams"), ("size", "a dimension"), ("qty", "an attribute")]
)
def test_values_are_compared_of_what_names_streams_a_dimension_or_an_attribute(field: str, of: str) -> None:
    assert accepted_join(band_join(equal={"left": field, "right": "price"})).left.equal == field, of


def test_a_band_join_may_report_queries() -> None:
    assert not accepted_join(band_join(report="pairs")).reports_queries
    assert accepted_join(band_join(report="queries")).reports_queries


def test_a_window_is_a_time_or_a_number_of_readings() -> None:
    query = accepted_join(window_join())

    assert (query.kind, query.left, query.right) == (
        Kind.WINDOW_JOIN,
        JoinSide("left", window_ms=10_000),
        JoinSide("right", window_count=1000),
    )
    assert accepted_join(window_join(left={"feed": "left", "window": "0s"})).left.window_ms == 0


def test_a_conjunction_has_bands_and_a_box_for_each_side() -> None:
    (found,) = conjunctions(
        {
            "band": [["left.size", "right.group", None, 5], ["left.price", "right.price", -1, 1]],
            "left.qty": [3, None],
            "right.price": [0, 10],
        }
    )

    assert found == Conjunction(
        Region((-INF, -INF, -INF, 3.0), (INF,) * 4),
        Region((0.0, -INF), (10.0, INF)),
        (Band(0, 0, -1.0, 1.0), Band(1, 1, -INF, 5.0)),
    )


@pytest.mark.parametrize(
    ("ends", "lo", "hi"),
    [
        ("[]", -1.0, 1.0),
        ("[)", -1.0, math.nextafter(1.0, 0.0)),
        ("(]", math.nextafter(-1.0, 0.0), 1.0),
        ("()", math.nextafter(-1.0, 0.0), math.nextafter(1.0, 0.0)),
    ],
)
def test_a_fifth_element_says_which_ends_belong_to_a_band(ends: str, lo: float, hi: float) -> None:
    (found,) = conjunctions({"band": [["left.price", "right.price", -1, 1, ends]]})

    assert found.bands == (Band(0, 0, lo, hi),)


def test_a_conjunction_without_a_band_pairs_what_is_in_both_boxes() -> None:
    (found,) = conjunctions({"left.price": [0, 1, "[]"], "band": None})

    assert (found.bands, found.left.hi[0]) == ((), math.nextafter(1.0, 2.0))


def test_a_longitude_over_the_antimeridian_makes_two_conjunctions() -> None:
    found = conjunctions({"left.lon": [170, -170]}, left={"feed": "globe", "window": 1})

    assert [(one.left.lo[0], one.left.hi[0]) for one in found] == [(-180.0, -170.0), (170.0, 180.0)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            window_join({"left.price": [0, 1]}, {"right.price": [0, 1]}),
            window_join({"right.price": [0, 1]}, {"left.price": [0, 1]}, {"left.price": [0.0, 1.0]}),
        ),
        (
            window_join({"band": [["left.price", "right.price", 0, 1], ["left.size", "right.price", 0, 1]]}),
            window_join({"band": [["left.size", "right.price", 0, 1], ["left.price", "right.price", 0, 1, "[]"]]}),
        ),
        (window_join(left={"feed": "left", "window": "60s"}), window_join(left={"feed": "left", "window": "1m"})),
        (band_join(report=None, equal=None, where=None), band_join()),
        (band_join(where={"left.group": ["a", "b"]}), band_join(where={"left.group": ["b", "a", "a"]})),
    ],
)
def test_joins_that_mean_the_same_are_the_same_query(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert accepted_join(first) == accepted_join(second)


@pytest.mark.parametrize("make", [band_join, window_join])
@pytest.mark.parametrize("option", ["feed", "region", "bounds", "streams", "initial", "stream_ttl", "pattern"])
def test_options_of_one_feed_do_not_apply_to_joins(make: Any, option: str) -> None:
    answer = refused(make(**{option: "x"}))

    assert (answer.code, answer.message) == (
        "bad_option",
        f"Field '{option}' does not apply to kind '{make()['kind']}'. Leave it out.",
    )


@pytest.mark.parametrize(
    ("value", "code", "part"),
    [
        (band_join(left=...), "missing_field", "'left' is missing, but a band_join query needs it"),
        (band_join(on=...), "missing_field", "'on'"),
        (band_join(on={"left": "price"}), "missing_field", "'on.right' is missing, but 'on' needs it"),
        (band_join(band=None), "missing_field", "'band'"),
        (
            band_join(on={"left": "price", "rigt": "price"}),
            "unknown_field",
            "'on.rigt' is not known. Did you mean 'right'?",
        ),
        (band_join(equal={"l": "a"}), "unknown_field", "'equal.l' is not known. Known here: 'left', 'right'."),
        (band_join(bnad=1), "unknown_field", "'band'"),
        (band_join(any=[]), "bad_option", "'any' does not apply to kind 'band_join'"),
        (band_join(left={"feed": "left"}), "wrong_type", '\'left\' is {"feed": "left"}, but must be a string'),
        (band_join(on="price"), "wrong_type", "'on' is \"price\", but must be an object"),
        (band_join(on={"left": 1, "right": "price"}), "wrong_type", "'on.left' is 1"),
        (band_join(band=3), "wrong_type", "'band' is 3, but must be a list"),
        (band_join(band=["a", 1]), "wrong_type", "'band[0]' is \"a\", but must be a number, or null"),
        (band_join(report=3), "wrong_type", "'report' is 3"),
        (band_join(report="all"), "bad_option", "'pairs' or 'queries'"),
        (band_join(band=[1]), "bad_region", "'band' is [1], but an interval is [lo, hi]"),
        (band_join(band=[-1, 1, "[]"]), "bad_region", "an interval is [lo, hi]"),
        (band_join(band=[1, -1]), "bad_region", "holds no difference between 1.0 and -1.0"),
        (band_join(band=[10**400, None]), "bad_region", "beyond the range"),
        (band_join(right="left"), "bad_option", 'are both feed "left", but a join is of two feeds'),
        (band_join(right="rigt"), "unknown_feed", "'right'"),
        (band_join(left="lft", right="rigt"), "unknown_feed", "'left'"),
        (
            band_join(on={"left": "price", "right": "size"}),
            "unknown_dimension",
            "'on.right' is \"size\", but feed 'right'",
        ),
        (band_join(on={"left": "qty", "right": "price"}), "unknown_dimension", "'on.left' is \"qty\""),
        (band_join(left="stocks"), "bad_option", "join = true under [feeds.stocks]"),
        (band_join(where={"group": 1}), "bad_option", 'Write "left.group" or "right.group"'),
        (band_join(where={"left.grop": 1}), "bad_option", "names \"grop\", but feed 'left' declares no such attribute"),
        (band_join(where={"left.group": []}), "bad_option", "'where.left.group' is [], which no reading fits"),
        (
            band_join(equal={"left": "symbol", "right": "@key"}),
            "bad_option",
            "'equal' names \"symbol\", but feed 'left'",
        ),
        (band_join(equal={"left": "id", "right": "id"}), "bad_option", "feed 'right' has no such field"),
        (band_join(ttl="1h", expires_at=5), "bad_option", "both say when the query ends"),
        (band_join(expires_at="soon"), "bad_option", "'expires_at'"),
        (band_join(output_topic="bmq.vehicles"), "bad_option", "the service itself uses"),
        (band_join(tags={"a": "x" * 20_000}), "bad_option", "16384 are the most"),
        (window_join(left="left"), "wrong_type", "'left' is \"left\", but must be an object"),
        (window_join(left={"feed": "left"}), "missing_field", "'left.window' is missing, but 'left' needs it"),
        (
            window_join(left={"fed": "left", "window": 3}),
            "unknown_field",
            "'left.fed' is not known. Did you mean 'feed'?",
        ),
        (window_join(left={"feed": "left", "window": None}), "wrong_type", "'left.window' is null, but a window is a"),
        (window_join(left={"feed": "left", "window": True}), "wrong_type", "'left.window' is true"),
        (window_join(left={"feed": "left", "window": 1.5}), "wrong_type", "'left.window' is 1.5"),
        (
            window_join(left={"feed": "left", "window": "10"}),
            "bad_duration",
            "'left.window' is \"10\", but a duration is",
        ),
        (window_join(left={"feed": "left", "window": 0}), "bad_option", "'left.window' is 0, but a window holds 1 to"),
        (window_join(left={"feed": "left", "window": 2**31}), "over_limit", "'left.window' has 2147483648 readings"),
        (window_join(left={"feed": "right", "window": 3}), "bad_option", "two feeds"),
        (window_join(left={"feed": "stocks", "window": 3}, any=[{"left.price": [0, 1]}]), "bad_option", "join = true"),
        (window_join(any=[]), "bad_region", "'any' is [], but it holds at least one conjunction"),
        (window_join({}), "bad_region", "'any[0]' is {}, but a conjunction asks something"),
        (window_join({"band": None}), "bad_region", "a conjunction asks something"),
        (window_join({"band": []}), "bad_region", "'any[0].band' is [], but it asks nothing"),
        (window_join({"bnd": []}), "unknown_field", "'any[0].bnd' is not known. Did you mean 'band'?"),
        (window_join({"price": [0, 1]}), "unknown_field", "Known here: 'band', 'left.price', 'right.price'."),
        (window_join({"rigth.price": [0, 1]}), "unknown_field", "Did you mean 'right.price'?"),
        (window_join(3), "wrong_type", "'any[0]' is 3, but must be an object"),
        (window_join({"band": 3}), "wrong_type", "'any[0].band' is 3"),
        (window_join({"band": [3]}), "wrong_type", "'any[0].band[0]' is 3, but must be a list"),
        (
            window_join({"band": [[1, "right.price", 0, 1]]}),
            "wrong_type",
            "'any[0].band[0][0]' is 1, but must be a string",
        ),
        (window_join({"band": [["left.price", "right.price", "a", 1]]}), "wrong_type", "'any[0].band[0][2]' is \"a\""),
        (window_join({"band": [["left.price", "right.price"]]}), "bad_region", "a band is"),
        (
            window_join({"band": [["left.price", "right.price", 0, 1, "["]]}),
            "bad_option",
            "'any[0].band[0][4]' is \"[\"",
        ),
        (window_join({"band": [["left.price", "right.price", 1, 0]]}), "bad_region", "'any[0].band[0]' holds no"),
        (window_join({"band": [["left.price", "right.price", 1, 1, "[)"]]}), "bad_region", "with bounds [)"),
        (
            window_join({"band": [["price", "right.price", 0, 1]]}),
            "unknown_dimension",
            "'any[0].band[0][0]' is \"price\", but feed 'left' has no such field there. Known here: 'left.",
        ),
        (window_join({"band": [["right.price", "left.price", 0, 1]]}), "unknown_dimension", "'left.price'"),
        (window_join({"band": [["left.price", "right.size", 0, 1]]}), "unknown_dimension", "'right.price'"),
        (window_join({"left.pric": [0, 1]}), "unknown_dimension", "Feed 'left' has no dimension and no attribute"),
        (window_join({"right.price": [1, 0]}), "bad_region", "1.0 of 'price' is above"),
        (window_join({"right.price": [0, 1], "left.id": [0, 1]}), "unknown_dimension", '"id"'),
    ],
)
def test_a_fault_is_refused_with_its_code_and_named(value: dict[str, Any], code: str, part: str) -> None:
    answer = refused(value)

    assert (answer.query_id, answer.code) == ("q1", code)
    assert part in answer.message


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (band_join(kind="bandjoin", bnad=1), "unknown_kind"),
        (band_join(on={"lft": 1}, band=...), "unknown_field"),
        (band_join(region={}, band=...), "bad_option"),
        (band_join(band=..., on=3), "wrong_type"),
        (band_join(bnad=1, on=3), "wrong_type"),
        (band_join(on=3, ttl="2"), "wrong_type"),
        (window_join({}, ttl="2"), "bad_duration"),
        (window_join({}, left={"feed": "right", "window": 1}), "bad_region"),
        (band_join(left="right", right="right"), "bad_option"),
        (band_join(right="nope", on={"left": "z", "right": "z"}), "unknown_feed"),
        (band_join(on={"left": "z", "right": "price"}, band=[1, 0]), "unknown_dimension"),
        (band_join(left="stocks", band=[1, 0]), "bad_region"),
        (band_join(where={"a": 1}, output_topic="mine"), "bad_option"),
    ],
)
def test_of_several_faults_the_first_in_the_documented_order_is_shown(definition: dict[str, Any], code: str) -> None:
    assert refused(definition).code == code


def test_a_client_can_validate_a_join_before_it_publishes() -> None:
    query = validate_definition("q1", band_join(), Installation(FEEDS, "bmq."))

    assert (query.query_id, query.version, query.kind) == ("q1", 0, Kind.BAND_JOIN)
    with pytest.raises(ControlError, match="join = true"):
        validate_definition("q1", band_join(left="stocks"), Installation(FEEDS, "bmq."))
