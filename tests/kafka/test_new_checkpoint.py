"""What a service knows that starts without its old checkpoint, and what its records look like to another client."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event
from confluent_kafka import Producer
from kafka.consumer.fetcher import ConsumerRecord

from bmq.kafka_io.topics import Topics
from tests.conformance.service import Service, topic_names, write_config
from tests.kafka_records import read_all
from tests.ledger_check import must_be_whole

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


class Started:
    """A service on topics of its own, and a producer."""

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        self.run = folder.name.replace("_", "-")
        self.names = topic_names(self.run)
        self._folder, self._servers = folder, bootstrap_servers
        self._producer = Producer({"bootstrap.servers": bootstrap_servers})
        topics = [f"{self.run}-line", f"{self.run}-sheet"]
        Topics({"bootstrap.servers": bootstrap_servers}).create_missing(self.names["control"], topics, 1)

    def start(self, feeds: dict[str, dict[str, Any]], topics: str = "") -> Service:
        config, served = write_config(self._folder, self.run, self._servers, feeds)
        assert served == set(feeds)
        config.write_text(config.read_text().replace("[topics]\n", f"[topics]\n{topics}\n"))
        return Service(config)

    def send(self, topic: str, *records: tuple[str, str | None]) -> None:
        for key, value in records:
            self._producer.produce(topic, value, key)
        self._producer.flush()

    def records(self, role: str) -> list[ConsumerRecord]:
        """Return the records by time, of one key in their order: partitions come in any."""
        return sorted(read_all(self._servers, self.names[role]), key=lambda record: record.timestamp)


def border(feed: str) -> str:
    return json.dumps({"kind": "border", "feed": feed, "region": {"box": {"x": [0, 10]}}})


def reading(x: float, seconds: int) -> str:
    return json.dumps({"id": "a", "ts": seconds * 1000, "x": x})


def cloud_event(record: ConsumerRecord, source: str) -> dict[str, Any]:
    """Return the event in a record, as the SDK of CloudEvents reads it; its attributes must be those of the event."""
    found = from_kafka_event(KafkaMessage(dict(record.headers), record.key, record.value))
    event, time = found.get_data(), found.get_time()
    assert isinstance(event, dict)
    assert time is not None
    assert (found.get_source(), found.get_datacontenttype()) == (source, "application/json")
    assert (found.get_id(), found.get_type()) == (event["event_id"], f"bmq.{event['kind']}")
    assert round(time.timestamp() * 1000) == event["event_time"]
    return event


def test_a_new_checkpoint_rebuilds_the_queries_and_says_the_same_events(bootstrap_servers: str, tmp_path: Path) -> None:
    world = Started(tmp_path, bootstrap_servers)
    control, line = world.names["control"], f"{world.run}-line"
    feeds: dict[str, dict[str, Any]] = {"line": {"dimensions": ["x"], "event_time_unit": "ms"}}

    binary = 'event_format = "cloudevents-binary"\nevent_source = "/binary"'
    service = world.start(feeds, binary)
    try:
        world.send(control, ("kept", border("line")), ("gone", border("line")), ("gone", None))
        service.wait_for({control: 3})
        world.send(line, ("a", reading(5, 1)), ("a", reading(50, 2)))
        service.wait_for({line: 2})
        # A feed may be added to a checkpoint; its readings then count from the beginning of its topic.
        service.stop()
        feeds["sheet"] = feeds["line"] | {"stream_id": "@key", "format": "csv", "attributes": []}
        service = world.start(feeds, binary)
        world.send(control, ("sheet", border("sheet")))
        service.wait_for({control: 4})
        world.send(f"{world.run}-sheet", ("b", "1000,5"))
        service.wait_for({f"{world.run}-sheet": 1})
        service.stop()
        # Only here: a new checkpoint begins a new ledger in the same topic.
        must_be_whole(bootstrap_servers, world.names["events"])
        first = by_key(world.records("events"))
        n_replies = len(world.records("replies"))

        shutil.rmtree(tmp_path / "checkpoint")
        structured = 'event_format = "cloudevents-structured"\nevent_source = "/structured"'
        service = world.start(feeds, f'layout = "reading"\n{structured}')
        service.wait_for({control: 4, line: 2, f"{world.run}-sheet": 1})
        service.stop()
    finally:
        service.kill()

    # What kafka-python sees of an event: the stream as key, the headers, the two signs.
    assert [record.key for record in first] == [b"a", b"a", b"b"]
    for record in first:
        event = json.loads(record.value)
        headers = dict(record.headers)
        assert headers["event_id"].decode() == event["event_id"]
        assert (headers["kind"], headers["query_id"].decode()) == (b"border", event["query_id"])
        assert cloud_event(record, "/binary") == event
    assert [json.loads(record.value)["sign"] for record in first] == ["+", "-", "+"]

    # The rebuilt service answers for what stands, and not for the tombstone of a query that it never knew.
    answers = [json.loads(record.value) for record in world.records("replies")[n_replies:]]
    assert {(answer["query_id"], answer["status"]) for answer in answers} >= {
        ("kept", "accepted"),
        ("sheet", "accepted"),
    }
    assert all(answer["status"] != "rejected" for answer in answers)
    assert set(answers[0]["feed_offsets"]) == {"line", "sheet"}

    again = [cloud_event(record, "/structured") for record in by_key(world.records("events")[len(first) :])]
    assert [(event["entered"], event["left"]) for event in again] == [(["kept"], []), ([], ["kept"]), (["sheet"], [])]


def by_key(records: list[ConsumerRecord]) -> list[ConsumerRecord]:
    return sorted(records, key=lambda record: record.key)
