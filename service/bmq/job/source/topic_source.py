"""The source of topics, for Spark: it plans ranges of offsets, and its tasks return frames.

    Spark's offset log ─► latestOffset ─► partitions ─► tasks: read, decode, pack ─► rows of frames

Spark itself never sees a record, so none costs a row. One source reads the control and the clock topic, another one the
feeds. The offsets of both are in Spark's own log, so a batch that runs again reads the same commands and readings.

Spark runs the planner in a Python process of its own. That process needs no kernels, so it must not import the tasks.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from bmq.job.source.frame_source import FrameReader, frame_source
from bmq.job.source.losses import DataLost, loss_sentence, missing_sentence
from bmq.job.source.offsets import Loss, Position, Range, losses, next_end, plan_ranges, work_of_tasks
from bmq.job.source.source_settings import SourceSettings
from bmq.kafka_io.connect import CONNECT_TIMEOUT_SECONDS, Unreachable, patiently
from bmq.kafka_io.records_ahead import end_of_records
from bmq.kafka_io.topics import TopicEnds, Topics

# Seconds. A broker may be away for this long between two batches; then the streaming query fails, and says why. Spark's
# own source waits about as long.
PATIENCE_SECONDS = 120.0

# The planner does not measure so few records: usually one command comes at a time, and should not wait for a client.
FEW_RECORDS = 4

Document = dict[str, dict[str, Any]]  # a position in the offset log


def topic_source(name: str, settings: SourceSettings) -> type[DataSource]:
    """Return the data source of some topics, for Spark to register; the class carries its settings to the workers."""
    return frame_source(name, partial(TopicsReader, settings))


@dataclass
class TaskRanges(InputPartition):
    """The work of one task."""

    ranges: tuple[Range, ...]


class TopicsReader(FrameReader):
    """Plans the batches over all topics."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._topics: Topics | None = None
        self._target: Position | None = None  # where an `available_now` run ends
        self._latest: Position | None = None  # what the brokers said last
        self._has_asked = False

    def initialOffset(self) -> Document:
        """Return where the checkpoint began. It is the same in each call: the first batch may run again."""
        return Position(self._settings.start_offsets).document()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the most records of a batch."""
        most = self._settings.max_records
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix where the run ends."""
        self._target = self._ask()

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:
        """Return where the batch ends that begins at ``start``; ``start`` itself if there is nothing to read.

        Raises
        ------
        DataLost : the topics no longer have what comes at ``start``, and ``on_loss`` is "stop".
        Unreachable : no broker answered for PATIENCE_SECONDS.
        """
        begin = self._filled(Position.of(start))
        available = self._target or self._ask()
        self._latest = available
        self._must_have(begin, available)
        end = next_end(begin, available, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        end = self._within_bounds(begin, end)
        return start if end == begin else end.document()

    def reportLatestOffset(self) -> Document | None:
        """Return the ends of the topics when the batch was planned; the input lag is the distance to them."""
        return None if self._latest is None else Position(self._latest.offsets).document()

    def partitions(self, start: Document, end: Document) -> Sequence[InputPartition]:
        """Return the ranges between two positions of the offset log."""
        begin, after = self._filled(Position.of(start)), Position.of(end)
        ranges = [
            # The offset log may have a topic that the configuration no longer names.
            at
            for at in plan_ranges(begin, after, self._settings.n_tasks)
            if at.topic in self._settings.start_offsets
        ]
        if self._latest is None:
            # A batch of an earlier process runs again, and the topics may be others now.
            ranges = self._still_there(ranges, after)
        return [TaskRanges(task) for task in work_of_tasks(ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of one task's ranges; Spark calls it in a worker."""
        from bmq.job.source.range_task import frames_of

        assert isinstance(partition, TaskRanges)
        return frames_of(self._settings, partition.ranges)

    def _within_bounds(self, begin: Position, end: Position) -> Position:
        """Return the end of a batch that reads no more of each topic than its bound."""
        offsets = {topic: dict(partitions) for topic, partitions in end.offsets.items()}
        for at in plan_ranges(begin, end, 1):
            bound = self._settings.bounds.get(at.topic)
            if bound is None:
                continue
            if at.start < bound.whole_until:
                offsets[at.topic][at.partition] = min(at.end, bound.whole_until)
            elif at.end - at.start > min(FEW_RECORDS, bound.records):
                place = TopicPartition(at.topic, at.partition, at.start)
                offsets[at.topic][at.partition] = end_of_records(
                    self._settings.plan.client_options, place, at.end, bound.records, bound.bytes
                )
        return Position(offsets, end.ids)

    def _filled(self, position: Position) -> Position:
        """Return the position with the starts of the topics that it does not have."""
        return Position({**self._settings.start_offsets, **position.offsets}, position.ids)

    def _must_have(self, begin: Position, available: Position) -> None:
        if self._settings.on_loss != "stop":
            return
        for at in losses(begin, available):
            assert at.loss is not None
            raise DataLost(loss_sentence(at.loss, at.topic, at.partition, at.expected, at.start))

    def _still_there(self, ranges: list[Range], after: Position) -> list[Range]:
        now = Position({topic: {} for topic in after.offsets}, self._ask().ids)
        others = {topic for topic, name in after.ids.items() if now.ids.get(topic, name) != name}
        if not others:
            return ranges
        gone = [at for at in ranges if at.topic in others]
        if gone and self._settings.on_loss == "stop":
            at = gone[0]
            raise DataLost(loss_sentence(Loss.RECREATED, at.topic, at.partition, at.start, 0))
        # The next batch reads the new topic from its beginning, and writes down the loss.
        return [at for at in ranges if at.topic not in others]

    def _ask(self) -> Position:
        """Return the ends of the topics that exist, with their ids.

        Raises
        ------
        DataLost : one does not exist, and ``on_loss`` is "stop".
        """
        may_miss = self._settings.on_loss == "continue"
        found = self._ends()
        if self._missing(found) and not (may_miss and self._has_asked):
            # A broker that has just started may not know each topic at once.
            with suppress(DataLost) if may_miss else nullcontext():
                found = patiently(self._all_ends, lambda error: isinstance(error, DataLost), CONNECT_TIMEOUT_SECONDS)
        self._has_asked = True
        return Position(
            {topic: ends.offsets for topic, ends in found.items()},
            {topic: ends.id for topic, ends in found.items() if ends.id is not None},
        )

    def _all_ends(self) -> dict[str, TopicEnds]:
        found = self._ends()
        if missing := self._missing(found):
            raise DataLost(missing_sentence(missing))
        return found

    def _ends(self) -> dict[str, TopicEnds]:
        wanted = list(self._settings.start_offsets)
        return patiently(
            lambda: self._client().ends(wanted), lambda error: isinstance(error, Unreachable), PATIENCE_SECONDS
        )

    def _missing(self, found: Mapping[str, TopicEnds]) -> list[str]:
        return [topic for topic in self._settings.start_offsets if topic not in found]

    def _client(self) -> Topics:
        if self._topics is None:
            self._topics = Topics(self._settings.plan.client_options)
        return self._topics
