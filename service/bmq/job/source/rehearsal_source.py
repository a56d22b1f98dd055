"""The source of the rehearsal: batches of a mark that moves no clock.

Spark loads this module into its planning processes, so it must not import a kernel.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from bmq.job.frame_rows import FrameRow, Kind, frame_rows
from bmq.job.plan import Plan
from bmq.job.source.frame_source import FrameReader, frame_source

NAME = "bmq_rehearsal"

# The first takes seconds; the next ones let the JVM compile what runs in every batch.
_N_BATCHES = 3


def rehearsal_source(plan: Plan) -> type[DataSource]:
    """Return the data source, for Spark to register."""
    return frame_source(NAME, partial(RehearsalReader, plan))


class RehearsalReader(FrameReader):
    """Plans _N_BATCHES batches, each with a mark that moves no clock for each shard."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def initialOffset(self) -> dict[str, Any]:
        """Return the place before the first batch."""
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a limit that Spark accepts; every batch has one mark for each shard."""
        return ReadMaxRows(1)

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: the run ends after _N_BATCHES anyway."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch; ``start`` itself after the last one."""
        return {"batch": min(_N_BATCHES, start["batch"] + 1)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one task."""
        return [InputPartition(end["batch"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the marks."""
        feed = next(iter(self._plan.feeds))
        yield frame_rows([FrameRow(key, Kind.MARKS, feed, 0, 0, 0, b"") for key in self._plan.shard_keys])
