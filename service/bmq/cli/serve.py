"""`bmq serve` and `bmq broker`: the two commands that run until a signal ends them."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from bmq.broker.broker import Broker
from bmq.broker.ports import is_free
from bmq.cli.log_lines import log_to_stderr
from bmq.cli.target import BROKER_PORT, USUAL_CONFIG
from bmq.config import load_config
from bmq.errors import SetupError

if TYPE_CHECKING:
    from bmq.job.service import Service

BROKER_FOLDER = Path("var/kafka")

# How often `bmq broker` checks whether Kafka has ended by itself. Each check is one look at a process.
LIVENESS_SECONDS = 1.0

_log = logging.getLogger("bmq")


def serve(
    config: Annotated[Path, typer.Option("--config", help="Configuration file.")] = USUAL_CONFIG,
) -> None:
    """Run the service. SIGTERM or Ctrl-C: finish the batch and stop; a second one: stop at once."""
    loaded = load_config(config)
    log_to_stderr(loaded.log.level, loaded.log.format)
    # Not at the top: the import of Spark takes a second, and no other command needs it.
    from bmq.job.service import Service

    with _kafka(loaded.kafka.bootstrap_servers) as servers:
        _run(Service(loaded, servers))
    _log.info("Stopped.")


def broker(
    port: Annotated[
        int, typer.Option("--port", help="Port to listen at; 0: a free one.", min=0, max=65535)
    ] = BROKER_PORT,
    folder: Annotated[Path, typer.Option("--dir", help="Folder of its data.")] = BROKER_FOLDER,
) -> None:
    """Run a one-node Kafka for a laptop, until Ctrl-C or SIGTERM."""
    log_to_stderr()
    asked = threading.Event()
    _set_on_signal(asked)
    with Broker(folder, port or None) as kafka:
        typer.echo(f"Kafka listens at {kafka.bootstrap_servers}, data in {folder}. Ctrl-C stops it.")
        while not asked.wait(LIVENESS_SECONDS):
            if not kafka.running:
                raise SetupError(f"Kafka has ended by itself. {kafka.log_path} says why.")


def _run(service: "Service") -> None:
    """Run the service until a signal asks it to stop, or until it ends by itself.

    1. Install the signal handler and start. During the start a signal is only recorded, because an unfinished start
       cannot be stopped cleanly.
    2. Install the handler again: Spark has installed its own, which would cancel the batch.
    3. Let another thread stop the service after a signal: a handler that blocked until the end of the batch would block
       the thread that must notice this end.
    4. Block until the service has ended, and until the stop has ended as well.
    """
    asked = threading.Event()
    _set_on_signal(asked)  # 1
    with ThreadPoolExecutor(1) as pool:
        try:
            service.start()
            _set_on_signal(asked)  # 2
            stopping = pool.submit(_stop_when, asked, service)  # 3
        except BaseException as error:
            service.stop()
            if isinstance(error, KeyboardInterrupt):  # Spark's handler received Ctrl-C, before step 2
                return
            raise
        try:
            service.wait()  # 4
        finally:
            asked.set()
            stopping.result()


def _stop_when(asked: threading.Event, service: "Service") -> None:
    asked.wait()
    service.stop()


def _set_on_signal(asked: threading.Event) -> None:
    """Let the first SIGINT or SIGTERM set ``asked``, and the second end the process with exit code 1."""

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            os._exit(1)
        asked.set()
        _log.info("%s: stopping; once more to stop at once.", signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)


@contextmanager
def _kafka(bootstrap_servers: str | None) -> Iterator[str]:
    """Yield the address of the configured Kafka, or of a broker that runs as long as the context."""
    if bootstrap_servers is not None:
        yield bootstrap_servers
        return
    # The usual port, so that `bmq query` in another terminal finds it.
    port = BROKER_PORT if is_free(BROKER_PORT) else None
    with Broker(BROKER_FOLDER, port) as kafka:
        hint = "" if port else f" (port {BROKER_PORT} is taken; clients need --bootstrap {kafka.bootstrap_servers})"
        _log.info("No Kafka is configured, so the service runs its own at %s%s.", kafka.bootstrap_servers, hint)
        yield kafka.bootstrap_servers
