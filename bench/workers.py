"""What a reading costs with eight workers, against two: shards have one home, so it should cost the same.

    python -m bench.workers          # 10 minutes
    make bench-workers SMOKE=1

100,000 vehicles and 10,000 squares, 0.1 events a reading, eight shards, exactly once. The service runs with two and
with eight workers (`job.workers`) by turns, over few readings and over three times as many: the difference in processor
time of all its processes, by the readings more, is the cost of a reading without that of the start. Claim: a ratio of
1.15 at most. The events of sampled streams are compared with the definition.
"""

import os
import statistics
import tempfile
from pathlib import Path

import typer
from rich.console import Console

from bench.answers import events_by_stream, expected_by_stream, sampled_streams
from bench.costs import read_all
from bench.fill import fill_queries, fill_readings
from bench.workload import Workload, side_of_squares
from bmq.broker.broker import Broker

N_SHARDS = 8
WORKERS = (2, 8)
N_STREAMS, N_ROUNDS, N_QUERIES = 100_000, 20, 10_000
CONTROL = "queries"

_console = Console(stderr=True)


def main(smoke: bool = False, repeats: int = 3) -> None:
    """Measure, check the answers, and print the line."""
    n_streams = N_STREAMS // 10 if smoke else N_STREAMS
    short = Workload(n_streams, N_ROUNDS, N_QUERIES, side_of_squares(N_QUERIES))
    long = Workload(n_streams, 3 * N_ROUNDS, N_QUERIES, side_of_squares(N_QUERIES))
    ratios, costs = [], {workers: list[float]() for workers in WORKERS}
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, Broker(Path(name) / "kafka") as broker:
        fill_queries(broker.bootstrap_servers, CONTROL, short)
        for topic, workload in (("short", short), ("long", long)):
            fill_readings(broker.bootstrap_servers, topic, workload)
        for repeat in range(1 if smoke else repeats):
            for workers in WORKERS:
                folder = Path(name) / f"{repeat}-{workers}"
                costs[workers].append(measure(broker, folder, workers, short, long))
                _console.print(f"{workers} workers: {1e6 * costs[workers][-1]:.2f} us of a core for a reading")
            ratios.append(costs[8][-1] / costs[2][-1])
    medians = {workers: 1e6 * statistics.median(seconds) for workers, seconds in costs.items()}
    print(
        f"workers cpu_ratio={statistics.median(ratios):.2f} "
        + " ".join(f"us_at_{workers}={median:.2f}" for workers, median in medians.items())
    )


def measure(broker: Broker, folder: Path, workers: int, short: Workload, long: Workload) -> float:
    """Return the seconds of a core that a reading costs with so many workers."""
    os.environ |= {"BMQ_JOB__SHARDS": str(N_SHARDS), "BMQ_JOB__WORKERS": str(workers)}
    seconds = {}
    for topic, workload in (("short", short), ("long", long)):
        events = f"{folder.name}.{topic}.events"
        used = read_all(broker, folder.with_name(f"{folder.name}-{topic}"), topic, CONTROL, events, workload)
        seconds[topic] = used.cpu["all"]
        sampled = sampled_streams(workload)
        if events_by_stream(broker.bootstrap_servers, events, sampled)[0] != expected_by_stream(workload, sampled):
            raise AssertionError(f"the events of {events} differ from the definition")
    return (seconds["long"] - seconds["short"]) / (n_readings(long) - n_readings(short))


def n_readings(workload: Workload) -> int:
    """Return how many readings a workload has."""
    return workload.n_streams * workload.n_rounds


if __name__ == "__main__":
    typer.run(main)
