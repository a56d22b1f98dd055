"""The JSON Schemas in docs/schemas: fresh, and true of what the service reads and writes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from bmq.errors import ControlCode
from bmq.records import NEVER, Feed, Kind, Pattern, Reason, Reply, Sign, Status
from bmq.wire.event_messages import render_crossings
from bmq.wire.join_event_messages import render_pairs
from bmq.wire.replies import render_replies
from bmq.wire.schemas import file_text, schemas, write_schemas
from tests.crossings import FEED, Row, make_crossings, query, read_values
from tests.joined_pairs import PairRow, join_query, make_pairs

FOLDER = Path(__file__).parents[3] / "docs" / "schemas"
BOX = {"box": {"x": [0, 10], "y": [None, 10]}}
TAGGED = '{"a":1,"b":true,"c":"x","d":0.5}'
SIGNS = (Sign.LEFT, Sign.ENTERED)
ON = {"left": "price", "right": "price"}
BAND_JOIN = {"kind": "band_join", "left": "left", "right": "right", "on": ON, "band": [-1, None]}
SIDES = {"left": {"feed": "left", "window": "10s"}, "right": {"feed": "right", "window": 1000}}
BAND = ["left.price", "right.price", -1, 1]
WINDOW_JOIN = {"kind": "window_join", **SIDES, "any": [{"band": [BAND]}]}


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[name])


def properties(check: Draft202012Validator) -> set[str]:
    schema: Any = check.schema
    return set(schema["properties"])


def test_the_files_are_what_the_models_say() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    fresh = {name: file_text(schema) for name, schema in schemas().items()}
    assert files == fresh, "run: python -m bmq.wire.schemas"


def test_the_schemas_are_schemas(tmp_path: Path) -> None:
    write_schemas(tmp_path / "schemas")
    for path in (tmp_path / "schemas").iterdir():
        Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("layout", ["crossing", "reading"])
def test_events_of_every_reason_and_sign_are_as_their_schema_says(layout: str) -> None:
    tagged = query(tags=TAGGED)
    rows = [Row(query=q, sign=sign, reason=reason) for q in (query(), tagged) for sign in SIGNS for reason in Reason]
    rows += [Row(stream="v8", previous=(1, (1e-300, -0.0)))]
    events = read_values(render_crossings(make_crossings(rows), FEED, topic="t", layout=layout))  # type: ignore[arg-type]
    check = validator(f"{layout}-event.json")
    for event in events:
        check.validate(event)
        assert set(event) <= properties(check)


@pytest.mark.parametrize("layout", ["crossing", "reading"])
def test_events_without_a_sign_are_as_their_schema_says(layout: str) -> None:
    stay = query("t", kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=5, tags=TAGGED)
    rows = [Row(query=stay, sign=Sign.NONE, began=5)]
    rows += [Row(query=query(kind=kind, tags=TAGGED), sign=Sign.NONE) for kind in (Kind.MATCH, Kind.SELECT)]
    messages = render_crossings(make_crossings(rows), FEED, topic="t", layout=layout)  # type: ignore[arg-type]
    for name, event in zip(["transition", "level", "level"], read_values(messages), strict=True):
        check = validator(f"{name}-event.json")
        check.validate(event)
        assert set(event) <= properties(check)


def test_events_of_joins_are_as_their_schema_says() -> None:
    feeds = {name: Feed(name, name, "id", ("price",), join=True) for name in ("left", "right")}
    pairs = join_query("p", tags=TAGGED)
    queries = join_query("r", reports_queries=True)
    rows = [PairRow(pairs, sign=sign, reason=reason) for sign in SIGNS for reason in Reason]
    rows += [PairRow(queries, sign=Sign.NONE, left_time=NEVER), PairRow(queries, sign=Sign.NONE, right_time=NEVER)]
    rows += [PairRow(join_query("w", Kind.WINDOW_JOIN, tags=TAGGED), sign=Sign.NONE)]
    for event in read_values(render_pairs(make_pairs(rows), feeds, topic="t")):
        check = validator(f"{event['kind'].replace('_', '-')}-event.json")
        check.validate(event)
        assert set(event) <= properties(check)


def test_the_events_of_the_documents_are_as_their_schemas_say() -> None:
    text = (FOLDER.parent / "wire-format.md").read_text(encoding="utf-8")
    events = [json.loads(found) for found in re.findall(r"\{\"event_id\": .*?\}(?=\n(?!\s))", text, re.DOTALL)]
    names = {"border": "crossing", "match": "level", "select": "level"}

    kinds = set()
    for event in events:
        kinds.add(event["kind"])
        name = "reading" if "entered" in event else names.get(event["kind"], event["kind"].replace("_", "-"))
        validator(f"{name}-event.json").validate(event)
    assert kinds >= {"border", "transition", "match", "band_join"}


@pytest.mark.parametrize("status", Status)
def test_replies_of_every_status_are_as_their_schema_says(status: Status) -> None:
    fault = (ControlCode.BAD_REGION.value, "no") if status in {Status.REJECTED, Status.DEGRADED} else (None, None)
    reply = Reply("q", status, 17, *fault)
    (message,) = read_values(render_replies([reply], topic="t", batch=1, feed_offsets={"f": {"0": 5}}))
    validator("reply.json").validate(message)


@pytest.mark.parametrize(
    "definition",
    [
        {"kind": "border", "feed": "vehicles", "region": BOX},
        {"kind": "border", "feed": "vehicles", "region": BOX, "streams": ["a"], "bounds": "()"},
        {"kind": "border", "feed": "vehicles", "region": BOX, "initial": "silent", "output_topic": "bmq.a"},
        {"kind": "border", "feed": "vehicles", "region": BOX, "tags": {"a": 1, "b": True, "c": "x"}},
        {"kind": "border", "feed": "vehicles", "region": BOX, "where": {"group": "a", "kind": [1, None, True]}},
        {"kind": "border", "feed": "vehicles", "region": BOX, "stay_for": "0s", "cooldown": "3m", "max_events": 1},
        {"kind": "border", "feed": "vehicles", "region": BOX, "exit_region": BOX, "ttl": "2h", "enabled": False},
        {"kind": "border", "feed": "vehicles", "region": BOX, "passes": True, "expires_at": "2023-11-14T22:13:20Z"},
        {"kind": "border", "feed": "vehicles", "region": {"circle": {"center": [0, 1.5], "radius": 2}}},
        {"kind": "border", "feed": "vehicles", "region": {"polygon": [[0, 0], [1, 0], [0, 1]]}},
        {"kind": "border", "feed": "vehicles", "region": {"geojson": {"type": "Polygon", "coordinates": []}}},
        {"kind": "transition", "feed": "vehicles", "region": BOX, "pattern": "in_not_out", "within": "3m"},
        {"kind": "match", "feed": "vehicles", "region": BOX, "bounds": "()", "streams": ["a"], "ttl": "2h"},
        {"kind": "select", "feed": "vehicles", "any": [{"x": [None, 0]}, {"y": [0, 1, "(]"], "group": [1, None]}]},
        {"kind": "select", "feed": "vehicles", "any": [{"x": [0, 1]}], "where": {"group": "a"}, "enabled": False},
        BAND_JOIN,
        BAND_JOIN | {"report": "queries", "equal": ON, "where": {"left.group": ["a", None]}, "tags": {"a": 1}},
        WINDOW_JOIN,
        WINDOW_JOIN | {"any": [{"band": [[*BAND, "()"]], "left.x": [0, 1]}, {"right.y": [None, 1, "[]"]}]},
    ],
)
def test_a_good_definition_is_as_its_schema_says(definition: dict[str, Any]) -> None:
    validator(f"{definition['kind'].replace('_', '-')}-definition.json").validate(definition)


@pytest.mark.parametrize(
    "definition",
    [
        {"kind": "border", "feed": "vehicles"},
        {"kind": "border", "feed": "vehicles", "region": {"box": {}}},
        {"kind": "border", "feed": "vehicles", "region": {"box": {"x": [1]}}},
        {"kind": "border", "feed": "vehicles", "region": BOX, "regoin": 1},
        {"kind": "border", "feed": "vehicles", "region": BOX, "ttl": "2"},
        {"kind": "border", "feed": "vehicles", "region": BOX, "streams": []},
        {"kind": "border", "feed": "vehicles", "region": BOX, "output_topic": "a b"},
        {"kind": "border", "feed": "vehicles", "region": {}},
        {"kind": "border", "feed": "vehicles", "region": BOX | {"circle": {"center": [0, 0], "radius": 2}}},
        {"kind": "border", "feed": "vehicles", "region": BOX, "max_events": 0},
        {"kind": "border", "feed": "vehicles", "region": BOX, "where": {"group": []}},
        {"kind": "transition", "feed": "vehicles", "region": BOX, "pattern": "in_not_out"},
        {"kind": "transition", "feed": "vehicles", "region": BOX, "pattern": "in", "within": "3m"},
        {"kind": "transition", "feed": "vehicles", "region": BOX, "pattern": "in_not_out", "within": "3m", "ttl": 3},
        {"kind": "match", "feed": "vehicles"},
        {"kind": "match", "feed": "vehicles", "region": BOX, "initial": "silent"},
        {"kind": "select", "feed": "vehicles", "any": []},
        {"kind": "select", "feed": "vehicles", "any": [{}]},
        {"kind": "select", "feed": "vehicles", "any": [{"x": [0]}]},
        {"kind": "select", "feed": "vehicles", "any": [{"x": [0, 1, "<>"]}]},
        {"kind": "select", "feed": "vehicles", "any": [{"x": [0, 1]}], "streams": ["a"]},
        BAND_JOIN | {"band": [0]},
        BAND_JOIN | {"report": "all"},
        BAND_JOIN | {"on": {"left": "price"}},
        BAND_JOIN | {"on": ON | {"middle": "price"}},
        WINDOW_JOIN | {"left": "left"},
        WINDOW_JOIN | {"left": {"feed": "left", "window": 0}},
        WINDOW_JOIN | {"left": {"feed": "left", "window": "10"}},
        WINDOW_JOIN | {"any": [{}]},
        WINDOW_JOIN | {"any": [{"price": [0, 1]}]},
        WINDOW_JOIN | {"any": [{"band": [BAND[:3]]}]},
        WINDOW_JOIN | {"any": [{"band": [["price", *BAND[1:]]]}]},
    ],
)
def test_a_bad_definition_is_not(definition: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validator(f"{definition['kind'].replace('_', '-')}-definition.json").validate(definition)
