"""Transactions of a producer: open at first, then committed or aborted."""

import time
import uuid
from collections.abc import Iterable

from confluent_kafka import KafkaError, Message, Producer

from bmq.kafka_io.topics import Topics

LIMIT_SECONDS = 30.0  # for one request to a broker on this machine; the first one makes the coordinator's topic
POLL_SECONDS = 0.02

Record = tuple[str, str, str | None]  # topic, key, value


class Transaction:
    """A transaction whose records the broker has already. It stays open until `commit` or `abort`.

    A broker says that a transaction has ended before it has written the markers that let readers go on. Both methods
    return when the markers are there; nobody else may write to these topics meanwhile.
    """

    def __init__(self, bootstrap_servers: str, records: Iterable[Record]) -> None:
        name = f"bmq-test-{uuid.uuid4().hex[:8]}"
        self._topics = Topics({"bootstrap.servers": bootstrap_servers, "isolation.level": "read_uncommitted"})
        self._partitions: set[tuple[str, int]] = set()
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": name})
        self._producer.init_transactions(LIMIT_SECONDS)
        self._producer.begin_transaction()
        for topic, key, value in records:
            self._producer.produce(topic, value, key, on_delivery=self._note)
        # An abort drops what is still in the queue, so that the broker would never see it.
        assert self._producer.flush(LIMIT_SECONDS) == 0

    def commit(self) -> None:
        """Make the records count."""
        ends = self._ends()
        self._producer.commit_transaction(LIMIT_SECONDS)
        self._wait_for_markers(ends)

    def abort(self) -> None:
        """Make the records void; they keep their offsets."""
        ends = self._ends()
        self._producer.abort_transaction(LIMIT_SECONDS)
        self._wait_for_markers(ends)

    def _note(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        topic, partition = message.topic(), message.partition()
        assert topic is not None
        assert partition is not None
        self._partitions.add((topic, partition))

    def _ends(self) -> dict[tuple[str, int], int]:
        ends = self._topics.end_offsets({topic for topic, _ in self._partitions})
        return {(topic, partition): ends[topic][partition] for topic, partition in self._partitions}

    def _wait_for_markers(self, before: dict[tuple[str, int], int]) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while any(end <= before[at] for at, end in self._ends().items()):
            assert time.monotonic() < deadline, f"no marker of the transaction within {LIMIT_SECONDS:.0f} s"
            time.sleep(POLL_SECONDS)
