"""The stage of a campaign: a broker, a service, small disks, and a load. Knows how to wait, and starts what has ended.

Whenever the service stops by itself, its last line must say why in a sentence; `wrong_lines` has those that do not.
"""

import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # re-exported unsaid

from bmq.broker.broker import Broker
from bmq.broker.ports import free_ports
from bmq.job.checkpoint import last_position
from bmq.kafka_io.connect import admin_client
from bmq.kafka_io.topics import Topics
from tests.brokers import ANSWER_LIMIT_SECONDS
from tests.campaign.load import FEED_TOPIC, FEEDS, OWN_TOPIC, RUN, Load
from tests.conformance.service import Service, topic_names, write_config
from tests.disks import mount, unmount
from tests.wild_records import ANY_TIME

LIMIT_SECONDS = 600.0  # for one batch after a fault, on a busy machine
POLL_SECONDS = 0.1
DISK_MB = {"checkpoint": 64, "temporary": 256, "kafka": 1024}

_SENTENCE = re.compile(r"bmq: [A-Z\"'].*\.$")
_NO_SENTENCE = re.compile(r"should not happen|Traceback|Py4J|org\.apache|java\.|SQLSTATE|\+- ")


@dataclass(frozen=True)
class Process:
    """A line of `ps`."""

    pid: int
    parent: int
    session: int
    command: str


class Stage:
    """What the faults happen to.

    Attributes
    ----------
    disks : name -> folder with a disk of its own, if this user may mount one.
    kept : events of the topic of some queries, read before it was deleted.
    stops : the last lines of the service, each with how often it was one.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disks: dict[str, Path] = {}
        self.kept: list[dict[str, Any]] = []
        self.stops: Counter[str] = Counter()
        self.checkpoint = folder / "checkpoint"
        for name in DISK_MB:
            (folder / name).mkdir()
            if mount(folder / name, DISK_MB[name]) is None:
                self.disks[name] = folder / name
        (port,) = free_ports(1)
        self.broker = Broker(folder / "kafka" / "broker", port)
        self.broker.start()
        config, _ = write_config(folder, RUN, self.broker.bootstrap_servers, FEEDS)
        options = {"bootstrap.servers": self.broker.bootstrap_servers}
        admin = admin_client(options)  # a name, because the request ends with the client
        admin.create_topics([NewTopic(FEED_TOPIC, 1, 1, config=ANY_TIME)])[FEED_TOPIC].result(ANSWER_LIMIT_SECONDS)
        self.topics = Topics(options)
        self.topics.create_missing(topic_names(RUN)["control"], [OWN_TOPIC], 1)
        self._log = config.with_name("service.log")
        self.service = Service(config, {"TMPDIR": str(folder / "temporary")})
        self.load = Load(self.broker.bootstrap_servers, seed)

    @property
    def wrong_lines(self) -> list[str]:
        """The last lines of a service that stopped by itself which are no sentences for its operator."""
        return [line for line in self.stops if not _SENTENCE.fullmatch(line) or _NO_SENTENCE.search(line)]

    def close(self) -> None:
        """End what was started."""
        self.service.kill()
        self.broker.stop()
        for disk in self.disks.values():
            unmount(disk)

    # -- waiting -----------------------------------------------------------------------------------------

    def wait_for_batch(self) -> None:
        """Return when one more batch has ended."""
        number = self.last_batch() + 1
        self.wait_until(lambda: self.last_batch() >= number, f"batch {number}")

    def settle(self) -> None:
        """Return when a finished batch has read everything."""
        self.wait_until(self._has_read_all, "the end of all topics")

    def wait_until(self, fact: Callable[[], bool], what: str) -> None:
        """Wait for a fact, and start the service again whenever it has ended."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not fact():
            if self.load.failure is not None:
                raise self.load.failure
            if time.monotonic() > deadline:
                raise self.service.failed(f"waited {LIMIT_SECONDS:.0f} s in vain for {what}")
            if not self.service.runs():
                self.note_stop()
                self.service.restart("kill")
            time.sleep(POLL_SECONDS)

    def wait_for_stop(self) -> str:
        """Return the last line of the service when it has stopped by itself."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.service.runs():
            if time.monotonic() > deadline:
                raise self.service.failed(f"the service still runs after {LIMIT_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)
        return self.note_stop()

    def note_stop(self) -> str:
        """Note the last line of a service that has ended, unless a signal ended it; return it."""
        if self.service.exit_code < 0:
            return ""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        line = lines[-1] if lines else ""
        self.stops[line] += 1
        return line

    def last_batch(self) -> int:
        """Return the number of the last finished batch."""
        return max(numbers_of(self.checkpoint / "commits"), default=-1)

    def _has_read_all(self) -> bool:
        reached = last_position(self.checkpoint).offsets
        return all(reached.get(topic, {}).get(partition, 0) >= n for (topic, partition), n in self.load.n_sent.items())

    # -- parts -------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, list[int]]:
        """Return the process ids of each part that runs."""
        processes = _processes()
        service = self.service.pid
        jvm = [p.pid for p in processes if p.parent == service and "java" in p.command]
        stand_in = [p.pid for p in processes if p.parent in jvm and "worker_daemon" in p.command]
        preloaded = [p for p in processes if f"/preloaded-{service} " in p.command]
        loading = [p.pid for p in preloaded if p.parent == service]
        # One that stands in for a daemon forks nothing; without the preloaded process it is the daemon itself.
        daemon = [
            p.pid for p in preloaded if p.session in loading and p.pid not in loading and p.parent in (*loading, 1)
        ]
        daemon = daemon or stand_in
        forked = [p for p in processes if p.parent in daemon]
        # After a kill, others than the daemon start the next nursery or writer; its address has the daemon's number.
        of_daemon = {what: tuple(f"/{what}-{pid} " for pid in daemon) for what in ("nursery", "writer")}
        found = {
            what: [p.pid for p in processes if any(address in f"{p.command} " for address in addresses)]
            for what, addresses in of_daemon.items()
        }
        nursery = [*found["nursery"], *(p.pid for p in forked if p.session == p.pid)]
        return {
            "service": [service],
            "jvm": jvm,
            "preloaded": loading,
            "stand-in": [pid for pid in stand_in if pid not in daemon],
            "daemon": daemon,
            "worker": [p.pid for p in forked if p.session != p.pid],
            "nursery": nursery,
            "home": [p.pid for p in processes if p.parent in nursery],
            "writer": found["writer"],
        }

    def a_process_of(self, part: str) -> int | None:
        """Return a process id of a part; None: none runs."""
        found = self.parts()[part]
        return self.rng.choice(found) if found else None


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Hold a process by SIGSTOP."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # somebody may have killed it meanwhile
            os.kill(pid, signal.SIGCONT)


def numbers_of(folder: Path) -> list[int]:
    """Return the numbers of the batches that have a file in a folder of the checkpoint."""
    return [int(file.name) for file in folder.glob("*") if file.name.isdecimal()]


def _processes() -> list[Process]:
    lines = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,sess=,args="], capture_output=True, text=True, check=True
    ).stdout
    return [
        Process(int(pid), int(parent), int(session), args)
        for pid, parent, session, args in (x.split(None, 3) for x in lines.splitlines())
    ]
