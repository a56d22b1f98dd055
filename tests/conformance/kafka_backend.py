"""Scenarios through Kafka against the running service.

Writes with confluent-kafka, which the service's own clients use, and reads with kafka-python, which shares no
code with them: what both agree on is Kafka's and not a client's. Every topic has one partition, and a name of
its run only, so that a broker may be shared.
"""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import KafkaError, Message
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from bmq.conformance.play import ControlRecord, Seen
from bmq.conformance.scenario import Scenario, all_feeds, with_topic
from bmq.kafka_io.connect import producer
from bmq.kafka_io.topics import Topics
from tests.conformance.service import Service, ServiceFailed, topic_names, write_config
from tests.ledger_check import read_ledger

ANSWER_LIMIT_SECONDS = 30.0  # for one request to a broker on the same machine; a busy one takes a second


@contextmanager
def running_service(scenarios: Sequence[Scenario], folder: Path, bootstrap_servers: str) -> Iterator["KafkaBackend"]:
    """Yield a back-end whose service serves the feeds of all scenarios.

    ``folder`` keeps the configuration, the checkpoint and the log.
    """
    run = f"bmq-conformance-{uuid.uuid4().hex[:8]}"
    feeds = all_feeds(scenarios)
    config, served = write_config(folder, run, bootstrap_servers, feeds)
    control, *outputs = topic_names(run).values()
    others = [*outputs, *(f"{run}-{feed}" for feed in feeds)]
    Topics({"bootstrap.servers": bootstrap_servers}).create_missing(control, others, n_partitions=1)
    with ExitStack() as stack:
        service = Service(config)
        stack.callback(service.kill)
        backend = KafkaBackend(run, bootstrap_servers, service, served)
        stack.callback(backend.close)
        backend.wait_until_ready()
        yield backend


class KafkaBackend:
    """One running service, and the topics between it and the scenarios."""

    def __init__(self, run: str, bootstrap_servers: str, service: Service, served: set[str]) -> None:
        self._run = run
        self._service = service
        self._served = served
        self._topics = topic_names(run)
        self._end_offsets: dict[str, int] = {}
        self._servers = bootstrap_servers
        # Linger past any pause between two calls, so that only flush sends: a step is one record batch.
        self._producer = producer({"bootstrap.servers": bootstrap_servers, "linger.ms": "10000"})
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            group_id=None,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        self._outputs = [TopicPartition(self._topics[role], 0) for role in ("replies", "events", "dead_letter")]
        self._named: set[str] = set()  # topics that queries name for their events
        self._consumer.assign(self._outputs)

    def wait_until_ready(self) -> None:
        """Wait until a batch of the service has read a command; its reply is for nobody.

        A new checkpoint notes where the control topic ends, and deletes of unknown queries before that get no
        answer; and a service that gets its second signal while it starts has not been restarted.
        """
        self.command([("ready", b"{}")])
        self._service.wait_for(self._end_offsets)

    def close(self) -> None:
        """Close the clients; the service goes on."""
        self._producer.close()
        self._consumer.close()

    def restart(self, how: str) -> None:
        """End the service by "kill" or "stop", and start it on the same checkpoint."""
        self._service.restart(how)
        self.wait_until_ready()

    def ledger_faults(self) -> list[str]:
        """Return what breaks the ledger in the events of the whole run."""
        report = read_ledger(self._servers, self._topics["events"])
        return report.faults + report.repeats

    def command(self, records: Sequence[ControlRecord]) -> list[int]:
        """Publish to the control topic; return the offsets. Topics that queries name get the name of this run."""
        own = [(query_id, with_topic(value, self._own_topic)) for query_id, value in records]
        return self._publish(self._topics["control"], own)

    def publish(self, feed: str, values: Sequence[bytes]) -> None:
        """Publish record values to the feed's topic, as one record batch."""
        topic = f"{self._run}-{feed}"
        self._publish(topic, [(None, value) for value in values])
        if feed not in self._served:
            self._end_offsets.pop(topic, None)  # nobody reads it, so nobody is to be waited for

    def settle(self) -> Seen:
        """Wait until a finished batch has read all that was published; return what was written since."""
        self._service.wait_for(self._end_offsets)
        seen = Seen()
        for topic in self._named & self._consumer.topics():
            self._named.remove(topic)
            self._outputs += [TopicPartition(topic, n) for n in self._consumer.partitions_for_topic(topic) or ()]
            self._consumer.assign(self._outputs)
        ends = self._consumer.end_offsets(self._outputs)
        deadline = time.monotonic() + ANSWER_LIMIT_SECONDS
        while any(self._consumer.position(partition) < end for partition, end in ends.items()):
            if time.monotonic() > deadline:
                raise ServiceFailed(f"the broker did not hand out what is up to {ends}")
            for records in self._consumer.poll(timeout_ms=200).values():
                for record in records:
                    self._keep(record, seen)
        return seen

    def _keep(self, record: ConsumerRecord, seen: Seen) -> None:
        if record.topic == self._topics["replies"]:
            seen.replies.append(json.loads(record.value))
        elif record.topic != self._topics["dead_letter"]:
            seen.events.append(json.loads(record.value))
        else:
            headers = {name: value.decode() for name, value in record.headers}
            seen.dead.append((headers["topic"].removeprefix(f"{self._run}-"), headers["code"]))

    def _own_topic(self, topic: str) -> str:
        own = f"{self._run}-of-{topic}"
        if own not in {partition.topic for partition in self._outputs}:
            self._named.add(own)
        return own

    def _publish(self, topic: str, records: Sequence[tuple[str | None, bytes | None]]) -> list[int]:
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None or offset is None:
                raise ServiceFailed(f"the broker refused a record for {topic}: {error}")
            offsets.append(offset)

        for key, value in records:
            self._producer.produce(topic, key=key, value=value, partition=0, on_delivery=delivered)
        n_unsent = self._producer.flush(ANSWER_LIMIT_SECONDS)
        if n_unsent or len(offsets) != len(records):
            raise ServiceFailed(f"the broker took {len(offsets)} of {len(records)} records for {topic}")
        if offsets:
            self._end_offsets[topic] = offsets[-1] + 1
        return offsets
