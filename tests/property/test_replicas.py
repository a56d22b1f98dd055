"""Replicas and the state store: workers that come and go, tasks that fail, snapshots at any time.

What is compared is the state, with a monitor that simply applied everything. The store is a dict that forgets
what a failed task wrote, as Spark's does.
"""

import dataclasses
from collections.abc import Mapping

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.errors import StateError
from bmq.job import replicas
from bmq.job.replicas import Head, Replica, catch_up, commit, read_head
from bmq.kernels.tables.hashing import hash_ids
from bmq.monitor.monitor import Monitor
from bmq.monitor.put_pages import PAGE_BYTES
from bmq.records import (
    Clock,
    Command,
    Delete,
    Feed,
    Ids,
    Initial,
    Installation,
    Put,
    Query,
    Readings,
    Region,
    RegionQuery,
)

pytestmark = pytest.mark.property

FEEDS = {"line": Feed("line", "line", "id", ("x",), "ts")}
WORKERS = 3


class DictStore:
    """A shard's state; ``roll_back`` is what Spark does with a failed task's writes."""

    def __init__(self) -> None:
        self.committed: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}

    def head(self) -> bytes | None:
        return self._now.get("head")

    def set_head(self, head: bytes) -> None:
        self._now["head"] = head

    def get(self, key: str) -> bytes | None:
        return self._now.get(key)

    def largest(self) -> int:
        return max(map(len, self._now.values()))

    def put(self, key: str, value: bytes) -> None:
        self._now[key] = value

    def remove(self, key: str) -> None:
        del self._now[key]

    def commit(self) -> None:
        self.committed = dict(self._now)

    def roll_back(self) -> None:
        self._now = dict(self.committed)


@dataclasses.dataclass(frozen=True)
class Step:
    """One batch: on which worker, and whether its task fails after it has advanced its replica."""

    worker: int
    commands: tuple[tuple[str, float, bool] | str, ...]  # (query id, lower border, silent) or the id to delete
    readings: tuple[tuple[str, float], ...]
    fails: bool = False
    loses_replicas: bool = False


names = st.sampled_from(["a", "b", "c"])
borders = st.integers(-3, 3).map(float)
steps = st.builds(
    Step,
    worker=st.integers(0, WORKERS - 1),
    commands=st.lists(st.tuples(names, borders, st.booleans()) | names, max_size=2).map(tuple),
    readings=st.lists(st.tuples(names, borders), max_size=3).map(tuple),
    fails=st.booleans(),
    loses_replicas=st.integers(0, 9).map(lambda n: n == 0),
)


@given(program=st.lists(steps, max_size=25), log_entries=st.integers(1, 4))
def test_any_worker_has_the_state_of_the_batches_that_were_committed(program: list[Step], log_entries: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replicas, "LOG_ENTRIES_MAX", log_entries)
        store = DictStore()
        caches: list[Replica | None] = [None] * WORKERS
        expected = Monitor(Installation(FEEDS))
        for number, step in enumerate(program):
            if step.loses_replicas:
                caches = [None] * WORKERS
            head = read_head(store)
            replica, _ = catch_up(caches[step.worker], head, store, lambda: Monitor(Installation(FEEDS)))
            assert state_of(replica.monitor) == state_of(expected)
            run(replica.monitor, step, number)
            commit(replica, head, store, {"line": {0: number}})
            caches[step.worker] = replica
            if step.fails:
                store.roll_back()
            else:
                store.commit()
                run(expected, step, number)
                expected.take_delta()


def test_a_log_that_has_grown_long_is_replaced_by_a_snapshot() -> None:
    store = DictStore()
    replica = Replica(Monitor(Installation(FEEDS)))

    for number in range(replicas.LOG_ENTRIES_MAX + 1):
        run(replica.monitor, Step(0, (), (("a", float(number)),)), number)
        commit(replica, read_head(store), store, {})

    head = read_head(store)
    assert head.snapshot_version == replicas.LOG_ENTRIES_MAX
    pages = {f"snapshot/{head.snapshot_version}/{page}" for page in range(head.snapshot_pages)}
    assert {"head", f"entry/{head.version}", *pages} == set(store._now)


def test_a_first_batch_of_very_many_commands_is_written_in_small_values_only() -> None:
    store = DictStore()
    monitor = Monitor(Installation(FEEDS))
    n_commands = PAGE_BYTES // 100
    region = Region((0.0,), (1.0,))
    monitor.apply([Put(n, RegionQuery(f"q{n}", n + 1, "line", region)) for n in range(n_commands)])

    head = commit(Replica(monitor), Head(), store, {})

    assert head.snapshot_bytes > replicas.LOG_BYTES_MIN
    assert store.largest() < 1.1 * PAGE_BYTES
    read, _ = catch_up(None, head, store, lambda: Monitor(Installation(FEEDS)))
    assert state_of(read.monitor) == state_of(monitor)


def test_a_state_of_another_format_stops_with_the_way_out() -> None:
    store = DictStore()
    store.set_head(msgspec.msgpack.encode(Head(format=99)))

    with pytest.raises(StateError, match=r"format 99.*reads format 5.*new checkpoint"):
        read_head(store)


def test_a_state_of_the_format_before_is_read() -> None:
    store = DictStore()
    without_mark = msgspec.structs.astuple(Head(format=4, version=7))[:-1]
    store.set_head(msgspec.msgpack.encode(without_mark))

    assert read_head(store) == Head(version=7)


def test_a_state_with_a_hole_stops_instead_of_guessing() -> None:
    store = DictStore()
    replica = Replica(Monitor(Installation(FEEDS)))
    run(replica.monitor, Step(0, (("q", 0.0, False),), ()), 0)
    commit(replica, Head(), store, {})
    store.remove("entry/1")

    with pytest.raises(StateError, match="entry/1"):
        catch_up(None, read_head(store), store, lambda: Monitor(Installation(FEEDS)))


def run(monitor: Monitor, step: Step, number: int) -> None:
    commands: list[Command] = []
    for i, command in enumerate(step.commands):
        offset = 10 * number + i
        if isinstance(command, str):
            commands.append(Delete(offset, command))
        else:
            query_id, lo, silent = command
            initial = Initial.SILENT if silent else Initial.EMIT
            query = RegionQuery(query_id, offset + 1, "line", Region((lo,), (lo + 2,)), initial=initial)
            commands.append(Put(offset, query))
    monitor.apply(commands)
    if step.readings:
        encoded = [stream.encode() for stream, _ in step.readings]
        starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        times = np.full(len(encoded), number, dtype=np.int64)
        values = np.array([[value for _, value in step.readings]])
        readings = Readings(Ids(starts, data, hash_ids(starts, data)), times, times, values)
        monitor.advance("line", readings, Clock(number, number))
    monitor._check()


def state_of(monitor: Monitor) -> Mapping[str, object]:
    queries: dict[str, Put[Query]] = {}
    streams: dict[str, tuple[object, ...]] = {}
    silent: set[object] = set()
    for page in monitor.snapshot():
        queries |= {put.query.query_id: put for put in page.commands if isinstance(put, Put)}
        silent |= set(page.silent)
        for rows in page.streams.values():
            for i in range(len(rows.ids)):
                streams[rows.ids.text(i)] = (rows.event_times[i], rows.ordinals[i], *rows.values[:, i])
    return {"queries": queries, "streams": streams, "silent": silent}
