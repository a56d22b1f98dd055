"""Which Kafka the tests use, and topics in it.

BMQ_TEST_BOOTSTRAP=host:port    that one
BMQ_TEST_BROKER=embedded        `bmq.broker.broker.Broker` in a temporary folder
BMQ_TEST_BROKER=container       the official image, through testcontainers
none of them                    a container where an engine answers, else embedded
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unsaid
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bmq.broker.broker import SETTINGS, Broker
from bmq.broker.jars import KAFKA_VERSION
from bmq.broker.ports import HOST, free_ports

ENGINE_LIMIT_SECONDS = 3.0
ANSWER_LIMIT_SECONDS = 30.0  # for one request to a broker on this machine; a busy one takes a second
PAUSE_SECONDS = 0.05  # between two looks at a fact

T = TypeVar("T")


def wait_until(fact: Callable[[], T | None], what: str, limit_seconds: float = ANSWER_LIMIT_SECONDS) -> T:
    """Return the first true answer of ``fact``; after ``limit_seconds`` fail and say ``what`` was awaited."""
    end = time.monotonic() + limit_seconds
    pause = threading.Event()
    while True:
        answer = fact()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit_seconds} s in vain for {what}")
        pause.wait(PAUSE_SECONDS)


def runs(pid: int) -> bool:
    """Whether a process does more than wait for its parent to ask how it ended."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return not state.startswith("Z") and bool(state)


@contextmanager
def living_process() -> Iterator[int]:
    """Yield the process id of somebody who lives as long as the context, unless the test ends him."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def pid_of(broker: Broker) -> int:
    """Return the process id of a broker that runs."""
    return int((broker.directory / ".lock").read_text())


def kill(broker: Broker) -> None:
    """End a broker by SIGKILL, and return when it has ended."""
    os.kill(pid_of(broker), signal.SIGKILL)
    wait_until(lambda: not broker.running, "the broker's end")


def delete_before(bootstrap_servers: str, topic: str, partition: int, offset: int) -> None:
    """Delete the records of a partition before an offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        future.result(ANSWER_LIMIT_SECONDS)


def alter_topic(bootstrap_servers: str, topic: str, option: str, value: str) -> None:
    """Change one option of a topic."""
    entry = ConfigEntry(option, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(ANSWER_LIMIT_SECONDS)


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Yield the bootstrap servers of the Kafka that the environment chooses; stop what was started here."""
    given = os.environ.get("BMQ_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    choice = os.environ.get("BMQ_TEST_BROKER") or ("container" if _engine_answers() else "embedded")
    if choice == "container":
        with _container() as servers:
            yield servers
    elif choice == "embedded":
        with Broker(folder) as broker:
            yield broker.bootstrap_servers
    else:
        raise ValueError(f"BMQ_TEST_BROKER is {choice!r}; it is one of embedded, container, or absent.")


def _engine_answers() -> bool:
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=ENGINE_LIMIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


@contextmanager
def _container() -> Iterator[str]:
    """Yield the address of the official image with the embedded broker's settings."""
    # Not KafkaContainer: that one starts another distribution, by its shell scripts.
    from testcontainers.core.container import DockerContainer

    # Chosen here, since the broker must advertise it before the engine would choose one.
    (port,) = free_ports(1)
    settings = {
        **SETTINGS,
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "BROKER://:9092,CONTROLLER://:9093",
        "advertised.listeners": f"BROKER://{HOST}:{port}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@localhost:9093",
    }
    container = DockerContainer(f"apache/kafka:{KAFKA_VERSION}").with_bind_ports(9092, port)
    for name, value in settings.items():
        container.with_env(f"KAFKA_{name.upper().replace('.', '_')}", value)
    with container:
        servers = f"{HOST}:{port}"
        wait_until(lambda: _answers(servers), f"an answer of the container at {servers}", 120.0)
        yield servers


def _answers(servers: str) -> bool:
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        return bool(client.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False


class Topics:
    """Topics of one test, in a Kafka that other tests may use at the same time."""

    def __init__(self, bootstrap_servers: str, test_name: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._prefix = re.sub(r"[^a-zA-Z0-9._-]+", "-", test_name)[:150]
        self._names: list[str] = []

    def create(self, name: str = "topic", *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Return the full name of a new topic, once every partition of it has a leader."""
        full_name = f"{self._prefix}.{name}.{uuid.uuid4().hex[:8]}"
        new = NewTopic(full_name, partitions, 1, config=dict(config or {}))
        self._admin.create_topics([new])[full_name].result(ANSWER_LIMIT_SECONDS)
        self._names.append(full_name)
        wait_until(lambda: self._leaders(full_name) == partitions, f"a leader of each partition of {full_name}")
        return full_name

    def remove_all(self) -> None:
        """Delete what `create` made."""
        if self._names:
            for future in self._admin.delete_topics(self._names).values():
                future.result(ANSWER_LIMIT_SECONDS)

    def _leaders(self, name: str) -> int:
        topic = self._admin.list_topics(name, timeout=ANSWER_LIMIT_SECONDS).topics[name]
        return sum(partition.leader >= 0 for partition in topic.partitions.values())
