"""The replies topic."""

import json

import pytest

from bmq.records import Reply, Status
from bmq.wire.outgoing import MESSAGE_SCHEMA
from bmq.wire.replies import render_replies

OFFSETS = {"vehicles": {"0": 10234, "1": 9987}}


@pytest.mark.parametrize("status", [Status.ACCEPTED, Status.UNCHANGED, Status.DELETED])
def test_a_reply_says_which_version_took_effect_and_where(status: Status) -> None:
    messages = render_replies([Reply("q1", status, 17)], topic="bmq.replies", batch=42, feed_offsets=OFFSETS)
    assert messages.schema == MESSAGE_SCHEMA
    (message,) = messages.to_pylist()
    assert (message["topic"], message["key"], message["headers"]) == ("bmq.replies", b"q1", [])
    assert json.loads(message["value"]) == {
        "query_id": "q1",
        "status": status.value,
        "version": 18,
        "control_offset": 17,
        "batch": 42,
        "feed_offsets": OFFSETS,
    }


def test_a_degraded_query_is_in_effect_and_says_what_is_wrong() -> None:
    reply = Reply("q1", Status.DEGRADED, 17, "bad_option", "output_topic 'x' cannot be made: …")
    (message,) = render_replies([reply], topic="t", batch=42, feed_offsets=OFFSETS).to_pylist()
    assert json.loads(message["value"]) == {
        "query_id": "q1",
        "status": "degraded",
        "version": 18,
        "control_offset": 17,
        "batch": 42,
        "feed_offsets": OFFSETS,
        "error": {"code": "bad_option", "message": "output_topic 'x' cannot be made: …"},
    }


def test_a_rejection_says_why_and_names_no_version() -> None:
    reply = Reply("q1", Status.REJECTED, 18, "bad_region", "Lower border 10.0 of 'x' is above …")
    (message,) = render_replies([reply], topic="t", batch=42, feed_offsets=OFFSETS).to_pylist()
    assert json.loads(message["value"]) == {
        "query_id": "q1",
        "status": "rejected",
        "control_offset": 18,
        "batch": 42,
        "error": {"code": "bad_region", "message": "Lower border 10.0 of 'x' is above …"},
    }


def test_replies_stay_in_the_order_of_the_commands() -> None:
    replies = [Reply(query_id, Status.ACCEPTED, offset) for offset, query_id in enumerate("bac")]
    messages = render_replies(replies, topic="t", batch=0, feed_offsets={})
    assert messages.column("key").to_pylist() == [b"b", b"a", b"c"]


def test_no_commands_give_no_messages() -> None:
    messages = render_replies([], topic="t", batch=0, feed_offsets={})
    assert (messages.num_rows, messages.schema) == (0, MESSAGE_SCHEMA)
