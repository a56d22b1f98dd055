"""The processor time of the whole service per reading, on a cluster of few executors and of many.

    python -m bench.workers [--workers 2 --workers 8] [--streams 100000] [--repeats 3]
    make bench-workers

Claim: at 8 executors of one core the service takes at most 1.15 times the processor time a reading that it takes at 2.
Setup: Spark's standalone cluster on this machine, 8 shards, 10,000 squares, about 0.1 events a reading, a topic that is
full before the service starts, batches of the same size. The bench counts the processes of the driver and of all
executors, with their homes and writers. It does not count Kafka, the master and the workers' own JVMs. Each run reads
the first half of the topic to warm up (each executor compiles its own Java code), and the second half is what counts.
By turns, medians. The events of sampled streams are compared with the definition before a number is printed.

It also prints how many homes there were, one for each shard, and how often a replica of a shard was read anew.
"""

import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from bench.fill import fill_queries, fill_readings
from bench.pipeline import check_answers
from bench.processes import cpu_seconds, n_of
from bench.served import wait_for, write_config
from bench.workload import Workload, side_of_squares
from bmq.broker.broker import Broker
from bmq.broker.ports import HOST, free_ports
from bmq.job.kernel_archive import write_archive
from tests.cluster.standalone import Cluster
from tests.cluster.submitted import Archives, SubmittedService
from tests.pages import get

TOPIC = "workers"
N_QUERIES = 10_000
N_SHARDS = 8
N_ROUNDS = 80
BATCH_READINGS = 800_000

_console = Console(stderr=True)


def main(workers: Annotated[list[int] | None, typer.Option()] = None, streams: int = 100_000, repeats: int = 3) -> None:
    """Measure each number of executors by turns, and print the line of the last against the first."""
    numbers = workers or [2, 8]
    workload = Workload(streams, N_ROUNDS, N_QUERIES, round(side_of_squares(N_QUERIES), 2))
    costs: dict[int, list[float]] = {n: [] for n in numbers}
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, Broker(Path(name) / "kafka") as broker:
        folder = Path(name)
        kernels = folder / "kernels.tar.gz"
        write_archive(kernels)
        fill_readings(broker.bootstrap_servers, TOPIC, workload)
        fill_queries(broker.bootstrap_servers, f"{TOPIC}.control", workload)
        for repeat in range(repeats):
            for n in numbers if repeat % 2 == 0 else numbers[::-1]:
                run = f"{n}.{repeat}"
                costs[n].append(measure(broker.bootstrap_servers, folder / run, run, n, workload, kernels))
                check_answers(broker.bootstrap_servers, _events(run), workload)
    report(numbers, costs)


def report(numbers: Sequence[int], costs: dict[int, list[float]]) -> None:
    """Print the cost of each number of executors, and the ratio."""
    for n in numbers:
        runs = ", ".join(f"{cost:.2f}" for cost in costs[n])
        print(f"{n} executors: {statistics.median(costs[n]):.2f} µs a reading ({runs})")
    first, last = (statistics.median(costs[n]) for n in (numbers[0], numbers[-1]))
    print(f"workers cpu_ratio={last / first:.2f}")


def measure(bootstrap: str, folder: Path, run: str, n_workers: int, workload: Workload, kernels: Path) -> float:
    """Run the service over the topic; return the processor time of a reading in its second half, µs."""
    folder.mkdir()
    (port,) = free_ports(1)
    topics = {"control": f"{TOPIC}.control", "events": _events(run), "replies": f"{TOPIC}.replies.{run}"}
    config = write_config(folder, bootstrap, TOPIC, topics, N_SHARDS, BATCH_READINGS, port)
    n_readings = workload.n_streams * workload.n_rounds
    with Cluster(folder / "spark", n_workers) as cluster:
        service = SubmittedService(config, cluster.url, Archives(kernels))
        try:
            begin = wait_for(service, TOPIC, n_readings // 2)
            before = _cpu(service, cluster)
            rebuilds_before = _rebuilds(port)
            end = wait_for(service, TOPIC, n_readings)
            after = _cpu(service, cluster)
            n_homes = sum(n_of("home", worker.pid) for worker in cluster.workers)
            rebuilds = _rebuilds(port) - rebuilds_before
            service.stop()
        finally:
            service.kill()
    cost = 1e6 * (sum(after.values()) - sum(before.values())) / (end - begin)
    parts = {name: 1e6 * (after[name] - before[name]) / (end - begin) for name in after}
    of_parts = ", ".join(f"{name} {part:.2f}" for name, part in sorted(parts.items(), key=lambda one: -one[1]))
    _console.print(
        f"{n_workers} executors: {cost:.2f} µs a reading ({of_parts}); {n_homes} homes, {rebuilds:.0f} rebuilds"
    )
    return cost


def _events(run: str) -> str:
    return f"{TOPIC}.events.{run}"


def _cpu(service: SubmittedService, cluster: Cluster) -> Counter[str]:
    """Return the processor time of each program of the service, s; the workers' JVMs do next to nothing."""
    seconds: Counter[str] = Counter()
    for root in (service.pid, *(worker.pid for worker in cluster.workers)):
        seconds.update(cpu_seconds(root))
    return seconds


def _rebuilds(port: int) -> float:
    _, page = get(f"http://{HOST}:{port}/metrics")
    families = {family.name: family for family in text_string_to_metric_families(page)}
    return families["bmq_replica_rebuilds"].samples[0].value


if __name__ == "__main__":
    typer.run(main)
