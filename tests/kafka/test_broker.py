"""The one-node Kafka: two clients that share no code agree on it, it keeps its data, it never outlives us."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unsaid
    AdminClient,
    ConfigResource,
    ResourceType,
)
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from bmq.broker.broker import Broker
from bmq.broker.ports import HOST, free_ports
from bmq.errors import SetupError
from tests.brokers import Topics, pid_of, wait_until

pytestmark = pytest.mark.kafka

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]  # key, value, headers

LARGE = 4_000_000  # bytes; four times Kafka's own limit, and far below ours

RECORDS: list[Record] = [
    (b"k1", b"plain", []),
    (None, b"no key", [("h", b"1")]),
    (b"k1", None, [("twice", b"a"), ("twice", b"b"), ("null", None), ("empty", b"")]),
    (b"", b"", []),
    ("schlüssel".encode(), bytes(range(256)), [("bytes", bytes(range(256)))]),
]


def produce(servers: str, topic: str, records: list[tuple[bytes | None, bytes | None, list]]) -> None:  # type: ignore[type-arg]
    producer = Producer({"bootstrap.servers": servers, "message.max.bytes": 2 * LARGE})
    for key, value, headers in records:
        producer.produce(topic, value, key, headers=headers)
    assert producer.flush(30) == 0


def read_all(servers: str, topic: str) -> list[ConsumerRecord]:
    """Return everything in the one partition of ``topic``, by the second client."""
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=None, auto_offset_reset="earliest")
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    records: list[ConsumerRecord] = []

    def all_are_here() -> bool:
        for batch in consumer.poll(timeout_ms=200).values():
            records.extend(batch)
        return bool(consumer.position(partition) >= end)

    wait_until(all_are_here, f"{end} records of {topic}")
    consumer.close()
    return records


def in_use(folder: Path) -> bool:
    """Whether a broker's process has ``folder``: it holds the lock as long as it lives."""
    with (folder / ".lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """An embedded broker, whichever one the other tests use."""
    with Broker(tmp_path_factory.mktemp("own, with a comma")) as broker:
        yield broker


def test_both_clients_agree_on_keys_values_headers_and_nulls(
    bootstrap_servers: str, topics: Callable[..., str]
) -> None:
    topic = topics()
    produce(bootstrap_servers, topic, RECORDS)

    read = read_all(bootstrap_servers, topic)

    assert [(one.key, one.value, list(one.headers)) for one in read] == RECORDS
    assert [one.offset for one in read] == list(range(len(RECORDS)))


def test_a_record_of_megabytes_passes(bootstrap_servers: str, topics: Callable[..., str]) -> None:
    topic = topics()
    produce(bootstrap_servers, topic, [(b"k", b"x" * LARGE, [])])

    assert [len(one.value) for one in read_all(bootstrap_servers, topic)] == [LARGE]


def test_a_topic_can_be_compacted(bootstrap_servers: str, topics: Callable[..., str]) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topics(config={"cleanup.policy": "compact"}))
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    assert admin.describe_configs([resource])[resource].result(30)["cleanup.policy"].value == "compact"


def test_asking_for_an_unknown_topic_makes_none(own_broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap_servers})

    assert admin.list_topics("unknown", timeout=30).topics["unknown"].error is not None
    assert "unknown" not in admin.list_topics(timeout=30).topics


def test_a_restart_on_another_port_keeps_topics_and_records(own_broker: Broker) -> None:
    topic = Topics(own_broker.bootstrap_servers, "restart").create()
    produce(own_broker.bootstrap_servers, topic, RECORDS)
    before = own_broker.bootstrap_servers

    own_broker.stop()
    assert not own_broker.running
    assert not in_use(own_broker.directory)
    own_broker.start()

    assert own_broker.running
    assert own_broker.bootstrap_servers != before
    assert [one.value for one in read_all(own_broker.bootstrap_servers, topic)] == [value for _, value, _ in RECORDS]


def test_a_folder_has_one_broker(own_broker: Broker) -> None:
    pid = pid_of(own_broker)

    with pytest.raises(SetupError, match=f"in use by another broker, process {pid}. Stop that one"):
        Broker(own_broker.directory).start()

    assert own_broker.running


def test_a_control_c_at_the_terminal_is_not_for_the_broker(own_broker: Broker) -> None:
    pid = pid_of(own_broker)

    assert os.getsid(pid) == pid != os.getsid(0)


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(SetupError, match=f"port {port} of {HOST} cannot be used .* choose another"):
            Broker(tmp_path / "kafka", port).start()

    assert not (tmp_path / "kafka").exists()


def test_a_port_taken_after_we_looked_is_given_up_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOST, 0)) as other:
        taken = other.getsockname()[1]
        looks = iter([[taken, *free_ports(1)]] * 2)  # for the format, and for the first start
        monkeypatch.setattr("bmq.broker.broker.free_ports", lambda count: next(looks, None) or free_ports(count))

        with Broker(tmp_path) as broker:
            assert broker.bootstrap_servers != f"{HOST}:{taken}"
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            assert len(admin.list_topics(timeout=30).brokers) == 1


def test_a_start_that_fails_shows_the_end_of_the_log_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=anothers\nnode.id=7\n")

    with pytest.raises(SetupError, match=r"(?s)ended with exit code 1 .*broker\.log:\n.*node id 7"):
        Broker(tmp_path).start()

    assert not in_use(tmp_path)


def test_a_service_that_is_killed_leaves_no_broker(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from bmq.broker.broker import Broker;"
        "Broker(Path(sys.argv[1])).start(); print('started', flush=True); sys.stdin.read()"
    )
    service = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"started\n"
        assert in_use(tmp_path)

        service.kill()

    wait_until(lambda: not in_use(tmp_path), "the end of the broker")
