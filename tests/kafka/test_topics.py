"""Topics on a real broker: made as the service needs them, and where they begin and end."""

import uuid

import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # re-exported unsaid
from kafka import KafkaProducer

from bmq.broker.ports import free_ports
from bmq.errors import SetupError
from bmq.kafka_io.connect import admin_client
from bmq.kafka_io.topics import Topics

pytestmark = pytest.mark.kafka

LIMIT_SECONDS = 20.0


@pytest.fixture
def topics(bootstrap_servers: str) -> Topics:
    return Topics({"bootstrap.servers": bootstrap_servers})


@pytest.fixture
def name() -> str:
    return f"bmq-topics-{uuid.uuid4().hex[:8]}"


def make(bootstrap_servers: str, name: str, n_partitions: int) -> None:
    admin = admin_client({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(name, n_partitions, 1)])[name].result(LIMIT_SECONDS)


def test_the_control_topic_is_made_compacted_with_one_partition(topics: Topics, name: str) -> None:
    made = topics.create_missing(name, [f"{name}-feed"], 4)

    control, feed = topics.state(name), topics.state(f"{name}-feed")
    assert made == [name, f"{name}-feed"]
    assert control is not None
    assert feed is not None
    assert (control.n_partitions, control.compacted) == (1, True)
    assert (feed.n_partitions, feed.compacted) == (4, False)


def test_the_clock_topic_is_made_with_one_partition_and_the_membership_topic_compacted(
    topics: Topics, name: str
) -> None:
    made = topics.create_missing(name, [], 4, clock=f"{name}-clock", membership=f"{name}-membership")

    clock, membership = topics.state(f"{name}-clock"), topics.state(f"{name}-membership")
    assert made == [name, f"{name}-clock", f"{name}-membership"]
    assert clock is not None
    assert membership is not None
    assert (clock.n_partitions, clock.compacted) == (1, False)
    assert (membership.n_partitions, membership.compacted) == (4, True)


def test_nobody_can_set_the_timestamps_of_the_control_and_the_clock_topic(
    topics: Topics, name: str, bootstrap_servers: str
) -> None:
    topics.create_missing(name, [], 1, clock=f"{name}-clock")

    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
    written = [producer.send(topic, b"v", b"k", timestamp_ms=1).get(LIMIT_SECONDS) for topic in (name, f"{name}-clock")]
    producer.close()
    assert all(record.timestamp > 1_700_000_000_000 for record in written)


def test_what_is_there_already_is_left_alone(topics: Topics, name: str, bootstrap_servers: str) -> None:
    make(bootstrap_servers, f"{name}-feed", 2)
    topics.create_missing(name, [f"{name}-feed"], 4)

    assert topics.create_missing(name, [f"{name}-feed"], 4) == []
    assert topics.partitions()[f"{name}-feed"] == 2


def test_a_control_topic_with_two_partitions_is_refused(topics: Topics, name: str, bootstrap_servers: str) -> None:
    make(bootstrap_servers, name, 2)

    with pytest.raises(SetupError, match=rf"{name}.*2 partitions.*Name another"):
        topics.create_missing(name, [])


def test_a_topic_that_is_not_there_has_no_state_and_no_offsets(topics: Topics, name: str) -> None:
    assert topics.state(name) is None
    assert topics.end_offsets([name]) == {}


def test_offsets_count_records_of_each_partition(topics: Topics, name: str, bootstrap_servers: str) -> None:
    make(bootstrap_servers, name, 2)
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
    for partition, n in ((0, 3), (1, 5)):
        for _ in range(n):
            producer.send(name, b"{}", partition=partition)
    producer.close()

    assert topics.end_offsets([name]) == {name: {0: 3, 1: 5}}
    assert topics.begin_offsets([name]) == {name: {0: 0, 1: 0}}


def test_a_broker_that_is_not_there_is_one_sentence_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmq.kafka_io.topics.CONNECT_TIMEOUT_SECONDS", 0.5)
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"

    with pytest.raises(SetupError, match=rf"No Kafka answers at {nowhere}.*bmq broker"):
        Topics({"bootstrap.servers": nowhere}).partitions()


def test_an_option_that_kafka_does_not_know_is_named() -> None:
    with pytest.raises(SetupError, match=r'"nonsense".*\[kafka.options\]'):
        Topics({"bootstrap.servers": "127.0.0.1:9", "nonsense": "1"})
