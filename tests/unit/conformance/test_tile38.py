"""Tile38: the commands of definitions and readings, what it cannot express, and the result in docs/conformance.md.

BMQ_TEST_TILE38 names a tile38-server; without one, the tests that need it are skipped.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from bmq.conformance.scenario import FEEDS, Json, parse
from bmq.conformance.tile38_adapter import Tile38Adapter
from bmq.conformance.tile38_commands import UNIT, Inexpressible, fence_words, set_words
from bmq.conformance.verdicts import Result, judge, load_scenarios

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
GIVEN = ROOT / "tests" / "scenarios" / "given.jsonl"
DOCUMENT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
SERVER = os.environ.get("BMQ_TEST_TILE38")
needs_server = pytest.mark.skipif(SERVER is None, reason="needs BMQ_TEST_TILE38=path of a tile38-server")

FENCE = ["FENCE", "DETECT", "enter,exit"]


def words(definition: Json) -> list[str]:
    return fence_words("q", {"kind": "border"} | definition, FEEDS)


def box(feed: str, **ends: list[float | None]) -> Json:
    return {"feed": feed, "region": {"box": ends}}


def bounds(*degrees: float) -> list[str]:
    return ["BOUNDS", *map(repr, degrees)]


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (box("globe", lon=[1, 2], lat=[0, 10]), bounds(0.0, 1.0, 9.999999999999998, 1.9999999999999998)),
        (box("globe", lon=[1, 2], lat=[0, 10]) | {"bounds": "[]"}, bounds(0.0, 1.0, 10.0, 2.0)),
        (
            box("globe", lon=[1, 2], lat=[3, 10]) | {"bounds": "(]"},
            bounds(3.0000000000000004, 1.0000000000000002, 10.0, 2.0),
        ),
        (box("globe", lon=[None, 2]) | {"bounds": "[]"}, bounds(-90.0, -180.0, 90.0, 2.0)),
        (box("line", x=[0, 16]) | {"bounds": "[]"}, bounds(-90.0, 0.0, 90.0, 16 * UNIT)),
        (box("line", x=[None, 0]), bounds(-90.0, -180.0, 90.0, -5e-324)),
        (box("plane", x=[0, 16], y=[-16, 8]) | {"bounds": "[]"}, bounds(-16 * UNIT, 0.0, 8 * UNIT, 16 * UNIT)),
        ({"feed": "globe", "region": {"circle": {"center": [10, 60], "radius": 5}}}, ["CIRCLE", "60.0", "10.0", "5"]),
    ],
)
def test_a_region_becomes_an_area_that_holds_the_same_numbers(definition: Json, expected: list[str]) -> None:
    assert words(definition) == ["SETCHAN", "q", "WITHIN", definition["feed"], *FENCE, *expected]


def test_a_third_dimension_is_a_condition_on_a_field() -> None:
    found = words(box("cube", x=[0, 1], z=[2, None]))
    assert found[4:8] == ["WHERE", "dim_z", "2.0", "+inf"]


def test_streams_attributes_and_tags_have_counterparts() -> None:
    found = words(box("line", x=[0, 10]) | {"streams": ["a*"], "where": {"group": ["g1", 5]}, "tags": {"shop": "17"}})
    assert found[:5] == ["SETCHAN", "q", "META", "shop", '"17"']
    assert found[7:13] == ["MATCH", "a\\*", "WHEREIN", "group", "2", "g1"]


def test_a_box_over_the_antimeridian_becomes_two() -> None:
    shape = json.loads(words(box("globe", lon=[170, -170], lat=[-10, 10]) | {"bounds": "[]"})[-1])
    west, east = ([min(ring)[0], max(ring)[0]] for (ring,) in shape["coordinates"])
    assert (west, east) == ([170.0, 180.0], [-180.0, -170.0])


def test_a_shape_of_the_plane_is_scaled_without_rounding() -> None:
    polygon = {"feed": "plane", "region": {"polygon": [[0, 0], [3, 0], [0, 7]]}}
    (ring,) = json.loads(words(polygon)[-1])["coordinates"]
    assert [[x / UNIT, y / UNIT] for x, y in ring] == [[0, 0], [3, 0], [0, 7], [0, 0]]


def test_a_selection_becomes_an_expression_over_fields() -> None:
    found = words({"kind": "select", "feed": "cube", "any": [{"x": [None, 0]}, {"y": [1, 2, "[]"], "z": [5, None]}]})
    assert found[4:8] == [
        "WHERE",
        "((dim_x <= -5e-324)) || ((dim_y >= 1.0 && dim_y <= 2.0) && (dim_z >= 5.0))",
        "FENCE",
        "DETECT",
    ]
    assert found[8] == "inside"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"x": 5}, ["FIELD", "dim_x", "5", "FIELD", "group", "0", "POINT", "0", repr(5 * UNIT)]),
        ({"x": 5, "group": "g"}, ["FIELD", "dim_x", "5", "FIELD", "group", "g", "POINT", "0", repr(5 * UNIT)]),
        ({}, ["FIELD", "group", "0", "POINT", "0"]),
        ({"x": "no"}, ["FIELD", "group", "0", "POINT", "0", "no"]),
    ],
)
def test_a_reading_becomes_a_point_with_its_time_as_a_field(fields: Json, expected: list[str]) -> None:
    value = json.dumps({"id": "a", "ts": 17} | fields).encode()
    assert set_words("line", value, FEEDS["line"]) == ["SET", "line", "a", "FIELD", "ts", "17", *expected]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"stay_for": "1s"}, "stay_for"),
        ({"ttl": "1s"}, "event time"),
        ({"enabled": False}, "paused"),
        ({"passes": True}, "cross"),
        ({"where": {"group": None}}, "not null"),
        ({"where": {"group": "5"}}, "text '5'"),
        ({"feed": "plane", "region": {}}, "no command has the form"),
        ({"region": {"polygon": [[0, 0], [1, 0], [0, 1]]}}, "no shape has another number"),
        ({"kind": "transition"}, "pattern"),
        ({"kind": "band_join"}, "ROAM"),
    ],
)
def test_an_option_without_a_counterpart_has_its_reason(option: Json, reason: str) -> None:
    assert words(box("line", x=[0, 10]) | {"stay_for": "0s", "passes": False, "enabled": True})
    with pytest.raises(Inexpressible, match=reason):
        words(box("line", x=[0, 10]) | option)


@pytest.mark.parametrize(
    "value", [b"{", b"[1]", b"7", b'{"id": "a"}', b'{"id": 5, "ts": 1}', b'{"id": "a", "ts": "now"}']
)
def test_a_record_that_no_command_can_say_has_a_reason(value: bytes) -> None:
    with pytest.raises(Inexpressible):
        set_words("line", value, FEEDS["line"])


def listed(heading: str) -> set[str]:
    """Return the scenarios in the table of a section of the document: the last cell of each row."""
    section = DOCUMENT.split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {name for _, names in rows[1:] for name in names.split("; ")}


def test_the_document_lists_what_tile38_cannot_express() -> None:
    adapter = Tile38Adapter(sys.executable)  # not started here
    cannot = {one.name for one in load_scenarios(GIVEN) if adapter.cannot(one)}
    assert listed("What Tile38 cannot express") == cannot


@needs_server
def test_the_document_lists_what_tile38_gets_wrong() -> None:
    found = list(judge(load_scenarios(GIVEN), Tile38Adapter(SERVER)))
    results = {result: {one.name for one in found if one.result is result} for result in Result}
    assert listed("What Tile38 gets wrong") == results[Result.WRONG]
    counts = [len(results[result]) for result in (Result.PASSED, Result.WRONG, Result.CANNOT)]
    assert "{} passed, {} wrong, {} cannot be expressed".format(*counts) in DOCUMENT


@needs_server
def test_a_server_keeps_its_channels_and_points_over_a_kill() -> None:
    steps = [
        {"put": {"q": {"kind": "border"} | box("line", x=[0, 10])}},
        {"feed": "line", "read": [["a", 1, 5]]},
        {"restart": "kill"},
        {"feed": "line", "read": [["a", 2, 20]]},
        {"expect": ["+q a@1 first_seen", "-q a@2 moved"]},
    ]
    (found,) = judge([parse(json.dumps({"name": "n", "rule": "r", "steps": steps}), "")], Tile38Adapter(SERVER))
    assert found.result is Result.PASSED, found.details
