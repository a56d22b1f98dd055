"""Messages that are larger than their topic takes: the others are written, and these go where they fit."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from kafka.consumer.fetcher import ConsumerRecord

from bmq.engines.stage_result import StageResult
from bmq.errors import SetupError
from bmq.job.outcome import ShardResult
from bmq.job.plan import Plan
from bmq.job.received import Frames
from bmq.job.rendering import Output
from bmq.job.replicas import Head
from bmq.job.writing import look, write
from bmq.kafka_io.batch_writer import NO_BATCH, Marks
from bmq.kafka_io.writer_process import Place, RemoteWriter
from bmq.records import Installation, Reply, Status
from bmq.wire.frames import pack_dead_letters, unpack_dead_letters
from tests.brokers import alter_topic
from tests.crossings import FEED, Row, make_crossings, query
from tests.golden.play import PLAN
from tests.kafka_records import read_all

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

SMALL = 8_000  # bytes: of a topic that takes little


@dataclass
class World:
    """The writer of one shard, with topics of the test's own."""

    servers: str
    plan: Plan
    owner: int
    is_exact: bool
    number: int = -1

    def __post_init__(self) -> None:
        marks = None
        if self.is_exact:
            assert self.plan.markers_topic is not None
            marks = Marks(self.plan.markers_topic, self.plan.markers_topic)
        options = {"bootstrap.servers": self.servers}
        self.writer = RemoteWriter(self.owner, Place(self.plan.run_id, 0, options, marks))
        self.marked = NO_BATCH

    def write(self, *rows: Row, dead: tuple[pa.RecordBatch, ...] = (), replies: tuple[Reply, ...] = ()) -> None:
        """Write the next batch."""
        self.number += 1
        result = ShardResult(StageResult(crossings=[make_crossings(rows)], replies=list(replies)))
        head = Head(marked=self.marked)
        output = Output(self.plan, 0, self.number, head, Frames(dead_letters=list(dead)), result)
        faults = look(self.writer, output)
        self.marked = self.writer.begin(output.run())
        write(self.writer, output, faults)

    def records(self, topic: str) -> list[ConsumerRecord]:
        """What a topic holds; without transactions, what was written twice counts once."""
        found = list(read_all(self.servers, topic))
        if self.is_exact:
            return found
        return list({(record.key, record.value, *map(tuple, record.headers)): record for record in found}.values())

    def values(self, topic: str) -> list[Any]:
        """The values of its records."""
        return [json.loads(record.value) for record in self.records(topic)]

    def headers(self, topic: str) -> list[dict[str, str]]:
        """The headers of each of its records."""
        return [{name: text.decode() for name, text in record.headers} for record in self.records(topic)]


@pytest.fixture(params=["exactly once", "at least once"])
def make_world(
    bootstrap_servers: str, topics: Callable[..., str], owner: int, request: pytest.FixtureRequest
) -> Callable[..., World]:
    def make(layout: Any = "crossing", **limits: int) -> World:
        def topic(name: str) -> str:
            config = {"max.message.bytes": str(limits[name])} if name in limits else {}
            return topics(name, partitions=1 if name == "marks" else 4, config=config)

        plan = replace(
            PLAN,
            run_id=request.node.name,
            installation=Installation({FEED.name: FEED}, "bmq."),
            start_offsets={},
            events_topic=topic("events"),
            replies_topic=topic("replies"),
            dead_letter_topic=topic("dead"),
            markers_topic=topic("marks"),
            membership_topic=None,
            events_layout=layout,
        )
        return World(bootstrap_servers, plan, owner, is_exact=request.param == "exactly once")

    return make


def tagged(query_id: str, n_bytes: int, **options: Any) -> Any:
    """Return a query whose events have about this many bytes more than usual."""
    return query(query_id, tags=json.dumps({"note": "x" * n_bytes}), **options)


def test_a_topic_that_takes_little_gets_small_batches(make_world: Callable[..., World]) -> None:
    world = make_world(events=SMALL)
    many = [Row(f"v{i}") for i in range(500)]

    world.write(*many)
    world.write(*many)

    found = Counter(event["stream_id"] for event in world.values(world.plan.events_topic))
    assert found == dict.fromkeys((f"v{i}" for i in range(500)), 2 if world.is_exact else 1)
    assert world.values(world.plan.dead_letter_topic) == []


def test_a_refusal_among_many_messages_for_many_partitions_is_found(make_world: Callable[..., World]) -> None:
    # In a transaction, librdkafka reports the messages that it purges before the one that was refused.
    world = make_world(events=SMALL)
    many = [Row(f"v{i}") for i in range(20_000)]

    world.write(*many, Row("large", query=tagged("large", SMALL)))

    assert len({event["stream_id"] for event in world.values(world.plan.events_topic)}) == len(many)
    assert [event["stream_id"] for event in world.values(world.plan.dead_letter_topic)] == ["large"]


def test_an_event_that_is_too_large_for_the_events_topic_is_a_dead_letter(make_world: Callable[..., World]) -> None:
    world = make_world(events=SMALL)
    large = tagged("large", SMALL)

    world.write(Row("a"), Row("b", query=large), Row("c"))
    world.write(Row("d", query=large), Row("e"))

    plan = world.plan
    assert {event["stream_id"] for event in world.values(plan.events_topic)} == {"a", "c", "e"}
    letters = world.values(plan.dead_letter_topic)
    assert sorted((event["query_id"], event["stream_id"]) for event in letters) == [("large", "b"), ("large", "d")]
    headers = world.headers(plan.dead_letter_topic)[0]
    assert (headers["code"], headers["topic"], headers["partition"], headers["offset"]) == (
        "event_too_large",
        plan.events_topic,
        "-1",
        "-1",
    )
    assert letters[0]["event_id"] in headers["message"]
    assert f"at most {SMALL}" in headers["message"]


def test_a_dead_letter_that_is_too_large_loses_its_original(make_world: Callable[..., World]) -> None:
    world = make_world(events=SMALL, dead=SMALL)
    record = unpack_dead_letters(
        pack_dead_letters(
            FEED.name,
            pa.array([b"key"]),
            pa.array([b"y" * 100_000]),
            pa.array(["vehicles"]),
            pa.array([3]),
            pa.array([7]),
            ["not_json"],
            ["it is no JSON"],
        )
    )

    world.write(Row("a"), Row("b", query=tagged("large", SMALL)), dead=(record,))

    letters = {letter.key: letter for letter in world.records(world.plan.dead_letter_topic)}
    assert letters.keys() == {b"b", b"key"}
    assert [letter.value for letter in letters.values()] == [None, None]
    of_event, of_record = ({name: text.decode() for name, text in letters[key].headers} for key in (b"b", b"key"))
    assert (of_record["code"], of_record["topic"], of_record["partition"], of_record["offset"]) == (
        "not_json",
        "vehicles",
        "3",
        "7",
    )
    assert "left out" in of_record["message"]
    assert "has 8" in of_event["message"]
    assert "left out" in of_event["message"]


def test_a_long_list_of_queries_becomes_several_events_that_fit(make_world: Callable[..., World]) -> None:
    world = make_world("reading", events=SMALL)
    named = [query(f"query-{i:04}-{'n' * 40}") for i in range(1_000)]

    world.write(*(Row("a", query=one) for one in named), Row("b"))

    events = world.values(world.plan.events_topic)
    of_a = [event for event in events if event["stream_id"] == "a"]
    assert len(of_a) > 7
    assert sorted(query_id for event in of_a for query_id in event["entered"]) == [one.query_id for one in named]
    assert len({event["event_id"] for event in events}) == len(events)
    assert world.values(world.plan.dead_letter_topic) == []


def test_the_events_of_a_query_whose_topic_takes_too_little_go_to_the_events_topic(
    make_world: Callable[..., World], topics: Callable[..., str]
) -> None:
    world = make_world()
    own = topics("own", config={"max.message.bytes": str(SMALL)})
    small, large = query("small", output_topic=own), tagged("large", SMALL, output_topic=own)

    world.write(Row("a", query=small))
    world.write(Row("b", query=large), Row("c", query=small), Row("d"))
    world.write(Row("e", query=small))

    plan = world.plan
    # Without transactions, what was written before the refusal stays.
    assert {event["stream_id"] for event in world.values(own)} == ({"a"} if world.is_exact else {"a", "c"})
    assert {event["stream_id"] for event in world.values(plan.events_topic)} == {"b", "c", "d", "e"}
    replies = world.values(plan.replies_topic)
    assert {(reply["query_id"], reply["status"]) for reply in replies} == {("large", "degraded"), ("small", "degraded")}
    assert all(f"at most {SMALL} bytes" in reply["error"]["message"] for reply in replies)
    by_query = {headers["query_id"]: headers for headers in world.headers(plan.events_topic)}
    assert by_query["large"]["output_topic"] == own
    assert "max.message.bytes" in by_query["large"]["output_topic_error"]
    assert "output_topic" not in by_query["q1"]

    alter_topic(world.servers, own, "max.message.bytes", "1000000")
    world.write(Row("f", query=small), Row("g", query=large))
    assert {event["stream_id"] for event in world.values(own)} >= {"a", "f", "g"}


def test_a_reply_that_is_too_large_stops_with_the_topic_and_the_reason(make_world: Callable[..., World]) -> None:
    world = make_world(replies=100)
    with pytest.raises(SetupError, match=r"replies.*too large"):
        world.write(Row("a"), replies=(Reply("q1", Status.ACCEPTED, 0),))

    assert world.is_exact is False or world.values(world.plan.events_topic) == []
