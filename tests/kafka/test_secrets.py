"""Secrets are in no log, error, metric, checkpoint, temporary file or process list, with debug logging on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bmq.broker.ports import free_ports
from bmq.config import TopicsSection
from bmq.kafka_io.topics import Topics
from tests.brokers import wait_until
from tests.kafka.test_secured import FEED, SERVICE
from tests.pages import get
from tests.secured import SecuredBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

LIMIT_SECONDS = 240.0
PASSWORDS = ("of-kafka-7c1d", "of-metrics-93ab")  # no other text has them
TOPICS = TopicsSection()


class World:
    """`bmq serve` as a process, with a password for Kafka in its file and one for its metrics in its environment."""

    def __init__(self, broker: SecuredBroker, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "serve.log"
        (self._port,) = free_ports(1)
        options = broker.options_of("service", PASSWORDS[0])
        servers = options.pop("bootstrap.servers")
        lines = "\n".join(f'"{name}" = "{value}"' for name, value in options.items())
        (folder / "temporary").mkdir()
        self._config = folder / "c.toml"
        self._config.write_text(
            f"""
            [kafka]
            bootstrap_servers = "{servers}"
            [kafka.options]
            {lines}
            [feeds.vehicles]
            topic = "{FEED}"
            stream_id = "id"
            dimensions = ["x"]
            [job]
            shards = 2
            checkpoint = "{folder / "checkpoint"}"
            starting_offsets = "earliest"
            [metrics]
            port = {self._port}
            user = "prometheus"
            """
        )

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the service."""
        root = Path(__file__).parents[2]
        own = {
            "PYTHONPATH": str(root / "service"),
            "BMQ_DEBUG": "1",
            "BMQ_METRICS__PASSWORD": PASSWORDS[1],
            "TMPDIR": str(self.folder / "temporary"),
        }
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "bmq.cli", "serve", "--config", str(self._config)]
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | own, start_new_session=True, cwd=self.folder
            )

    def metrics(self) -> str:
        """Return the page of the metrics; empty if nobody answers."""
        try:
            return get(f"http://127.0.0.1:{self._port}/metrics", "prometheus", PASSWORDS[1])[1]
        except OSError:
            return ""

    def has_read(self) -> bool:
        """Whether the service has read a reading."""
        return f'bmq_readings_total{{feed="{FEED}"}} 1.0' in self.metrics()

    def leaks(self) -> list[str]:
        """Return where a password is: in a file that the service wrote, in its metrics, or in a list of processes."""
        found = [str(path) for path in self.folder.rglob("*") if path != self._config and _has_password(path)]
        processes = subprocess.run(["ps", "-ww", "-eo", "args="], capture_output=True, check=True).stdout
        found += ["processes"] if _is_in(processes) else []
        return found + (["metrics"] if _is_in(self.metrics().encode()) else [])


def _has_password(path: Path) -> bool:
    try:
        return path.is_file() and _is_in(path.read_bytes())
    except FileNotFoundError:  # of a batch that has ended
        return False


def _is_in(content: bytes) -> bool:
    return any(password.encode() in content for password in PASSWORDS)


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as broker:
        topics = Topics({"bootstrap.servers": broker.bootstrap_servers})
        others = [FEED, TOPICS.replies, TOPICS.events, TOPICS.dead_letter]
        topics.create_missing(TOPICS.control, others, 1, markers=TOPICS.markers)
        broker.add_user("service", PASSWORDS[0])
        broker.allow("service", SERVICE)
        yield broker


def test_no_password_leaves_the_service(broker: SecuredBroker, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(FEED, json.dumps({"id": "a", "x": 5.0}), "a")
    assert producer.flush(30) == 0
    world = World(broker, tmp_path)
    service = world.start()
    try:
        wait_until(world.has_read, "the reading", LIMIT_SECONDS)
        assert world.leaks() == []

        broker.add_user("service", "another one")
        service.send_signal(signal.SIGTERM)
        assert service.wait(LIMIT_SECONDS) == 0
        service = world.start()
        assert service.wait(LIMIT_SECONDS) == 1
    finally:
        if service.poll() is None:
            os.killpg(service.pid, signal.SIGKILL)
            service.wait()

    said = world.log.read_text()
    assert "Traceback" in said  # debug logging is on
    assert "uthentication" in said.strip().splitlines()[-1]
    assert world.leaks() == []
