"""How late events arrive when there is no backlog, from the first reading after the start on.

    python -m bench.latency [--rate 3000] [--seconds 60] [--delivery exactly_once]

Streams report once a second, in even steps, to a service of 10,000 queries with a local checkpoint. A consumer in this
process reads only what is committed. An event's latency is the time from the moment when its reading was made to the
moment when this consumer has it. The first minute counts. The service's processor time is that of all its processes.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import typer
from confluent_kafka import Producer
from rich.console import Console

from bench.fill import N_PARTITIONS, fill_queries
from bench.processes import cpu_seconds
from bench.workload import Workload, side_of_squares, stream_id
from bmq.broker.broker import Broker
from bmq.kafka_io.topic_reader import Start, TopicReader
from bmq.kafka_io.topics import Topics

N_QUERIES = 10_000
BATCH_READINGS = 400_000  # at most: without a backlog a batch has some hundred
TICKS_PER_SECOND = 20
START_SECONDS = 120.0
SETTLING_SECONDS = 5.0  # after the last reading: an event that is later than this is missed

_console = Console(stderr=True)


class Delivery(StrEnum):
    """What `job.delivery` may be."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a batch and of an event, and how many cores the service kept busy."""

    rate: int
    delivery: Delivery
    batch_ms_median: float
    event_ms_p50: float
    event_ms_p99: float
    cores: float

    def line(self) -> str:
        """Return it as the bench's result line."""
        return (
            f"latency rate={self.rate} delivery={self.delivery} event_ms_p50={self.event_ms_p50:.0f} "
            f"event_ms_p99={self.event_ms_p99:.0f} batch_ms_median={self.batch_ms_median:.0f} cores={self.cores:.2f}"
        )


def main(rate: int = 3_000, seconds: int = 60, delivery: Delivery = Delivery.EXACTLY_ONCE) -> None:
    """Measure one setting and print its line."""
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder, Broker(Path(folder) / "kafka") as broker:
        print(measure_latency(broker.bootstrap_servers, Path(folder), rate, delivery, seconds).line())


def measure_latency(bootstrap: str, folder: Path, rate: int, delivery: Delivery, seconds: int) -> Latency:
    """Run the service beside a steady producer and a consumer; return what the events took."""
    name = f"latency.{rate}.{delivery}"
    workload = Workload(rate, seconds, N_QUERIES, side_of_squares(N_QUERIES))
    control, events = f"{name}.control.queries", f"{name}.events"
    Topics({"bootstrap.servers": bootstrap}).create_missing(control, [name, events], N_PARTITIONS)
    fill_queries(bootstrap, control, workload)
    pipeline = "latency" if delivery is Delivery.EXACTLY_ONCE else "latency-at-least-once"
    service = start_service(pipeline, bootstrap, name, folder / name, control, events)
    try:
        assert service.stdin is not None
        wait_for_line(service, "running")
        with arrivals(bootstrap, events) as latencies:
            begin, before = time.monotonic(), cpu_seconds(service.pid)
            produce(bootstrap, name, workload)
            passed = time.monotonic() - begin
            cores = {
                name: (seconds - before.get(name, 0.0)) / passed for name, seconds in cpu_seconds(service.pid).items()
            }
            time.sleep(SETTLING_SECONDS)
        service.stdin.close()  # the run ends when its input does
        batches = json.loads(wait_for_line(service, "["))
    finally:
        service.terminate()
        service.wait(60)
    check_complete(bootstrap, events, len(latencies))
    parts = {name: statistics.median(batch["of"].get(name, 0) for batch in batches) for name in batches[-1]["of"]}
    _console.print(f"medians of the last {len(batches)} batches in ms: {parts}")
    _console.print("cores: " + ", ".join(f"{name} {busy:.2f}" for name, busy in cores.items()))
    percentiles = statistics.quantiles(latencies, n=100)
    # Of the last hundred: Spark keeps no more.
    batch_ms = statistics.median(batch["ms"] for batch in batches)
    return Latency(rate, delivery, batch_ms, percentiles[49], percentiles[98], sum(cores.values()))


def start_service(
    pipeline: str, bootstrap: str, topic: str, checkpoint: Path, control: str, events: str
) -> "subprocess.Popen[str]":
    """Start the service in a session of its own; it reads what arrives until its input is closed."""
    command = [sys.executable, "-m", "bench.pipeline_run", pipeline, bootstrap, topic, str(BATCH_READINGS)]
    with Path(f"{checkpoint}.log").open("a") as log:
        return subprocess.Popen(
            [*command, str(checkpoint), control, events],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )


def wait_for_line(process: "subprocess.Popen[str]", start: str, limit_seconds: float = START_SECONDS) -> str:
    """Return the first line of the process's output that begins so."""
    watchdog = threading.Timer(limit_seconds, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(start):
                return line
    finally:
        watchdog.cancel()
    raise RuntimeError(f"the service ended, or took over {limit_seconds} s, before it said {start!r}")


def produce(bootstrap: str, topic: str, workload: Workload) -> None:
    """Send every stream's reading once a second, in even steps."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
    per_tick = workload.n_streams // TICKS_PER_SECOND
    begin = time.monotonic()
    for second, (_, xs, ys) in enumerate(workload.rounds()):
        for tick in range(TICKS_PER_SECOND):
            due = begin + second + tick / TICKS_PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            now_ms = time.time_ns() // 1_000_000
            for s in range(tick * per_tick, (tick + 1) * per_tick):
                value = f'{{"id":"{stream_id(s)}","ts":{now_ms},"x":{xs[s]},"y":{ys[s]}}}'
                producer.produce(topic, value, stream_id(s), s % N_PARTITIONS)
            producer.poll(0)
    producer.flush()


@contextmanager
def arrivals(bootstrap: str, topic: str) -> Iterator[list[int]]:
    """Read the topic beside what the caller does; yield the list to which each event's latency in ms is added."""
    latencies: list[int] = []
    ended = threading.Event()
    with TopicReader({"bootstrap.servers": bootstrap}, topic, Start.BEGINNING) as reader:

        def read() -> None:
            while not ended.is_set():
                for message in reader.follow(time.monotonic() + 0.5):
                    now_ms = time.time_ns() // 1_000_000
                    latencies.append(now_ms - json.loads(message.value() or b"")["event_time"])

        thread = threading.Thread(target=read)
        thread.start()
        try:
            yield latencies
        finally:
            ended.set()
            thread.join()


def check_complete(bootstrap: str, topic: str, n_arrived: int) -> None:
    """Raise unless the consumer had every event of the topic in time."""
    with TopicReader({"bootstrap.servers": bootstrap}, topic, Start.BEGINNING) as reader:
        n_events = sum(1 for _ in reader.to_end())
    if n_arrived != n_events or not n_events:
        raise AssertionError(
            f"{n_arrived} of {n_events} events arrived within {SETTLING_SECONDS} s of the last reading"
        )


if __name__ == "__main__":
    typer.run(main)
