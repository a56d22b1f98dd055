"""One life of the service on a cluster, in phases, while readings come; `Observed` has what the tests ask for.

    one executor ──► a second one joins ──► an executor dies in a batch ──► a worker dies in a batch
                 ──► the driver dies in a batch, and starts on its checkpoint ──► scenarios ──► SIGTERM

One service plays all of it, because a start on a cluster takes most of the time.
"""

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bmq.conformance.play import Outcome, play
from bmq.conformance.scenario import Scenario, all_feeds
from bmq.kafka_io.topics import Topics
from tests.brokers import wait_until
from tests.cluster.batches import batch_seconds, batch_under_way, committed_at
from tests.cluster.standalone import Cluster
from tests.cluster.submitted import Archives, SubmittedService
from tests.conformance.kafka_backend import KafkaBackend
from tests.conformance.service import topic_names, write_config
from tests.spark.test_restarts import FEEDS, Run

EXECUTOR_LIMIT_SECONDS = 120.0  # until an executor runs, or has a task
BATCH_LIMIT_SECONDS = 60.0  # until a batch begins, once there are readings
TRIES = 5  # to meet a batch before its end
ROUNDS_AROUND = 3  # before and after a death, each with a batch of its own


@dataclass
class Observed:
    """What happened.

    Attributes
    ----------
    at_work : phase -> number of executors that have had a task, at its end.
    met : who died -> the seconds from the death to the commit of the batch that was under way.
    batches : phase -> the seconds of its batches.
    pythons : of the daemons of executors: the interpreter, and the folder of the NumPy that it has loaded.
    """

    at_work: dict[str, int] = field(default_factory=dict)
    met: dict[str, float] = field(default_factory=dict)
    batches: dict[str, list[float]] = field(default_factory=dict)
    pythons: set[tuple[str, str]] = field(default_factory=set)

    def lines(self) -> list[str]:
        """Return the batches of each phase as text."""
        return [
            f"{phase:<16} {self.at_work[phase]} executors, batches "
            + " ".join(f"{seconds:.1f}" for seconds in batches)
            + " s"
            for phase, batches in self.batches.items()
        ]


class Story:
    """The service, its cluster, and what is sent to it.

    Attributes
    ----------
    outcomes : of the scenarios.
    """

    def __init__(
        self, cluster: Cluster, archives: Archives, bootstrap_servers: str, folder: Path, scenarios: list[Scenario]
    ) -> None:
        self.name = folder.name.replace("_", "-")
        self.observed = Observed()
        self.outcomes: list[Outcome] = []
        self._cluster = cluster
        self._servers = bootstrap_servers
        self._scenarios = scenarios
        feeds = {**all_feeds(scenarios), **FEEDS}
        config, self._served = write_config(folder, self.name, bootstrap_servers, feeds)
        control, *outputs = topic_names(self.name).values()
        others = [*outputs, *(f"{self.name}-{feed}" for feed in feeds)]
        Topics({"bootstrap.servers": bootstrap_servers}).create_missing(control, others, 1)
        self.service = SubmittedService(config, cluster.url, archives)
        self.run = Run(self.name, bootstrap_servers, self.service)
        self._round = 0
        self._first_batch = 0

    def play(self) -> None:
        """Play all phases."""
        self.run.put_queries()
        self.run.settle()
        self._end_phase("first batch")
        self._play_rounds(ROUNDS_AROUND)
        self._end_phase("one executor")

        self._cluster.bring_to(2)
        self._play_until_at_work(2)
        self._end_phase("second joins")
        self._play_rounds(ROUNDS_AROUND)
        self._end_phase("two executors")

        victim = self._cluster.executors_at_work()[0]
        self._meet("executor", lambda: os.kill(victim, signal.SIGKILL))
        self._play_until_at_work(2)
        self._end_phase("executor dies")
        self._play_rounds(ROUNDS_AROUND)
        self._end_phase("executor is back")

        self._meet("worker", self._cluster.workers[0].kill)
        self._play_rounds(ROUNDS_AROUND)
        self._end_phase("worker dies")

        self._cluster.bring_to(2)
        self._meet("driver", lambda: self.service.restart("kill"))
        self._play_until_at_work(2)
        self._end_phase("driver dies")

        self._play_scenarios()
        self._end_phase("scenarios")
        self.service.stop()

    def _play_rounds(self, n: int) -> None:
        for _ in range(n):
            self._send_round()
            self.run.settle()

    def _send_round(self) -> None:
        self.run.move_all(self._round)
        self.run.join_round(self._round)
        self.run.flush()
        self._round += 1

    def _play_until_at_work(self, n_executors: int) -> None:
        deadline = time.monotonic() + EXECUTOR_LIMIT_SECONDS
        while len(self._cluster.executors_at_work()) < n_executors:
            if time.monotonic() > deadline:
                raise self.service.failed(f"no {n_executors} executors got a task in {EXECUTOR_LIMIT_SECONDS:.0f} s")
            self._play_rounds(1)

    def _meet(self, who: str, death: Callable[[], None]) -> None:
        """Let somebody die in the middle of a batch."""
        self._send_round()
        checkpoint = self.service.checkpoint
        batch = wait_until(lambda: batch_under_way(checkpoint), "a batch", BATCH_LIMIT_SECONDS)
        died_at = time.time()
        death()
        self.run.settle()
        self.observed.met[who] = committed_at(checkpoint, batch) - died_at

    def _play_scenarios(self) -> None:
        backend = KafkaBackend(self.name, self._servers, self.service, self._served)
        try:
            backend.wait_until_ready()
            self.outcomes = play(self._scenarios, backend)
        finally:
            backend.close()

    def _end_phase(self, phase: str) -> None:
        seconds = batch_seconds(self.service.checkpoint)
        self.observed.batches[phase] = [seconds[batch] for batch in sorted(seconds) if batch >= self._first_batch]
        self.observed.at_work[phase] = len(self._cluster.executors_at_work())
        self.observed.pythons |= {
            (process.command.split()[0], folder)
            for process in self._cluster.daemons()
            if (folder := _folder_of_numpy(process.pid))  # not one that has only just begun
        }
        self._first_batch = max(seconds) + 1


def _folder_of_numpy(pid: int) -> str:
    """Return the folder above the NumPy that a process has loaded; empty: it has loaded none."""
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    found = re.search(r"(\S+)/numpy/_core/\S+\.so$", maps, re.MULTILINE)
    return found[1] if found else ""
