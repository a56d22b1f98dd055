"""Events as CloudEvents, read by the SDK of CloudEvents."""

import json
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event

from bmq.client.messages import read_event
from bmq.config.sections import TopicsSection
from bmq.records import NEVER, Feed, Kind, Pattern, Sign
from bmq.wire.cloud_events import CloudEvents
from bmq.wire.event_messages import render_crossings
from bmq.wire.join_event_messages import render_pairs
from bmq.wire.large_messages import as_dead_letters
from bmq.wire.outgoing import MESSAGE_SCHEMA, divert
from tests.crossings import FEED, Row, make_crossings, query, read_headers, read_values
from tests.joined_pairs import PairRow, join_query, make_pairs

pytestmark = pytest.mark.unit

Mode = Literal["binary", "structured"]
Layout = Literal["crossing", "reading"]
MODES: list[Mode] = ["binary", "structured"]
SOURCE = "https://example.com/bmq?site=berlin"
TRANSITION = query("t", kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT, within_ms=5)
ROWS = [
    Row(),
    Row(sign=Sign.LEFT, event_time=1_700_000_000_250, previous=(1, (2.0, 3.0))),
    Row(stream='"\\\n\u2028', query=query('q"'), event_time=-62_135_596_800_000),
    Row(query=TRANSITION, sign=Sign.NONE, event_time=253_402_300_799_999, began=5),
    Row(query=query(kind=Kind.MATCH), sign=Sign.NONE),
]
FEEDS = {name: Feed(name, name, "id", ("price",), join=True) for name in ("left", "right")}
PAIRS = [
    PairRow(join_query("p")),
    PairRow(join_query("w", Kind.WINDOW_JOIN), sign=Sign.NONE),
    PairRow(join_query("r", reports_queries=True), sign=Sign.NONE, left_time=NEVER),
]


def crossings(mode: Mode | None, layout: Layout = "crossing") -> pa.RecordBatch:
    envelope = None if mode is None else CloudEvents(mode, SOURCE)
    return render_crossings(make_crossings(ROWS), FEED, topic="t", layout=layout, envelope=envelope)


def pairs(mode: Mode | None) -> pa.RecordBatch:
    envelope = None if mode is None else CloudEvents(mode, SOURCE)
    return render_pairs(make_pairs(PAIRS), FEEDS, topic="t", envelope=envelope)


def read(messages: pa.RecordBatch) -> list[BaseCloudEvent]:
    """Return what the SDK makes of the messages."""
    columns = zip(
        read_headers(messages), messages.column("key").to_pylist(), messages.column("value").to_pylist(), strict=True
    )
    return [from_kafka_event(KafkaMessage(headers, key, value)) for headers, key, value in columns]


def moment(event_time: int) -> datetime:
    return datetime.fromtimestamp(event_time // 1000, UTC).replace(microsecond=event_time % 1000 * 1000)


def require_same(events: list[BaseCloudEvent], plain: list[dict[str, Any]]) -> None:
    """Require that each CloudEvent has the attributes and the data of the event without an envelope."""
    for found, event in zip(events, plain, strict=True):
        assert found.get_specversion() == "1.0"
        assert found.get_id() == event["event_id"]
        assert found.get_source() == SOURCE
        assert found.get_type() == f"bmq.{event['kind']}"
        assert found.get_time() == moment(event["event_time"])
        assert found.get_datacontenttype() == "application/json"
        assert found.get_data() == event


@pytest.mark.parametrize("layout", ["crossing", "reading"])
@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_reads_events_of_regions(mode: Mode, layout: Layout) -> None:
    require_same(read(crossings(mode, layout)), read_values(crossings(None, layout)))


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_reads_events_of_joins(mode: Mode) -> None:
    require_same(read(pairs(mode)), read_values(pairs(None)))


def test_the_time_is_written_as_rfc_3339_asks() -> None:
    # The SDK also reads other forms, such as a space before the time of the day.
    times = {headers["ce_time"].decode() for headers in read_headers(crossings("binary"))}
    assert {"2023-11-14T22:13:20.250Z", "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"} <= times


@pytest.mark.parametrize("mode", MODES)
def test_topics_keys_and_the_usual_headers_stay(mode: Mode) -> None:
    plain, found = crossings(None), crossings(mode)
    assert found.schema == MESSAGE_SCHEMA
    assert found.select(["topic", "key"]).equals(plain.select(["topic", "key"]))
    for before, after in zip(read_headers(plain), read_headers(found), strict=True):
        assert list(after.items())[: len(before)] == list(before.items())


def test_the_value_of_the_binary_mode_is_the_event_itself() -> None:
    assert crossings("binary").column("value").equals(crossings(None).column("value"))
    assert {headers["content-type"] for headers in read_headers(crossings("binary"))} == {b"application/json"}


def test_the_structured_mode_is_named_by_its_content_type() -> None:
    headers = read_headers(crossings("structured"))
    assert {one["content-type"] for one in headers} == {b"application/cloudevents+json"}
    assert not [name for one in headers for name in one if name.startswith("ce_")]


@pytest.mark.parametrize("mode", MODES)
def test_a_diverted_event_is_still_a_cloud_event(mode: Mode) -> None:
    (diverted,) = divert(crossings(mode), {"t": "no such topic"}, "events")
    require_same(read(diverted), read_values(crossings(None)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("render", [crossings, pairs])
def test_the_client_reads_both_modes(mode: Mode, render: Any) -> None:
    values = [batch.column("value").to_pylist() for batch in (render(mode), render(None))]
    found, plain = ([read_event(value) for value in column] for column in values)
    assert found == plain
    assert None not in plain


def test_a_cloud_event_in_a_cloud_event_is_no_event() -> None:
    inner = crossings("structured").column("value")[0].as_py()
    assert read_event(inner) is not None
    assert read_event(b'{"specversion":"1.0","data":%s}' % inner) is None


@pytest.mark.parametrize("value", [b'{"specversion":"1.0"}', b'{"specversion":"1.0","data":{"a":1}}', b'{"data":5}'])
def test_a_cloud_event_of_others_is_no_event(value: bytes) -> None:
    assert read_event(value) is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("render", "feed"), [(crossings, "vehicles"), (pairs, "left")])
def test_an_event_that_is_too_large_keeps_its_id_and_feed(mode: Mode, render: Any, feed: str) -> None:
    messages = render(mode).slice(0, 1)
    letters = as_dead_letters(messages, {"t": 10})
    assert letters.column("feed").to_pylist() == [feed]
    event_id = read_values(render(None))[0]["event_id"]
    assert f"event {event_id} has" in letters.column("message").to_pylist()[0]


@pytest.mark.parametrize("mode", MODES)
def test_no_events_are_no_messages(mode: Mode) -> None:
    empty = render_crossings(make_crossings([]), FEED, topic="t", envelope=CloudEvents(mode, SOURCE))
    assert (empty.num_rows, empty.schema) == (0, MESSAGE_SCHEMA)


@pytest.mark.parametrize(
    ("options", "envelope"),
    [
        ({}, None),
        ({"event_format": "cloudevents-binary"}, CloudEvents("binary", "/bmq")),
        ({"event_format": "cloudevents-structured", "event_source": "urn:x"}, CloudEvents("structured", "urn:x")),
    ],
)
def test_the_configuration_chooses_the_envelope(options: dict[str, str], envelope: CloudEvents | None) -> None:
    assert TopicsSection.model_validate(options).envelope() == envelope


@pytest.mark.parametrize("source", ["", "a b", 'a"b', "é", "a%b", "a\n"])
def test_a_source_that_is_no_uri_reference_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="a source is a URI reference"):
        TopicsSection(event_source=source)


def test_a_source_may_have_every_character_of_a_uri() -> None:
    source = "http://[::1]:80/a;b,c/%20?q='1'&r=(2)#f@g"
    envelope = TopicsSection(event_format="cloudevents-structured", event_source=source).envelope()
    value = render_crossings(make_crossings(ROWS), FEED, topic="t", envelope=envelope).column("value")[0].as_py()
    assert json.loads(value)["source"] == source
