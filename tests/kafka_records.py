"""Everything that a topic holds, read by kafka-python: the client that the service does not use."""

import time
from collections.abc import Iterator

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

LIMIT_MS = 20_000


def read_all(bootstrap_servers: str, topic: str) -> Iterator[ConsumerRecord]:
    """Yield the committed records of every partition up to where it ends now; of one partition in their order.

    The end of a transaction takes an offset, too, so the last record may be before the last offset.
    """
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    deadline = time.monotonic() + LIMIT_MS / 1000  # for the next records: hundreds of thousands take longer
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        left = {at: end for at, end in consumer.end_offsets(partitions).items() if end}
        consumer.assign(list(left))
        while left:
            assert time.monotonic() < deadline, f"nothing came for {LIMIT_MS} ms, and {left} is not read to its end"
            for records in consumer.poll(timeout_ms=100).values():
                yield from records
                deadline = time.monotonic() + LIMIT_MS / 1000
            left = {at: end for at, end in left.items() if consumer.position(at) < end}
    finally:
        consumer.close()
