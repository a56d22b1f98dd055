"""A steady load for long, while queries come, change and go: nothing that the service uses may grow.

    python -m tests.soak --minutes 60 --curves soak.csv

Samples descriptors, threads and memory of the service's processes, and files and bytes of its checkpoint and of its
temporary folder, and compares the last third of the time with the one before it (`samples`). At the end the events must
be those of the definition, and the service must never have stopped.
"""

import argparse
import csv
import json
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from tests.campaign.comparison import what_differs
from tests.campaign.load import FEED, RUN
from tests.campaign.stage import Stage
from tests.conformance.service import topic_names
from tests.soak.samples import Sample, sample, what_grows

SAMPLES = 60  # at least, however short the time
LONGEST_PAUSE_SECONDS = 10.0  # between two samples
COMMAND_SECONDS = 0.5  # between two commands
N_CHANGING = 200  # queries that come, change and go
NOWHERE = 1_000.0  # no stream comes there, so these queries have no events


class Changes:
    """Puts, edits and deletes queries until it is stopped."""

    def __init__(self, servers: str, seed: int) -> None:
        self._producer = Producer({"bootstrap.servers": servers})
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.n_sent = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and return when the broker has everything."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        while not self._stop.wait(COMMAND_SECONDS):
            query_id = f"changing-{self._rng.randrange(N_CHANGING)}"
            low = NOWHERE + self._rng.uniform(0, 10)
            definition = {"kind": "border", "feed": FEED, "region": {"box": {"x": [low, low + 5]}}}
            value = None if self._rng.random() < 0.3 else json.dumps(definition)
            self._producer.produce(topic_names(RUN)["control"], value, query_id)
            self._producer.poll(0)
            self.n_sent += 1


def run(folder: Path, minutes: float, seed: int, curves: Path | None = None) -> list[str]:
    """Run the load; return a sentence for each quantity that grows, and for each wrong event."""
    stage = Stage(folder, seed)
    samples: list[Sample] = []
    try:
        stage.load.put_queries()
        stage.settle()
        changes = Changes(stage.broker.bootstrap_servers, seed)
        stage.load.start()
        changes.start()
        folders = {"checkpoint": stage.checkpoint, "temporary": folder / "temporary"}
        pid = stage.service.pid
        deadline = time.monotonic() + 60 * minutes
        pause = min(LONGEST_PAUSE_SECONDS, 60 * minutes / SAMPLES)
        while time.monotonic() < deadline and stage.service.runs():
            samples.append(sample(stage.parts(), folders))
            _write(curves, samples)
            time.sleep(pause)
        changes.stop()
        stage.load.stop()
        has_stopped = not stage.service.runs() or stage.service.pid != pid
        stage.settle()
        different = what_differs(stage.broker.bootstrap_servers, stage.load, stage.kept, ignored="changing-")
    finally:
        stage.close()
    print(f"{len(stage.load.oracle.events)} events, {changes.n_sent} commands, {len(samples)} samples")
    for name in samples[-1]:
        print(f"{name:24} {samples[len(samples) // 3][name]:10.1f} {samples[-1][name]:10.1f}")
    return [*(["the service has stopped"] if has_stopped else []), *what_grows(samples), *different]


def _write(curves: Path | None, samples: Sequence[Sample]) -> None:
    if curves is None:
        return
    with curves.open("w" if len(samples) == 1 else "a", newline="") as file:
        rows = csv.DictWriter(file, ["second", *samples[0]], extrasaction="ignore")
        if len(samples) == 1:
            rows.writeheader()
        rows.writerow({"second": f"{time.monotonic():.0f}", **{k: round(v, 1) for k, v in samples[-1].items()}})


def main() -> int:
    """Run it; return 1 if anything grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--curves", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), arguments.minutes, arguments.seed, arguments.curves)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
