"""What a stream, a query, a reading and an event cost the service: the numbers behind `bmq capacity`.

    python -m bench.costs [--repeats 2]

One point is the base; each other point has more of one thing. The difference of two points, divided by how much more
there is, is the cost of one. Setup: one machine, two shards, squares in a plane, exactly once, a topic that is full
before the service starts. Processor time counts in the second half of the topic, of all processes of the service and of
no other; memory at the end, of the homes, which hold the streams and the queries. Medians; the events of sampled
streams are compared with the definition before a number is printed.
"""

import statistics
import tempfile
import time
from dataclasses import astuple, dataclass
from itertools import islice
from pathlib import Path

import typer
from rich.console import Console

from bench.answers import expected_by_stream, sampled_streams
from bench.fill import delete_topic, fill_queries, fill_readings
from bench.pipeline import check_answers
from bench.processes import cpu_seconds, memory_bytes
from bench.served import wait_for, write_config
from bench.workload import BASE_MS, ROUND_MS, Workload, side_of_squares
from bmq.broker.broker import Broker
from bmq.kafka_io.topic_reader import Start, TopicReader
from tests.conformance.service import Service

N_SHARDS = 2
BATCH_READINGS = 500_000
N_MEASURED = 10_000  # records whose lengths are measured
FOLLOW_SECONDS = 60.0

# name -> streams, rounds, queries, events a reading. Fewer queries would be larger, and the first reading of a stream
# would be in very many of them.
POINTS: dict[str, tuple[int, int, int, float]] = {
    "base": (100_000, 40, 10_000, 0.1),
    "streams": (500_000, 8, 10_000, 0.1),
    "queries": (100_000, 40, 200_000, 0.1),
    "events": (100_000, 40, 10_000, 1.0),
}

_console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took.

    Attributes
    ----------
    cpu_us : processor time of the service a reading.
    events : events a reading, in the same half.
    home_bytes, other_bytes : memory of all homes, and of all other processes, at the end.
    checkpoint_bytes : files of the checkpoint at the end.
    reading_bytes, event_bytes : mean length of key and value of a record, without compression.
    """

    cpu_us: float
    events: float
    home_bytes: float
    other_bytes: float
    checkpoint_bytes: float
    reading_bytes: float
    event_bytes: float


def main(repeats: int = 2) -> None:
    """Measure all points by turns, and print the costs."""
    workloads = {
        name: Workload(streams, rounds, queries, round(side_of_squares(queries, events), 2))
        for name, (streams, rounds, queries, events) in POINTS.items()
    }
    runs: dict[str, list[Cost]] = {name: [] for name in POINTS}
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, Broker(Path(name) / "kafka") as broker:
        bootstrap = broker.bootstrap_servers
        for point, workload in workloads.items():
            fill_readings(bootstrap, f"costs.{point}", workload)
            fill_queries(bootstrap, f"costs.{point}.control", workload)
        for repeat in range(repeats):
            for point, workload in workloads.items():
                runs[point].append(measure(bootstrap, Path(name) / f"{point}-{repeat}", point, workload))
    report({point: _median(costs) for point, costs in runs.items()})


def measure(bootstrap: str, folder: Path, point: str, workload: Workload) -> Cost:
    """Run the service over the topic of a point, check its events, and return what it took."""
    folder.mkdir()
    events = f"costs.events.{folder.name}"
    topics = {"control": f"costs.{point}.control", "events": events, "replies": f"costs.replies.{folder.name}"}
    config = write_config(folder, bootstrap, f"costs.{point}", topics, N_SHARDS, BATCH_READINGS)
    n_readings = workload.n_streams * workload.n_rounds
    service = Service(config)
    try:
        begin, before = wait_for(service, f"costs.{point}", n_readings // 2), sum(cpu_seconds(service.pid).values())
        end, after = wait_for(service, f"costs.{point}", n_readings), sum(cpu_seconds(service.pid).values())
        memory = memory_bytes(service.pid)
        service.stop()
    finally:
        service.kill()
    check_answers(bootstrap, events, workload)
    reading_bytes, event_bytes = (mean_length(bootstrap, topic) for topic in (f"costs.{point}", events))
    delete_topic(bootstrap, events)
    homes = memory.pop("home")
    files = sum(file.stat().st_size for file in (folder / "checkpoint").rglob("*") if file.is_file())
    cost = Cost(
        1e6 * (after - before) / (end - begin),
        events_per_reading(workload),
        homes,
        sum(memory.values()),
        files,
        reading_bytes,
        event_bytes,
    )
    _console.print(f"{point}: {cost}")
    return cost


def events_per_reading(workload: Workload) -> float:
    """Return how many events a reading of the second half has, by the definition, over the sampled streams."""
    streams, half = sampled_streams(workload), workload.n_rounds // 2
    events = expected_by_stream(workload, streams).values()
    n_events = sum(time >= BASE_MS + half * ROUND_MS for ledger in events for _, _, time, _ in ledger)
    return n_events / len(streams) / (workload.n_rounds - half)


def report(costs: dict[str, Cost]) -> None:
    """Print what one more of each thing costs."""
    base = costs["base"]
    n_streams, _, n_queries, _ = POINTS["base"]
    events = costs["events"]
    event_us = (events.cpu_us - base.cpu_us) / (events.events - base.events)
    more_streams, more_queries = POINTS["streams"][0] - n_streams, POINTS["queries"][2] - n_queries
    stream_bytes = (costs["streams"].home_bytes - base.home_bytes) / more_streams
    query_bytes = (costs["queries"].home_bytes - base.home_bytes) / more_queries / N_SHARDS
    home_bytes = (base.home_bytes - n_streams * stream_bytes - N_SHARDS * n_queries * query_bytes) / N_SHARDS
    print(
        f"costs reading_us={base.cpu_us - base.events * event_us:.2f} event_us={event_us:.2f} "
        f"queries_ratio={costs['queries'].cpu_us / base.cpu_us:.2f} "
        f"streams_ratio={costs['streams'].cpu_us / base.cpu_us:.2f} "
        f"stream_bytes={stream_bytes:.0f} query_bytes={query_bytes:.0f} home_bytes={home_bytes:.0f} "
        f"other_bytes={base.other_bytes:.0f} "
        f"checkpoint_stream_bytes={(costs['streams'].checkpoint_bytes - base.checkpoint_bytes) / more_streams:.0f} "
        f"checkpoint_query_bytes={(costs['queries'].checkpoint_bytes - base.checkpoint_bytes) / more_queries:.0f} "
        f"reading_bytes={base.reading_bytes:.0f} event_bytes={base.event_bytes:.0f}"
    )


def mean_length(bootstrap: str, topic: str) -> float:
    """Return the mean bytes of key and value of the first records of a topic."""
    with TopicReader({"bootstrap.servers": bootstrap}, topic, Start.BEGINNING) as reader:
        messages = islice(reader.follow(time.monotonic() + FOLLOW_SECONDS), N_MEASURED)
        return statistics.mean(len(message.key() or b"") + len(message.value() or b"") for message in messages)


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*map(astuple, costs), strict=True)))


if __name__ == "__main__":
    typer.run(main)
