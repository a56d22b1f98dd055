"""The work of a shard in a batch, by the stateful operator: one monitor for each shard, state as a log of deltas.

For each shard and batch:

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

from contextlib import closing

import msgspec
import pandas as pd
from pyspark import TaskContext

from bmq.job.counting import count
from bmq.job.outcome import run_batch
from bmq.job.output import counters_row
from bmq.job.plan import Plan
from bmq.job.received import read_frames
from bmq.job.rendering import Output
from bmq.job.replicas import Replica, Store, catch_up, commit, read_head
from bmq.job.writing import look, write
from bmq.kafka_io.batch_writer import Marks
from bmq.kafka_io.writer_process import Place, RemoteWriter, owner_of_worker
from bmq.monitor.monitor import Monitor

# The replicas of this worker process: (run id, shard) -> replica. Spark keeps a worker process for many batches; when
# a batch of another run arrives, the replicas of the old run are dropped.
_replicas: dict[tuple[str, int], Replica] = {}


def run_shard(plan: Plan, shard: int, store: Store, rows: pd.DataFrame) -> pd.DataFrame:
    """Run one batch of one shard; return the row of its counters. The numbers are those of the module's docstring."""
    frames = read_frames(rows)  # 2
    head = read_head(store)  # 1
    replica, is_rebuilt = catch_up(
        _take_replica(plan.run_id, shard),
        head,
        store,
        lambda: Monitor(plan.feeds, plan.silent_tombstones_before, shard, plan.n_shards),
    )
    result = run_batch(replica.monitor, frames, plan.feeds)  # 3
    output = Output(plan, shard, _batch_id(), head, frames, result)

    with closing(_writer(plan, shard)) as writer:
        faults = look(writer, output)  # 4
        marked = writer.begin(output.batch, head.marked, has_messages=output.has_messages)
        new_head = commit(replica, head, store, frames.next_offsets, marked)
        _replicas[plan.run_id, shard] = replica
        faults = write(writer, output, faults)  # 5
    counters = count(output, output.replies(faults), replica.monitor, new_head, is_rebuilt=is_rebuilt)
    return counters_row(shard, msgspec.json.encode(counters).decode())


def _take_replica(run_id: str, shard: int) -> Replica | None:
    for other in [key for key in _replicas if key[0] != run_id]:
        del _replicas[other]
    return _replicas.pop((run_id, shard), None)


def _writer(plan: Plan, shard: int) -> RemoteWriter:
    marks = Marks(f"{plan.delivery_id}-{shard}", plan.markers_topic) if plan.markers_topic is not None else None
    return RemoteWriter(owner_of_worker(), Place(plan.run_id, shard, plan.client_options, marks))


def _batch_id() -> int:
    context = TaskContext.get()
    assert context is not None, "Spark runs this inside a task"
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None, "Spark names the batch of each streaming task"
    return int(batch)
