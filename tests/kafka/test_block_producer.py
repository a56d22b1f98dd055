"""`bmq.kafka_io.block_producer`: what another client reads is what went in, and every refusal is heard."""

import gc
import os
from collections.abc import Callable

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.partitioner.default import murmur2

from bmq.errors import SetupError
from bmq.kafka_io.block_producer import BlockProducer
from bmq.wire.outgoing import MESSAGE_SCHEMA
from tests.brokers import wait_until
from tests.kafka_records import read_all

Topics = Callable[..., str]
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]


def messages(topic: str, rows: list[Row]) -> pa.RecordBatch:
    """Rows of key, value and headers as the renderers write them."""
    keys, values, headers = zip(*rows, strict=True)
    columns = [pa.array([topic] * len(rows)), pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    lists = [[{"key": name, "value": value} for name, value in pairs] for pairs in headers]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array(lists, MESSAGE_SCHEMA.field("headers").type)], schema=MESSAGE_SCHEMA
    )


def read_rows(servers: str, topic: str) -> list[Row]:
    return [(record.key, record.value, list(record.headers)) for record in read_all(servers, topic)]


def producer(servers: str, **options: str) -> BlockProducer:
    own = {name.replace("_", "."): value for name, value in options.items()}
    return BlockProducer({"bootstrap.servers": servers, "enable.idempotence": "true"} | own)


def test_records_are_what_went_in(bootstrap_servers: str, topics: Topics) -> None:
    topic = topics("events")
    rows: list[Row] = [
        (b"k", b"value", [("a", b"1"), ("b", b"")]),
        (None, b"no key", [("a", "ü".encode()), ("b", bytes(range(256)))]),
        (b"tombstone", None, [("a", b""), ("b", b"2")]),
        (b"", b"", [("a", b"x"), ("b", b"y")]),
        (b"long", b"v" * 500_000, [("a", b"h" * 10_000), ("b", b"z")]),
    ]
    sent = producer(bootstrap_servers)
    sent.produce(messages(topic, rows))
    sent.produce(messages(topic, rows).slice(1, 3))
    sent.produce(messages(topic, [(b"bare", b"no headers", [])]))
    sent.produce(messages(topic, rows).slice(0, 0))
    sent.flush()
    assert sent.failure is None
    assert read_rows(bootstrap_servers, topic) == [*rows, *rows[1:4], (b"bare", b"no headers", [])]


def test_keys_go_to_the_partitions_of_java(bootstrap_servers: str, topics: Topics) -> None:
    topic = topics("events", partitions=7)
    sent = producer(bootstrap_servers, partitioner="murmur2_random")
    sent.produce(messages(topic, [(f"stream-{i}".encode(), b"", []) for i in range(200)]))
    sent.flush()
    found = {record.key: record.partition for record in read_all(bootstrap_servers, topic)}
    assert len(found) == 200
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in found}


def test_a_full_queue_is_waited_for(bootstrap_servers: str, topics: Topics) -> None:
    topics_of_batch = [topics("first"), topics("second")]
    sent = producer(bootstrap_servers, queue_buffering_max_messages="100")
    both = [messages(topic, [(b"k", str(i).encode(), []) for i in range(3_000)]) for topic in topics_of_batch]
    sent.produce(pa.Table.from_batches(both).combine_chunks().to_batches()[0])
    sent.flush()
    for topic in topics_of_batch:
        values = [record.value for record in read_all(bootstrap_servers, topic)]
        assert values == [str(i).encode() for i in range(3_000)]


def test_a_message_that_the_client_refuses(bootstrap_servers: str, topics: Topics) -> None:
    sent = producer(bootstrap_servers, message_max_bytes="2000")
    with pytest.raises(KafkaException) as caught:
        sent.produce(messages(topics("events"), [(b"k", b"fits", []), (b"k", b"v" * 3_000, [])]))
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_message_that_the_broker_refuses(bootstrap_servers: str) -> None:
    sent = producer(bootstrap_servers, topic_metadata_propagation_max_ms="1")
    sent.produce(messages("nobody-made-this-topic", [(b"k", b"v", [])]))
    sent.flush()
    assert sent.failure is not None
    assert sent.failure.topic == "nobody-made-this-topic"
    assert sent.failure.error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}


def test_a_wrong_option() -> None:
    with pytest.raises(SetupError, match=r'No such configuration property: "acks.please"'):
        BlockProducer({"bootstrap.servers": "127.0.0.1:1", "acks.please": "all"})


def test_a_producer_that_is_dropped_takes_its_threads_with_it(bootstrap_servers: str, topics: Topics) -> None:
    topic = topics("events")
    before = n_threads()
    sent = producer(bootstrap_servers)
    sent.produce(messages(topic, [(b"k", b"v", [])]))
    sent.flush()
    assert n_threads() > before
    del sent
    gc.collect()
    wait_until(lambda: n_threads() <= before, "the end of the threads")


def n_threads() -> int:
    return len(os.listdir("/proc/self/task"))
