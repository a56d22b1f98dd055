"""How long after a kill the first event comes, with a million streams in the state.

    python -m bench.restart [--streams 1000000] [--repeats 3]

Claim: under 10 s with 1 M streams and 10,000 queries. The service reads two rounds of all streams and is stopped. Then,
again and again: 33,000 readings arrive, a second of streams that report each 30 s; the service starts from its
checkpoint; the clock runs from the start of its process to the first event that a consumer of committed records has;
then its process and its JVM get SIGKILL, and the others end with them. At the end the service runs once more, and the
events of sampled streams are compared with the definition.
"""

import os
import signal
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console

from bench.answers import events_by_stream, expected_by_stream
from bench.fill import fill_queries, fill_readings
from bench.latency import BATCH_READINGS, N_QUERIES, start_service, wait_for_line
from bench.pipeline import run_batches
from bench.workload import Workload, side_of_squares
from bmq.broker.broker import Broker
from bmq.kafka_io.topic_reader import Start, TopicReader

N_WAITING = 33_000
N_SAMPLED = 100
N_FIRST_ROUNDS = 2
LIMIT_SECONDS = 300.0
TOPIC, CONTROL, EVENTS = "restart", "restart.control", "restart.events"

_console = Console(stderr=True)


def main(streams: int = 1_000_000, repeats: int = 3) -> None:
    """Measure, check the answers, and print the line.

    Parameters
    ----------
    streams : N_WAITING at least.
    """
    if streams < N_WAITING:
        raise typer.BadParameter(f"--streams must be at least {N_WAITING:,}: so many report each time")
    workload = Workload(streams, N_FIRST_ROUNDS + repeats, N_QUERIES, side_of_squares(N_QUERIES))
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, Broker(Path(name) / "kafka") as broker:
        bootstrap, folder = broker.bootstrap_servers, Path(name) / "service"
        fill_queries(bootstrap, CONTROL, workload)
        fill_readings(bootstrap, TOPIC, replace(workload, n_rounds=N_FIRST_ROUNDS))
        run_batches("bmq", bootstrap, TOPIC, BATCH_READINGS, folder, CONTROL, EVENTS)
        seconds = [measure(bootstrap, folder, workload, N_FIRST_ROUNDS + repeat) for repeat in range(repeats)]
        run_batches("bmq", bootstrap, TOPIC, BATCH_READINGS, folder, CONTROL, EVENTS)
        check(bootstrap, workload)
    print(
        f"restart streams={streams} queries={N_QUERIES} first_event_s={statistics.median(seconds):.1f} "
        f"first_event_s_max={max(seconds):.1f}"
    )


def measure(bootstrap: str, folder: Path, workload: Workload, number: int) -> float:
    """Send the waiting readings of a round, start the service, kill it; return the seconds to the first event."""
    fill_readings(bootstrap, TOPIC, replace(workload, n_rounds=number + 1), number, N_WAITING)
    with TopicReader({"bootstrap.servers": bootstrap}, EVENTS, Start.END) as reader:
        begin = time.monotonic()
        service = start_service("latency", bootstrap, TOPIC, folder, CONTROL, EVENTS)
        try:
            if next(reader.follow(begin + LIMIT_SECONDS), None) is None:
                raise RuntimeError(f"no event came within {LIMIT_SECONDS:.0f} s of the start")
            passed = time.monotonic() - begin
            wait_for_line(service, "running")
        finally:
            os.killpg(service.pid, signal.SIGKILL)
            service.wait()
    _console.print(f"first event after {passed:.1f} s")
    return passed


def check(bootstrap: str, workload: Workload) -> None:
    """Raise where the events of sampled streams, of those that report each time, are not those of the definition."""
    sampled = list(range(0, N_WAITING, N_WAITING // N_SAMPLED))
    found, _ = events_by_stream(bootstrap, EVENTS, sampled)
    if found != expected_by_stream(workload, sampled):
        raise AssertionError("the events differ from the definition")


if __name__ == "__main__":
    typer.run(main)
