"""`bmq.job.rendering`: where events go, and what replies say of it."""

from collections import Counter
from dataclasses import replace

import pytest

from bmq.engines.stage_result import StageResult
from bmq.job.counting import count
from bmq.job.outcome import ShardResult
from bmq.job.received import Frames
from bmq.job.rendering import Output
from bmq.job.replicas import Head
from bmq.job.writing import Written
from bmq.kafka_io.output_topics import NO_FAULTS, TopicFaults, TopicUse
from bmq.monitor.monitor import Monitor
from bmq.records import Command, Installation, Put, Reply, Status
from tests.crossings import FEED, Row, make_crossings, query, read_headers, read_values
from tests.golden.play import PLAN

FEEDS = {FEED.name: FEED}
OWNED = query("owned", 18, output_topic="own")
ACCEPTED = Reply("owned", Status.ACCEPTED, 17)
GONE = {"own": "gone"}
DEGRADED = Reply("owned", Status.DEGRADED, 17, "bad_option", "gone")


def output_of(
    *rows: Row, replies: tuple[Reply, ...] = (), commands: tuple[Command, ...] = (), shard: int = 0
) -> Output:
    """Return the output of a shard in batch 5."""
    plan = replace(PLAN, installation=Installation(FEEDS), start_offsets={}, membership_topic=None)
    crossings = [make_crossings(rows)] if rows else []
    result = ShardResult(StageResult(crossings=crossings, replies=list(replies)))
    return Output(plan, shard, 5, Head(), Frames(commands=list(commands)), result)


def test_events_for_a_missing_topic_go_to_the_events_topic_and_say_so() -> None:
    output = output_of(Row("a"), Row("a", query=OWNED), Row("b", query=OWNED), Row("b"))

    pieces = [piece for piece in output.render(TopicFaults(GONE, frozenset({"owned"})))]

    topics = [topic for piece in pieces for topic in piece.column("topic").to_pylist()]
    assert topics == ["events"] * 4 + ["replies"]
    meant = [headers.get("output_topic") for piece in pieces[:-1] for headers in read_headers(piece)]
    assert meant == [None, None, b"own", b"own"]
    (reply,) = read_values(pieces[-1])
    assert (reply["status"], reply["control_offset"], reply["batch"]) == ("degraded", 17, 5)


def test_events_go_to_topics_that_are_there() -> None:
    (piece,) = output_of(Row("a"), Row("a", query=OWNED)).render(NO_FAULTS)
    assert piece.column("topic").to_pylist() == ["events", "own"]


def test_only_topics_of_queries_with_events_or_commands_are_needed() -> None:
    in_events = query("e", output_topic=PLAN.events_topic)
    assert output_of(Row(), Row(query=in_events)).topic_use() == TopicUse(0, 5, frozenset(), {})

    output = output_of(Row(query=OWNED), shard=1)
    assert output.topic_use() == TopicUse(1, 5, frozenset(), {"own": frozenset({"owned"})})


def test_the_shard_that_answers_a_command_says_that_its_topic_is_missing() -> None:
    commands = (Put(17, OWNED), Put(18, query("plain", 19)))
    replies = (ACCEPTED, Reply("plain", Status.ACCEPTED, 18))
    first = output_of(Row(query=OWNED), replies=replies, commands=commands)
    second = output_of(Row(query=OWNED), replies=replies, commands=commands, shard=1)
    named = frozenset({"own"})

    assert first.topic_use() == TopicUse(0, 5, named, {"own": frozenset({"owned"})})
    assert second.topic_use() == TopicUse(1, 5, named, {"own": frozenset()})
    assert first.replies(TopicFaults(GONE, frozenset({"owned"}))) == [DEGRADED, replies[1]]
    assert second.replies(TopicFaults(GONE, frozenset())) == []


def test_a_put_that_changes_nothing_keeps_its_reply() -> None:
    unchanged = Reply("owned", Status.UNCHANGED, 30)
    output = output_of(replies=(unchanged,), commands=(Put(30, replace(OWNED, version=31)),))
    assert output.replies(TopicFaults(GONE, frozenset())) == [unchanged]


def test_a_put_that_changes_nothing_leaves_the_report_to_the_shard_with_events() -> None:
    unchanged = Reply("owned", Status.UNCHANGED, 30)
    commands = (Put(30, replace(OWNED, version=31)),)
    output = output_of(Row(query=OWNED), replies=(unchanged,), commands=commands, shard=1)
    assert output.topic_use().users == {"own": frozenset({"owned"})}


def test_a_query_that_ends_in_the_batch_of_its_put_keeps_the_reply_of_its_end() -> None:
    ended = Reply("owned", Status.EXPIRED, 17)
    output = output_of(Row(query=OWNED), replies=(ACCEPTED, ended), commands=(Put(17, OWNED),))
    assert output.replies(TopicFaults(GONE, frozenset({"owned"}))) == [DEGRADED, ended]


@pytest.mark.parametrize("status", [Status.EXPIRED, Status.DELETED])
def test_nobody_says_of_a_query_that_ends_that_it_is_in_effect(status: Status) -> None:
    for shard in (0, 1):
        output = output_of(Row(query=OWNED), replies=(Reply("owned", status, 17),), shard=shard)
        assert output.topic_use().users == {"own": frozenset()}
        assert Status.DEGRADED not in {reply.status for reply in output.replies(TopicFaults(GONE, frozenset()))}


def test_a_loss_that_another_shard_has_said_is_not_said_again() -> None:
    assert output_of(Row(query=OWNED)).replies(TopicFaults(GONE, frozenset())) == []


def test_degraded_replies_are_counted_by_the_shard_that_writes_them() -> None:
    faults = TopicFaults(GONE, frozenset({"owned"}))
    for output, expected in (
        (output_of(replies=(ACCEPTED,), commands=(Put(17, OWNED),)), {"degraded": 1}),
        (output_of(Row(query=OWNED), shard=1), {"degraded": 1}),
        (output_of(Row(), replies=(ACCEPTED,), shard=1), {}),
    ):
        counters = count(output, Written(faults, Counter()), Monitor(Installation(FEEDS)), Head(), is_rebuilt=False)
        assert counters["replies"] == expected


def test_events_that_became_dead_letters_for_their_size_are_counted_as_such() -> None:
    output, too_large = output_of(Row("a"), Row("b"), Row("c", query=query("long" * 60))), Counter[str]()

    written = list(output.render(NO_FAULTS, {"events": 700}, too_large))

    topics = [topic for messages in written for topic in messages.column("topic").to_pylist()]
    assert topics == ["events", "events", "dead-letter"]
    counters = count(output, Written(NO_FAULTS, too_large), Monitor(Installation(FEEDS)), Head(), is_rebuilt=False)
    assert counters["dead_letters"] == {FEED.name: {"event_too_large": 1}}
