"""The papers' headline: transitions of a million vehicles at ten thousand garages, as they happen.

    python -m bench.rtmq [--minutes 10] [--vehicles 1000000] [--garages 10000] [--within 180]
    make bench-rtmq [SMOKE=1]

Claim: the service keeps up with 33,300 readings/s (BMQ-Processor, section 6.4) on this machine, broker and generator
included: a minute after the start and later never more than `BACKLOG_SECONDS` behind. Readings are published at the
pace of their event time. The events of a hundred garages (of all in a small run) are compared with a recount from the
readings before anything is printed. Crossings and accesses of Tran-Seq are counted by an engine that reads the same
readings and must give as many events.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import typer
from confluent_kafka import Producer
from rich.console import Console

from bench.rtmq_recount import Events, recount, sampled_garages
from bench.rtmq_traffic import BASE_MS, PERIOD_SECONDS, WITHIN_SECONDS, Traffic, vehicle_id
from bmq.broker.broker import Broker
from bmq.kafka_io.topic_reader import Start, TopicReader
from bmq.kafka_io.topics import Topics
from bmq.kernels.tables.hashing import hash_ids
from bmq.monitor.monitor import Monitor
from bmq.records import Clock, Feed, Ids, Installation, Readings
from bmq.wire.control import parse_command

TOPIC, CONTROL, EVENTS = "rtmq", "rtmq.control", "bmq.rtmq.events"
N_PARTITIONS = 4
PARTS = 10  # of each second, so that the broker has something to do all the time
# A micro-batch takes one to two seconds here, and its readings wait for the one before: three of them.
BACKLOG_SECONDS = 5.0
WARM_UP_SECONDS = 60
CATCH_UP_SECONDS = 60
START_SECONDS = 600  # where all kernels are to be compiled, on a busy machine

_console = Console(stderr=True)


@dataclass(slots=True)
class Progress:
    """What the service has read: rows but for the definitions, and the wall time at which it had."""

    rows: int
    # Of each batch: wall seconds at its end, rows so far, its ms.
    batches: list[tuple[float, int, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sent:
    """How many readings were published, from which wall time on, and in how many seconds."""

    n: int
    begin: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run.

    backlogs : (seconds since the first reading, seconds that the service is behind) at the end of each batch.
    """

    backlogs: list[tuple[float, float]]
    readings_per_second: float
    n_events: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Of all garages, from `Traffic.n_settling` on; by second where not called ``n_``.

    busiest : crossings of the garage that has most.
    accesses : of Tran-Seq, as the paper counts them.
    n_events : transition events of the whole run.
    """

    crossings: float
    busiest: float
    transitions: float
    accesses: float
    n_events: int


def main(minutes: float = 10, vehicles: int = 1_000_000, garages: int = 10_000, within: int = WITHIN_SECONDS) -> None:
    """Run everything and print the result lines."""
    traffic = Traffic(vehicles, garages, int(minutes * 60), within)
    if traffic.n_seconds <= traffic.n_settling:
        raise typer.BadParameter(
            f"{minutes} minutes are too short: rates are counted from second {traffic.n_settling} on"
        )
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder:
        broker = Broker(Path(folder) / "kafka")
        broker.start()
        try:
            run = run_service(broker.bootstrap_servers, Path(folder), traffic)
            sampled = sampled_events(broker.bootstrap_servers, traffic)
        finally:
            broker.stop()
    expected = recount(traffic)
    if sampled != expected:
        raise AssertionError(
            f"the events of {len(sampled_garages(traffic))} garages differ from a recount: "
            f"{len(sampled ^ expected)} of {len(expected)}"
        )
    _console.print(f"answers right: {len(expected)} events of {len(sampled_garages(traffic))} garages")
    counts = count_crossings(traffic)
    if run.n_events != counts.n_events:
        raise AssertionError(f"the service gave {run.n_events} events, an engine {counts.n_events}")
    late = [backlog for at, backlog in run.backlogs if at > WARM_UP_SECONDS] or [most for _, most in run.backlogs]
    for name, part in (("all garages", 1), ("one garage, on the average", garages)):
        print(
            f"{name}: crossings_per_s={counts.crossings / part:.4g} transitions_per_s={counts.transitions / part:.4g} "
            f"tran_seq_accesses_per_s={counts.accesses / part:.4g}"
        )
    print(f"the busiest garage: crossings_per_s={counts.busiest:.4g}")
    # How many garages these are of is not said: bench/README.md.
    print("the paper: crossings_per_s=21 tran_seq_accesses_per_s=126 accesses_per_crossing=6 (estimated there)")
    print(f"here: accesses_per_crossing={counts.accesses / counts.crossings:.2f}")
    print(f"backlog_seconds median={np.median(late):.2f} most={max(late):.2f}")
    keeps_up = "true" if max(late) <= BACKLOG_SECONDS else "false"
    print(f"rtmq readings_per_s={run.readings_per_second:.0f} keeps_up={keeps_up}")


def run_service(bootstrap: str, folder: Path, traffic: Traffic) -> Run:
    """Run the service beside the traffic, until it has read all of it."""
    Topics({"bootstrap.servers": bootstrap}).create_missing(CONTROL, [TOPIC, EVENTS], N_PARTITIONS)
    producer = _producer(bootstrap)
    for query_id, definition in traffic.definitions():
        producer.produce(CONTROL, json.dumps(definition), query_id)
    producer.flush()
    command = [sys.executable, "-m", "bench.pipeline_run", "follow", bootstrap, TOPIC, "400000", str(folder / "job")]
    service = subprocess.Popen(
        [*command, CONTROL, EVENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "service.log").open("w"),
        text=True,
    )
    try:
        progress = Progress(-traffic.n_garages)
        running = threading.Event()
        reader = threading.Thread(target=_follow, args=(service, progress, running), daemon=True)
        reader.start()
        if not running.wait(START_SECONDS) or service.poll() is not None:
            log = (folder / "service.log").read_text()[-3000:]
            raise RuntimeError(f"the service did not start within {START_SECONDS} s:\n{log}")
        sent = publish(producer, traffic)
        deadline = time.time() + CATCH_UP_SECONDS
        while progress.rows < sent.n and time.time() < deadline:
            time.sleep(0.2)
        assert service.stdin is not None
        service.stdin.close()
        service.wait(120)
        reader.join(30)
    finally:
        service.kill()
        service.wait(60)
    if progress.rows < sent.n:
        raise RuntimeError(f"the service read {progress.rows:,} of {sent.n:,} readings within {CATCH_UP_SECONDS} s")
    rate = traffic.n_vehicles / PERIOD_SECONDS
    backlogs = []
    for ended, rows, _ in progress.batches:
        at = ended - sent.begin
        backlogs.append((at, max(0.0, min(at * rate, sent.n) - rows) / rate))
    _console.print(f"{len(progress.batches)} batches, median {np.median([ms for _, _, ms in progress.batches]):.0f} ms")
    return Run(backlogs, sent.n / sent.seconds, len(_records(bootstrap)))


def _follow(service: "subprocess.Popen[str]", progress: Progress, running: threading.Event) -> None:
    assert service.stdout is not None
    for line in service.stdout:
        if line.startswith("running"):
            running.set()
        elif line.startswith("{"):
            batch = json.loads(line)
            progress.rows += batch["rows"]
            progress.batches.append(((batch["started_ms"] + batch["ms"]) / 1000, progress.rows, batch["ms"]))
    running.set()  # or it has ended


def publish(producer: Producer, traffic: Traffic) -> Sent:
    """Publish every reading at the pace of its event time."""
    names = [vehicle_id(number) for number in range(traffic.n_vehicles)]
    wall, begin = time.time(), time.monotonic()
    cpu = time.process_time()
    n_sent = 0
    for second, (who, places) in enumerate(traffic.seconds()):
        event_time = BASE_MS + 1000 * second
        for part in range(PARTS):
            rows = slice(part * who.size // PARTS, (part + 1) * who.size // PARTS)
            x, y = places[:, rows].tolist()
            values = [
                f'{{"id":"{names[number]}","ts":{event_time},"x":{x[i]},"y":{y[i]}}}'
                for i, number in enumerate(who[rows].tolist())
            ]
            time.sleep(max(0.0, begin + second + part / PARTS - time.monotonic()))
            for number, value in zip(who[rows].tolist(), values, strict=True):
                producer.produce(TOPIC, value, partition=number % N_PARTITIONS)
            producer.poll(0)
            n_sent += len(values)
        if second % 60 == 59:
            behind = time.monotonic() - begin - second - 1
            _console.print(f"minute {second // 60 + 1}: {n_sent:,} readings, generator {max(0.0, behind):.1f} s behind")
    producer.flush()
    seconds = time.monotonic() - begin
    _console.print(f"the generator took {(time.process_time() - cpu) / seconds:.2f} of a core")
    return Sent(n_sent, wall, seconds)


def sampled_events(bootstrap: str, traffic: Traffic) -> Events:
    """Return (query id, vehicle, began, event time) of the sampled garages from the events topic."""
    sampled = {f"g{garage}" for garage in sampled_garages(traffic)}
    events: Events = set()
    for value in _records(bootstrap):
        event = json.loads(value)
        if event["query_id"] in sampled:
            events.add((event["query_id"], event["stream_id"], event["began"], event["event_time"]))
    return events


def count_crossings(traffic: Traffic) -> Counts:
    """Return what one engine of transition queries, and one of border queries, make of the readings."""
    feeds = {"vehicles": Feed("vehicles", TOPIC, "id", ("x", "y"), event_time="ts")}
    transitions, borders = Monitor(Installation(feeds)), Monitor(Installation(feeds))
    for offset, (query_id, definition) in enumerate(traffic.definitions()):
        border = {"kind": "border", "feed": definition["feed"], "region": definition["region"]}
        for monitor, kind in ((transitions, definition), (borders, border)):
            monitor.apply([parse_command(query_id.encode(), json.dumps(kind).encode(), offset, Installation(feeds))])
    pairs = transitions._feeds.engines["vehicles"].tables.trackings
    names = [vehicle_id(number).encode() for number in range(traffic.n_vehicles)]
    by_garage: Counter[str] = Counter()
    n_events = events_before = accesses_before = 0
    for second, (who, places) in enumerate(traffic.seconds()):
        if second == traffic.n_settling:
            by_garage.clear()
            events_before, accesses_before = n_events, pairs.accesses
        now = BASE_MS + 1000 * second
        chosen = [names[number] for number in who.tolist()]
        starts = np.cumsum([0, *map(len, chosen)], dtype=np.int64)
        data = np.frombuffer(b"".join(chosen), dtype=np.uint8).copy()
        times = np.full(who.size, now, dtype=np.int64)
        readings = Readings(Ids(starts, data, hash_ids(starts, data)), times, times, np.ascontiguousarray(places))
        n_events += sum(map(len, transitions.advance("vehicles", readings, Clock(now, now)).crossings))
        for crossed in borders.advance("vehicles", readings, Clock(now, now)).crossings:
            by_garage.update(crossed.queries[row].query_id for row in crossed.query_rows.tolist())
        transitions.take_delta(), borders.take_delta()
    n_seconds = traffic.n_seconds - traffic.n_settling
    return Counts(
        by_garage.total() / n_seconds,
        max(by_garage.values()) / n_seconds,
        (n_events - events_before) / n_seconds,
        (pairs.accesses - accesses_before) / n_seconds,
        n_events,
    )


def _records(bootstrap: str) -> list[bytes]:
    with TopicReader({"bootstrap.servers": bootstrap}, EVENTS, Start.BEGINNING) as reader:
        return [message.value() or b"" for message in reader.to_end()]


def _producer(bootstrap: str) -> Producer:
    options: Mapping[str, str | int] = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 20,
        "batch.size": 262_144,
        "queue.buffering.max.messages": 1_000_000,
    }
    return Producer(dict(options))


if __name__ == "__main__":
    typer.run(main)
