"""The service against a Flink job of about 600 lines of Java for the same border queries, by turns, from and to Kafka.

    python -m bench.flink --peer FOLDER [--smoke] [--work A]
    make bench-flink PEER=FOLDER [SMOKE=1]

Claim: at least as many readings/s as the Flink job, in both modes of delivery. Work A: the readings and the 10,000
squares of bench.pipeline, 0.1 crossings a reading. Work B: 10,000 objects and 10,000 squares of 0.5 to 1 km in a city
of 15 km, steps of 333 m, 25 crossings a reading. Work C: 10,000 stocks and 100,000 bands of 1 % of the prices, so that
a price is in 1,000 of them; 0.1 crossings a reading. Both write a record for each crossing, except that the service
writes one for each reading in work C. The job keeps its state on the heap, in 2 tasks. It takes a checkpoint each
second if it delivers exactly once, and every 10 seconds otherwise.

Medians of 3. What comes before the third batch of the service is left out of both. The job counts readings when they
are applied and not when their events are committed. The events of sampled streams of both are compared with the
definition (sign, query, stream, time, reason), before a number is printed. FOLDER has the job's target/*.jar, its
lib/*.jar: the class `peer.Job` must know the options of `Contest._peer_command`, print lines as `peer_rate` says, and
write the fields of our events that are compared.
"""

import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.fill import N_PARTITIONS, delete_topic, fill_queries, fill_readings
from bench.latency import Delivery
from bench.pipeline import FULL, SMOKE, WARM_UP_BATCHES, check_answers, rate_of, run_batches, workload_of
from bench.pipeline_run import AT_LEAST_ONCE, BY_READING, OF_PRICES
from bench.workload import BandBoxWorkload, BandWorkload, CityWorkload, Workload
from bmq.broker.broker import Broker
from bmq.broker.java import find_java
from bmq.kafka_io.topics import Topics

REPEATS = 3
CELL_M = 250.0  # of the job's grid
# The best of each mode: an exactly-once job shows its events at a checkpoint, so its checkpoints cannot be rare.
CHECKPOINT_MS = {Delivery.EXACTLY_ONCE: 1_000, Delivery.AT_LEAST_ONCE: 10_000}
HEAP = "4g"
OPENED = ("java.base/java.lang", "java.base/java.util", "java.base/java.time")

_console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Work:
    """Readings and queries, and how many readings the service takes in a batch.

    Bands have boxes of their own for the job, which knows two dimensions only, and the cells of its grid are as wide as
    a band.
    """

    name: str
    workload: Workload
    batch: int
    boxes: Workload | None = None
    options: str = ""
    cell: float = CELL_M

    @property
    def n_left_out(self) -> int:
        """Readings that are not counted: the first of each stream, and the batches of the warm-up."""
        return max(self.workload.n_streams, WARM_UP_BATCHES * self.batch)


def works(smoke: bool) -> list[Work]:
    """Return what is measured."""
    if smoke:
        city = CityWorkload(2_000, 100, 1_000, 750.0)
        prices = (1_000, 100, 10_000, 10_000.0)
        return [Work("A", workload_of(SMOKE, 1_000), SMOKE.batch), Work("B", city, 25_000), _bands(20_000, *prices)]
    city = CityWorkload(10_000, 26, 10_000, 750.0)
    prices = (10_000, 400, 100_000, 10_000.0)
    return [Work("A", workload_of(FULL, 10_000), FULL.batch), Work("B", city, 26_000), _bands(400_000, *prices)]


def _bands(batch: int, n_streams: int, n_rounds: int, n_queries: int, width: float) -> Work:
    """Return work C. The service puts the crossings of a reading into one record: the first ones have 1,000 each."""
    bands = BandWorkload(n_streams, n_rounds, n_queries, width)
    boxes = BandBoxWorkload(n_streams, n_rounds, n_queries, width)
    return Work("C", bands, batch, boxes, f"{BY_READING}{OF_PRICES}", width)


def main(
    peer: Annotated[Path, typer.Option(help="The folder of the built job.", exists=True, file_okay=False)],
    smoke: bool = False,
    work: Annotated[str, typer.Option(help="Only this work.")] = "",
) -> None:
    """Run both by turns and print a line for each work and mode of delivery."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder, Broker(Path(folder) / "kafka") as broker:
        for each in works(smoke):
            if work in ("", each.name):
                contest = Contest(broker.bootstrap_servers, Path(folder), peer.resolve(), each)
                lines += contest.measure(1 if smoke else REPEATS)
    print("\n".join(lines))


class Contest:
    """The service and the job over one work."""

    def __init__(self, bootstrap: str, folder: Path, peer: Path, work: Work) -> None:
        self._bootstrap, self._folder, self._peer, self._work = bootstrap, folder, peer, work
        self._topic = f"flink.{work.name}"
        self._control = f"{self._topic}.control"
        self._peer_control = self._control if work.boxes is None else f"{self._topic}.boxes"

    def measure(self, repeats: int) -> list[str]:
        """Fill the topics, run everything by turns; return the lines."""
        workload = self._work.workload
        _console.print(f"work {self._work.name}: {workload.n_streams * workload.n_rounds:,} readings")
        fill_readings(self._bootstrap, self._topic, workload)
        fill_queries(self._bootstrap, self._control, workload)
        if self._work.boxes is not None:
            fill_queries(self._bootstrap, self._peer_control, self._work.boxes)
        rates: dict[tuple[str, Delivery], list[float]] = {}
        for repeat in range(repeats):
            for delivery in Delivery:
                name = f"{self._work.name}.{delivery}.{repeat}"
                rates.setdefault(("flink", delivery), []).append(self._run_peer(delivery, f"peer.{name}"))
                rates.setdefault(("bmq", delivery), []).append(self._run_service(delivery, f"bmq.{name}"))
        delete_topic(self._bootstrap, self._topic)
        return [self._line(delivery, rates["flink", delivery], rates["bmq", delivery]) for delivery in Delivery]

    def _line(self, delivery: Delivery, theirs: list[float], ours: list[float]) -> str:
        flink, bmq = statistics.median(theirs), statistics.median(ours)
        return (
            f"flink work={self._work.name} delivery={delivery} ratio={bmq / flink:.2f} "
            f"flink_readings_per_s={flink:.0f} bmq_readings_per_s={bmq:.0f}"
        )

    def _run_service(self, delivery: Delivery, events: str) -> float:
        pipeline = f"bmq{'' if delivery is Delivery.EXACTLY_ONCE else AT_LEAST_ONCE}{self._work.options}"
        checkpoint = self._folder / events
        batches = run_batches(
            pipeline, self._bootstrap, self._topic, self._work.batch, checkpoint, self._control, events
        )
        self._check(events)
        return rate_of(batches, events, self._work.n_left_out)

    def _run_peer(self, delivery: Delivery, events: str) -> float:
        Topics({"bootstrap.servers": self._bootstrap}).create_missing(self._control, [events], N_PARTITIONS)
        done = subprocess.run(
            self._peer_command(delivery, events), capture_output=True, text=True, timeout=900, cwd=self._folder
        )
        if done.returncode:
            raise RuntimeError(f"the Flink job failed:\n{done.stderr[-3000:]}")
        self._check(events)
        rate = peer_rate(done.stdout.splitlines(), self._work.n_left_out)
        _console.print(f"{events}: {rate:,.0f} readings/s")
        return rate

    def _peer_command(self, delivery: Delivery, events: str) -> list[str]:
        """Return the command of a job that ends with the topic, and reads nothing before it has all queries."""
        options = {
            "bootstrap": self._bootstrap,
            "topic": self._topic,
            "control": self._peer_control,
            "events": events,
            "wait-for-queries": self._work.workload.n_queries,
            "cell": self._work.cell,
            "checkpoints": (self._folder / events).as_uri(),
            "delivery": delivery.upper(),
            "checkpoint-ms": CHECKPOINT_MS[delivery],
        }
        jvm = ["-XX:+UseParallelGC", f"-Xms{HEAP}", f"-Xmx{HEAP}"]
        jvm += [option for package in OPENED for option in ("--add-opens", f"{package}=ALL-UNNAMED")]
        command = [str(find_java()), *jvm, "-cp", f"{self._peer}/target/*:{self._peer}/lib/*", "peer.Job", "--bounded"]
        return [*command, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]

    def _check(self, events: str) -> None:
        check_answers(self._bootstrap, events, self._work.workload)
        delete_topic(self._bootstrap, events)


def peer_rate(output: Sequence[str], n_left_out: int) -> float:
    """Return readings/s after the first ones, from the job's lines "PROGRESS ms readings crossings".

    The job prints ten of them a second while readings are applied.

    Raises
    ------
    ValueError
        If the job applied the last reading within a tenth of a second of the first that counts.
    """
    progress = [[int(word) for word in line.split()[1:3]] for line in output if line.startswith("PROGRESS ")]
    counted = [(ms, n_readings) for ms, n_readings in progress if n_readings >= n_left_out]
    if len(counted) < 2:
        raise ValueError(
            f"the job showed its progress {len(counted)} times after {n_left_out:,} readings; 2 are needed"
        )
    (begin_ms, n_before), (end_ms, n_readings) = counted[0], counted[-1]
    return 1000 * (n_readings - n_before) / (end_ms - begin_ms)


if __name__ == "__main__":
    typer.run(main)
