"""Kills of a service whose checkpoint is on HDFS or S3: each event is there once, and is that of the definition."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.brokers import wait_until
from tests.ledger_check import must_be_whole
from tests.spark import test_restarts as restarts
from tests.storage.remote_service import RemoteService
from tests.storage.servers import Server

pytestmark = [pytest.mark.storage, pytest.mark.timeout(1200)]

N_ROUNDS = 9
ROUNDS_PER_JOIN_ROUND = 3
KILL_IN_BATCH_OF_ROUND = 2  # the batch is planned in the checkpoint, and not committed
KILL_AFTER_ROUND = 4  # wherever the batch is
BATCH_LIMIT_SECONDS = 120.0


class Played:
    """A life of the service with two kills.

    Attributes
    ----------
    name : of the checkpoint on the server.
    met : the batch that the first kill met.
    """

    def __init__(self, server: Server, bootstrap_servers: str, folder: Path) -> None:
        self.server, self.name = server, folder.name
        name, config = restarts.make_config(folder, bootstrap_servers, server.uri(folder.name))
        self.service = RemoteService(config, server, folder.name)
        self.run = restarts.Run(name, bootstrap_servers, self.service)
        try:
            self._play()
        finally:
            self.service.kill()
        must_be_whole(bootstrap_servers, f"{name}-events")
        events = restarts.events_of(bootstrap_servers, f"{name}-events")
        self.said = restarts.Played(self.run.borders, self.run.joins, events)

    def _play(self) -> None:
        self.run.put_queries()
        self.run.settle()
        for number in range(N_ROUNDS):
            self.run.move_all(number)
            if number % ROUNDS_PER_JOIN_ROUND == 0:
                self.run.join_round(number // ROUNDS_PER_JOIN_ROUND)
            self.run.flush()
            if number == KILL_IN_BATCH_OF_ROUND:
                self.met = wait_until(self.service.batch_under_way, "a batch", BATCH_LIMIT_SECONDS)
                self.service.restart("kill")
            if number == KILL_AFTER_ROUND:
                self.service.restart("kill")
            if number % ROUNDS_PER_JOIN_ROUND == 0 or number == N_ROUNDS - 1:
                self.run.settle()


@pytest.fixture(scope="module")
def played(server: Server, bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(server, bootstrap_servers, tmp_path_factory.mktemp(f"kills-{type(server).__name__.lower()}"))


def test_kills_lose_no_event_and_double_none(played: Played) -> None:
    restarts.test_kills_lose_nothing_and_double_nothing(played.said)
    assert len(played.said.events) > 200


def test_kills_lose_no_pair_and_no_reading(played: Played) -> None:
    restarts.test_kills_lose_no_pair_and_no_reading(played.said)


def test_a_kill_meets_a_batch(played: Played) -> None:
    assert played.met > 0


def test_the_batches_are_on_the_server_and_not_here(played: Played) -> None:
    committed = played.service.batches_in("commits")

    assert played.met in committed
    assert not played.service.checkpoint.exists()


def test_snapshots_of_the_state_are_on_the_server(played: Played) -> None:
    assert [name for name in played.server.names(f"{played.name}/state/0/0") if name.endswith(".zip")]


def test_a_copy_on_this_machine_can_be_shown(played: Played, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    played.server.copy_to(copy, played.name)

    shown = subprocess.run(
        [sys.executable, "-m", "bmq.cli", "checkpoint", "show", str(copy)],
        capture_output=True, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip

    assert shown.returncode == 0, shown.stderr
    assert f"last batch: {max(played.service.batches_in('commits'))}" in shown.stdout
    assert f"line {restarts.N_STREAMS}" in shown.stdout
