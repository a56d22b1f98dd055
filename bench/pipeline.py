"""The pipeline against a plain Spark job and a bare read of the same topic, and its latency.

    python -m bench.pipeline [--smoke] [--queries select | --base REVISION | --counts 1000 --counts 1000000]
    make bench-pipeline [SMOKE=1] [SELECT=1 | BASE=REVISION]

Claims: at least 3.0 times the readings/s of from_json, filter, to_json, and 2.2 times with larger polls; at least 1.2
times a bare read, and 0.4 times with larger polls; 1,000 to 100,000 queries cost less than 20 %; exactly once has at
least 0.9 of the readings/s of at least once; events arrive within 200 ms (p50) and 400 ms (p99) at 3,000 readings/s.
Setup: 100,000 vehicles, squares in a plane, about 0.1 events a reading, 8 M JSON readings on 4 partitions; the same
heap for all; every run in a process of its own, interleaved, medians of 3; the first two batches of a run left out. The
events of sampled streams are compared with those of asking every square about every reading, before any number is
printed.

With select queries: 10,000 of them, two squares each, and no other query, by turns with the plain Spark job, over the
same readings. Claim: at least as many readings/s. Both write an event for a tenth of the readings.

With counts: the service alone with each number of queries, by turns, exactly once. Claim: from 1,000 to a million it
loses less than 20 %. A million definitions are read and answered before the readings that count.

With a base: the service of that revision, in a worktree of its own, against this one, by turns. Claim: options that are
off cost nothing, so the medians differ by less than the runs of one of them do.
"""

import csv
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.answers import events_by_stream, expected_by_stream, sampled_streams
from bench.fill import fill_queries, fill_readings
from bench.latency import Delivery, Latency, measure_latency
from bench.workload import EVENTS_PER_READING, PLANE_M, SelectWorkload, Workload, side_of_squares
from bmq.broker.broker import Broker

TOPIC = "bench"
# The first two are what a Spark user would write, with Spark's own consumer options; the `-tuned` ones have those of
# the service (larger polls and fetches), so that both comparisons can be seen.
PLAIN = ("read", "passthrough", "read-tuned", "passthrough-tuned")
RESULTS = Path(__file__).parent / "results" / "pipeline.csv"
WARM_UP_BATCHES = 2
RUN_SECONDS = 3_600  # of one run; a million queries are registered first

_console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is. 1.6 M a batch is the best of every pipeline, found by trying 0.8, 1.6 and 2 M."""

    n_streams: int
    n_rounds: int
    repeats: int
    query_counts: tuple[int, ...]
    batch: int
    plain: tuple[str, ...]
    latency_rates: tuple[int, ...]
    latency_seconds: int


FULL = Size(100_000, 80, 3, (10_000, 1_000, 100_000), 1_600_000, PLAIN, (3_000, 5_000), 60)
# Each run starts a JVM, and `read-tuned` has no code that the other three have not.
SMOKE = Size(10_000, 24, 1, (1_000,), 40_000, ("read", "passthrough", "passthrough-tuned"), (3_000,), 15)


class Queries(StrEnum):
    """Which queries the service has."""

    BORDER = "border"
    SELECT = "select"


def main(
    smoke: bool = False,
    base: str | None = None,
    queries: Queries = Queries.BORDER,
    counts: Annotated[list[int] | None, typer.Option()] = None,
    repeats: int | None = None,
) -> None:
    """Run everything and print the result lines."""
    size = SMOKE if smoke else FULL
    size = replace(size, repeats=repeats or size.repeats)
    if counts:
        compare_counts(replace(size, query_counts=tuple(counts), plain=()))
        return
    if queries is Queries.SELECT:
        compare_select(size)
        return
    if base is not None:
        compare_with(base, size)
        return
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder:
        broker = Broker(Path(folder) / "kafka")
        broker.start()
        try:
            rates = run_all(size, broker.bootstrap_servers, Path(folder), service_runs(size))
            latencies = measure_latencies(size, broker.bootstrap_servers, Path(folder))
        finally:
            broker.stop()
    if not smoke:
        write_results(rates)
    report(rates, _bmq(size.query_counts[0]))
    for latency in latencies:
        print(latency.line())
    print(ratios(size, rates))


def ratios(size: Size, rates: Mapping[str, list[float]]) -> str:
    """Return the line of the service, exactly once, against each other pipeline."""
    medians = {name: statistics.median(values) for name, values in rates.items()}
    n_queries = size.query_counts[0]
    bmq = medians[_bmq(n_queries)]
    compared = {plain.replace("-", "_"): medians[plain] for plain in PLAIN if plain in medians}
    compared["exactly_once"] = medians[_bmq(n_queries, Delivery.AT_LEAST_ONCE)]
    return "pipeline " + " ".join(f"ratio_{name}={bmq / other:.2f}" for name, other in compared.items())


def measure_latencies(size: Size, bootstrap: str, folder: Path) -> list[Latency]:
    """Return how late events arrive at each rate, in both modes of delivery."""
    return [
        measure_latency(bootstrap, folder, rate, delivery, size.latency_seconds)
        for rate in size.latency_rates
        for delivery in Delivery
    ]


def run_all(
    size: Size, bootstrap: str, folder: Path, of_service: Sequence[tuple[int, Delivery]]
) -> dict[str, list[float]]:
    """Fill the topics, run every pipeline in turn, check the answers; return readings/s of each run.

    Parameters
    ----------
    of_service : queries and delivery of each run of the service.
    """
    workloads = {n: workload_of(size, n) for n in size.query_counts}
    _console.print(f"filling {size.n_streams * size.n_rounds:,} readings")
    fill_readings(bootstrap, TOPIC, workloads[size.query_counts[0]])
    for n, workload in workloads.items():
        fill_queries(bootstrap, f"{TOPIC}.control.{n}", workload)
    rates: dict[str, list[float]] = {}
    for repeat in range(size.repeats):
        for name in size.plain:
            rates.setdefault(name, []).append(run(name, bootstrap, size, folder / f"{name}-{repeat}"))
        for n, delivery in of_service:
            events = f"{TOPIC}.events.{n}.{delivery}.{repeat}"
            checkpoint = folder / f"bmq-{n}-{delivery}-{repeat}"
            name = "bmq" if delivery is Delivery.EXACTLY_ONCE else "bmq-at-least-once"
            rate = run(name, bootstrap, size, checkpoint, f"{TOPIC}.control.{n}", events)
            check_answers(bootstrap, events, workloads[n])
            rates.setdefault(_bmq(n, delivery), []).append(rate)
    return rates


def service_runs(size: Size) -> list[tuple[int, Delivery]]:
    """Return queries and delivery of each run of the service: both modes with the first number of queries."""
    first, *others = size.query_counts
    return [
        (first, Delivery.EXACTLY_ONCE),
        (first, Delivery.AT_LEAST_ONCE),
        *((n, Delivery.EXACTLY_ONCE) for n in others),
    ]


def compare_counts(size: Size) -> None:
    """Run the service with each number of queries by turns, and print how they compare with the first."""
    runs = [(n, Delivery.EXACTLY_ONCE) for n in size.query_counts]
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder, Broker(Path(folder) / "kafka") as broker:
        rates = run_all(size, broker.bootstrap_servers, Path(folder), runs)
    report(rates, _bmq(size.query_counts[0]))


def compare_with(base: str, size: Size) -> None:
    """Run the service of a revision and of this tree by turns, and print how they differ."""
    n_queries = size.query_counts[0]
    workload = workload_of(size, n_queries)
    rates: dict[str, list[float]] = {"base": [], "this": []}
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name:
        folder = Path(name)
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(folder / "base"), base], check=True)
        broker = Broker(folder / "kafka")
        broker.start()
        try:
            bootstrap = broker.bootstrap_servers
            fill_readings(bootstrap, TOPIC, workload)
            fill_queries(bootstrap, f"{TOPIC}.control", workload)
            for repeat in range(2 * size.repeats):
                # Each first in turn: the second of two finds the machine as the first has left it.
                for which in sorted(rates, reverse=bool(repeat % 2)):
                    tree = folder / "base" if which == "base" else Path.cwd()
                    events = f"{TOPIC}.events.{which}.{repeat}"
                    checkpoint = folder / f"{which}-{repeat}"
                    rate = run("bmq", bootstrap, size, checkpoint, f"{TOPIC}.control", events, tree=tree)
                    check_answers(bootstrap, events, workload)
                    rates[which].append(rate)
        finally:
            broker.stop()
            subprocess.run(["git", "worktree", "remove", "--force", str(folder / "base")], check=True)
    for which, values in rates.items():
        print(f"{which}: median {statistics.median(values):,.0f} readings/s ({min(values):,.0f} to {max(values):,.0f})")
    ours, theirs = statistics.median(rates["this"]), statistics.median(rates["base"])
    spread = max(max(values) - min(values) for values in rates.values())
    print(
        f"pipeline ratio_base={ours / theirs:.3f} spread={spread / theirs:.3f} "
        f"within_spread={'true' if abs(ours - theirs) <= spread else 'false'}"
    )


def compare_select(size: Size) -> None:
    """Run the plain Spark job and the service with select queries by turns; print how they compare."""
    workload = select_workload_of(size, size.query_counts[0])
    name = f"bmq, {workload.n_queries:,} select queries"
    rates: dict[str, list[float]] = {"passthrough": [], name: []}
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder, Broker(Path(folder) / "kafka") as broker:
        bootstrap = broker.bootstrap_servers
        fill_readings(bootstrap, TOPIC, workload)
        fill_queries(bootstrap, f"{TOPIC}.control", workload)
        for repeat in range(size.repeats):
            checkpoints = Path(folder) / f"passthrough-{repeat}", Path(folder) / f"bmq-{repeat}"
            rates["passthrough"].append(run("passthrough", bootstrap, size, checkpoints[0]))
            events = f"{TOPIC}.events.{repeat}"
            rates[name].append(run("bmq", bootstrap, size, checkpoints[1], f"{TOPIC}.control", events))
            check_answers(bootstrap, events, workload)
    report(rates, name)
    ours, plain = (statistics.median(rates[which]) for which in (name, "passthrough"))
    print(f"pipeline ratio={ours / plain:.2f}")


def workload_of(size: Size, n_queries: int) -> Workload:
    """Return the workload whose squares give about EVENTS_PER_READING (Buffon: see bench.workload)."""
    return Workload(size.n_streams, size.n_rounds, n_queries, round(side_of_squares(n_queries), 2))


def select_workload_of(size: Size, n_queries: int) -> SelectWorkload:
    """Return the workload whose squares hold EVENTS_PER_READING of a reading, two squares a query."""
    side_m = math.sqrt(EVENTS_PER_READING * PLANE_M**2 / (2 * n_queries))
    return SelectWorkload(size.n_streams, size.n_rounds, n_queries, round(side_m, 2))


def run(name: str, bootstrap: str, size: Size, folder: Path, *topics: str, tree: Path | None = None) -> float:
    """Run one pipeline in a process of its own, by the code in ``tree``; return its readings/s after the warm-up."""
    return rate_of(
        run_batches(name, bootstrap, TOPIC, size.batch, folder, *topics, tree=tree), f"{name} {' '.join(topics)}"
    )


def run_batches(
    name: str, bootstrap: str, topic: str, batch: int, folder: Path, *topics: str, tree: Path | None = None
) -> list[dict[str, float]]:
    """Run one pipeline over a topic in a process of its own; return the rows and the ms of each batch."""
    tree = tree or Path.cwd()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "service"), str(tree)])}
    command = [sys.executable, "-m", "bench.pipeline_run", name, bootstrap, topic, str(batch), str(folder), *topics]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, cwd=tree, env=environment)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-3000:]}")
    batches: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return batches


def rate_of(batches: Sequence[Mapping[str, float]], title: str, n_left_out: int = 0) -> float:
    """Return readings/s without the first batches: those of the warm-up and of the first ``n_left_out`` readings."""
    first, n_rows = 0, 0.0
    while first < len(batches) and (first < WARM_UP_BATCHES or n_rows < n_left_out):
        n_rows += batches[first]["rows"]
        first += 1
    counted = batches[first:]
    if not counted:
        raise ValueError(f"{title}: all {len(batches)} batches are warm-up; make the batches smaller")
    rate = 1000 * sum(batch["rows"] for batch in counted) / sum(batch["ms"] for batch in counted)
    _console.print(f"{title}: {rate:,.0f} readings/s, batches of {[batch['ms'] for batch in counted]} ms")
    return rate


def check_answers(bootstrap: str, events_topic: str, workload: Workload) -> int:
    """Raise where the events of the sampled streams are not those of the definition; return the topic's records."""
    streams = sampled_streams(workload)
    found, n_events = events_by_stream(bootstrap, events_topic, streams)
    expected = expected_by_stream(workload, streams)
    if found != expected:
        raise AssertionError(f"the events of {events_topic} differ from the definition")
    _console.print(
        f"  answers right for {len(streams)} streams; "
        f"{n_events / workload.n_streams / workload.n_rounds:.3f} records of events a reading"
    )
    return n_events


def write_results(rates: Mapping[str, list[float]]) -> None:
    """Write every run to the CSV, with the commit and the machine."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        file.write(
            f"# commit {commit}, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n"
        )
        rows = csv.writer(file)
        rows.writerow(["pipeline", "run", "readings_per_s"])
        for name, values in rates.items():
            rows.writerows([name, number, round(value)] for number, value in enumerate(values))


def report(rates: Mapping[str, list[float]], base_name: str) -> None:
    """Print the median and the range of each pipeline, and each against one of them."""
    base = statistics.median(rates[base_name])
    for name, values in rates.items():
        median = statistics.median(values)
        print(
            f"{name}: median {median:,.0f} readings/s ({min(values):,.0f} to {max(values):,.0f}), "
            f"{median / base:.2f} of {base_name}"
        )


def _bmq(n_queries: int, delivery: Delivery = Delivery.EXACTLY_ONCE) -> str:
    return f"bmq, {n_queries:,} queries, {delivery.replace('_', ' ')}"


if __name__ == "__main__":
    typer.run(main)
