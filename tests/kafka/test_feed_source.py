"""The source of the feeds against a Kafka, without Spark: plans, batches that run again, losses, outages."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]  # re-exported unsaid
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from bmq.job.frame_rows import DATA_LOSS, FRAME_SCHEMA, Kind
from bmq.job.plan import Plan
from bmq.job.source import topic_source
from bmq.job.source.losses import DataLost, OnLoss
from bmq.job.source.source_settings import SourceSettings
from bmq.job.source.topic_source import TaskRanges, TopicsReader
from bmq.kafka_io.connect import Unreachable
from bmq.records import Feed, Installation
from bmq.wire.frames import unpack_dead_letters, unpack_readings
from tests.brokers import delete_before

pytestmark = pytest.mark.kafka

LIMIT_SECONDS = 30.0
ALL = ReadAllAvailable()
Document = dict[str, dict[str, Any]]


@dataclass
class World:
    """A feed topic, and readers of it."""

    servers: str
    topic: str
    admin: AdminClient

    def reader(self, on_loss: OnLoss = "stop", starts: dict[int, int] | None = None) -> TopicsReader:
        plan = Plan(
            run_id="run",
            installation=Installation({"line": Feed("line", self.topic, "id", ("x",), "ts", join=False)}),
            shard_keys=(70, 71),
            start_offsets={},
            silent_tombstones_before=0,
            replies_topic="replies",
            events_topic="events",
            dead_letter_topic="dead",
            clock_topic=None,
            membership_topic=None,
            events_key="stream_id",
            events_layout="crossing",
            client_options={"bootstrap.servers": self.servers},
            delivery_id="bmq-test",
            markers_topic=None,
        )
        return TopicsReader(SourceSettings(plan, {self.topic: starts or {0: 0}}, 1000, 2, on_loss))

    def send(self, n: int, first: int = 0, partition: int = 0) -> None:
        """Send readings whose event times are ``first``, ``first`` + 1, …"""
        producer = Producer({"bootstrap.servers": self.servers})
        for time_ms in range(first, first + n):
            producer.produce(self.topic, json.dumps({"id": "s", "ts": time_ms, "x": 1}), partition=partition)
        assert producer.flush(LIMIT_SECONDS) == 0

    def delete(self) -> None:
        for future in self.admin.delete_topics([self.topic]).values():
            future.result(LIMIT_SECONDS)

    def make(self) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:  # a deleted topic is there for a moment longer
            (future,) = self.admin.create_topics([NewTopic(self.topic, 1, 1)]).values()
            try:
                future.result(LIMIT_SECONDS)
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def make_anew(self) -> None:
        self.delete()
        self.make()


@pytest.fixture
def world(bootstrap_servers: str, topics: Callable[..., str]) -> World:
    return World(bootstrap_servers, topics("line"), AdminClient({"bootstrap.servers": bootstrap_servers}))


def read(reader: TopicsReader, start: Document, end: Document) -> tuple[list[int], list[tuple[str, int, str]]]:
    """Return the event times of all readings between two offsets, and the dead letters as (code, offset, message)."""
    times: list[int] = []
    letters = []
    for partition in reader.partitions(start, end):
        for batch in reader.read(partition):
            assert batch.schema == FRAME_SCHEMA
            for row in batch.to_pylist():
                if row["kind"] == Kind.READINGS:
                    times += unpack_readings(row["frame"]).event_times.tolist()
                else:
                    dead = unpack_dead_letters(row["frame"])
                    letters += list(
                        zip(*(dead.column(name).to_pylist() for name in ("code", "offset", "message")), strict=True)
                    )
    return sorted(times), letters


def test_batches_go_on_where_the_last_one_ended(world: World) -> None:
    world.send(5)
    reader = world.reader(starts={0: 2})
    start = reader.initialOffset()
    assert start == {world.topic: {"0": 2}}

    first = reader.latestOffset(start, ReadMaxRows(2))
    second = reader.latestOffset(first, ALL)

    assert read(reader, start, first)[0] == [2, 3]
    assert read(reader, first, second)[0] == [4]
    assert reader.latestOffset(second, ALL) is second
    assert reader.reportLatestOffset() == {world.topic: {"0": 5}}
    world.send(1, first=5)
    assert read(reader, second, reader.latestOffset(second, ALL))[0] == [5]


def test_a_batch_runs_again_in_another_process(world: World) -> None:
    world.send(5)
    reader = world.reader()
    end = json.loads(json.dumps(reader.latestOffset(reader.initialOffset(), ReadMaxRows(3))))
    world.send(5, first=5)

    again = world.reader()

    assert read(again, again.initialOffset(), end) == ([0, 1, 2], [])


def test_a_checkpoint_of_sparks_own_source_goes_on(world: World) -> None:
    world.send(5)
    reader = world.reader()
    old = {world.topic: {"0": 3}}

    # The last batch runs again, and the next one knows the topic's id.
    assert read(reader, {world.topic: {"0": 1}}, old)[0] == [1, 2]
    end = reader.latestOffset(old, ALL)
    assert read(reader, old, end)[0] == [3, 4]
    assert end["topic ids"].keys() == {world.topic}


def test_an_available_now_run_ends_at_what_was_there(world: World) -> None:
    world.send(3)
    reader = world.reader()
    reader.prepareForTriggerAvailableNow()
    world.send(3, first=3)

    end = reader.latestOffset(reader.initialOffset(), ALL)

    assert read(reader, reader.initialOffset(), end)[0] == [0, 1, 2]
    assert reader.latestOffset(end, ALL) is end


def test_a_partition_that_is_new_is_read_from_its_first_record(world: World) -> None:
    world.send(2)
    reader = world.reader()
    start = reader.latestOffset(reader.initialOffset(), ALL)
    for future in world.admin.create_partitions([NewPartitions(world.topic, 2)]).values():
        future.result(LIMIT_SECONDS)
    deadline = time.monotonic() + LIMIT_SECONDS
    while reader.latestOffset(start, ALL)[world.topic].keys() != {"0", "1"}:
        assert time.monotonic() < deadline
    world.send(2, first=7, partition=1)

    assert read(reader, start, reader.latestOffset(start, ALL))[0] == [7, 8]


def test_deleted_records_stop_the_batch_or_are_a_dead_letter(world: World) -> None:
    world.send(5)
    stopping, going_on = world.reader(), world.reader("continue")
    start = stopping.initialOffset()
    end = stopping.latestOffset(start, ALL)
    delete_before(world.servers, world.topic, 0, 3)

    with pytest.raises(DataLost, match=rf"'{world.topic}' partition 0.* expected offset 0.* first .* 3.*on_data_loss"):
        read(stopping, start, end)
    times, ((code, offset, message),) = read(going_on, start, end)
    assert times == [3, 4]
    assert (code, offset) == (DATA_LOSS, 0)
    assert "deleted 3 offsets" in message


@pytest.mark.parametrize("n_new", [1, 5, 9])
def test_a_topic_that_was_made_anew_is_another_one_whatever_its_offsets(world: World, n_new: int) -> None:
    world.send(5)
    start = (first := world.reader()).latestOffset(first.initialOffset(), ALL)
    world.make_anew()
    world.send(n_new, first=100)

    with pytest.raises(DataLost, match=r"partition 0: .* expected offset 5, and the topic was deleted and made anew"):
        world.reader().latestOffset(start, ALL)
    going_on = world.reader("continue")
    end = going_on.latestOffset(start, ALL)
    times, ((code, offset, _),) = read(going_on, start, end)
    assert times == list(range(100, 100 + n_new))
    assert (code, offset) == (DATA_LOSS, 5)
    assert going_on.latestOffset(end, ALL) is end


def test_a_batch_does_not_run_again_on_another_topic(world: World) -> None:
    world.send(5)
    reader = world.reader()
    start, end = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), ALL)
    world.make_anew()
    world.send(9, first=100)

    with pytest.raises(DataLost, match="made anew"):
        world.reader().partitions(start, end)
    going_on = world.reader("continue")
    assert read(going_on, start, end) == ([], [])
    times, letters = read(going_on, end, going_on.latestOffset(end, ALL))
    assert times == list(range(100, 109))
    assert len(letters) == 1


def test_a_deleted_topic_is_named_or_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_source, "CONNECT_TIMEOUT_SECONDS", 0.5)
    world.send(2)
    reader, going_on = world.reader(), world.reader("continue")
    start = reader.latestOffset(reader.initialOffset(), ALL)
    world.delete()
    deadline = time.monotonic() + LIMIT_SECONDS
    while world.topic in world.admin.list_topics(timeout=LIMIT_SECONDS).topics:
        assert time.monotonic() < deadline

    with pytest.raises(DataLost, match=rf"no topic '{world.topic}'"):
        reader.latestOffset(start, ALL)
    assert going_on.latestOffset(start, ALL) is start
    world.make()
    world.send(1, first=50)
    assert read(going_on, start, going_on.latestOffset(start, ALL))[0] == [50]


def test_a_broker_that_is_away_is_waited_for_up_to_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_source, "PATIENCE_SECONDS", 0.0)
    nowhere = replace(world, servers="127.0.0.1:1").reader()

    with pytest.raises(Unreachable, match=r"No Kafka answers at 127\.0\.0\.1:1"):
        nowhere.latestOffset(nowhere.initialOffset(), ALL)


def test_the_parts_of_a_divided_partition_are_the_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmq.job.source.offsets.SMALLEST_PART", 100)
    world.send(1000)
    reader = world.reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)

    tasks = [partition for partition in reader.partitions(start, end) if isinstance(partition, TaskRanges)]
    ranges = [at for task in tasks for at in task.ranges]

    assert [(at.start, at.end) for at in ranges] == [(0, 500), (500, 1000)]
    assert read(reader, start, end)[0] == list(range(1000))
