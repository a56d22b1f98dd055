"""The demo's service: its own configuration, and `bmq serve` as a child process."""

import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bmq.broker.child_process import Watched
from bmq.demo.generated_streams import World
from bmq.errors import SetupError
from bmq.view.figures import MetricsPlace, scrape

START_LIMIT_SECONDS = 180.0  # Spark takes 10 to 20; the first start ever also compiles the kernels
STOP_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.2
LOG_LINES_SHOWN = 15


def write_config(folder: Path, worlds: Sequence[World], servers: str, metrics_port: int) -> Path:
    """Write the service's configuration into ``folder`` and return its path."""
    tables: dict[str, dict[str, object]] = {
        "kafka": {"bootstrap_servers": servers},
        "topics": {"membership": "bmq.membership"},
        **{
            f"feeds.{world.feed}": {
                "topic": world.feed,
                "stream_id": world.id_field,
                "event_time": "ts",
                "dimensions": list(world.dimensions),
                "space": world.space,
            }
            for world in worlds
        },
        "job": {"checkpoint": str(folder / "checkpoint"), "shards": 2, "starting_offsets": "earliest"},
        "metrics": {"port": metrics_port},
    }
    path = folder / "demo.toml"
    # Texts, numbers and lists have the same notation in JSON and TOML.
    path.write_text(
        "\n".join(
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
            for name, table in tables.items()
        ),
        encoding="utf-8",
    )
    return path


class ServiceProcess:
    """A running `bmq serve`.

    Parameters
    ----------
    config : the configuration file; the log is written beside it.
    metrics_port : the port of the service's metrics.
    """

    def __init__(self, config: Path, metrics_port: int) -> None:
        self._log = config.with_name("service.log")
        self._metrics_port = metrics_port
        with self._log.open("wb") as log:
            command = [sys.executable, "-m", "bmq.cli", "serve", "--config", str(config)]
            self._process = Watched(command, folder=config.parent, log=log, keep_open=log.fileno())

    def wait_until_up(self) -> None:
        """Return when the streaming query runs.

        Raises
        ------
        SetupError
            The service ends, or takes longer than START_LIMIT_SECONDS; the message has the end of its log.
        """
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < deadline:
            self.check()
            figures = scrape(MetricsPlace(self._metrics_port))
            if figures is not None and figures.up:
                return
            time.sleep(POLL_SECONDS)
        raise self._failure(f"did not start within {START_LIMIT_SECONDS:g} s")

    def check(self) -> None:
        """Raise SetupError if the process has ended."""
        code = self._process.exit_code()
        if code is not None:
            raise self._failure(f"ended with exit code {code}")

    def stop(self) -> None:
        """Stop the service; it finishes its batch first."""
        self._process.stop(STOP_LIMIT_SECONDS)

    def _failure(self, what: str) -> SetupError:
        with self._log.open(encoding="utf-8", errors="replace") as log:
            last = "".join(deque(log, LOG_LINES_SHOWN))
        return SetupError(f"The demo's service {what}. The end of its log:\n{last}\n'bmq doctor' may say why.")


@contextmanager
def running_service(config: Path, metrics_port: int) -> Iterator[ServiceProcess]:
    """Yield the service when it runs; stop it afterwards."""
    service = ServiceProcess(config, metrics_port)
    try:
        service.wait_until_up()
        yield service
    finally:
        service.stop()
