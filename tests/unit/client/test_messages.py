"""The reading side of replies and events agrees with what `wire` promises to write."""

import json

import pytest
from pydantic import BaseModel

from bmq.client.messages import Event, JoinEvent, Member, ReplyMessage, last_reply, read_event, read_member, read_reply
from bmq.errors import ControlCode
from bmq.records import Reply, Status
from bmq.wire.event_models import (
    BandJoinEvent,
    CrossingEvent,
    LevelEvent,
    ReadingEvent,
    TransitionEvent,
    WindowJoinEvent,
)
from bmq.wire.membership import render_membership
from bmq.wire.replies import EffectiveReply, RejectedReply, render_replies
from tests.crossings import FEED, Row, make_crossings

CROSSING = {
    "event_id": "0" * 32,
    "kind": "border",
    "query_id": "q",
    "query_version": 3,
    "feed": "plane",
    "stream_id": "v7",
    "sign": "+",
    "reason": "moved",
    "event_time": 1_700_000_000_000,
    "value": {"x": 5.0, "y": 0.1},
    "previous": {"event_time": 1_699_999_970_000, "value": {"x": 11.0, "y": 5.0}},
    "tags": {"shop": "17"},
}
READING = {
    "event_id": "0" * 32,
    "kind": "border",
    "feed": "plane",
    "stream_id": "v7",
    "reason": "moved",
    "event_time": 1_700_000_000_000,
    "value": {"x": 5.0, "y": 0.1},
    "entered": ["a", "b"],
    "left": ["z"],
}


JOIN = {
    "event_id": "0" * 32,
    "kind": "band_join",
    "query_id": "q",
    "query_version": 3,
    "sign": "+",
    "reason": "moved",
    "event_time": 1_700_000_000_000,
    "left": {"feed": "stocks", "stream_id": "a", "event_time": 1_699_999_970_000, "value": {"price": 10.0}},
    "right": {"feed": "quotes", "stream_id": "z", "event_time": 1_700_000_000_000, "value": {"price": 10.5}},
    "tags": {"shop": "17"},
}


def without(event: dict[str, object], *names: str) -> dict[str, object]:
    return {name: event[name] for name in event if name not in names}


def read_join(event: dict[str, object]) -> JoinEvent:
    read = read_event(json.dumps(event).encode())
    assert isinstance(read, JoinEvent)
    return read


@pytest.mark.parametrize("written", [EffectiveReply, RejectedReply])
def test_every_field_of_a_reply_can_be_read(written: type[BaseModel]) -> None:
    assert written.model_fields.keys() <= set(ReplyMessage.__struct_fields__)


@pytest.mark.parametrize("written", [CrossingEvent, ReadingEvent, TransitionEvent, LevelEvent])
def test_every_field_of_an_event_can_be_read(written: type[BaseModel]) -> None:
    names = {field.alias or name for name, field in written.model_fields.items()}
    assert names <= set(Event.__struct_encode_fields__)


@pytest.mark.parametrize("written", [BandJoinEvent, WindowJoinEvent])
def test_every_field_of_an_event_of_a_join_can_be_read(written: type[BaseModel]) -> None:
    assert written.model_fields.keys() <= set(JoinEvent.__struct_fields__)


def test_replies_are_read_as_they_were_written() -> None:
    replies = [
        Reply("a", Status.ACCEPTED, 17),
        Reply("b", Status.REJECTED, 18, ControlCode.BAD_REGION, "lo is not below hi"),
    ]
    batch = render_replies(replies, topic="replies", batch=42, feed_offsets={"plane": {"0": 10, "1": 9}})

    accepted, rejected = (read_reply(value) for value in batch.column("value").to_pylist())

    assert accepted is not None
    assert rejected is not None
    assert (accepted.status, accepted.version, accepted.batch) == ("accepted", 18, 42)
    assert accepted.feed_offsets == {"plane": {0: 10, 1: 9}}
    assert rejected.error is not None
    assert (rejected.error.code, rejected.error.message) == ("bad_region", "lo is not below hi")


def test_an_event_is_one_crossing_or_those_of_one_reading() -> None:
    crossing, reading = (read_event(json.dumps(event).encode()) for event in (CROSSING, READING))

    assert isinstance(crossing, Event)
    assert isinstance(reading, Event)
    assert crossing.crossings() == [("+", "q")]
    assert reading.crossings() == [("-", "z"), ("+", "a"), ("+", "b")]


def test_an_event_reads_as_a_sentence() -> None:
    event = read_event(json.dumps(CROSSING).encode())

    assert event is not None
    assert event.lines() == ["2023-11-14 22:13:20.000 v7 entered q at x=5, y=0.1 (moved) [shop: 17]"]


def test_a_confirmed_event_and_a_pass_say_so() -> None:
    confirmed = read_event(json.dumps(CROSSING | {"confirmed_time": 1_700_000_030_000}).encode())
    passed = read_event(json.dumps(CROSSING | {"pass": True, "tags": {}}).encode())

    assert confirmed is not None
    assert isinstance(passed, Event)
    assert confirmed.sentences() == ["v7 entered q at x=5, y=0.1 (moved, confirmed 2023-11-14 22:13:50.000) [shop: 17]"]
    assert passed.is_pass
    assert passed.sentences() == ["v7 entered q at x=5, y=0.1 (moved, on its way)"]


@pytest.mark.parametrize(
    ("pattern", "deed"),
    [
        ("in_then_out", "entered and soon left"),
        ("out_then_in", "left and soon entered"),
        ("in_not_out", "stayed in"),
        ("out_not_in", "stayed out of"),
        ("pattern_of_later", "pattern_of_later"),
    ],
)
def test_a_transition_is_no_crossing_and_reads_as_a_sentence(pattern: str, deed: str) -> None:
    written = {name: CROSSING[name] for name in CROSSING.keys() - {"sign", "reason", "previous", "tags"}}
    event = read_event(json.dumps(written | {"pattern": pattern, "began": 1_700_000_000_000 - 500}).encode())

    assert isinstance(event, Event)
    assert event.crossings() == []
    assert event.is_about("q")
    assert event.sentences() == [f"v7 {deed} q at x=5, y=0.1 (began 2023-11-14 22:13:19.500)"]


@pytest.mark.parametrize(("kind", "deed"), [("match", "is inside"), ("select", "satisfies")])
def test_a_reading_inside_is_no_crossing_and_reads_as_a_sentence(kind: str, deed: str) -> None:
    written = without(CROSSING, "sign", "reason", "previous") | {"kind": kind}
    event = read_event(json.dumps(written).encode())

    assert isinstance(event, Event)
    assert event.crossings() == []
    assert event.lines() == [f"2023-11-14 22:13:20.000 v7 {deed} q at x=5, y=0.1 [shop: 17]"]


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (JOIN, "a ~ z came into q at price=10 ~ price=10.5 (moved) [shop: 17]"),
        (JOIN | {"sign": "-", "tags": {}}, "a ~ z left q at price=10 ~ price=10.5 (moved)"),
        (without(JOIN, "sign", "right", "tags"), "a changed the answer of q at price=10 (moved)"),
        (without(JOIN, "sign", "left", "tags"), "z changed the answer of q at price=10.5 (moved)"),
        (without(JOIN, "sign", "reason", "tags"), "a ~ z satisfy q at price=10 ~ price=10.5"),
    ],
)
def test_an_event_of_a_join_reads_as_a_sentence(event: dict[str, object], sentence: str) -> None:
    assert read_join(event).lines() == [f"2023-11-14 22:13:20.000 {sentence}"]


def test_a_join_is_found_by_its_query_and_by_the_streams_of_either_side() -> None:
    event = read_join(JOIN)

    assert [event.is_about(query) for query in ("q", "a")] == [True, False]
    assert [event.is_of(stream) for stream in ("a", "z", "q", "stocks")] == [True, True, False, False]
    assert [read_join(without(JOIN, "left")).is_of(stream) for stream in ("a", "z")] == [False, True]


def test_an_event_about_a_stream_is_found_by_it() -> None:
    event = read_event(json.dumps(CROSSING).encode())

    assert event is not None
    assert [event.is_of(stream) for stream in ("v7", "q")] == [True, False]


def test_a_query_finds_its_events_in_both_layouts() -> None:
    crossing, reading = (read_event(json.dumps(event).encode()) for event in (CROSSING, READING))

    assert crossing is not None
    assert reading is not None
    assert [crossing.is_about(query) for query in ("q", "a")] == [True, False]
    assert [reading.is_about(query) for query in ("a", "b", "z", "q")] == [True, True, True, False]


def test_a_member_is_read_as_it_was_written() -> None:
    row = Row(stream="v7", value=(5.0, 0.25), event_time=1_700_000_000_000)
    (value,) = render_membership(make_crossings([row]), FEED, topic="t").column("value").to_pylist()

    member = read_member(value)

    assert member == Member(
        query_id="q1",
        query_version=18,
        feed="vehicles",
        stream_id="v7",
        since=1_700_000_000_000,
        value={"x": 5.0, "y": 0.25},
    )
    assert member.line() == "v7 since 2023-11-14 22:13:20.000, entered at x=5, y=0.25"


@pytest.mark.parametrize("added", [{"added_later": 1}, {"kind": "kind_of_later"}, {"reason": "reason_of_later"}])
def test_what_a_later_service_adds_does_not_stop_this_client(added: dict[str, object]) -> None:
    assert read_event(json.dumps(CROSSING | added).encode()) is not None
    assert read_event(json.dumps(JOIN | added).encode()) is not None


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"null", b"[]", b"{}", b"\xff", b'{"event_id": 1}', b'{"query_id": "\xff"}', b'{"a": ' + b"[" * 100_000),
        json.dumps(without(JOIN, "left", "right")).encode(),
    ],
)
def test_what_is_no_event_is_none(value: bytes) -> None:
    assert read_event(value) is None
    assert read_reply(value) is None
    assert read_member(value) is None


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([("accepted", 2), ("unchanged", 5), ("expired", 2)], ("expired", 5)),
        ([("accepted", 2), ("unchanged", 5), ("degraded", 2)], ("unchanged", 5)),
        ([("accepted", 2), ("rejected", 5), ("expired", 2)], ("rejected", 5)),
        ([("accepted", 7), ("accepted", 2)], ("accepted", 2)),  # the control topic was made anew
        ([("accepted", 2), ("expired", 2), ("accepted", 5)], ("accepted", 5)),
        ([("accepted", 2), ("degraded", 2)], ("degraded", 2)),
    ],
)
def test_the_last_reply_is_about_the_newest_definition_that_it_concerns(
    replies: list[tuple[str, int]], said: tuple[str, int]
) -> None:
    last: ReplyMessage | None = None
    for status, offset in replies:
        last = last_reply(last, ReplyMessage(query_id="q", status=status, control_offset=offset, version=offset + 1))

    assert last is not None
    assert (last.status, last.control_offset, last.version) == (*said, said[1] + 1)
