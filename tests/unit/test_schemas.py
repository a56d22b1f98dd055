"""The JSON Schemas in docs/schemas: fresh, and true of what the service reads and writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from bmq.errors import ControlCode
from bmq.records import Reason, Reply, Sign, Status
from bmq.wire.events import render_crossings
from bmq.wire.replies import render_replies
from bmq.wire.schemas import file_text, schemas, write_schemas
from tests.crossings import FEED, Row, make_crossings, query, read_values

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"
BOX = {"box": {"x": [0, 10], "y": [None, 10]}}


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[name])


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
    tagged = query(tags='{"a":1,"b":true,"c":"x","d":0.5}')
    rows = [Row(query=q, sign=sign, reason=reason) for q in (query(), tagged) for sign in Sign for reason in Reason]
    rows += [Row(stream="v8", previous=(1, (1e-300, -0.0)))]
    events = read_values(render_crossings(make_crossings(rows), FEED, topic="t", layout=layout))  # type: ignore[arg-type]
    check = validator(f"{layout}-event.json")
    for event in events:
        check.validate(event)
        assert set(event) <= set(check.schema["properties"])


@pytest.mark.parametrize("status", Status)
def test_replies_of_every_status_are_as_their_schema_says(status: Status) -> None:
    fault = (ControlCode.BAD_REGION.value, "no") if status is Status.REJECTED else (None, None)
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
    ],
)
def test_a_good_definition_is_as_its_schema_says(definition: dict[str, Any]) -> None:
    validator(f"{definition['kind']}-definition.json").validate(definition)


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
    ],
)
def test_a_bad_definition_is_not(definition: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validator(f"{definition['kind']}-definition.json").validate(definition)
