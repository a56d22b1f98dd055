"""docs/asyncapi.json: fresh, a document of AsyncAPI, and true of what the service reads and writes."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jsonschema import Draft7Validator, ValidationError

from bmq.config.asyncapi import document
from bmq.config.sections import TopicsSection
from bmq.records import NEVER, Feed, Kind, Pattern, Sign
from bmq.wire.dead_letters import render_dead_letters
from bmq.wire.draft7 import in_draft_7
from bmq.wire.event_messages import render_crossings
from bmq.wire.join_event_messages import render_pairs
from bmq.wire.marks import render_mark
from bmq.wire.membership import render_membership
from bmq.wire.outgoing import divert
from bmq.wire.schemas import file_text
from tests.crossings import FEED, Row, make_crossings, query, read_headers, read_values
from tests.joined_pairs import PairRow, join_query, make_pairs

pytestmark = pytest.mark.unit

FILE = Path(__file__).parents[3] / "docs" / "asyncapi.json"
PUBLISHED = Path(__file__).parent / "asyncapi_schema" / "asyncapi-3.0.0.json"
DOCUMENT = document()
TRANSITION = query("t", kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=5)
ROWS = [
    Row(previous=(1, (2.0, 3.0))),
    Row(query=TRANSITION, sign=Sign.NONE, began=5),
    Row(query=query(kind=Kind.MATCH), sign=Sign.NONE),
]


def check(part: str, name: str, instance: Any) -> None:
    """Validate headers or a payload with the schema that the document has for a message."""
    schema = DOCUMENT["components"]["messages"][name][part]
    Draft7Validator({"components": DOCUMENT["components"], "allOf": [schema]}).validate(instance)


def texts(headers: dict[str, bytes]) -> dict[str, str]:
    return {name: value.decode() for name, value in headers.items()}


def test_the_file_is_what_the_models_say() -> None:
    assert FILE.read_text(encoding="utf-8") == file_text(DOCUMENT), "run: make schemas"


def test_the_document_is_one_of_asyncapi() -> None:
    Draft7Validator(json.loads(PUBLISHED.read_text(encoding="utf-8"))).validate(DOCUMENT)


@pytest.mark.parametrize("broken", [{"asyncapi": "2.6.0"}, {"channels": {"x": {"adress": "t"}}}, {"info": {}}])
def test_a_document_that_is_none_is_found(broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Draft7Validator(json.loads(PUBLISHED.read_text(encoding="utf-8"))).validate(DOCUMENT | broken)


def test_every_reference_leads_to_a_part_of_the_document() -> None:
    def references(node: Any) -> list[str]:
        if isinstance(node, list):
            return [found for part in node for found in references(part)]
        if not isinstance(node, dict):
            return []
        return [node["$ref"]] if "$ref" in node else [found for part in node.values() for found in references(part)]

    found = references(DOCUMENT)
    assert found
    for reference in found:
        node: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]


def test_every_topic_of_the_configuration_has_a_channel_and_an_operation() -> None:
    not_topics = {"key", "layout", "allowed_output_prefix", "event_format", "event_source"}
    defaults = {name: field.default for name, field in TopicsSection.model_fields.items() if name not in not_topics}
    addresses = {channel["address"] for channel in DOCUMENT["channels"].values()}
    assert addresses == {topic or "bmq.membership" for topic in defaults.values()} | {"{topic}", "{output_topic}"}

    used = {operation["channel"]["$ref"].rpartition("/")[2] for operation in DOCUMENT["operations"].values()}
    assert set(DOCUMENT["channels"]) - used == {"markers"}, "nobody reads or writes a record of the markers"


@pytest.mark.parametrize(("layout", "crossing"), [("crossing", "crossingEvent"), ("reading", "readingEvent")])
def test_events_and_their_headers_are_as_the_document_says(layout: str, crossing: str) -> None:
    messages = render_crossings(make_crossings(ROWS), FEED, topic="t", layout=layout)  # type: ignore[arg-type]
    names = [crossing, "transitionEvent", "levelEvent"]
    (diverted,) = divert(messages, {"t": "no such topic"}, "events")
    for one in (messages, diverted):
        for name, event, headers in zip(names, read_values(one), read_headers(one), strict=True):
            check("payload", name, event)
            check("headers", name, texts(headers))
            assert set(headers) <= set(DOCUMENT["components"]["messages"][name]["headers"]["properties"])


def test_events_of_joins_are_as_the_document_says() -> None:
    feeds = {name: Feed(name, name, "id", ("price",), join=True) for name in ("left", "right")}
    window = join_query("w", Kind.WINDOW_JOIN)
    rows = [PairRow(join_query("p")), PairRow(window, sign=Sign.NONE)]
    rows += [PairRow(join_query("r", reports_queries=True), sign=Sign.NONE, left_time=NEVER)]
    messages = render_pairs(make_pairs(rows), feeds, topic="t")
    for event, headers in zip(read_values(messages), read_headers(messages), strict=True):
        name = {"band_join": "bandJoinEvent", "window_join": "windowJoinEvent"}[event["kind"]]
        check("payload", name, event)
        check("headers", name, texts(headers))


def test_members_are_as_the_document_says() -> None:
    left = Row(sign=Sign.LEFT)
    messages = render_membership(make_crossings([Row(), left]), FEED, topic="t")
    inside, gone = messages.column("value").to_pylist()
    assert gone is None
    member = json.loads(inside)
    for value in (member, gone):
        check("payload", "member", value)
    schema = DOCUMENT["components"]["messages"]["member"]["payload"]
    assert set(member) == set(schema["properties"]) == set(schema["required"])


@pytest.mark.parametrize("event_time", [None, 1_700_000_000_000])
def test_marks_are_as_the_document_says(event_time: int | None) -> None:
    check("payload", "mark", json.loads(render_mark("vehicles", event_time)))


def test_the_headers_of_dead_letters_are_as_the_document_says() -> None:
    row = {"key": b"k", "value": b"{", "topic": "t", "partition": 0, "offset": 1, "code": "not_json", "message": "no"}
    (headers,) = read_headers(render_dead_letters(pa.RecordBatch.from_pylist([row]), topic="t"))
    check("headers", "deadLetter", texts(headers))
    assert set(headers) == set(DOCUMENT["components"]["messages"]["deadLetter"]["headers"]["properties"])


@pytest.mark.parametrize(
    ("interval", "fits"),
    [([0, 1], True), ([None, 1, "(]"], True), ([0], False), ([0, 1, "<>"], False), ([0, 1, "()", 2], False)],
)
def test_tuples_keep_their_rule_in_draft_7(interval: list[Any], fits: bool) -> None:
    definition = {"kind": "select", "feed": "f", "any": [{"x": interval}]}
    if fits:
        check("payload", "selectDefinition", definition)
    else:
        with pytest.raises(ValidationError):
            check("payload", "selectDefinition", definition)


def test_two_definitions_of_one_name_are_refused() -> None:
    schemas = {name: {"$defs": {"Same": {"type": kind}}} for name, kind in (("a", "string"), ("b", "number"))}
    with pytest.raises(ValueError, match="'Same' of schema 'b'"):
        in_draft_7(schemas, "#/components/schemas/")
