"""The papers' headline: transitions of a million vehicles at ten thousand garages, as they happen.

    python -m bench.rtmq [--minutes 10] [--vehicles 1000000] [--garages 10000]       (make bench-rtmq [SMOKE=1])

Claim: the service keeps up with 33,300 readings/s (BMQ-Processor, section 6.4) on this machine, broker and generator
included: a minute after the start and later never more than `BACKLOG_SECONDS` behind. Readings are published at the
pace of their event time. The events of a hundred garages (of all in a small run) are compared with a recount from the
readings before anything is printed. Crossings and accesses of Tran-Seq are counted by an engine that reads the same
readings.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import typer
from confluent_kafka import Consumer, Producer
from rich.console import Console

from bench.rtmq_traffic import GARAGE_M, PATTERNS, PERIOD_SECONDS, Traffic, vehicle_id
from bmq.broker import Broker
from bmq.kernels.hashing import hash_ids
from bmq.monitor.monitor import Monitor
from bmq.records import Clock, Feed, Ids, Readings
from bmq.topics import Topics
from bmq.wire.control import parse_command

TOPIC, CONTROL, EVENTS = "rtmq", "rtmq.control", "bmq.rtmq.events"
WITHIN_MS = 180_000
BASE_MS = 1_700_000_000_000
N_PARTITIONS = 4
PARTS = 10  # of each second, so that the broker has something to do all the time
# A micro-batch takes one to two seconds here, and its readings wait for the one before: three of them.
BACKLOG_SECONDS = 5.0
WARM_UP_SECONDS = 60
# The recount asks each sampled garage about each reading: a minute for a hundred garages and twenty million readings.
QUESTIONS = 2_000_000_000
CATCH_UP_SECONDS = 60

_console = Console(stderr=True)


@dataclass(slots=True)
class Progress:
    """What the service has read: rows but for the definitions, and the wall time at which it had."""

    rows: int
    # Of each batch: wall seconds at its end, rows so far, its ms.
    batches: list[tuple[float, int, float]] = field(default_factory=list)


def main(minutes: float = 10, vehicles: int = 1_000_000, garages: int = 10_000) -> None:
    """Run everything and print the result lines."""
    traffic = Traffic(vehicles, garages, int(minutes * 60))
    rate = vehicles / PERIOD_SECONDS
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as folder:
        broker = Broker(Path(folder) / "kafka")
        broker.start()
        try:
            backlogs, n_events = run_service(broker.bootstrap_servers, Path(folder), traffic)
            sampled = sampled_events(broker.bootstrap_servers, traffic)
        finally:
            broker.stop()
    expected = recount(traffic)
    if sampled != expected:
        raise AssertionError(
            f"the events of {len(_sample(traffic))} garages differ from a recount: {len(sampled ^ expected)} of "
            f"{len(expected)}"
        )
    _console.print(f"answers right: {len(expected)} events of {len(_sample(traffic))} garages")
    crossings, accesses = count_crossings(traffic)
    late = [backlog for at, backlog in backlogs if at > WARM_UP_SECONDS] or [backlog for _, backlog in backlogs]
    for name, part in (("all garages", 1), ("one garage, on the average", garages)):
        print(
            f"{name}: crossings_per_s={crossings / traffic.n_seconds / part:.4g} "
            f"transitions_per_s={n_events / traffic.n_seconds / part:.4g} "
            f"tran_seq_accesses_per_s={accesses / traffic.n_seconds / part:.4g}"
        )
    print("the paper, its garage: crossings_per_s=21 tran_seq_accesses_per_s=126 (estimated there)")
    print(f"backlog_seconds median={np.median(late):.2f} most={max(late):.2f}")
    print(f"rtmq readings_per_s={rate:.0f} keeps_up={'true' if max(late) <= BACKLOG_SECONDS else 'false'}")


def run_service(bootstrap: str, folder: Path, traffic: Traffic) -> tuple[list[tuple[float, float]], int]:
    """Run the service beside the traffic; return its backlog in seconds at the end of each batch, and its events."""
    Topics({"bootstrap.servers": bootstrap}).create_missing(CONTROL, [TOPIC, EVENTS], N_PARTITIONS)
    producer = _producer(bootstrap)
    for query_id, definition in traffic.definitions(f"{WITHIN_MS}ms"):
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
        if not running.wait(180):
            raise RuntimeError("the service did not start within 180 s")
        begin = time.time()
        n_sent = publish(producer, traffic)
        deadline = time.time() + CATCH_UP_SECONDS
        while progress.rows < n_sent and time.time() < deadline:
            time.sleep(0.2)
        assert service.stdin is not None
        service.stdin.close()
        service.wait(120)
        reader.join(30)
    finally:
        service.kill()
        service.wait(60)
    if progress.rows < n_sent:
        raise RuntimeError(f"the service read {progress.rows:,} of {n_sent:,} readings within {CATCH_UP_SECONDS} s")
    rate = traffic.n_vehicles / PERIOD_SECONDS
    backlogs = []
    for ended, rows, _ in progress.batches:
        at = ended - begin
        backlogs.append((at, max(0.0, min(at * rate, n_sent) - rows) / rate))
    _console.print(f"{len(progress.batches)} batches, median {np.median([ms for _, _, ms in progress.batches]):.0f} ms")
    return backlogs, _count_records(bootstrap)


def _follow(service: "subprocess.Popen[str]", progress: Progress, running: threading.Event) -> None:
    assert service.stdout is not None
    for line in service.stdout:
        if line.startswith("running"):
            running.set()
        elif line.startswith("{"):
            batch = json.loads(line)
            progress.rows += batch["rows"]
            progress.batches.append(((batch["started_ms"] + batch["ms"]) / 1000, progress.rows, batch["ms"]))


def publish(producer: Producer, traffic: Traffic) -> int:
    """Publish every reading at the pace of its event time; return how many there were."""
    names = [vehicle_id(number) for number in range(traffic.n_vehicles)]
    begin = time.monotonic()
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
    used = (time.process_time() - cpu) / (time.monotonic() - begin)
    _console.print(f"the generator took {used:.2f} of a core")
    return n_sent


def recount(traffic: Traffic) -> set[tuple[str, str, int, int]]:
    """Return (query id, vehicle, began, event time) of the sampled garages, counted from the readings alone."""
    lo = traffic.corners()
    inside: dict[int, set[int]] = defaultdict(set)
    waits: dict[tuple[int, int], int] = {}
    events: set[tuple[str, str, int, int]] = set()
    seen = np.zeros(traffic.n_vehicles, dtype=np.bool_)
    for second, (who, places) in enumerate(traffic.seconds()):
        now = BASE_MS + 1000 * second
        _fire(waits, now, events)
        for garage in _sample(traffic):
            held = np.logical_and.reduce(
                (places >= lo[:, garage, None]) & (places < (lo[:, garage, None] + GARAGE_M)), axis=0
            )
            here = set(who[held].tolist())
            before = {vehicle for vehicle in inside[garage] if vehicle % PERIOD_SECONDS == second % PERIOD_SECONDS}
            for vehicle in here - before:
                _cross(waits, events, garage, vehicle, now, "in")
            for vehicle in before - here:
                if seen[vehicle]:
                    _cross(waits, events, garage, vehicle, now, "out")
            inside[garage] = (inside[garage] - before) | here
        seen[who] = True
    return events


def _cross(
    waits: dict[tuple[int, int], int],
    events: set[tuple[str, str, int, int]],
    garage: int,
    vehicle: int,
    now: int,
    way: str,
) -> None:
    first, second = PATTERNS[garage % len(PATTERNS)].replace("then_", "").replace("not_", "").split("_")
    if way == first:
        waits[garage, vehicle] = now
        return
    assert way == second
    began = waits.pop((garage, vehicle), None)
    is_then = "then" in PATTERNS[garage % len(PATTERNS)]
    if began is not None and is_then and now - began <= WITHIN_MS:
        events.add((f"g{garage}", vehicle_id(vehicle), began, now))


def _fire(waits: dict[tuple[int, int], int], now: int, events: set[tuple[str, str, int, int]]) -> None:
    for (garage, vehicle), began in list(waits.items()):
        # The clock has to be beyond the due, and all readings at the due come first.
        if began + WITHIN_MS < now:
            del waits[garage, vehicle]
            if "not" in PATTERNS[garage % len(PATTERNS)]:
                events.add((f"g{garage}", vehicle_id(vehicle), began, began + WITHIN_MS))


def _sample(traffic: Traffic) -> range:
    n_readings = traffic.n_vehicles * traffic.n_seconds // PERIOD_SECONDS
    n_sampled = min(traffic.n_garages, max(1, QUESTIONS // n_readings))
    # An odd step, so that all patterns are among them.
    return range(0, traffic.n_garages, (traffic.n_garages // n_sampled) | 1)


def sampled_events(bootstrap: str, traffic: Traffic) -> set[tuple[str, str, int, int]]:
    """Return (query id, vehicle, began, event time) of the sampled garages from the events topic."""
    sampled = {f"g{garage}" for garage in _sample(traffic)}
    events = set()
    for value in _records(bootstrap):
        event = json.loads(value)
        if event["query_id"] in sampled:
            events.add((event["query_id"], event["stream_id"], event["began"], event["event_time"]))
    return events


def count_crossings(traffic: Traffic) -> tuple[int, int]:
    """Return how many crossings the readings are, and how many accesses Tran-Seq makes for them."""
    feeds = {"vehicles": Feed("vehicles", TOPIC, "id", ("x", "y"), event_time="ts")}
    transitions, borders = Monitor(feeds), Monitor(feeds)
    for offset, (query_id, definition) in enumerate(traffic.definitions(f"{WITHIN_MS}ms")):
        border = {"kind": "border", "feed": definition["feed"], "region": definition["region"]}
        for monitor, kind in ((transitions, definition), (borders, border)):
            monitor.apply([parse_command(query_id.encode(), json.dumps(kind).encode(), offset, feeds, "")])
    names = [vehicle_id(number).encode() for number in range(traffic.n_vehicles)]
    n_crossings = 0
    for second, (who, places) in enumerate(traffic.seconds()):
        now = BASE_MS + 1000 * second
        chosen = [names[number] for number in who.tolist()]
        starts = np.cumsum([0, *map(len, chosen)], dtype=np.int64)
        data = np.frombuffer(b"".join(chosen), dtype=np.uint8).copy()
        times = np.full(who.size, now, dtype=np.int64)
        readings = Readings(Ids(starts, data, hash_ids(starts, data)), times, times, np.ascontiguousarray(places))
        transitions.advance("vehicles", readings, Clock(now, now))
        crossings = borders.advance("vehicles", readings, Clock(now, now)).crossings
        n_crossings += 0 if crossings is None else len(crossings)
        transitions.take_delta(), borders.take_delta()
    return n_crossings, transitions._engines["vehicles"].pairs.accesses


def _records(bootstrap: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "rtmq",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([EVENTS])
    values: list[bytes] = []
    ended: set[int] = set()
    while len(ended) < N_PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, "the events topic does not answer"
        if message.error():
            ended.add(message.partition() or 0)
        else:
            values.append(message.value() or b"")
    consumer.close()
    return values


def _count_records(bootstrap: str) -> int:
    return len(_records(bootstrap))


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
