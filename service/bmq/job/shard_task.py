"""The work of a shard in a batch, in its home (`job.homes`): one monitor for each shard, state as a log of deltas.

For each shard and batch:

1. read the head, and bring the replica to it (`job.replicas`);
2. unpack the frames: commands by offset, readings by feed and partition, dead letters;
3. apply the commands, advance each feed by its readings and its clock, then the joins by the readings of all shards;
4. find out which topics of queries can be used, and whether an earlier run has written the batch; write the delta and
   the head;
5. write events, replies and dead letters to Kafka, and return the counters.

The replica leaves the cache before step 3 and returns after step 4, so a task that fails in between leaves no replica.
Spark keeps the state of step 4 only if the whole batch succeeds. So the state may be behind what step 5 wrote, and is
never ahead of it.
"""

import gc
from contextlib import closing
from dataclasses import dataclass

from bmq.job.counting import count
from bmq.job.garbage import paused_collector
from bmq.job.outcome import run_batch
from bmq.job.plan import Plan
from bmq.job.received import Row, read_frames, with_frames
from bmq.job.rendering import Output
from bmq.job.replicas import Replica, Store, catch_up, commit, read_head
from bmq.job.writing import look, write
from bmq.kafka_io.batch_writer import Marks
from bmq.kafka_io.writer_process import Place, RemoteWriter
from bmq.metrics.counters import ShardCounters
from bmq.monitor.monitor import Monitor

# The replicas of this process: (run id, shard) -> replica. When a batch of another run arrives, the replicas of the old
# run are dropped.
_replicas: dict[tuple[str, int], Replica] = {}


@dataclass(frozen=True, slots=True)
class ShardBatch:
    """One batch of one shard.

    Attributes
    ----------
    number : of the batch.
    owner : the process with which the writer process ends.
    """

    plan: Plan
    shard: int
    number: int
    owner: int
    rows: list[Row]


def run_shard(batch: ShardBatch, store: Store) -> ShardCounters:
    """Run one batch of one shard; return its counters. The numbers are those of the module's docstring."""
    plan, shard = batch.plan, batch.shard
    head = read_head(store)  # 1
    frames = read_frames(with_frames(batch.rows, plan.frames_folder))  # 2
    cached = _take_replica(plan.run_id, shard)
    if cached is None:
        gc.collect()  # a try that failed may have left a monitor, whose parts know each other
    with paused_collector():
        replica, is_rebuilt = catch_up(
            cached,
            head,
            store,
            lambda: Monitor(plan.installation, plan.silent_tombstones_before, shard, plan.n_shards),
        )
        result = run_batch(replica.monitor, frames, plan.feeds)  # 3
    output = Output(plan, shard, batch.number, head, frames, result)

    with closing(_writer(batch)) as writer:
        faults = look(writer, output)  # 4
        marked = writer.begin(output.run())
        new_head = commit(replica, head, store, frames.next_offsets, marked)
        _replicas[plan.run_id, shard] = replica
        written = write(writer, output, faults)  # 5
    return count(output, written, replica.monitor, new_head, is_rebuilt=is_rebuilt)


def _take_replica(run_id: str, shard: int) -> Replica | None:
    for other in [key for key in _replicas if key[0] != run_id]:
        del _replicas[other]
    return _replicas.pop((run_id, shard), None)


def _writer(batch: ShardBatch) -> RemoteWriter:
    plan, shard = batch.plan, batch.shard
    marks = Marks(f"{plan.delivery_id}-{shard}", plan.markers_topic) if plan.markers_topic is not None else None
    return RemoteWriter(batch.owner, Place(plan.run_id, shard, plan.client_options, marks))
