"""Some batches of nothing, before the service says that it runs.

The first batch of a streaming query loads some ten thousand classes of the JVM, compiles Spark's generated code, loads
RocksDB and starts Python processes. That took ten seconds, in which readings waited. So a streaming query of the same
plan, with a temporary checkpoint, runs before the real one. Its readings are none, so it writes nothing to Kafka.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Thread

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from bmq.job.frame_rows import FRAME_DDL, FrameRow, Kind, frame_rows
from bmq.job.pipeline import start_query
from bmq.job.plan import Plan
from bmq.job.session import start_worker_daemon

_NAME = "bmq_rehearsal"

# The first takes seconds; the next ones let the JVM compile what runs in every batch.
_N_BATCHES = 3


def rehearse(spark: SparkSession, plan: Plan) -> None:
    """Run the batches; return when the workers have loaded the kernels and the JVM has run the whole plan.

    Only on one machine: on a cluster the executors do not share a temporary folder, and each would need a rehearsal.
    """
    # The daemon loads kernels meanwhile: the first batch needs a worker only when Spark has planned it.
    daemon = Thread(target=start_worker_daemon, args=(spark,))
    daemon.start()
    plan = replace(plan, run_id="rehearsal", markers_topic=None)
    spark.dataSource.register(_source(plan))
    with tempfile.TemporaryDirectory(prefix="bmq-rehearsal-") as folder:
        commands, readings = (spark.readStream.format(_NAME).load() for _ in range(2))
        frames = commands.mapInArrow(lambda batches: batches, FRAME_DDL).union(readings)
        start_query(frames, plan, folder, "available_now").awaitTermination()
    daemon.join()


def _source(plan: Plan) -> type[DataSource]:
    class RehearsalSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return _NAME

        def schema(self) -> str:
            return FRAME_DDL

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return _RehearsalReader(plan)

    return RehearsalSource


class _RehearsalReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans _N_BATCHES batches, each with a mark that moves no clock for each shard."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(1)

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"batch": min(_N_BATCHES, start["batch"] + 1)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(end["batch"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        feed = next(iter(self._plan.feeds))
        yield frame_rows([FrameRow(key, Kind.MARKS, feed, 0, 0, 0, b"") for key in self._plan.shard_keys])
