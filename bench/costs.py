"""What a stream, a query, a reading and a crossing cost the whole service, in bytes and in processor time.

    python -m bench.costs          # 10 minutes
    python -m bench.costs --smoke  # a tenth; its numbers mean nothing

`bmq capacity` and docs/capacity.md reckon with these numbers. Each is a difference of two runs of the real service,
which reads what is in its topics, exactly once, with two shards and a local checkpoint:

    plain    100,000 streams, one query, some readings
    long     the same, with three times the readings      minus plain: a reading
    city     objects that cross some borders a reading    minus a start and readings: a crossing
    streams  ten times the streams                        minus plain: a stream
    queries  100,000 queries                              minus plain: a query in a shard

Processor time is that of all processes of the service; the broker's is beside it. Memory is the proportional set size
of the Python processes: pages that processes share count once. The JVM has a fixed heap and is given by itself.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from bench.answers import events_by_stream, expected_by_stream
from bench.fill import fill_queries, fill_readings
from bench.latency import start_service, wait_for_line
from bench.processes import cpu_seconds, memory_bytes
from bench.workload import CityWorkload, Workload
from bmq.broker.broker import Broker

RUN_SECONDS = 900.0
N_STREAMS, N_ROUNDS, N_QUERIES = 100_000, 20, 100_000
WRITER = f"{Path(sys.executable).name} bmq.kafka_io.writer_process"
N_SHARDS = 2  # of `bench.pipeline_run`
SIDE_M = 10.0  # so small that nothing crosses a border
CITY = CityWorkload(n_streams=10_000, n_rounds=40, n_queries=1_000, side_m=750.0)
SAMPLED = list(range(0, 10_000, 500))

_console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Used:
    """What a run of the service had used when everything was read.

    Attributes
    ----------
    cpu : seconds of each program since the start: its processes and their ended children.
    python, jvm : bytes of memory.
    checkpoint : bytes of the files.
    broker : seconds of the broker meanwhile.
    """

    cpu: Mapping[str, float]
    python: float
    jvm: float
    checkpoint: int
    broker: float


def main(smoke: bool = False) -> None:
    """Measure all, check the answers, and print a line for each number."""
    streams, rounds, queries = (
        (N_STREAMS // 10, N_ROUNDS, N_QUERIES // 10) if smoke else (N_STREAMS, N_ROUNDS, N_QUERIES)
    )
    works = {
        "plain": Workload(streams, rounds, 1, SIDE_M),
        "long": Workload(streams, 3 * rounds, 1, SIDE_M),
        "city": CITY,
        "streams": Workload(10 * streams, 2, 1, SIDE_M),
        "queries": Workload(streams, rounds, queries, SIDE_M),
    }
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, Broker(Path(name) / "kafka") as broker:
        used = {work: run(broker, Path(name), work, workload) for work, workload in works.items()}
        found, n_events = events_by_stream(broker.bootstrap_servers, "city.events", SAMPLED)
        if found != expected_by_stream(CITY, SAMPLED):
            raise AssertionError("the events of the city differ from the definition")
    for number in numbers(used, works, n_events):
        print(number)


def run(broker: Broker, folder: Path, name: str, workload: Workload) -> Used:
    """Write a workload to Kafka, let the service read it, and return what it used."""
    bootstrap, control = broker.bootstrap_servers, f"{name}.queries"
    fill_queries(bootstrap, control, workload)
    fill_readings(bootstrap, name, workload)
    return read_all(broker, folder / name, name, control, f"{name}.events", workload)


def read_all(broker: Broker, checkpoint: Path, topic: str, control: str, events: str, workload: Workload) -> Used:
    """Let the service read a workload that is in Kafka; return what it used until then."""
    broker_pid = int((broker.directory / ".lock").read_text())
    before = sum(cpu_seconds(broker_pid).values())
    service = start_service("follow", broker.bootstrap_servers, topic, checkpoint, control, events)
    try:
        assert service.stdin is not None
        wait_for_line(service, "running", RUN_SECONDS)
        n_left = workload.n_streams * workload.n_rounds + workload.n_queries
        while n_left > 0:
            n_left -= json.loads(wait_for_line(service, "{", RUN_SECONDS))["rows"]
        cpu, memory = cpu_seconds(service.pid), memory_bytes(service.pid)
        _console.print(f"{topic}: seconds {_rounded(cpu)}, megabytes {_rounded(memory, 1e6)}")
        used = Used(
            cpu={"all": sum(cpu.values()), "home": cpu["home"], "writer": cpu[WRITER]},
            python=sum(memory.values()) - memory["java"],
            jvm=memory["java"],
            checkpoint=sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file()),
            broker=sum(cpu_seconds(broker_pid).values()) - before,
        )
        service.stdin.close()
        wait_for_line(service, "[", RUN_SECONDS)
    finally:
        service.terminate()
        service.wait(60)
    return used


def numbers(used: Mapping[str, Used], works: Mapping[str, Workload], n_crossings: int) -> list[str]:
    """Return the lines."""
    plain, long, city = used["plain"], used["long"], used["city"]
    n_plain, n_long, n_city = (works[name].n_streams * works[name].n_rounds for name in ("plain", "long", "city"))
    readings, crossings, starts = {}, {}, {}
    for part in plain.cpu:
        readings[part] = (long.cpu[part] - plain.cpu[part]) / (n_long - n_plain)
        starts[part] = plain.cpu[part] - n_plain * readings[part]
        crossings[part] = (city.cpu[part] - starts[part] - n_city * readings[part]) / n_crossings
    broker_reading = (long.broker - plain.broker) / (n_long - n_plain)
    broker_crossing = (city.broker - n_city * broker_reading) / n_crossings
    n_more = works["streams"].n_streams - works["plain"].n_streams
    n_queries = works["queries"].n_queries
    return [
        f"start cpu_s={starts['all']:.1f} jvm_mb={plain.jvm / 1e6:.0f} python_mb={plain.python / 1e6:.0f}",
        f"reading {_microseconds(readings)} broker_us={1e6 * broker_reading:.2f}",
        f"crossing {_microseconds(crossings)} broker_us={1e6 * broker_crossing:.2f}",
        f"stream bytes={(used['streams'].python - plain.python) / n_more:.0f} "
        f"checkpoint_bytes={(used['streams'].checkpoint - plain.checkpoint) / n_more:.0f}",
        f"query bytes_a_shard={(used['queries'].python - plain.python) / n_queries / N_SHARDS:.0f} "
        f"checkpoint_bytes_a_shard={(used['queries'].checkpoint - plain.checkpoint) / n_queries / N_SHARDS:.0f} "
        f"put_us={1e6 * (used['queries'].cpu['all'] - plain.cpu['all']) / n_queries:.0f}",
    ]


def _microseconds(seconds: Mapping[str, float]) -> str:
    return " ".join(f"{part}_us={1e6 * number:.2f}" for part, number in seconds.items())


def _rounded(of: Mapping[str, float], unit: float = 1.0) -> dict[str, float]:
    return {name: round(number / unit, 1) for name, number in of.items()}


if __name__ == "__main__":
    typer.run(main)
