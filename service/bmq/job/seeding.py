"""A new checkpoint from the pages of its shards: one batch that reads no record and writes the state.

    pages of each shard, in files ──┐
                                    ├─► batch 0 of the new checkpoint: state, offsets, commit
    where the old one ended ────────┘

The service's own streaming query goes on with batch 1. So the plan here has the same sources, in the same order, and an
operator with the same state (docs/decisions/0020). Spark also loads this module into a process of the driver, so it
must not import a kernel.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from bmq.job.output import OUTPUT_DDL, counters_row
from bmq.job.source.seed_source import seed_source
from bmq.job.stateful import SparkStore

SOURCES = ("bmq_control", "bmq_feeds")  # as in `job.pipeline`, in its order

NextOffsets = dict[str, dict[int, int]]


class SeedProcessor(StatefulProcessor):
    """Writes the state of a shard, and does nothing else.

    Parameters
    ----------
    pages : the folder of the pages: a folder for each shard, and in it a file for each page, by number.
    next_offsets : as in `job.replicas.Head`.
    """

    def __init__(self, shard_keys: tuple[int, ...], pages: Path, next_offsets: NextOffsets) -> None:
        self.shard_keys = shard_keys
        self._pages = pages
        self._next_offsets = next_offsets

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._store = SparkStore(handle)

    def close(self) -> None:
        """Do nothing."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Write the pages and the head of one shard."""
        from bmq.job.replicas import seed

        for _ in rows:
            pass  # Spark has sent them, and wants them read
        shard = self.shard_keys.index(key[0])
        files = sorted((self._pages / str(shard)).iterdir(), key=lambda file: int(file.name))
        seed(self._store, (file.read_bytes() for file in files), self._next_offsets)
        yield counters_row(shard, "")


def write_seed(
    spark: SparkSession, checkpoint: str, documents: Sequence[dict[str, Any]], processor: SeedProcessor
) -> None:
    """Write a checkpoint's first batch.

    Parameters
    ----------
    checkpoint : a folder that is not there.
    documents : where the batch ends in the topics of each of SOURCES.
    """
    keys = processor.shard_keys
    frames = []
    for name, document, of_source in zip(SOURCES, documents, (keys, ()), strict=True):
        spark.dataSource.register(seed_source(name, document, of_source))
        frames.append(spark.readStream.format(name).load())
    query = (
        frames[0]
        .union(frames[1])
        .groupBy("shard")
        .transformWithStateInPandas(processor, outputStructType=OUTPUT_DDL, outputMode="append", timeMode="none")
        .writeStream.format("noop")
        .queryName("bmq")
        .outputMode("append")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
