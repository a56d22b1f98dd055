"""Kafka records to rows of the plan: for each block of records one frame for each shard. Runs in tasks, stateless.

    value, topic, partition, offset, … ─► columns ─► readings by shard ─► (shard, kind, feed, partition, …, frame)

Every shard gets a row even if its frame has no readings, for two reasons. The offsets in the row show how far each
partition was read; replies contain them. The latest event time of all shards moves the feed's clock. If a feed takes
part in joins, every shard also gets all its readings, as one frame that is packed once.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.job.frame_rows import DATA_LOSS, FrameRow, Kind, frame_rows
from bmq.job.garbage import paused_collector
from bmq.job.plan import Plan
from bmq.kafka_io.range_reader import RecordBlock
from bmq.kafka_io.schema_registry import schemas_of
from bmq.records import NEVER, Feed, Readings
from bmq.wire.control import parse_command
from bmq.wire.frames import pack_commands, pack_dead_letters, pack_readings
from bmq.wire.marks import parse_mark
from bmq.wire.readings import Decoded
from bmq.wire.topic_records import TopicDecoder

_log = logging.getLogger(__name__)


# A definition may name thousands of streams, and every shard gets each frame: larger frames would approach the 2 GiB
# that an Arrow column can hold.
COMMANDS_PER_FRAME = 500


class ControlDecoder:
    """Decodes the records of the control and the clock topic: a copy of each frame for every shard."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def decode(self, block: RecordBlock) -> Iterator[pa.RecordBatch]:
        """Return the rows of the next block of records, of commands or of marks."""
        return self._marks(block) if block.topic == self._plan.clock_topic else self._commands(block)

    def _commands(self, block: RecordBlock) -> Iterator[pa.RecordBatch]:
        plan = self._plan
        installation = plan.installation
        records = zip(block.keys.to_pylist(), block.values.to_pylist(), block.offsets.tolist(), strict=True)
        with paused_collector():
            commands = [parse_command(key, value, offset, installation) for key, value, offset in records]
        for i in range(0, len(commands), COMMANDS_PER_FRAME):
            part = commands[i : i + COMMANDS_PER_FRAME]
            frame = pack_commands(part)
            for key in plan.shard_keys:
                yield frame_rows([FrameRow(key, Kind.COMMANDS, "", 0, part[0].offset, part[-1].offset + 1, frame)])

    def _marks(self, block: RecordBlock) -> Iterator[pa.RecordBatch]:
        """Yield the latest mark of each feed. A mark that advances no clock is sent too: its purpose is a batch."""
        plan = self._plan
        first, after = int(block.offsets[0]), int(block.offsets[-1]) + 1
        marks = [parse_mark(value) for value in block.values.to_pylist()]
        latest: dict[str, int] = {}
        for mark in marks:
            if mark is not None and mark[0] in plan.feeds:  # the configuration may no longer contain the feed
                feed, event_time = mark
                latest[feed] = max(latest.get(feed, NEVER), NEVER if event_time is None else event_time)
        if n_bad := marks.count(None):
            _log.warning(
                "%s: %d records of offsets %d to %d are no marks and were passed over. Nobody but the service writes "
                "to this topic: find out who does.",
                plan.clock_topic,
                n_bad,
                first,
                after - 1,
            )
        if latest:
            yield frame_rows(
                [
                    FrameRow(key, Kind.MARKS, feed, 0, first, after, b"", latest=event_time)
                    for feed, event_time in latest.items()
                    for key in plan.shard_keys
                ]
            )


class FeedDecoder:
    """Decodes the records of one partition of one topic of a feed in one task."""

    def __init__(self, plan: Plan, feed: Feed, topic: str) -> None:
        self._plan = plan
        self._feed = feed
        self._topic = topic
        self._decoder = TopicDecoder(feed, topic, schemas_of(plan.registry))

    def decode(self, block: RecordBlock) -> Iterator[pa.RecordBatch]:
        """Return the rows of the partition's next block of records, as one batch."""
        plan, feed = self._plan, self._feed
        partition = feed.partition_of(block.topic, block.partition)
        first, after = int(block.offsets[0]), int(block.offsets[-1]) + 1
        decoded = self._decoder.decode(block.keys, block.values, block.times)
        readings = decoded.readings
        if feed.max_lateness_ms:
            readings = with_partition(readings, partition)
        times = readings.event_times
        earliest, latest = (int(times.min()), int(times.max())) if times.size else (NEVER, NEVER)
        rows = [
            FrameRow(key, Kind.READINGS, feed.name, partition, first, after, frame, earliest, latest)
            for key, frame in zip(plan.shard_keys, pack_readings(readings, plan.n_shards), strict=True)
        ]
        if feed.join and len(readings):
            (frame,) = pack_readings(with_partition(readings, partition), n_shards=1)
            rows += [
                FrameRow(key, Kind.JOIN_READINGS, feed.name, partition, first, after, frame) for key in plan.shard_keys
            ]
        if decoded.bad:
            frame = _dead_letters(feed, block, decoded)
            rows.append(
                FrameRow(self._any_shard(partition), Kind.DEAD_LETTERS, feed.name, partition, first, after, frame)
            )
        yield frame_rows(rows)

    def note_loss(self, partition: int, expected: int, first: int, message: str) -> pa.RecordBatch:
        """Return the row that says which offsets are gone: from ``expected`` to the one before ``first``."""
        feed = self._feed
        frame = pack_dead_letters(
            feed.name,
            pa.nulls(1, pa.binary()),
            pa.nulls(1, pa.binary()),
            pa.array([self._topic]),
            pa.array([partition]),
            pa.array([expected]),
            [DATA_LOSS],
            [message],
        )
        number = feed.partition_of(self._topic, partition)
        return frame_rows(
            [FrameRow(self._any_shard(number), Kind.DEAD_LETTERS, feed.name, number, expected, first, frame)]
        )

    def _any_shard(self, partition: int) -> int:
        """Return the shard that gets the dead letters of a partition: they belong to no shard."""
        return self._plan.shard_keys[partition % self._plan.n_shards]


def with_partition(readings: Readings, partition: int) -> Readings:
    """Return the readings with the number of their partition in each row, for those who put readings in order."""
    return replace(readings, partitions=np.full(len(readings), partition, dtype=np.int32))


def _dead_letters(feed: Feed, block: RecordBlock, decoded: Decoded) -> bytes:
    rows = np.array([bad.row for bad in decoded.bad], dtype=np.int64)
    return pack_dead_letters(
        feed.name,
        pc.take(block.keys, pa.array(rows)),
        pc.take(block.values, pa.array(rows)),
        pa.repeat(block.topic, rows.size),
        pa.repeat(block.partition, rows.size),
        pa.array(block.offsets[rows]),
        [bad.code for bad in decoded.bad],
        [bad.message for bad in decoded.bad],
    )
