"""How long an event takes when there is no backlog: 3,000 readings a second, local checkpoint."""

import json
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from bench.fill import fill_queries
from bench.workload import PLANE_M, Workload, stream_id
from bmq.kafka_io.topic_reader import Start, TopicReader

READINGS_PER_SECOND = 3_000
TICKS_PER_SECOND = 20
TOPIC = "latency"


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds: of a batch, and from a reading's record timestamp to that of its event."""

    batch_ms_median: float
    event_ms_p50: float
    event_ms_p99: float


def measure_latency(bootstrap: str, folder: Path, warm_up_seconds: int, seconds: int) -> Latency:
    """Run the service beside a steady producer; return what it took after the warm-up."""
    side_m = 0.1 * 3.1416 / 2 * PLANE_M**2 / (4 * 10_000 * 30)
    workload = Workload(READINGS_PER_SECOND, warm_up_seconds + seconds, 10_000, side_m)
    control, events = f"{TOPIC}.control.queries", f"{TOPIC}.events"
    fill_queries(bootstrap, control, workload)
    command = [sys.executable, "-m", "bench.pipeline_run", "latency", bootstrap, TOPIC, "400000"]
    service = subprocess.Popen(
        [*command, str(folder / "latency"), control, events],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert service.stdin is not None
        wait_for_line(service, "running")
        measured_from = produce(bootstrap, workload, warm_up_seconds)
        service.stdin.close()  # the run ends when its input does
        batches = json.loads(wait_for_line(service, "["))
    finally:
        service.terminate()
        service.wait(60)
    latencies = event_latencies(bootstrap, events, measured_from)
    times = [batch["ms"] for batch in batches if batch["started_ms"] >= measured_from]
    return Latency(
        statistics.median(times),
        statistics.quantiles(latencies, n=100)[49],
        statistics.quantiles(latencies, n=100)[98],
    )


def wait_for_line(process: "subprocess.Popen[str]", start: str, limit_seconds: float = 120) -> str:
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


def produce(bootstrap: str, workload: Workload, warm_up_seconds: int) -> int:
    """Send every stream's reading once a second, in even steps; return when the warm-up was over, epoch ms."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
    per_tick = READINGS_PER_SECOND // TICKS_PER_SECOND
    begin = time.monotonic()
    measured_from = 0
    for second, (_, xs, ys) in enumerate(workload.rounds()):
        if second == warm_up_seconds:
            measured_from = time.time_ns() // 1_000_000
        for tick in range(TICKS_PER_SECOND):
            due = begin + second + tick / TICKS_PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            now_ms = time.time_ns() // 1_000_000
            for s in range(tick * per_tick, (tick + 1) * per_tick):
                value = f'{{"id":"{stream_id(s)}","ts":{now_ms},"x":{xs[s]},"y":{ys[s]}}}'
                producer.produce(TOPIC, value, stream_id(s))
            producer.poll(0)
    producer.flush()
    return measured_from


def event_latencies(bootstrap: str, topic: str, measured_from: int) -> list[int]:
    """Return event record timestamp minus reading record timestamp, ms, of every event after the warm-up."""
    latencies: list[int] = []
    with TopicReader({"bootstrap.servers": bootstrap}, topic, Start.BEGINNING) as reader:
        for message in reader.to_end():
            sent = json.loads(message.value() or b"")["event_time"]  # the producer's clock when it made the record
            if sent >= measured_from:
                latencies.append(message.timestamp()[1] - sent)
    return latencies
