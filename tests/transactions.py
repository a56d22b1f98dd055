"""Transactions of a producer: open at first, then committed or aborted."""

import uuid
from collections.abc import Iterable

from confluent_kafka import Producer

LIMIT_SECONDS = 30.0  # for one request to a broker on this machine; the first one makes the coordinator's topic

Record = tuple[str, str, str | None]  # topic, key, value


class Transaction:
    """A transaction whose records the broker has already. It stays open until `commit` or `abort`."""

    def __init__(self, bootstrap_servers: str, records: Iterable[Record]) -> None:
        name = f"bmq-test-{uuid.uuid4().hex[:8]}"
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": name})
        self._producer.init_transactions(LIMIT_SECONDS)
        self._producer.begin_transaction()
        for topic, key, value in records:
            self._producer.produce(topic, value, key)
        # An abort drops what is still in the queue, so that the broker would never see it.
        assert self._producer.flush(LIMIT_SECONDS) == 0

    def commit(self) -> None:
        """Make the records count."""
        self._producer.commit_transaction(LIMIT_SECONDS)

    def abort(self) -> None:
        """Make the records void; they keep their offsets."""
        self._producer.abort_transaction(LIMIT_SECONDS)
