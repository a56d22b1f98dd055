"""Kills parts of a running service at random, and compares what a reader of committed records finds with the oracle.

    python -m tests.kill_campaign --kills 30 --seed 1

Readings, commands and faulty records are sent all the time. Each round waits for a finished batch, then some more, and
kills one part with SIGKILL: the service's process, its JVM, the daemon of the Python workers, a worker, the home of a
shard, the nursery of the homes, the writer process, all of them together, or the broker. Whatever ends is started
again. At the end each event of the definition must be there once, in the order of its stream, and each command and each
faulty record must be answered once.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bmq.broker.broker import Broker
from bmq.broker.ports import free_ports
from bmq.kafka_io.topics import Topics
from tests.brokers import kill
from tests.conformance.service import Service, topic_names, write_config
from tests.kafka_records import read_all
from tests.oracle import Oracle, Reading

RUN = "kills"
FEED = "line"
FEEDS: dict[str, dict[str, Any]] = {FEED: {"dimensions": ["x"], "event_time_unit": "ms"}}
N_STREAMS = 200
N_QUERIES = 60
WIDTH = 100.0
READINGS_PER_SECOND = 1_000
FAULTY = b'{"id": "s0", "ts": 0, "x": "nowhere"}'
FAULTY_EACH = 500  # readings

PARTS = ("service", "jvm", "daemon", "worker", "home", "nursery", "writer", "all", "broker")
LIMIT_SECONDS = 600.0  # for one batch after a kill, on a busy machine
LONGEST_WAIT_SECONDS = 3.0  # between a finished batch and the kill
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Process:
    """A line of `ps`."""

    pid: int
    parent: int
    session: int
    command: str


class Load:
    """Sends readings, commands and faulty records until it is stopped, and tells the definition."""

    def __init__(self, servers: str, seed: int) -> None:
        self.oracle = Oracle({FEED: ("x",)})
        self.n_sent: Counter[str] = Counter()
        self.n_faulty = 0
        # The broker is killed, too: the test's own records must be there once.
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
        self._rng = random.Random(seed)
        self._positions = {f"s{n}": self._rng.uniform(0, WIDTH) for n in range(N_STREAMS)}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def put_queries(self) -> None:
        """Send the queries, before all readings: then no batch decides what they see."""
        for n in range(N_QUERIES):
            low = self._rng.uniform(0, WIDTH)
            definition = {
                "kind": "border",
                "feed": FEED,
                "region": {"box": {"x": [low, low + self._rng.uniform(0, 20)]}},
            }
            self._send(topic_names(RUN)["control"], f"q{n}", json.dumps(definition).encode())
            self.oracle.put(n, f"q{n}", definition)
        assert self._producer.flush(60) == 0

    def start(self) -> None:
        """Begin to send readings."""
        self._thread.start()

    def stop(self) -> None:
        """End, and return when the broker has everything."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(LIMIT_SECONDS) == 0

    def _run(self) -> None:
        for number in range(10**9):
            if self._stop.wait(N_STREAMS / READINGS_PER_SECOND):
                return
            readings = []
            for stream in self._positions:
                self._positions[stream] += self._rng.uniform(-3, 3)
                x = self._positions[stream]
                self._send(f"{RUN}-{FEED}", stream, json.dumps({"id": stream, "ts": number, "x": x}).encode())
                readings.append(Reading(stream, number, (x,)))
                if self.n_sent[f"{RUN}-{FEED}"] % FAULTY_EACH == 0:
                    self._send(f"{RUN}-{FEED}", "s0", FAULTY)
                    self.n_faulty += 1
            self.oracle.read(FEED, readings)

    def _send(self, topic: str, key: str, value: bytes) -> None:
        self._producer.produce(topic, value, key, partition=0)
        self._producer.poll(0)
        self.n_sent[topic] += 1


class Campaign:
    """A broker, a service, and who kills them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rng = random.Random(seed)
        (port,) = free_ports(1)
        self.broker = Broker(folder / "kafka", port)
        self.broker.start()
        config, _ = write_config(folder, RUN, self.broker.bootstrap_servers, FEEDS)
        options = {"bootstrap.servers": self.broker.bootstrap_servers}
        Topics(options).create_missing(topic_names(RUN)["control"], [f"{RUN}-{FEED}"], 1)
        self._commits = folder / "checkpoint" / "commits"
        self.service = Service(config)

    def kill_one(self) -> str:
        """Wait for a finished batch and some more, and kill a part; return what was killed."""
        self._wait_for_batch(self._last_batch() + 1)
        time.sleep(self._rng.uniform(0, LONGEST_WAIT_SECONDS))
        part = self._rng.choice(PARTS)
        if part == "broker":
            kill(self.broker)
            time.sleep(self._rng.uniform(0, LONGEST_WAIT_SECONDS))
            self.broker.start()
        elif part == "all":
            self.service.kill()
        else:
            found = self._parts().get(part)
            if not found:
                return f"{part} (none was there)"
            os.kill(self._rng.choice(found), signal.SIGKILL)
        return part

    def settle(self, n_sent: Mapping[str, int]) -> None:
        """Return when a finished batch has read everything."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self.service.has_read(n_sent):
            self._look_after(deadline, f"the end of {dict(n_sent)}")

    def close(self) -> None:
        """End what was started."""
        self.service.kill()
        self.broker.stop()

    def _wait_for_batch(self, number: int) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while self._last_batch() < number:
            self._look_after(deadline, f"batch {number}")

    def _look_after(self, deadline: float, what: str) -> None:
        if time.monotonic() > deadline:
            raise self.service.failed(f"waited {LIMIT_SECONDS:.0f} s in vain for {what}")
        if not self.service.runs():
            self.service.restart("kill")
        time.sleep(POLL_SECONDS)

    def _last_batch(self) -> int:
        return max((int(file.name) for file in self._commits.glob("*") if file.name.isdecimal()), default=-1)

    def _parts(self) -> dict[str, list[int]]:
        """Return the process ids of each part that runs."""
        found: dict[str, list[int]] = {"service": [self.service.pid]}
        processes = _processes()
        found["jvm"] = [p.pid for p in processes if p.parent == self.service.pid and "java" in p.command]
        python = [p for p in processes if p.parent in found["jvm"] and "worker_daemon" in p.command]
        found["daemon"] = [p.pid for p in python]
        forked = [p for p in processes if p.parent in found["daemon"] and "worker_daemon" in p.command]
        found["worker"] = [p.pid for p in forked if p.session != p.pid]
        found["nursery"] = [p.pid for p in forked if p.session == p.pid]
        found["home"] = [p.pid for p in processes if p.parent in found["nursery"]]
        found["writer"] = [p.pid for p in processes if p.parent in found["daemon"] and "writer_process" in p.command]
        return found


def _processes() -> list[Process]:
    lines = subprocess.run(["ps", "-eo", "pid=,ppid=,sess=,args="], capture_output=True, text=True, check=True).stdout
    return [
        Process(int(pid), int(parent), int(session), args)
        for pid, parent, session, args in (x.split(None, 3) for x in lines.splitlines())
    ]


def what_differs(servers: str, load: Load) -> list[str]:
    """Return a sentence for each difference between the topics and the definition."""
    topics = topic_names(RUN)
    found: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    ids: Counter[str] = Counter()
    for record in read_all(servers, topics["events"]):
        event = json.loads(record.value)
        ids[event["event_id"]] += 1
        found[event["stream_id"]].append((event["sign"], event["query_id"], event["event_time"], event["reason"]))
    expected: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for event in load.oracle.events:
        expected[event.stream].append((event.sign, event.query_id, event.event_time, event.reason))
    different = [f"event {event_id} is there {n} times" for event_id, n in ids.items() if n > 1]
    different += [
        f"stream {stream}: {len(found[stream])} events, expected {len(expected[stream])}"
        for stream in sorted(found.keys() | expected.keys())
        if found[stream] != expected[stream]
    ]
    n_replies = Counter(json.loads(record.value)["query_id"] for record in read_all(servers, topics["replies"]))
    if n_replies != Counter(f"q{n}" for n in range(N_QUERIES)):
        different.append(f"replies: {n_replies}")
    n_letters = sum(1 for _ in read_all(servers, topics["dead_letter"]))
    if n_letters != load.n_faulty:
        different.append(f"{n_letters} dead letters for {load.n_faulty} faulty records")
    return different


def main() -> int:
    """Run a campaign; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), arguments.seed)
        try:
            load = Load(campaign.broker.bootstrap_servers, arguments.seed)
            load.put_queries()
            campaign.settle(load.n_sent)
            load.start()
            try:
                for number in range(arguments.kills):
                    print(f"kill {number + 1}: {campaign.kill_one()}, {sum(load.n_sent.values())} records", flush=True)
            finally:
                load.stop()
            campaign.settle(load.n_sent)
            different = what_differs(campaign.broker.bootstrap_servers, load)
        finally:
            campaign.close()
    print(*different, f"{len(load.oracle.events)} events, {len(different)} differences", sep="\n")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
