"""What a reader of a topic does with its records, in which order, and where it goes on."""

import json
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Message

from bmq.config import TopicsSection
from bmq.kafka_io.topic_reader import Start, first_offset
from bmq.records import Feed
from bmq.view.broker_watch import NAME, BrokerWatch
from bmq.view.followed_topics import MOST_OUTPUT_TOPICS, FollowedTopics
from bmq.view.live_state import LiveState, Seen
from bmq.view.topic_thread import Task, TopicThread
from tests.brokers import wait_until

NO_KAFKA = {"bootstrap.servers": "127.0.0.1:1"}
REFUSED = {**NO_KAFKA, "no.such.option": "1"}  # the Kafka client refuses it at once, so a thread waits for nothing
FEED = Feed("plane", "plane", "id", ("x", "y"))
TOPICS = TopicsSection(membership="bmq.membership", allowed_output_prefix="out.")


def record(offset: int, key: str = "", value: object = None, partition: int = 0) -> Message:
    content = None if value is None else json.dumps(value).encode()
    return Message(topic="t", partition=partition, offset=offset, key=key.encode(), value=content, timestamp=(1, 1))


def event(n: int, event_time: int) -> dict[str, Any]:
    fields = {"event_id": f"e{n}", "kind": "border", "feed": "plane", "stream_id": f"s{n}", "event_time": event_time}
    return fields | {"value": {"x": 1.0, "y": 1.0}, "query_id": "q", "sign": "+"}


def make_topics() -> tuple[FollowedTopics, LiveState]:
    state = LiveState({"plane": FEED}, members_of_events=False)
    return FollowedTopics(REFUSED, TOPICS, {"plane": FEED}, state), state


def troubles(state: LiveState) -> dict[str, str]:
    found: dict[str, str] = state.update_since(Seen(), with_counts=True)[0]["health"]["troubles"]
    return found


def test_an_event_that_fails_ends_nothing_and_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    topics, state = make_topics()
    thread = TopicThread(NO_KAFKA, Task("t", Start.END, 0, topics.apply_events), state.set_trouble, threading.Event())

    with caplog.at_level(logging.ERROR, "bmq"):
        thread.apply([record(4, value=event(1, 1)), record(5, value=event(2, 10**30)), record(6, value=event(3, 3))])
        thread.apply([record(7, value=event(4, 4))])

    update, _ = state.update_since(Seen(), with_counts=True)
    assert sorted(update["feeds"]["plane"]["born"].values()) == ["s1", "s3", "s4"]
    assert list(troubles(state)) == ["t, records"]
    assert "t[0]@5" in troubles(state)["t, records"]
    assert [one.getMessage() for one in caplog.records] == ["The record at t[0]@5 could not be shown."]


def test_a_batch_with_a_record_that_fails_is_applied_without_it() -> None:
    applied: set[int] = set()
    noted: dict[str, str | None] = {}

    def apply(messages: Sequence[Message]) -> None:
        for message in messages:
            if message.offset() == 5:
                raise OverflowError
            applied.add(message.offset() or 0)

    task = Task("t", Start.END, 0, apply, in_batches=True)
    thread = TopicThread(NO_KAFKA, task, noted.__setitem__, threading.Event())

    thread.apply([record(offset) for offset in (4, 5, 6)])

    assert (applied, list(noted)) == ({4, 6}, ["t, records"])


def test_a_reader_that_starts_again_goes_on_behind_the_last_record_of_each_partition() -> None:
    applied: list[int] = []

    def apply(messages: Sequence[Message]) -> None:
        applied.extend(message.offset() or 0 for message in messages)

    thread = TopicThread(NO_KAFKA, Task("t", Start.END, 0, apply), lambda *_: None, threading.Event())

    thread.apply([record(4), record(9, partition=1), record(7)])

    assert (applied, thread.next_offsets) == ([4, 9, 7], {0: 8, 1: 10})


@pytest.mark.parametrize(
    ("start", "known", "first"),
    [
        (Start.BEGINNING, None, 10),
        (Start.BEGINNING, 15, 15),
        (Start.BEGINNING, 5, 10),
        (Start.BEGINNING, 21, 10),
        (Start.END, None, 17),
        (Start.END, 12, 12),
        (Start.END, 20, 20),
        (Start.END, 99, 17),
    ],
)
def test_a_known_offset_goes_before_the_start_unless_kafka_has_it_no_more(
    start: Start, known: int | None, first: int
) -> None:
    assert first_offset(10, 20, start, 3, known) == first


def test_no_topic_about_queries_is_read_before_the_definitions() -> None:
    topics, _ = make_topics()
    try:
        topics.start()
        read = {thread.topic for thread in topics.threads}
        topics.start_others()
        then = {thread.topic for thread in topics.threads} - read
    finally:
        topics.stop()

    assert read == {TOPICS.control, TOPICS.dead_letter, "plane"}
    assert then == {TOPICS.replies, TOPICS.membership, TOPICS.events}


def test_keys_of_members_that_could_not_be_sent_are_no_members() -> None:
    topics, state = make_topics()
    for key in ('["q", "plane", "\\ud800"]', '["q", "plane"]', '["q", "plane", 1]', "[" * 5000):
        member = {"query_id": "q", "query_version": 1, "feed": "plane", "stream_id": "a", "since": 1, "value": {}}
        topics.apply_members([record(1, key, member)])
    topics.apply_commands([record(1, "q", {"kind": "border"})])

    details = state.details("q")

    assert details is not None
    assert details["n_members"] == 0


def put_output(topics: FollowedTopics, n: int, status: str | None) -> None:
    topics.apply_commands([record(n, f"q{n}", {"kind": "border", "output_topic": f"out.{n}"})])
    if status is not None:
        reply = {"query_id": f"q{n}", "status": status, "control_offset": n, "version": n + 1}
        topics.apply_replies([record(n, f"q{n}", reply)])


def test_the_output_topics_of_accepted_definitions_alone_are_read_and_those_beyond_the_most_are_named() -> None:
    topics, state = make_topics()
    try:
        put_output(topics, 0, None)  # its reply is older than the topic of replies
        put_output(topics, 1, "rejected")
        put_output(topics, 2, "accepted")
        before = {thread.topic for thread in topics.threads}
        topics.follow_outputs()
        at_start = {thread.topic for thread in topics.threads}
        put_output(topics, 3, None)
        put_output(topics, 4, "rejected")
        put_output(topics, 5, "accepted")
        later = {thread.topic for thread in topics.threads}
        for n in range(100, 100 + MOST_OUTPUT_TOPICS - 3):
            put_output(topics, n, "accepted")
        before_most = troubles(state).get("output topics")
        put_output(topics, 200, "accepted")
        names = {thread.topic for thread in topics.threads}
    finally:
        topics.stop()

    assert (before, at_start, later) == (set(), {"out.0", "out.2"}, {"out.0", "out.2", "out.5"})
    assert (len(names), before_most) == (MOST_OUTPUT_TOPICS, None)
    assert "out.200" in troubles(state)["output topics"]


def test_kafka_that_does_not_answer_is_a_trouble() -> None:
    noted: dict[str, str | None] = {}
    watch = BrokerWatch(NO_KAFKA, noted.__setitem__, answer_seconds=0.5)

    watch.start()
    wait_until(lambda: noted.get(NAME) is not None, "a trouble")
    watch.stop()

    assert "127.0.0.1:1" in str(noted[NAME])
