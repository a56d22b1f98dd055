"""What the browser tests look at: a broker, the service as a process, and its page."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bmq.broker.ports import free_ports
from bmq.config import load_config
from bmq.view.figures import MetricsPlace, scrape
from bmq.view.live_page import PageOptions, live_page
from tests.brokers import wait_until

START_LIMIT_SECONDS = 240.0  # on a busy machine; the kernels are compiled before


class Stage:
    """A service that can be killed and started again, and readings for it.

    Attributes
    ----------
    servers : the address of Kafka.
    address : of the page, while `showing`.
    """

    def __init__(self, servers: str, folder: Path) -> None:
        self.servers = servers
        self.address = ""
        self._log = folder / "service.log"
        (self._port,) = free_ports(1)
        self.config = folder / "stage.toml"
        self.config.write_text(
            f"""
            [kafka]
            bootstrap_servers = "{servers}"
            [topics]
            membership = "bmq.membership"
            [feeds.vehicles]
            topic = "vehicles"
            stream_id = "id"
            event_time = "ts"
            dimensions = ["x", "y"]
            [feeds.ships]
            topic = "ships"
            stream_id = "id"
            event_time = "ts"
            dimensions = ["lon", "lat"]
            space = "lonlat"
            [feeds.stocks]
            topic = "stocks"
            stream_id = "id"
            event_time = "ts"
            dimensions = ["price"]
            [job]
            checkpoint = "{folder / "checkpoint"}"
            shards = 1
            starting_offsets = "earliest"
            [metrics]
            port = {self._port}
            """
        )
        self._producer = Producer({"bootstrap.servers": servers})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the service, and return when it runs."""
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "bmq.cli", "serve", "--config", str(self.config)]
            process = self._process = subprocess.Popen(command, stdout=log, stderr=log)

        def is_up() -> bool:
            assert process.poll() is None, self._log.read_text()
            figures = scrape(MetricsPlace(self._port))
            return figures is not None and figures.up

        wait_until(is_up, "the service", START_LIMIT_SECONDS)

    def kill(self) -> None:
        """End the service by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ask the service to end, and wait for that."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)

    @contextmanager
    def showing(self, **options: Any) -> Iterator[str]:
        """Serve the page as long as the context; yield its address."""
        config = load_config(self.config)
        with live_page(config, self.servers, PageOptions(port=0, **options), MetricsPlace(self._port)) as address:
            self.address = address
            yield address

    def read(self, feed: str, stream_id: str, **values: float) -> None:
        """Publish one reading."""
        self.publish(feed, json.dumps({"id": stream_id, "ts": int(time.time() * 1000), **values}))

    def publish(self, topic: str, record: str) -> None:
        """Publish one record as it is."""
        self._producer.produce(topic, record, record)
        self._producer.flush(30)
