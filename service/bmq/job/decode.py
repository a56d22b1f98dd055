"""Kafka records to rows of the plan: for each Arrow batch one frame for each shard. Runs in `mapInArrow`, stateless.

    value, topic, partition, offset, … ─► columns ─► readings by shard ─► (shard, kind, feed, partition, …, frame)

Every shard gets a row even if its frame has no readings, for two reasons. The offsets in the row show how far each
partition was read; replies contain them. The latest event time of all shards moves the feed's clock. If a feed takes
part in joins, every shard also gets all its readings, as one frame that is packed once.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.job.output_topics import OutputTopics
from bmq.job.plan import Plan
from bmq.records import NEVER, Feed, Readings
from bmq.wire.control import parse_command
from bmq.wire.frames import pack_commands, pack_dead_letters, pack_readings
from bmq.wire.marks import parse_mark
from bmq.wire.readings import Decoded, Decoder

_log = logging.getLogger(__name__)


class Kind(IntEnum):
    """The contents of a frame. A shard reads the frames of a batch in this order."""

    COMMANDS = 0
    READINGS = 1
    DEAD_LETTERS = 2
    MARKS = 3  # an empty frame; the row's `latest` advances the feed's clock without readings
    JOIN_READINGS = 4  # the readings of all shards, for the joins; only for feeds that take part in joins


FRAME_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),  # the shard's grouping key (job.shards), not its number
        pa.field("kind", pa.int32()),
        pa.field("feed", pa.string()),  # empty for commands
        pa.field("partition", pa.int32()),
        pa.field("first_offset", pa.int64()),
        pa.field("next_offset", pa.int64()),
        pa.field("frame", pa.binary()),
        # Event times over the readings of all shards in this Arrow batch; NEVER: no readings.
        pa.field("earliest", pa.int64()),
        pa.field("latest", pa.int64()),
    ]
)
FRAME_DDL = (
    "shard int, kind int, feed string, partition int, first_offset long, next_offset long, frame binary, "
    "earliest long, latest long"
)

# A definition may name thousands of streams, and every shard gets each frame: larger frames would approach the 2 GiB
# that an Arrow column can hold.
COMMANDS_PER_FRAME = 500

Arrow = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class _Row(NamedTuple):
    """One row of FRAME_SCHEMA."""

    shard: int
    kind: Kind
    feed: str
    partition: int
    first_offset: int
    next_offset: int
    frame: bytes
    earliest: int = NEVER
    latest: int = NEVER


def decode_control(plan: Plan) -> Arrow:
    """Return the function that turns records of the control and the clock topic into a copy of a frame for every shard.

    Its input has the columns topic, key, value and offset; a task reads one topic.
    """

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        output_topics = OutputTopics(plan)
        for batch in batches:
            if not batch.num_rows:
                continue
            if batch.column("topic")[0].as_py() == plan.clock_topic:
                yield from _decode_marks(plan, batch)
            else:
                yield from _decode_commands(plan, output_topics, batch)

    return decode


def _decode_commands(plan: Plan, output_topics: OutputTopics, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    keys, values, offsets = (batch.column(name).to_pylist() for name in ("key", "value", "offset"))
    commands = [
        parse_command(key, value, offset, plan.feeds, plan.output_prefix, plan.reserved_topics)
        for key, value, offset in zip(keys, values, offsets, strict=True)
    ]
    commands = output_topics.ensure(commands)
    for i in range(0, len(commands), COMMANDS_PER_FRAME):
        part = commands[i : i + COMMANDS_PER_FRAME]
        frame = pack_commands(part)
        for key in plan.shard_keys:
            yield _rows([_Row(key, Kind.COMMANDS, "", 0, part[0].offset, part[-1].offset + 1, frame)])


def _decode_marks(plan: Plan, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the latest mark of each feed. A mark that advances no clock is sent too: its purpose is a batch."""
    offsets = batch.column("offset")
    first, after = offsets[0].as_py(), offsets[-1].as_py() + 1
    marks = [parse_mark(value) for value in batch.column("value").to_pylist()]
    latest: dict[str, int] = {}
    for mark in marks:
        if mark is not None and mark[0] in plan.feeds:  # the configuration may no longer contain the feed
            feed, event_time = mark
            latest[feed] = max(latest.get(feed, NEVER), NEVER if event_time is None else event_time)
    if n_bad := marks.count(None):
        _log.warning(
            "%s: %d records of offsets %d to %d are no marks and were passed over. Nobody but the service writes to "
            "this topic: find out who does.",
            plan.clock_topic,
            n_bad,
            first,
            after - 1,
        )
    if latest:
        yield _rows(
            [
                _Row(key, Kind.MARKS, feed, 0, first, after, b"", latest=event_time)
                for feed, event_time in latest.items()
                for key in plan.shard_keys
            ]
        )


def decode_readings(plan: Plan) -> Arrow:
    """Return the function that turns feed records into frames of readings and of dead letters.

    Its input has the columns of Spark's Kafka source. A task reads one partition of one topic, because this source
    makes one task for each partition.
    """

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        feeds = plan.feed_by_topic()
        # Only when it is needed: a decoder of each of some hundred feeds would take longer than the task's records.
        decoder_of = cache(lambda topic: _FeedDecoder(plan, feeds[topic]))
        for batch in batches:
            if batch.num_rows:
                yield decoder_of(batch.column("topic")[0].as_py()).decode(batch)

    return decode


class _FeedDecoder:
    """Decodes the records of one partition of one feed in one task."""

    def __init__(self, plan: Plan, feed: Feed) -> None:
        self._plan = plan
        self._feed = feed
        self._decoder = Decoder(feed)

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the partition's next batch of records."""
        plan, feed = self._plan, self._feed
        partition = batch.column("partition")[0].as_py()
        offsets = batch.column("offset")
        first, after = offsets[0].as_py(), offsets[-1].as_py() + 1
        record_times = batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000  # microseconds to milliseconds
        decoded = self._decoder.decode(batch.column("key"), batch.column("value"), record_times)
        readings = decoded.readings
        if feed.max_lateness_ms:
            readings = with_partition(readings, partition)
        times = readings.event_times
        earliest, latest = (int(times.min()), int(times.max())) if times.size else (NEVER, NEVER)
        rows = [
            _Row(key, Kind.READINGS, feed.name, partition, first, after, frame, earliest, latest)
            for key, frame in zip(plan.shard_keys, pack_readings(readings, plan.n_shards), strict=True)
        ]
        if feed.join and len(readings):
            (frame,) = pack_readings(with_partition(readings, partition), n_shards=1)
            rows += [
                _Row(key, Kind.JOIN_READINGS, feed.name, partition, first, after, frame) for key in plan.shard_keys
            ]
        if decoded.bad:
            shard = partition % plan.n_shards  # dead letters belong to no shard, so any one shard gets them
            frame = _dead_letters(feed, batch, decoded)
            rows.append(_Row(plan.shard_keys[shard], Kind.DEAD_LETTERS, feed.name, partition, first, after, frame))
        return _rows(rows)


def with_partition(readings: Readings, partition: int) -> Readings:
    """Return the readings with the number of their partition in each row, for those who put readings in order."""
    return replace(readings, partitions=np.full(len(readings), partition, dtype=np.int32))


def _dead_letters(feed: Feed, batch: pa.RecordBatch, decoded: Decoded) -> bytes:
    rows = pa.array([bad.row for bad in decoded.bad], pa.int64())
    return pack_dead_letters(
        feed.name,
        pc.take(batch.column("key"), rows),
        pc.take(batch.column("value"), rows),
        pc.take(batch.column("topic"), rows),
        pc.take(batch.column("partition"), rows),
        pc.take(batch.column("offset"), rows),
        [bad.code for bad in decoded.bad],
        [bad.message for bad in decoded.bad],
    )


def _rows(rows: list[_Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(np.array(column) if pa.types.is_integer(field.type) else column, field.type)
        for field, column in zip(FRAME_SCHEMA, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAME_SCHEMA)
