"""The service on a cluster: executors and workers die, the driver dies, and each event is there once."""

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import wait_until
from tests.cluster.standalone import Cluster
from tests.cluster.submitted import SubmittedService
from tests.ledger_check import must_be_whole
from tests.spark.test_restarts import Run, events_of, make_config

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_800)]

N_ROUNDS = 6
RESTART_LIMIT_SECONDS = 120.0


def test_deaths_on_a_cluster_lose_no_event_and_double_none(
    cluster: Cluster, bootstrap_servers: str, tmp_path: Path
) -> None:
    name, config = make_config(tmp_path, bootstrap_servers)
    run = Run(name, bootstrap_servers, SubmittedService(config, cluster.url))

    def play(*numbers: int) -> None:
        for number in numbers:
            run.move_all(number)
            run.join_round(number)
            run.flush()

    try:
        run.put_queries()
        run.settle()
        play(0, 1)
        run.settle()

        begun = time.monotonic()
        os.kill(cluster.executors()[0], signal.SIGKILL)
        play(2, 3)
        run.settle()
        print(f"after a lost executor: {time.monotonic() - begun:.1f} s")
        wait_until(lambda: len(cluster.executors()) == 2, "a new executor", RESTART_LIMIT_SECONDS)

        begun = time.monotonic()
        cluster.workers[0].kill()
        play(4, 5)
        run.settle()
        print(f"after a lost worker: {time.monotonic() - begun:.1f} s")

        play(6)
        begun = time.monotonic()
        run.service.restart("kill")
        run.settle()
        print(f"after a lost driver: {time.monotonic() - begun:.1f} s")
    finally:
        run.service.kill()

    must_be_whole(bootstrap_servers, f"{name}-events")
    found: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for event in events_of(bootstrap_servers, f"{name}-events"):
        if event["kind"] == "border":
            found[event["stream_id"]].append((event["sign"], event["query_id"], event["event_time"], event["reason"]))
    expected: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for said in run.borders.events:
        expected[said.stream].append((said.sign, said.query_id, said.event_time, said.reason))
    assert found == expected
