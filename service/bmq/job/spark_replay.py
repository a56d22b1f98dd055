"""A backtest on Spark: one job that reads a history and applies it, by shard.

    units ─► tasks: pieces to frames ─► shuffle by shard, sorted by unit and piece ─► tasks: one shard each ─► counts

Each shard writes its events itself, to a file of its own. Knows Spark; `backtest.shard_frames` knows the work of
a task.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from bmq.backtest.replay import Outcome
from bmq.backtest.shard_frames import FRAME_DDL, FrameMaker, ShardReplay, Unit
from bmq.job.failed_query import explained
from bmq.library.local_shard import Counts

# A frame has megabytes, so that Arrow batches of the usual many rows would not fit into memory.
SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "4"}

_UNIT_DDL = "number long, file string, row_group int"
_KEPT = "The events that were written are deleted."


def replay_on_spark(session: SparkSession, units: Sequence[Unit], maker: FrameMaker, shard: ShardReplay) -> Outcome:
    """Return what all shards counted.

    Parameters
    ----------
    session : with `SETTINGS`.
    units : the history.

    Raises
    ------
    ServiceError
        A task failed: with the error of this project, if it is one. The caller deletes the events when the session has
        ended.
    """
    n_shards = len(maker.shard_keys)
    # Spark deals rows out to so many partitions, and each is a task.
    rows = session.createDataFrame([(unit.number, unit.file, unit.row_group) for unit in units], _UNIT_DDL)
    frames = rows.repartition(max(1, len(units))).mapInArrow(partial(_read, maker), FRAME_DDL)
    sorted_frames = frames.repartition(n_shards, "shard").sortWithinPartitions("unit", "piece")
    with explained(kept=_KEPT):
        found = sorted_frames.mapInArrow(partial(_replay, maker.shard_keys, shard), "outcome binary").collect()
    return _sum([_read_outcome(bytes(row.outcome)) for row in found])


def _read(maker: FrameMaker, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            yield from maker.frames(Unit(row["number"], row["file"], row["row_group"]))


def _replay(
    shard_keys: Sequence[int], shard: ShardReplay, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return  # the history has no piece
    number = shard_keys.index(first.column("shard")[0].as_py())
    outcome = shard.run(number, chain([first], batches))
    yield pa.record_batch({"outcome": pa.array([msgspec.msgpack.encode(outcome)], pa.binary())})


def _read_outcome(packed: bytes) -> Outcome:
    fields = msgspec.msgpack.decode(packed)
    return Outcome(**fields | {"counts": Counts(**fields["counts"]), "bad": Counter(fields["bad"])})


def _sum(outcomes: Sequence[Outcome]) -> Outcome:
    whole = Outcome()
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(asdict(outcome.counts))
        whole.bad.update(outcome.bad)
        whole.n_streams += outcome.n_streams
        whole.n_held += outcome.n_held
        whole.expired = outcome.expired  # the same in each shard
    whole.counts = Counts(**counts)
    return whole
