"""`bmq.job.homes`: a shard has one process, whoever brings its batches and whatever dies in between."""

import copy
import itertools
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from bmq.errors import StateError
from bmq.job.frame_rows import Kind
from bmq.job.homes import HomeEnded, run_at_home
from bmq.job.nursery import home_address, nursery_address
from bmq.job.received import Row
from bmq.job.replicas import Head
from bmq.job.shard_task import ShardBatch
from bmq.owned_process import OwnerEnded, socket_folder
from bmq.records import NEVER, Feed, Installation, Readings
from bmq.wire.control import parse_command
from bmq.wire.frames import pack_commands, pack_readings
from tests.brokers import living_process, runs, wait_until
from tests.crossings import make_ids
from tests.golden.play import PLAN, MemoryStore
from tests.kafka_records import read_all

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

N_SHARDS = 100
_SHARDS = itertools.count(1)  # each test has one of its own
FEED = Feed("line", "line", "id", ("x",))
QUERY = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}


class World:
    """The batches of one shard: one stream, one query."""

    def __init__(self, servers: str, topics: Callable[..., str], owner: int, shard: int) -> None:
        self.servers, self.owner, self.shard = servers, owner, shard
        self.store = MemoryStore()
        self.plan = replace(
            PLAN,
            installation=Installation({"line": FEED}),
            shard_keys=tuple(range(N_SHARDS)),
            start_offsets={"line": {0: 0}},
            replies_topic=topics("replies"),
            events_topic=topics("events"),
            dead_letter_topic=topics("dead-letter"),
            clock_topic=None,
            membership_topic=None,
            client_options={"bootstrap.servers": servers},
            markers_topic=topics("markers"),
            delivery_id=topics("delivery"),
        )
        self.number = -1

    def batch(self, *positions: float) -> ShardBatch:
        """The next batch; the first one registers the query."""
        self.number += 1
        rows = [self._readings(*positions)]
        if self.number == 0:
            command = parse_command(b"q", json.dumps(QUERY).encode(), 0, Installation(self.plan.feeds))
            rows.append(Row(Kind.COMMANDS, "", 0, 0, 1, NEVER, NEVER, pack_commands([command])))
        return ShardBatch(self.plan, self.shard, self.number, self.owner, rows)

    def run(self, batch: ShardBatch) -> Mapping[str, object]:
        """Run a batch as Spark does: the state is kept only if the whole batch succeeds."""
        store = copy.deepcopy(self.store)
        counters: dict[str, object] = json.loads(run_at_home(batch, store))
        self.store = store
        return counters

    def events(self) -> list[tuple[str, float]]:
        found = [json.loads(record.value) for record in read_all(self.servers, self.plan.events_topic)]
        return [(event["sign"], event["value"]["x"]) for event in found]

    def home(self) -> int:
        """The process of the shard."""
        (home,) = _pids(home_address(self.owner, self.shard))
        return home

    def nursery(self) -> int:
        (nursery,) = _pids(nursery_address(self.owner))
        return nursery

    def _readings(self, *positions: float) -> Row:
        n = len(positions)
        times = np.arange(n, dtype=np.int64) + 1_000 * self.number
        readings = Readings(make_ids(["s"] * n), times, times, np.array([positions], dtype=np.float64))
        (frame,) = pack_readings(readings, 1)
        return Row(Kind.READINGS, "line", 0, 0, n, int(times[0]), int(times[-1]), frame)


@pytest.fixture(scope="module", autouse=True)
def own_folder() -> Iterator[None]:
    """A folder for sockets that no other service uses, with a short name."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="h", dir=socket_folder()) as folder:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="module")
def living_owner(own_folder: None) -> Iterator[int]:
    """An owner whose nursery several tests use, because it takes seconds to load."""
    with living_process() as pid:
        yield pid


@pytest.fixture
def world(bootstrap_servers: str, topics: Callable[..., str], living_owner: int) -> World:
    """A shard of its own, of an owner with a nursery."""
    return World(bootstrap_servers, topics, living_owner, next(_SHARDS))


@pytest.fixture
def lonely(bootstrap_servers: str, topics: Callable[..., str], owner: int) -> World:
    """A shard whose owner and nursery nobody else uses."""
    return World(bootstrap_servers, topics, owner, next(_SHARDS))


def test_a_shard_keeps_its_replica_whoever_brings_the_batch(world: World) -> None:
    world.run(world.batch(-1, 5))
    home = world.home()

    found: list[Mapping[str, object]] = []
    for positions in ((15.0,), (5.0, 20.0)):
        worker = threading.Thread(target=lambda at=positions: found.append(world.run(world.batch(*at))))
        worker.start()
        worker.join()

    assert [counters["replica_rebuilds"] for counters in found] == [0, 0]
    assert world.home() == home
    assert world.events() == [("+", 5.0), ("-", 15.0), ("+", 5.0), ("-", 20.0)]


def test_a_home_that_was_killed_in_a_batch_is_replaced(world: World) -> None:
    world.run(world.batch(-1, 5))
    batch = world.batch(15)
    killer = _Interrupted(copy.deepcopy(world.store), lambda: os.kill(world.home(), signal.SIGKILL))
    with pytest.raises(HomeEnded, match=f"shard {world.shard} has ended"):
        run_at_home(batch, killer)

    assert world.run(batch)["replica_rebuilds"] == 1
    assert world.events() == [("+", 5.0), ("-", 15.0)]


def test_a_nursery_that_was_killed_is_replaced_and_its_homes_go_on(lonely: World) -> None:
    lonely.run(lonely.batch(-1, 5))
    home, nursery = lonely.home(), lonely.nursery()
    os.kill(nursery, signal.SIGKILL)
    wait_until(lambda: not runs(nursery), "the end of the nursery")
    assert lonely.run(lonely.batch(15))["replica_rebuilds"] == 0

    os.kill(home, signal.SIGKILL)
    wait_until(lambda: not runs(home), "the end of the home")
    assert lonely.run(lonely.batch(5))["replica_rebuilds"] == 1
    assert lonely.nursery() != nursery
    assert lonely.events() == [("+", 5.0), ("-", 15.0), ("+", 5.0)]


def test_a_worker_that_fails_in_a_batch_leaves_no_replica(world: World) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    world.run(world.batch(-1, 5))
    batch = world.batch(15)
    with pytest.raises(ZeroDivisionError):
        run_at_home(batch, _Interrupted(copy.deepcopy(world.store), fail))

    assert world.run(batch)["replica_rebuilds"] == 1
    assert world.events() == [("+", 5.0), ("-", 15.0)]


def test_errors_of_a_batch_reach_the_worker(world: World) -> None:
    world.store.set_head(msgspec.msgpack.encode(Head(format=99)))
    with pytest.raises(StateError, match="state of format 99"):
        world.run(world.batch(5))


def test_homes_end_with_their_owner(lonely: World) -> None:
    lonely.run(lonely.batch(5))
    home, nursery = lonely.home(), lonely.nursery()
    os.kill(lonely.owner, signal.SIGKILL)
    os.waitpid(lonely.owner, 0)

    wait_until(lambda: not runs(home) and not runs(nursery), "the end of home and nursery")
    assert not Path(home_address(lonely.owner, lonely.shard)).exists()
    assert not Path(nursery_address(lonely.owner)).exists()


class _Interrupted:
    """A store to which something happens before the first entry is written."""

    def __init__(self, store: MemoryStore, before: Callable[[], None]) -> None:
        self._store, self._before = store, before
        self.head, self.set_head, self.get, self.remove = store.head, store.set_head, store.get, store.remove

    def put(self, key: str, value: bytes) -> None:
        self._before()
        self._store.put(key, value)


def _pids(address: str) -> set[int]:
    """Return the processes that listen at an address, as Linux shows them."""
    sockets = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    names = {f"socket:[{fields[6]}]" for fields in sockets if fields[-1] == address}
    found = set()
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it is just closed, or somebody else's
            if os.readlink(file) in names:
                found.add(int(file.parts[2]))
    return found


def test_a_home_whose_socket_is_gone_is_replaced(world: World) -> None:
    world.run(world.batch(-1, 5))
    home = world.home()
    Path(home_address(world.owner, world.shard)).unlink()

    assert world.run(world.batch(15))["replica_rebuilds"] == 1
    assert world.events() == [("+", 5.0), ("-", 15.0)]
    wait_until(lambda: not runs(home), "the end of the home that nobody can reach")


def test_a_folder_that_is_gone_leaves_no_process_that_nobody_can_reach(lonely: World) -> None:
    lonely.run(lonely.batch(-1, 5))
    home, nursery = lonely.home(), lonely.nursery()
    folder = Path(nursery_address(lonely.owner)).parent
    folder.rename(folder.with_name("gone"))

    assert lonely.run(lonely.batch(15))["replica_rebuilds"] == 1
    assert lonely.events() == [("+", 5.0), ("-", 15.0)]
    wait_until(lambda: not runs(home) and not runs(nursery), "the end of home and nursery")


def test_nothing_starts_for_an_owner_that_has_ended(lonely: World) -> None:
    batch = lonely.batch(5)
    os.kill(lonely.owner, signal.SIGKILL)
    os.waitpid(lonely.owner, 0)

    with pytest.raises(OwnerEnded):
        run_at_home(batch, lonely.store)
    assert not Path(nursery_address(lonely.owner)).exists()
