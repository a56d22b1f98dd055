"""The reading side of replies and events agrees with what `wire` promises to write."""

import json

import pytest
from pydantic import BaseModel

from bmq.answers import Event, ReplyMessage, read_event, read_reply
from bmq.errors import ControlCode
from bmq.records import Reply, Status
from bmq.wire.replies import EffectiveReply, RejectedReply, render_replies
from bmq.wire.schemas import CrossingEvent, ReadingEvent

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


@pytest.mark.parametrize("written", [EffectiveReply, RejectedReply])
def test_every_field_of_a_reply_can_be_read(written: type[BaseModel]) -> None:
    assert written.model_fields.keys() <= set(ReplyMessage.__struct_fields__)


@pytest.mark.parametrize("written", [CrossingEvent, ReadingEvent])
def test_every_field_of_an_event_can_be_read(written: type[BaseModel]) -> None:
    assert written.model_fields.keys() <= set(Event.__struct_fields__)


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

    assert crossing is not None
    assert reading is not None
    assert crossing.crossings() == [("+", "q")]
    assert reading.crossings() == [("-", "z"), ("+", "a"), ("+", "b")]


def test_an_event_reads_as_a_sentence() -> None:
    event = read_event(json.dumps(CROSSING).encode())

    assert event is not None
    assert event.lines() == ["2023-11-14 22:13:20.000 v7 entered q at x=5, y=0.1 (moved) [shop: 17]"]


@pytest.mark.parametrize("added", [{"added_later": 1}, {"kind": "kind_of_later"}, {"reason": "reason_of_later"}])
def test_what_a_later_service_adds_does_not_stop_this_client(added: dict[str, object]) -> None:
    assert read_event(json.dumps(CROSSING | added).encode()) is not None


@pytest.mark.parametrize("value", [b"", b"null", b"[]", b"{}", b"\xff", b'{"event_id": 1}'])
def test_what_is_no_event_is_none(value: bytes) -> None:
    assert read_event(value) is None
    assert read_reply(value) is None
