"""Six points of objects and squares in a city, where Tile38 has known rates: the service, and Tile38 by turns.

    python -m bench.tile38_points [--smoke] [--repeats 1] [--tile38 PATH]
    make bench-tile38 [SMOKE=1] [TILE38=PATH]

Claim: at least 10 times Tile38's readings/s where a reading crosses a border of at least one square, and at least 3
times at 0.16 crossings a reading (1,000 squares in 60 km). Setup: 10,000 objects, steps of 333 m that turn slowly,
squares with edges of 0.5 to 1 km, uniform in a city of 15 or 60 km. The service reads and writes Kafka, exactly once,
in the layouts `reading` and `crossing`; Tile38 gets the same readings over its own protocol and has one subscriber (see
bench.tile38). The first readings of all objects, and the first batches of the service, are left out. The events of
sampled streams are compared with the definition before a number is printed.
"""

import math
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer
from rich.console import Console

from bench.fill import N_PARTITIONS, delete_topic, fill_queries, fill_readings
from bench.pipeline import check_answers, rate_of, run_batches
from bench.pipeline_run import BY_READING
from bench.tile38 import measure as measure_tile38
from bench.workload import CityWorkload, Workload
from bmq.broker.broker import Broker

SIDE_M = 750.0  # the middle of 0.5 to 1 km

_console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is: a point ends at whichever limit comes first, but has two rounds at least that count."""

    zones: tuple[int, ...]
    n_streams: int
    max_readings: int
    max_crossings: int
    batch_readings: int
    batch_crossings: int


FULL = Size((1_000, 10_000, 100_000), 10_000, 4_000_000, 3_000_000, 800_000, 600_000)
SMOKE = Size((1_000,), 2_000, 60_000, 100_000, 15_000, 20_000)
CITIES_KM = (60, 15)


def main(smoke: bool = False, repeats: int = 1, tile38: Path | None = None) -> None:
    """Run all points and print a line for each."""
    size = SMOKE if smoke else FULL
    lines = []
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder, Broker(Path(folder) / "kafka") as broker:
        for km in CITIES_KM:
            for n_zones in size.zones:
                point = Point(broker.bootstrap_servers, Path(folder), size, n_zones, km)
                lines.append(point.measure(repeats, tile38))
                _console.print(lines[-1], soft_wrap=True)
    print("\n".join(lines))


class Point:
    """One number of squares in one city."""

    def __init__(self, bootstrap: str, folder: Path, size: Size, n_zones: int, km: int) -> None:
        self._bootstrap, self._folder, self._size = bootstrap, folder, size
        self._n_zones, self._km = n_zones, km
        self._name = f"tile38.{km}.{n_zones}"
        self.workload = workload_of(size, n_zones, km)

    def measure(self, repeats: int, program: Path | None) -> str:
        """Run the service in both layouts, and Tile38 if there is one, by turns; return the line."""
        workload = self.workload
        _console.print(f"{self._name}: {workload.n_streams * workload.n_rounds:,} readings")
        fill_readings(self._bootstrap, self._name, workload)
        fill_queries(self._bootstrap, f"{self._name}.control", workload)
        by_reading, by_crossing, theirs = [], [], []
        for repeat in range(repeats):
            by_reading.append(self._run(f"bmq{BY_READING}", repeat)[0])
            rate, n_events = self._run("bmq", repeat)
            by_crossing.append(rate)
            if program is not None:
                theirs.append(measure_tile38(program, self._folder / f"{self._name}.tile38.{repeat}", workload))
                _console.print(f"tile38: {theirs[-1]}")
        delete_topic(self._bootstrap, self._name)
        # Without the first readings, which enter all squares that they are in.
        crossings = (n_events - n_first_events(workload)) / (workload.n_streams * (workload.n_rounds - 1))
        ours = statistics.median(by_reading)
        line = (
            f"tile38 zones={self._n_zones} km={self._km} readings_per_s={ours:.0f} events_per_s={ours * crossings:.0f} "
            f"crossings_a_reading={crossings:.2f} layout_crossing_readings_per_s={statistics.median(by_crossing):.0f}"
        )
        if not theirs:
            return line
        other = statistics.median(rate.readings_per_s for rate in theirs)
        events = statistics.median(rate.events_per_s for rate in theirs)
        return (
            f"{line} tile38_readings_per_s={other:.0f} tile38_events_per_s={events:.0f} ratio={ours / other:.2f} "
            f"ratio_layout_crossing={statistics.median(by_crossing) / other:.2f}"
        )

    def _run(self, pipeline: str, repeat: int) -> tuple[float, int]:
        """Run the service once; return its readings/s and the records of its topic of events."""
        events = f"{self._name}.events.{pipeline}.{repeat}"
        batches = run_batches(
            pipeline,
            self._bootstrap,
            self._name,
            batch_of(self._size, self.workload),
            self._folder / events,
            f"{self._name}.control",
            events,
        )
        n_events = check_answers(self._bootstrap, events, self.workload)
        delete_topic(self._bootstrap, events)
        return rate_of(batches, events, self.workload.n_streams), n_events


def workload_of(size: Size, n_zones: int, km: int) -> CityWorkload:
    """Return the workload of a point, with as many rounds as the limits allow."""
    one = CityWorkload(size.n_streams, 1, n_zones, SIDE_M, city_m=1_000.0 * km)
    readings = min(size.max_readings, size.max_crossings / one.crossings_per_reading)
    n_rounds = 1 + max(2, int(readings / size.n_streams))
    return CityWorkload(size.n_streams, n_rounds, n_zones, SIDE_M, city_m=one.city_m)


def batch_of(size: Size, workload: CityWorkload) -> int:
    """Return the readings of a batch, below both limits, and so that the last batch is not a small one."""
    limit = min(size.batch_readings, size.batch_crossings / workload.crossings_per_reading)
    n_readings = workload.n_streams * workload.n_rounds
    per_partition = n_readings // N_PARTITIONS
    return N_PARTITIONS * math.ceil(per_partition / math.ceil(n_readings / limit))


def n_first_events(workload: Workload) -> int:
    """Return in how many squares the objects are at first: every square is asked, some objects at a time."""
    _, xs, ys = next(workload.rounds())
    lo, hi = (corner[:, :, None] for corner in workload.squares())
    n_events = 0
    for start in range(0, workload.n_streams, 100):
        places = np.stack([xs[start : start + 100], ys[start : start + 100]])[:, None, :]
        n_events += int(np.logical_and.reduce((lo <= places) & (places < hi), axis=0).sum())
    return n_events


if __name__ == "__main__":
    typer.run(main)
