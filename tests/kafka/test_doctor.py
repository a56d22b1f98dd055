"""What `bmq doctor` finds before a start: lost readings, a topic made anew, no room, few descriptors."""

import json
import os
import re
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported unsaid

from bmq.cli.doctor import examine
from bmq.cli.doctor_machine import LEAST_DESCRIPTORS, look_at_machine
from bmq.cli.findings import Level
from bmq.config import load_config
from bmq.job.checkpoint import FILE, Origin, bound_options
from bmq.kafka_io.topics import Topics
from tests.brokers import ANSWER_LIMIT_SECONDS, delete_before, wait_until

pytestmark = pytest.mark.kafka


class World:
    """A configuration with one feed, and the checkpoint of a service that has read it up to some offset."""

    def __init__(self, servers: str, topics: Callable[..., str], folder: Path) -> None:
        self.servers, self.feed = servers, topics("feed", partitions=1)
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._checkpoint = folder / "checkpoint"
        self._path = folder / "c.toml"
        self._path.write_text(
            f"""
            [kafka]
            bootstrap_servers = "{servers}"
            [topics]
            events = "{topics("events")}"
            [feeds.line]
            topic = "{self.feed}"
            stream_id = "id"
            dimensions = ["x"]
            [job]
            checkpoint = "{self._checkpoint}"
            """
        )

    def send(self, n: int) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for _ in range(n):
            producer.produce(self.feed, b"{}", partition=0)
        assert producer.flush(ANSWER_LIMIT_SECONDS) == 0

    def send_at(self, timestamp: int) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        producer.produce(self.feed, b"{}", partition=0, timestamp=timestamp)
        assert producer.flush(ANSWER_LIMIT_SECONDS) == 0

    def has_read(self, offset: int) -> None:
        """Write the checkpoint as a service leaves it."""
        config = load_config(self._path)
        for folder in ("offsets", "commits"):
            (self._checkpoint / folder).mkdir(parents=True, exist_ok=True)
        origin = Origin(config.job.shards, {"line": {0: 0}}, 0, bound_options(config.feed_records()))
        (self._checkpoint / FILE).write_bytes(msgspec.json.encode(origin))
        (identity,) = (ends.id for ends in Topics({"bootstrap.servers": self.servers}).ends([self.feed]).values())
        read = {self.feed: {"0": offset}, "topic ids": {self.feed: identity}}
        lines = ["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps({"bmq.control": {"0": 3}}), json.dumps(read)]
        (self._checkpoint / "offsets" / "4").write_text("\n".join(lines))
        (self._checkpoint / "commits" / "4").write_text('v1\n{"nextBatchWatermarkMs":0}')

    def found(self, what: str, on_data_loss: str = "stop") -> list[tuple[Level, str]]:
        """What the doctor finds of this name."""
        os.environ["BMQ_JOB__ON_DATA_LOSS"] = on_data_loss
        try:
            config = load_config(self._path)
        finally:
            del os.environ["BMQ_JOB__ON_DATA_LOSS"]
        return [(finding.level, finding.text) for finding in examine(config, self.servers) if finding.what == what]


@pytest.fixture
def world(bootstrap_servers: str, topics: Callable[..., str], tmp_path: Path) -> World:
    return World(bootstrap_servers, topics, tmp_path)


def test_a_checkpoint_without_a_batch_has_no_offsets(world: World) -> None:
    assert world.found("offsets") == []


def test_all_is_well_if_kafka_has_what_comes_next(world: World) -> None:
    world.send(5)
    world.has_read(5)
    assert world.found("offsets") == [(Level.OK, "Kafka has all that comes after the last batch (1 topics)")]
    world.send(5)
    delete_before(world.servers, world.feed, 0, 5)
    assert [level for level, _ in world.found("offsets")] == [Level.OK]


def test_readings_that_kafka_deleted_are_found(world: World) -> None:
    world.send(10)
    world.has_read(2)
    delete_before(world.servers, world.feed, 0, 6)

    ((level, text),) = world.found("offsets")
    assert level is Level.FAIL
    assert f"Topic '{world.feed}' partition 0: the service expected offset 2, and the first offset there is 6" in text
    assert "on_data_loss" in text
    ((level, text),) = world.found("offsets", "continue")
    assert level is Level.WARN
    assert "goes on with what is there" in text


def test_a_topic_that_was_made_anew_is_found(world: World) -> None:
    world.send(5)
    world.has_read(3)
    world.admin.delete_topics([world.feed])[world.feed].result(ANSWER_LIMIT_SECONDS)
    wait_until(lambda: world.feed not in Topics({"bootstrap.servers": world.servers}).partitions(), "its end")
    world.admin.create_topics([NewTopic(world.feed, 1, 1)])[world.feed].result(ANSWER_LIMIT_SECONDS)
    world.send(9)

    ((level, text),) = world.found("offsets")
    assert level is Level.FAIL
    assert "made anew since then" in text


def test_a_damaged_offset_log_is_named(world: World) -> None:
    world.has_read(0)
    (world._checkpoint / "offsets" / "4").write_text("v1\n{}\n{")

    ((level, text),) = world.found("offsets")
    assert level is Level.FAIL
    assert "offsets/4 cannot be read" in text


# -- the machine ------------------------------------------------------------------------------------------


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = min(LEAST_DESCRIPTORS - 1, soft)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    yield few
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_few_descriptors_are_found(few_descriptors: int, tmp_path: Path) -> None:
    (finding,) = [one for one in look_at_machine(tmp_path) if one.what == "descriptors"]
    assert finding.level is Level.WARN
    assert f"may open {few_descriptors} files" in finding.text


def test_a_disk_with_little_room_is_found(small_disk: Path) -> None:
    (finding,) = [one for one in look_at_machine(small_disk) if one.what == "checkpoint's disk"]
    assert finding.level is Level.WARN
    assert "0.0 GB free" in finding.text


def test_a_record_from_the_future_shows_a_wrong_clock(world: World) -> None:
    assert world.found("clocks") == []  # no record, no clock
    now = time.time_ns() // 1_000_000
    world.send_at(now)
    ((level, text),) = world.found("clocks")
    assert (level, text) == (Level.OK, "no record is ahead of the clock of this machine (1 topics)")

    world.send_at(now + 1_800_000)  # the broker takes an hour at most
    world.send_at(now)
    before = time.time()
    ((level, text),) = world.found("clocks")
    after = time.time()
    assert level is Level.WARN
    said = re.search(rf"the newest record of {re.escape(world.feed)} is ([\d,]+) s ahead", text)
    assert said is not None
    ahead = now / 1000 + 1_800
    assert ahead - after - 1 <= int(said[1].replace(",", "")) <= ahead - before + 1  # to a second
