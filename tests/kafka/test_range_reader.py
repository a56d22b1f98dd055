"""A range of offsets is read to its end by position: over gaps, markers, compression and records of any sort."""

import uuid
from collections.abc import Iterable

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported unsaid

from bmq.errors import SetupError
from bmq.kafka_io import range_reader
from bmq.kafka_io.librdkafka import Connection, connection
from bmq.kafka_io.range_reader import BLOCK_RECORDS, Gap, RecordBlock, read_range
from tests.brokers import delete_before
from tests.transactions import LIMIT_SECONDS, Transaction

pytestmark = pytest.mark.kafka

LAST_TIME = 2**63 - 1
ANY_TIME = {"message.timestamp.before.max.ms": str(LAST_TIME), "message.timestamp.after.max.ms": str(LAST_TIME)}


@pytest.fixture(scope="module")
def client(bootstrap_servers: str) -> Connection:
    return connection((("bootstrap.servers", bootstrap_servers),))


@pytest.fixture
def topic(bootstrap_servers: str) -> str:
    name = f"range-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in admin.create_topics([NewTopic(name, 2, 1, config=ANY_TIME)]).values():
        future.result(LIMIT_SECONDS)
    return name


def send(servers: str, topic: str, values: Iterable[bytes | None], **options: str) -> None:
    # Idempotent: a request that is sent again on a busy machine keeps its place.
    own = {"enable.idempotence": "true", "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": servers, **own, **options})
    for value in values:
        producer.produce(topic, value, partition=1)
    assert producer.flush(LIMIT_SECONDS) == 0


def records(client: Connection, topic: str, start: int, end: int) -> list[tuple[int, bytes | None]]:
    """Return (offset, value) of a range without gaps."""
    found = list(read_range(client, topic, 1, start, end))
    assert all(isinstance(block, RecordBlock) for block in found)
    return [
        pair
        for block in found
        if isinstance(block, RecordBlock)
        for pair in zip(block.offsets.tolist(), block.values.to_pylist(), strict=True)
    ]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_any_range_has_its_records_whatever_the_compression(
    client: Connection, bootstrap_servers: str, topic: str, compression: str
) -> None:
    values = [str(n).encode() for n in range(3000)]
    send(bootstrap_servers, topic, values, **{"compression.type": compression})

    # Forward, again, backward, in the middle of a batch, with a hole in between, and nothing.
    for start, end in [(0, 1000), (1000, 3000), (500, 700), (0, 3), (2999, 3000), (5, 5)]:
        assert records(client, topic, start, end) == list(enumerate(values))[start:end]


def test_more_records_than_a_block_come_in_blocks(client: Connection, bootstrap_servers: str, topic: str) -> None:
    n = 2 * BLOCK_RECORDS + 5
    send(bootstrap_servers, topic, (str(i).encode() for i in range(n)))

    blocks = [block for block in read_range(client, topic, 1, 0, n) if isinstance(block, RecordBlock)]

    assert [block.offsets.size for block in blocks] == [BLOCK_RECORDS, BLOCK_RECORDS, 5]
    assert [value for block in blocks for value in block.values.to_pylist()] == [str(i).encode() for i in range(n)]


def test_long_records_end_a_block_early(
    client: Connection, bootstrap_servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "BLOCK_BYTES", 100)
    values = [bytes([n]) * 60 for n in range(50)]
    send(bootstrap_servers, topic, values)

    assert records(client, topic, 0, 50) == list(enumerate(values))


def test_keys_nulls_and_timestamps_come_as_they_are(client: Connection, bootstrap_servers: str, topic: str) -> None:
    sent = [(b"k", b"v", 1), (None, b"", 2), (b"", None, LAST_TIME), (b"\xff\0", b"\0", 5), (None, None, 6)]
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for key, value, time in sent:
        producer.produce(topic, value, key, partition=1, timestamp=time, headers=[("h", b"x")])
    assert producer.flush(LIMIT_SECONDS) == 0

    (block,) = read_range(client, topic, 1, 0, 5)

    assert isinstance(block, RecordBlock)
    block.keys.validate(full=True)
    block.values.validate(full=True)
    assert block.keys.type == pa.large_binary()
    found = zip(block.keys.to_pylist(), block.values.to_pylist(), block.times.tolist(), strict=True)
    assert list(found) == sent


def test_aborted_records_and_markers_are_gaps_that_end_a_range(
    client: Connection, bootstrap_servers: str, topic: str
) -> None:
    def write(value: str) -> Transaction:
        return Transaction(bootstrap_servers, [(topic, "key", value)] * 3)

    # Keyed records: which of the two partitions gets them does not matter, as long as it is the same one.
    write("void").abort()
    write("counts").commit()
    write("void").abort()
    partition = next(p for p in (0, 1) if client.watermarks(topic, p, 10_000) == (0, 12))

    def values(start: int, end: int) -> list[bytes | None]:
        found = read_range(client, topic, partition, start, end)
        return [value for block in found if isinstance(block, RecordBlock) for value in block.values.to_pylist()]

    assert values(0, 12) == [b"counts"] * 3
    assert values(0, 4) == []
    assert values(0, 6) == [b"counts"] * 2
    assert values(7, 12) == []
    assert values(11, 12) == []


def test_what_was_deleted_is_a_gap_and_the_rest_is_read(client: Connection, bootstrap_servers: str, topic: str) -> None:
    send(bootstrap_servers, topic, [b"x"] * 10)
    delete_before(bootstrap_servers, topic, 1, 4)

    gap, block = read_range(client, topic, 1, 1, 10)
    assert gap == Gap(topic, 1, expected=1, first=4)
    assert isinstance(block, RecordBlock)
    assert block.offsets.tolist() == list(range(4, 10))
    assert list(read_range(client, topic, 1, 0, 3)) == [Gap(topic, 1, expected=0, first=4)]


def test_offsets_beyond_the_end_are_a_gap(client: Connection, bootstrap_servers: str, topic: str) -> None:
    send(bootstrap_servers, topic, [b"x"] * 3)

    assert list(read_range(client, topic, 1, 7, 9)) == [Gap(topic, 1, expected=7, first=3)]


def test_a_broker_that_gives_nothing_is_waited_for_up_to_a_bound(
    client: Connection, bootstrap_servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "PATIENCE_SECONDS", 0.5)
    send(bootstrap_servers, topic, [b"x"] * 3)

    # The offset that comes next: the partition ends before it, and no record comes.
    with pytest.raises(SetupError, match=rf"'{topic}' partition 1 .* gave nothing from offset 3 on for 0 s"):
        list(read_range(client, topic, 1, 0, 4))


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(SetupError, match=r'"nonsense".*\[kafka.options\]'):
        connection((("bootstrap.servers", "127.0.0.1:9"), ("nonsense", "1")))
