"""The sources of a checkpoint's first batch that reads nothing: they say where the other checkpoint ended.

Spark loads this module into its planning processes, so it must not import a kernel.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from bmq.job.frame_rows import FrameRow, Kind, frame_rows
from bmq.job.source.frame_source import FrameReader, frame_source


def seed_source(name: str, document: dict[str, Any], shard_keys: Sequence[int]) -> type[DataSource]:
    """Return the data source, for Spark to register.

    Parameters
    ----------
    document : where the batch ends, as the offset log has it.
    shard_keys : the shards that get a row, without which Spark would not call their operator.
    """
    return frame_source(name, partial(SeedReader, document, tuple(shard_keys)))


class SeedReader(FrameReader):
    """Plans one batch, to the document."""

    def __init__(self, document: dict[str, Any], shard_keys: tuple[int, ...]) -> None:
        self._document = document
        self._shard_keys = shard_keys

    def initialOffset(self) -> dict[str, Any]:
        """Return the place before the batch, which no document is."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: the run ends after one batch anyway."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the document."""
        return self._document

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one task if some shards get a row."""
        return [InputPartition(0)] if self._shard_keys else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return a row without a frame for each shard."""
        yield frame_rows([FrameRow(key, Kind.MARKS, "", 0, 0, 0, b"") for key in self._shard_keys])
