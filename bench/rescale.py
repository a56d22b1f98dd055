"""How long `bmq checkpoint rescale` takes, with a million streams and 10,000 queries.

    python -m bench.rescale [--streams 1000000]

Claim: under 60 s from 4 shards to 8, and back. The service reads two rounds of all streams and is stopped; the command
writes a checkpoint with 8 shards, and from that one with 4; the service goes on from the last one and reads one more
round. Then the events of sampled streams of all rounds are compared with the definition.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console

from bench.fill import fill_queries, fill_readings
from bench.latency import N_QUERIES
from bench.pipeline import check_answers
from bench.served import wait_for, write_config
from bench.workload import Workload, side_of_squares
from bmq.broker.broker import Broker
from tests.conformance.service import Service

TOPIC = "rescale"
TOPICS = {role: f"{TOPIC}.{role}" for role in ("control", "events", "replies")}
BATCH_READINGS = 500_000
FEW, MANY = 4, 8
N_FIRST_ROUNDS = 2

_console = Console(stderr=True)


def main(streams: int = 1_000_000) -> None:
    """Measure both ways, check the events, and print the line."""
    workload = Workload(streams, N_FIRST_ROUNDS + 1, N_QUERIES, round(side_of_squares(N_QUERIES), 2))
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, Broker(Path(name) / "kafka") as broker:
        bootstrap = broker.bootstrap_servers
        first, wide, narrow = (Path(name) / step for step in ("first", "wide", "narrow"))
        fill_queries(bootstrap, TOPICS["control"], workload)
        fill_readings(bootstrap, TOPIC, replace(workload, n_rounds=N_FIRST_ROUNDS))
        run(bootstrap, first, N_FIRST_ROUNDS * streams)
        more, fewer = rescale(first, wide, MANY), rescale(wide, narrow, FEW)
        fill_readings(bootstrap, TOPIC, workload, N_FIRST_ROUNDS)
        run(bootstrap, narrow, workload.n_rounds * streams)
        check_answers(bootstrap, TOPICS["events"], workload)
    print(f"rescale streams={streams} queries={N_QUERIES} {FEW}_to_{MANY}_s={more:.1f} {MANY}_to_{FEW}_s={fewer:.1f}")


def run(bootstrap: str, folder: Path, n_readings: int) -> None:
    """Run the service on the checkpoint of a folder until it has read so many readings."""
    folder.mkdir(exist_ok=True)
    service = Service(write_config(folder, bootstrap, TOPIC, TOPICS, FEW, BATCH_READINGS))
    try:
        wait_for(service, TOPIC, n_readings)
        service.stop()
    finally:
        service.kill()


def rescale(old: Path, new: Path, n_shards: int) -> float:
    """Write the checkpoint of the folder ``new``; return the seconds that the command took."""
    new.mkdir()
    begin = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "bmq", "checkpoint", "rescale", "--shards", str(n_shards)]
        + [str(folder / "checkpoint") for folder in (old, new)],
        check=True,
        stdout=sys.stderr,
    )
    passed = time.monotonic() - begin
    _console.print(f"to {n_shards} shards: {passed:.1f} s")
    return passed


if __name__ == "__main__":
    typer.run(main)
