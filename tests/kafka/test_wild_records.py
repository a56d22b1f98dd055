"""No record ends the job, whatever a producer writes: each is read, or is a dead letter, or is rejected.

One service for all tests of this file. Its feeds and its control topic take any timestamp.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # re-exported unsaid

from bmq.client import Client
from bmq.config import TopicsSection, load_config
from bmq.kafka_io.connect import admin_client
from bmq.kafka_io.topics import Topics
from bmq.wire.event_times import LAST_EVENT_TIME_MS
from bmq.wire.readings import Decoder
from tests.conformance.service import Service, topic_names, write_config
from tests.kafka_records import read_all
from tests.transactions import Transaction
from tests.wild_records import ANY_TIME, SPARKS_LIMIT_MS, TIMESTAMPS, WildRecord, WildRecords

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

LIMIT_SECONDS = 30.0  # for one request to a broker on this machine; a busy one takes a second
START_LIMIT_SECONDS = 400.0  # for a service on a busy machine; 20 on two idle cores
NOW_MS = int(time.time() * 1000)  # what librdkafka writes for a timestamp of 0, nearly
EVENT_TIME = 'event_time = "ts"\n'
# The service reads `line` by a field for id and event time, `timed` by the record's own key and timestamp.
# With `idle_advance` it also reads the topic of marks.
FEEDS: dict[str, dict[str, Any]] = {
    "line": {"dimensions": ["x"], "event_time_unit": "ms", "idle_advance": "1h"},
    "timed": {"dimensions": ["x"], "stream_id": "@key"},
}
SEED = 20_060_509
N_READINGS = 200
N_COMMANDS = 100


class World:
    """A running service, and the topics around it."""

    def __init__(self, config: Path, servers: str, run: str) -> None:
        self._servers = servers
        self._options = {"bootstrap.servers": servers}
        self._names = topic_names(run)
        self._feeds = load_config(config).feed_records()
        self.control, self.clock = self._names["control"], self._names["clock"]
        self.topics = {name: feed.topic for name, feed in self._feeds.items()}
        self._make_topics()
        self.service = Service(config)
        self._n_good = 0

    def must_go_on(self) -> None:
        """Require that all records are read, and that a good reading of each feed then gives its event."""
        self._n_good += 1
        streams = {feed: f"good-{feed}-{self._n_good}" for feed in self.topics}
        producer = Producer(self._options)
        for feed, stream in streams.items():
            producer.produce(self.topics[feed], json.dumps({"id": stream, "ts": 0, "x": 5}), stream)
        assert producer.flush(LIMIT_SECONDS) == 0
        # Uncommitted: the broker may not have written all markers of the transactions yet.
        uncommitted = Topics({**self._options, "isolation.level": "read_uncommitted"})
        ends = uncommitted.end_offsets([self.control, self.clock, *self.topics.values()])
        self.service.wait_for({topic: offsets[0] for topic, offsets in ends.items()})
        events = self.events()
        assert [events[f"good-{feed}", stream] for feed, stream in streams.items()] == [["+"], ["+"]]

    def events(self) -> Mapping[tuple[str, str], list[str | None]]:
        """Return (query id, stream id) -> signs."""
        signs: defaultdict[tuple[str, str], list[str | None]] = defaultdict(list)
        for event in self._read("events"):
            signs[event["query_id"], event["stream_id"]].append(event.get("sign"))
        return signs

    def replies(self) -> dict[int, str]:
        """Return control offset -> status."""
        return {reply["control_offset"]: reply["status"] for reply in self._read("replies")}

    def dead(self, feed: str) -> dict[int, str]:
        """Return offset -> code of the dead letters of a feed."""
        letters = [dict(record.headers) for record in read_all(self._servers, self._names["dead_letter"])]
        return {
            int(letter["offset"]): letter["code"].decode()
            for letter in letters
            if letter["topic"].decode() == self.topics[feed]
        }

    def expected_dead(self, feed: str, sent: Mapping[int, WildRecord]) -> dict[int, str]:
        """Return the same for the committed records ``sent``, from the decoder alone."""
        offsets, records = list(sent), list(sent.values())
        times = [min(max(record.timestamp, -SPARKS_LIMIT_MS), SPARKS_LIMIT_MS) or NOW_MS for record in records]
        keys, values = (
            pa.array([getattr(record, part) for record in records], pa.binary()) for part in ("key", "value")
        )
        decoded = Decoder(self._feeds[feed]).decode(keys, values, np.array(times))
        return {offsets[bad.row]: bad.code.value for bad in decoded.bad}

    def send(self, topic: str, records: Iterable[WildRecord]) -> tuple[dict[int, WildRecord], set[int]]:
        """Write the records; return those that count, by offset, and the offsets of the aborted ones."""
        groups = defaultdict(list)
        for record in records:
            groups[record.compression, record.transaction].append(record)
        sent: dict[int, WildRecord] = {}
        aborted: set[int] = set()
        for (compression, transaction), group in groups.items():
            written = self._write(topic, group, compression, transaction)
            if transaction == "abort":
                aborted |= written.keys()
            else:
                sent |= written
        return dict(sorted(sent.items())), aborted

    def _write(
        self, topic: str, records: Iterable[WildRecord], compression: str, transaction: str | None
    ) -> dict[int, WildRecord]:
        options = {**self._options, "compression.type": compression, "message.max.bytes": "2000000"}
        if transaction is not None:
            options["transactional.id"] = f"{topic}-{compression}-{transaction}"
        producer = Producer(options)
        written: dict[int, WildRecord] = {}

        def note(record: WildRecord, error: KafkaError | None, message: Message) -> None:
            assert error is None, f"{record}: {error}"
            offset = message.offset()
            assert offset is not None
            written[offset] = record

        if transaction is not None:
            producer.init_transactions(LIMIT_SECONDS)
            producer.begin_transaction()
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                headers=record.headers,
                timestamp=record.timestamp,
                on_delivery=partial(note, record),
            )
        assert producer.flush(LIMIT_SECONDS) == 0
        if transaction == "commit":
            producer.commit_transaction(LIMIT_SECONDS)
        elif transaction == "abort":
            producer.abort_transaction(LIMIT_SECONDS)
        return written

    def _read(self, role: str) -> list[dict[str, Any]]:
        return [json.loads(record.value) for record in read_all(self._servers, self._names[role])]

    def _make_topics(self) -> None:
        settings = {topic: ANY_TIME for topic in (self.control, self.clock, *self.topics.values())}
        new = [NewTopic(name, 1, 1, config=settings.get(name, {})) for name in (*self._names.values(), *settings)]
        by_name = {topic.topic: topic for topic in new}
        admin = admin_client(self._options)  # a name, because the requests end with the client
        for future in admin.create_topics(list(by_name.values())).values():
            future.result(LIMIT_SECONDS)


@pytest.fixture(scope="module")
def world(bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("wild-records")
    config, served = write_config(folder, folder.name, bootstrap_servers, FEEDS)
    assert served == FEEDS.keys()
    before, timed = config.read_text().split("[feeds.timed]")
    config.write_text(f"{before}[feeds.timed]{timed.replace(EVENT_TIME, '', 1)}")
    world = World(config, bootstrap_servers, folder.name)
    try:
        names = TopicsSection(control=world.control, replies=topic_names(folder.name)["replies"])
        with Client(bootstrap_servers, topics=names) as client:
            put = client.put_many({f"good-{feed}": border(feed) for feed in FEEDS}, START_LIMIT_SECONDS)
        assert {reply.status for reply in put.values()} == {"accepted"}
        yield world
    finally:
        world.service.kill()


def border(feed: str) -> dict[str, Any]:
    return {"kind": "border", "feed": feed, "region": {"box": {"x": [0, 10]}}}


def reading(stream: str) -> bytes:
    return json.dumps({"id": stream, "ts": 0, "x": 5}).encode()


def test_an_aborted_transaction_has_no_effect_and_a_committed_one_has(world: World, bootstrap_servers: str) -> None:
    def write(query_id: str, stream: str) -> Transaction:
        value = reading(stream).decode()
        return Transaction(
            bootstrap_servers,
            [
                (world.control, query_id, json.dumps(border("line"))),
                (world.topics["line"], stream, value),
                (world.topics["line"], stream, "not a reading"),
            ],
        )

    n_dead, n_replies = len(world.dead("line")), len(world.replies())
    write("void", "void").abort()
    write("counts", "counts").commit()
    # Both topics end with aborted records and a marker.
    write("void", "void").abort()
    world.must_go_on()

    events = world.events()
    assert events["counts", "counts"] == ["+"]
    assert "void" not in {name for query_and_stream in events for name in query_and_stream}
    assert len(world.dead("line")) == n_dead + 1
    assert len(world.replies()) == n_replies + 1


def test_any_timestamp_is_read_unless_it_is_the_event_time_and_no_time(world: World) -> None:
    records = [WildRecord(b"s", reading("s"), [], timestamp, "none", None) for timestamp in TIMESTAMPS]
    sent = {feed: world.send(topic, records)[0] for feed, topic in world.topics.items()}
    world.send(world.clock, records)
    world.send(world.control, records)

    world.must_go_on()

    assert not world.dead("line").keys() & sent["line"].keys()
    dead = world.dead("timed")
    for offset, record in sent["timed"].items():
        is_time = 0 <= record.timestamp <= LAST_EVENT_TIME_MS
        assert dead.get(offset) == (None if is_time else "out_of_range"), record


def test_whatever_a_producer_writes_is_read_or_is_a_dead_letter_or_is_rejected(world: World) -> None:
    wild = WildRecords(SEED)
    sent = {feed: world.send(topic, wild.for_feed(N_READINGS)) for feed, topic in world.topics.items()}
    world.send(world.clock, wild.for_clock(N_COMMANDS, "line"))
    commands, void_commands = world.send(world.control, wild.for_control(N_COMMANDS, "line"))

    world.must_go_on()

    for feed, (records, aborted) in sent.items():
        dead = {offset: code for offset, code in world.dead(feed).items() if offset >= min(records)}
        assert dead == world.expected_dead(feed, records)
        assert 0 < len(dead) < len(records)
        assert aborted
    replies = world.replies()
    assert commands.keys() <= replies.keys()
    assert not void_commands & replies.keys()
    statuses = {replies[offset] for offset in commands}
    assert statuses >= {"accepted", "rejected"}
