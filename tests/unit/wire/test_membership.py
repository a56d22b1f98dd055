"""The membership topic: one key a member, null when it has left."""

import dataclasses
import json

import numpy as np
import pytest

from bmq.records import Kind, Pattern, Reason, Sign
from bmq.wire.membership import render_membership
from bmq.wire.outgoing import MESSAGE_SCHEMA
from tests.crossings import FEED, Row, make_crossings, query

ENTERED = Row(query=query("q1", 18), stream="v7", value=(5.0, -0.25), event_time=1_000)
LEFT = dataclasses.replace(ENTERED, sign=Sign.LEFT, event_time=2_000)


def test_a_member_has_a_record_with_query_stream_value_and_since_when() -> None:
    messages = render_membership(make_crossings([ENTERED]), FEED, topic="bmq.membership")

    (key,), (value,) = messages.column("key").to_pylist(), messages.column("value").to_pylist()
    assert messages.schema == MESSAGE_SCHEMA
    assert messages.column("topic").to_pylist() == ["bmq.membership"]
    assert json.loads(key) == ["q1", "vehicles", "v7"]
    assert json.loads(value) == {
        "query_id": "q1",
        "query_version": 18,
        "feed": "vehicles",
        "stream_id": "v7",
        "since": 1_000,
        "value": {"x": 5.0, "y": -0.25},
    }


@pytest.mark.parametrize("reason", Reason)
def test_whatever_ends_a_membership_writes_null_under_the_same_key(reason: Reason) -> None:
    left = dataclasses.replace(LEFT, reason=reason)
    messages = render_membership(make_crossings([ENTERED, left]), FEED, topic="t")

    first, second = messages.column("key").to_pylist()
    assert first == second
    assert messages.column("value")[0].is_valid
    assert messages.column("value").to_pylist()[1] is None


def test_the_order_of_the_crossings_is_kept() -> None:
    rows = [LEFT, dataclasses.replace(ENTERED, stream="w"), ENTERED]
    messages = render_membership(make_crossings(rows), FEED, topic="t")

    assert [json.loads(key)[2] for key in messages.column("key").to_pylist()] == ["v7", "w", "v7"]
    assert [value is not None for value in messages.column("value").to_pylist()] == [False, True, True]


def test_passes_transitions_and_readings_inside_are_no_memberships() -> None:
    transition = query("t", 3, kind=Kind.TRANSITION, pattern=Pattern.IN_THEN_OUT, within_ms=5)
    rows = [
        dataclasses.replace(ENTERED, visit=1),
        dataclasses.replace(ENTERED, query=transition, sign=Sign.NONE, began=500),
        dataclasses.replace(ENTERED, query=query("m", 3, kind=Kind.MATCH), sign=Sign.NONE),
        ENTERED,
    ]

    messages = render_membership(make_crossings(rows), FEED, topic="t")
    assert len(messages) == 1
    assert messages.column("value")[0].is_valid


def test_a_batch_without_memberships_has_no_messages() -> None:
    passes = dataclasses.replace(make_crossings([ENTERED]), passes=np.array([1], dtype=np.int32))

    for crossings in (make_crossings([]), passes):
        messages = render_membership(crossings, FEED, topic="t")
        assert (messages.num_rows, messages.schema) == (0, MESSAGE_SCHEMA)


@pytest.mark.parametrize("strange", ['a"', "b\\", "c\n", "\x00d", "é\u2028\x7f"])
def test_strange_ids_stay_valid_json(strange: str) -> None:
    feed = dataclasses.replace(FEED, name=strange)
    row = dataclasses.replace(ENTERED, query=query(strange), stream=strange)
    messages = render_membership(make_crossings([row]), feed, topic="t")

    assert json.loads(messages.column("key").to_pylist()[0]) == [strange, strange, strange]
    assert json.loads(messages.column("value").to_pylist()[0])["stream_id"] == strange
