"""The service without Spark, on Kafka: what clients talk to in tests that are about clients.

`PureService` between the real topics: commands and readings in, replies and events out, in seconds less than
Spark takes to start. Reads and writes with kafka-python, so that it agrees with our clients about Kafka only.
"""

import json
import threading
import time
import uuid
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from bmq.config import TopicsSection
from bmq.kafka_io.topics import Topics
from bmq.records import Feed
from tests.pure_service import PureService

POLL_MILLISECONDS = 20
END_LIMIT_SECONDS = 10.0


@dataclass(frozen=True)
class Place:
    """A broker, and topics on it that nobody else uses."""

    servers: str
    topics: TopicsSection
    feed: Feed

    def read(self, *, stocks: dict[str, float]) -> None:
        """Publish one reading a symbol."""
        producer = KafkaProducer(bootstrap_servers=self.servers)
        for symbol, price in stocks.items():
            value = {"symbol": symbol, "price": price, "ts": int(time.time() * 1000)}
            producer.send(self.feed.topic, json.dumps(value).encode())
        producer.close()

    def config_text(self, feed_options: str = 'event_time = "ts"') -> str:
        """Return the sections of a configuration for the broker, the topics and the feed."""
        topics = self.topics
        return f"""
        [kafka]
        bootstrap_servers = "{self.servers}"
        [topics]
        control = "{topics.control}"
        replies = "{topics.replies}"
        events = "{topics.events}"
        dead_letter = "{topics.dead_letter}"
        [feeds.stocks]
        topic = "{self.feed.topic}"
        stream_id = "symbol"
        dimensions = ["price"]
        {feed_options}
        """


def make_place(bootstrap_servers: str) -> Place:
    """Return a new place with a feed `stocks` of prices; every topic has one partition."""
    run = f"bmq.test-{uuid.uuid4().hex[:8]}"
    control = f"{run}.control"
    outputs = {role: f"{run}.{role}" for role in ("replies", "events", "dead_letter")}
    feed = Feed("stocks", f"{run}.stocks", "symbol", ("price",), "ts")
    topics = Topics({"bootstrap.servers": bootstrap_servers})
    topics.create_missing(control, [*outputs.values(), feed.topic], 1)
    return Place(bootstrap_servers, TopicsSection(control=control, **outputs), feed)


@cache
def compile_kernels() -> None:
    """Let one command and one reading through, so that no test waits half a minute for its first reply."""
    service = PureService({"f": Feed("f", "f", "id", ("x",), "ts")})
    definition = {"kind": "border", "feed": "f", "region": {"box": {"x": [0, 1]}}}
    service.run_batch([("q", json.dumps(definition).encode())], {"f": [b'{"id":"a","x":0.5,"ts":1}']})
    assert len(service.events) == 1


class PureResponder:
    """Answers at one place from entering to leaving the context, in a thread of its own."""

    def __init__(self, place: Place) -> None:
        compile_kernels()
        self._service = PureService({place.feed.name: place.feed})
        self._place = place
        self._producer = KafkaProducer(bootstrap_servers=place.servers)
        self._consumer = KafkaConsumer(bootstrap_servers=place.servers, group_id=None, auto_offset_reset="earliest")
        self._consumer.assign([TopicPartition(topic, 0) for topic in (place.topics.control, place.feed.topic)])
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._answer)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join(END_LIMIT_SECONDS)
        self._consumer.close()
        self._producer.close()

    def _answer(self) -> None:
        place, service = self._place, self._service
        while not self._ending.is_set():
            polled = self._consumer.poll(timeout_ms=POLL_MILLISECONDS)
            by_topic = {at.topic: records for at, records in polled.items()}
            commands = [(record.key.decode(), record.value) for record in by_topic.get(place.topics.control, [])]
            readings = [record.value for record in by_topic.get(place.feed.topic, [])]
            service.run_batch(commands, {place.feed.name: readings})
            self._send(place.topics.replies, service.replies, "query_id")
            self._send(place.topics.events, service.events, "stream_id")

    def _send(self, topic: str, messages: list[dict[str, object]], key: str) -> None:
        for message in messages:
            self._producer.send(topic, json.dumps(message).encode(), str(message[key]).encode())
        messages.clear()
        self._producer.flush()
