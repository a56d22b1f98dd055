"""Everything that a topic holds, read by kafka-python: the client that the service does not use."""

from collections.abc import Iterator

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

LIMIT_MS = 20_000


def read_all(bootstrap_servers: str, topic: str) -> Iterator[ConsumerRecord]:
    """Yield the records of every partition up to where it ends now; of one partition in their order."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers, consumer_timeout_ms=LIMIT_MS, auto_offset_reset="earliest"
    )
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        left = {at: end for at, end in consumer.end_offsets(partitions).items() if end}
        consumer.assign(list(left))
        while left:
            record = next(consumer)
            at = TopicPartition(record.topic, record.partition)
            if at in left:
                yield record
                if record.offset + 1 >= left[at]:
                    del left[at]
    finally:
        consumer.close()
