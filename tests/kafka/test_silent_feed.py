"""A feed that falls silent: its clock goes on by marks, also over a restart; and who is inside follows."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer
from typer.testing import CliRunner, Result

from bmq.cli import app
from bmq.kafka_io.topics import Topics
from tests.conformance.service import Service, topic_names, write_config
from tests.ledger_check import must_be_whole

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

LIMIT_MS = 120_000  # for a silence of two seconds, five more of event time, and some batches on a busy machine
FEED = {"dimensions": ["x"], "event_time_unit": "ms", "idle_advance": "2s", "stream_ttl": "5s"}
QUERY = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}

Said = tuple[str, str, int]


class World:
    """A service on topics of its own, what is sent to it, and what it says."""

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        self.names = topic_names(folder.name.replace("_", "-"))
        run = folder.name.replace("_", "-")
        self.feed = f"{run}-line"
        self.config, served = write_config(folder, run, bootstrap_servers, {"line": FEED})
        assert served == {"line"}
        text = self.config.read_text().replace("[topics]\n", f'[topics]\nmembership = "{run}-membership"\n')
        self.config.write_text(text)
        Topics({"bootstrap.servers": bootstrap_servers}).create_missing(
            self.names["control"], [self.feed, self.names["events"]], 1
        )
        self._producer = Producer({"bootstrap.servers": bootstrap_servers})
        self.events = self._follow(bootstrap_servers)

    def send(self, topic: str, key: str, value: dict[str, Any]) -> None:
        self._producer.produce(topic, json.dumps(value), key)
        self._producer.flush()

    def read(self, seconds: int) -> None:
        """Publish a reading of stream a inside the region."""
        self.send(self.feed, "a", {"id": "a", "ts": seconds * 1000, "x": 5})

    def _follow(self, bootstrap_servers: str) -> Iterator[Said]:
        consumer = KafkaConsumer(
            self.names["events"],
            bootstrap_servers=bootstrap_servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            consumer_timeout_ms=LIMIT_MS,
        )
        for record in consumer:
            event = json.loads(record.value)
            yield event["sign"], event["reason"], event["event_time"]


@pytest.fixture
def bmq(world: World) -> Callable[..., Result]:
    return lambda *arguments: CliRunner().invoke(app, [*arguments, "--config", str(world.config)])


@pytest.fixture
def world(tmp_path: Path, bootstrap_servers: str) -> World:
    return World(tmp_path, bootstrap_servers)


def test_streams_of_a_silent_feed_expire_and_leave_the_membership_topic(
    world: World, bmq: Callable[..., Result], bootstrap_servers: str
) -> None:
    def inside() -> list[tuple[str, int]]:
        shown = json.loads(bmq("query", "show", "q", "--json").stdout)
        return [(member["stream_id"], member["since"]) for member in shown["inside"]]

    service = Service(world.config)
    try:
        world.send(world.names["control"], "q", QUERY)
        service.wait_for({world.names["control"]: 1})
        world.read(seconds=1)
        assert next(world.events) == ("+", "first_seen", 1_000)
        # No reading comes any more: wall time brings the clock beyond the stream's last reading and five seconds.
        assert next(world.events) == ("-", "stream_expired", 6_000)
        assert inside() == []

        world.read(seconds=100)
        assert next(world.events) == ("+", "first_seen", 100_000)
        service.wait_for({world.feed: 2})
        service.kill()  # long before five seconds are over: the new process has to know
        assert inside() == [("a", 100_000)]
        # The clock is in the checkpoint, but no reading says so to the new process: it asks by a mark.
        service = Service(world.config)
        assert next(world.events) == ("-", "stream_expired", 105_000)
        service.stop()
    finally:
        service.kill()

    shown = bmq("query", "show", "q")
    checked = bmq("check-ledger", "--from-beginning")
    assert shown.stdout.endswith("inside now: 0\n")
    assert (checked.exit_code, checked.stdout) == (
        0,
        "4 events of 1 (query, stream) pairs: 0 faults, 0 repeats\n",
    )
    must_be_whole(bootstrap_servers, world.names["events"])
