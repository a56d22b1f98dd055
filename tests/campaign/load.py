"""The load of a campaign: readings, commands and faulty records, and the definition that reads the same."""

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.conformance.service import topic_names
from tests.oracle import Oracle, Reading

RUN = "campaign"
FEED = "line"
FEED_TOPIC = f"{RUN}-{FEED}"
OWN_TOPIC = f"{RUN}-own"  # of some queries
FEEDS: dict[str, dict[str, Any]] = {FEED: {"dimensions": ["x"], "event_time_unit": "ms"}}
N_STREAMS = 200  # of the first partition
N_NEW_STREAMS = 20  # of each further partition
N_QUERIES = 60
OWN_EACH = 6  # queries
WIDTH = 100.0
READINGS_PER_SECOND = 1_000
FAULTY = b'{"id": "s0", "ts": 0, "x": "nowhere"}'
FAULTY_EACH = 500  # readings
FLUSH_SECONDS = 600.0


class Load:
    """Sends readings and faulty records until it is stopped, and gives the readings to the definition.

    Attributes
    ----------
    n_sent : (topic, partition) -> number of records.
    n_faulty : how many of them are no readings.
    owners : ids of the queries with events in OWN_TOPIC.
    failure : why it has ended by itself; None: it has not.
    """

    def __init__(self, servers: str, seed: int) -> None:
        self.oracle = Oracle({FEED: ("x",)})
        self.n_sent: Counter[tuple[str, int]] = Counter()
        self.n_faulty = 0
        self.owners = {f"q{n}" for n in range(0, N_QUERIES, OWN_EACH)}
        # The broker is killed, too: the test's own records must be there once.
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "topic.metadata.refresh.interval.ms": 1_000,  # to hear of a new partition
                "message.timeout.ms": 0,  # a broker that is away for minutes must lose no record of the test
                "log_level": 0,
            }
        )
        self._rng = random.Random(seed)
        self._partitions: dict[str, int] = {}  # of each stream
        self._positions: dict[str, float] = {}
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._run)
        self.failure: Exception | None = None
        self._add_streams(0, N_STREAMS)

    def put_queries(self) -> None:
        """Send the queries, before all readings: then no batch decides what they see."""
        for n in range(N_QUERIES):
            low = self._rng.uniform(0, WIDTH)
            definition: dict[str, Any] = {
                "kind": "border",
                "feed": FEED,
                "region": {"box": {"x": [low, low + self._rng.uniform(0, 20)]}},
            }
            if f"q{n}" in self.owners:
                definition["output_topic"] = OWN_TOPIC
            self._send(topic_names(RUN)["control"], f"q{n}", json.dumps(definition).encode())
            self.oracle.put(n, f"q{n}", definition)
        self._flush()

    def start(self) -> None:
        """Begin to send readings."""
        self._thread.start()

    def stop(self) -> None:
        """End, and return when the broker has everything."""
        self._stop.set()
        self._thread.join()
        self._flush()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Send nothing for a while; at its beginning the broker has everything."""
        with self._turn:
            self._flush()
            yield

    def use_partition(self, partition: int) -> None:
        """Send streams of its own to a new partition of the feed."""
        with self._turn:
            self._add_streams(partition, N_NEW_STREAMS)

    def send_faulty(self, key: bytes | None, value: bytes, timestamp: int) -> None:
        """Send a record that is no reading; ``timestamp`` in ms."""
        with self._turn:
            self._send(FEED_TOPIC, key, value, timestamp=timestamp)
            self.n_faulty += 1

    def _add_streams(self, partition: int, n: int) -> None:
        for number in range(n):
            stream = f"p{partition}-{number}"
            self._partitions[stream] = partition
            self._positions[stream] = self._rng.uniform(0, WIDTH)

    def _run(self) -> None:
        try:
            for number in range(1, 10**9):
                if self._stop.wait(N_STREAMS / READINGS_PER_SECOND):
                    return
                with self._turn:
                    self._send_round(number)
        except Exception as error:
            self.failure = error

    def _send_round(self, number: int) -> None:
        readings = []
        for stream, partition in self._partitions.items():
            self._positions[stream] += self._rng.uniform(-3, 3)
            x = self._positions[stream]
            self._send(FEED_TOPIC, stream, json.dumps({"id": stream, "ts": number, "x": x}).encode(), partition)
            readings.append(Reading(stream, number, (x,)))
            if self.n_sent[FEED_TOPIC, 0] % FAULTY_EACH == 0:
                self._send(FEED_TOPIC, "s0", FAULTY)
                self.n_faulty += 1
        self.oracle.read(FEED, readings)

    def _send(
        self, topic: str, key: str | bytes | None, value: bytes, partition: int = 0, *, timestamp: int = 0
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition=partition, timestamp=timestamp, on_delivery=self._note_failure
                )
                break
            except BufferError:  # a broker is away for long
                self._producer.poll(0.1)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                    raise
                self._producer.poll(0.1)  # the partition is new, and the client has not heard of it
        self._producer.poll(0)
        self.n_sent[topic, partition] += 1

    def _note_failure(self, error: KafkaError | None, message: object) -> None:
        if error is not None:
            self.failure = KafkaException(error)

    def _flush(self) -> None:
        assert self._producer.flush(FLUSH_SECONDS) == 0
        if self.failure is not None:
            raise self.failure
