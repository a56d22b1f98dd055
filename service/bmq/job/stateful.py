"""The stateful operator: one grouping key and one monitor for each shard, state as a log of deltas.

Only this module is called by `transformWithStateInPandas`. For each shard and batch:

1. read the head, and bring the replica to it (`job.replicas`);
2. unpack the frames: commands by offset, readings by feed and partition, dead letters;
3. apply the commands, advance each feed by its readings and its clock, then the joins by the readings of all shards;
4. find out which topics of queries can be used, and whether an earlier run has written the batch; write the delta and
   the head;
5. write events, replies and dead letters to Kafka, and yield one row of counters.

The replica leaves the cache before step 3 and returns after step 4, so a task that fails in between leaves no replica.
Spark keeps the state of step 4 only if the whole batch succeeds. So the state may be behind what step 5 wrote, and is
never ahead of it.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from bmq.job.counting import count
from bmq.job.outcome import run_batch
from bmq.job.output import counters_row
from bmq.job.plan import Plan
from bmq.job.received import read_frames
from bmq.job.rendering import Output
from bmq.job.replicas import Replica, catch_up, commit, read_head
from bmq.job.writing import look, write
from bmq.kafka_io.batch_writer import Marks
from bmq.kafka_io.writer_process import Place, RemoteWriter, owner_of_worker
from bmq.monitor.monitor import Monitor

# The replicas of this worker process: (run id, shard) -> replica. Spark keeps a worker process for many batches; when
# a batch of another run arrives, the replicas of the old run are dropped.
_replicas: dict[tuple[str, int], Replica] = {}


class SparkStore:
    """`job.replicas.Store` over Spark's state API."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "head binary")
        self._log = handle.getMapState("log", "name string", "content binary")

    def head(self) -> bytes | None:
        """Return the head of the current key."""
        row = self._head.get()
        return None if row is None else bytes(row[0])

    def set_head(self, head: bytes) -> None:
        """Replace the head of the current key."""
        self._head.update((head,))

    def get(self, key: str) -> bytes | None:
        """Return an entry or page of the current key."""
        row = self._log.getValue((key,))
        return None if row is None else bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Write an entry or page of the current key."""
        self._log.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        """Remove an entry or page of the current key."""
        self._log.removeKey((key,))


class ShardProcessor(StatefulProcessor):
    """The adapter between Spark and the monitors."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state. Spark calls this once for each task."""
        self._store = SparkStore(handle)

    def close(self) -> None:
        """Do nothing: only the replicas remain between tasks."""

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Run one batch of one shard; the numbers of the steps are those of the module's docstring."""
        plan = self._plan
        shard = plan.shard_keys.index(key[0])
        frames = read_frames(pd.concat(rows))  # 2
        head = read_head(self._store)  # 1
        replica, is_rebuilt = catch_up(
            _take_replica(plan.run_id, shard),
            head,
            self._store,
            lambda: Monitor(plan.feeds, plan.silent_tombstones_before, shard, plan.n_shards),
        )
        result = run_batch(replica.monitor, frames, plan.feeds)  # 3
        output = Output(plan, shard, _batch_id(), head, frames, result)

        with closing(_writer(plan, shard)) as writer:
            faults = look(writer, output)  # 4
            marked = writer.begin(output.batch, head.marked, has_messages=output.has_messages)
            new_head = commit(replica, head, self._store, frames.next_offsets, marked)
            _replicas[plan.run_id, shard] = replica
            faults = write(writer, output, faults)  # 5
        counters = count(output, output.replies(faults), replica.monitor, new_head, is_rebuilt=is_rebuilt)
        yield counters_row(shard, msgspec.json.encode(counters).decode())


def _take_replica(run_id: str, shard: int) -> Replica | None:
    for other in [key for key in _replicas if key[0] != run_id]:
        del _replicas[other]
    return _replicas.pop((run_id, shard), None)


def _writer(plan: Plan, shard: int) -> RemoteWriter:
    marks = Marks(f"{plan.delivery_id}-{shard}", plan.markers_topic) if plan.markers_topic is not None else None
    return RemoteWriter(owner_of_worker(), Place(plan.run_id, shard, plan.client_options, marks))


def _batch_id() -> int:
    context = TaskContext.get()
    assert context is not None, "handleInputRows runs inside a task"
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None, "Spark names the batch of each streaming task"
    return int(batch)
