"""A batch reads so many commands, and so many bytes of them; a new checkpoint reads all that it finds."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import Producer, TopicPartition

from bmq.job.source.source_settings import Bound, SourceSettings
from bmq.job.source.topic_source import FEW_RECORDS, TopicsReader
from bmq.kafka_io.records_ahead import end_of_records
from tests.brokers import delete_before
from tests.golden.play import PLAN

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(60)]

RECORD_BYTES = 1_000


class World:
    """A topic of records of RECORD_BYTES each."""

    def __init__(self, servers: str, topic: str) -> None:
        self.options = {"bootstrap.servers": servers}
        self.topic = topic

    def send(self, n: int, n_bytes: int = RECORD_BYTES) -> None:
        producer = Producer(self.options)
        for _ in range(n):
            producer.produce(self.topic, b"v" * (n_bytes - 1), b"k", partition=0)
        assert producer.flush(30) == 0

    def ends(self, records: int, n_bytes: int = 10**9, whole_until: int = 0, n: int = 100) -> list[int]:
        """Return where each batch ends, up to the end of the topic or of ``n`` batches."""
        plan = replace(PLAN, client_options=self.options)
        bounds = {self.topic: Bound(records, n_bytes, whole_until)}
        reader = TopicsReader(SourceSettings(plan, {self.topic: {0: 0}}, None, 1, "continue", bounds))
        ends: list[int] = []
        at = reader.initialOffset()
        while len(ends) < n:
            after = reader.latestOffset(at, reader.getDefaultReadLimit())
            if after == at:
                break
            at = after
            ends.append(at[self.topic]["0"])
        return ends


@pytest.fixture
def world(bootstrap_servers: str, topics: Callable[..., str]) -> World:
    return World(bootstrap_servers, topics("control", partitions=1))


def test_a_batch_has_at_most_so_many_commands_and_so_many_bytes(world: World) -> None:
    world.send(500)

    assert world.ends(200) == [200, 400, 500]
    assert world.ends(200, 150 * RECORD_BYTES) == [150, 300, 450, 500]
    assert world.ends(10_000, 1, n=5) == [1, 2, 3, 4, 5]
    assert world.ends(2, n=3) == [2, 4, 6]


def test_what_a_new_checkpoint_finds_is_one_batch(world: World) -> None:
    world.send(500)

    assert world.ends(100, 50 * RECORD_BYTES, whole_until=300) == [300, 350, 400, 450, 500]
    assert world.ends(100, whole_until=10_000) == [500]


def test_few_commands_are_not_measured(world: World) -> None:
    world.send(FEW_RECORDS, 50_000)
    assert world.ends(1_000, 100_000) == [FEW_RECORDS]


def test_gaps_of_transactions_and_what_was_deleted_count_nothing(world: World) -> None:
    producer = Producer(world.options | {"transactional.id": world.topic})
    producer.init_transactions()
    for _ in range(30):  # a record and the mark of its transaction
        producer.begin_transaction()
        producer.produce(world.topic, b"v", b"k", partition=0)
        producer.commit_transaction()

    assert world.ends(10) == [19, 39, 60]
    delete_before(world.options["bootstrap.servers"], world.topic, 0, 20)
    assert world.ends(10) == [39, 60]


def test_an_end_is_behind_a_whole_record(world: World) -> None:
    world.send(3)
    world.send(1, 10 * RECORD_BYTES)
    world.send(3)

    def end(start: int, most_bytes: int, last: int = 7) -> int:
        return end_of_records(world.options, TopicPartition(world.topic, 0, start), last, 100, most_bytes)

    assert end(0, 3 * RECORD_BYTES) == 3
    assert end(0, 3 * RECORD_BYTES - 1) == 2
    assert end(3, 10) == 4  # it is larger than a batch, and has one of its own
    assert end(4, 10**9) == 7
    assert end(0, 10**9, last=2) == 2
