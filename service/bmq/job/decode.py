"""Kafka records to rows of the plan: one frame a shard for each Arrow batch. Runs in `mapInArrow`, keeps no state.

    value, topic, partition, offset, … ─► columns ─► readings by shard ─► (shard, kind, feed, partition, …, frame)

A row with an empty frame is sent too: it tells every shard how far each partition was read, which replies name.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.job.output_topics import OutputTopics
from bmq.job.plan import Plan
from bmq.records import Feed
from bmq.wire.control import parse_command
from bmq.wire.frames import pack_commands, pack_dead_letters, pack_readings
from bmq.wire.readings import Decoded, Decoder


class Kind(IntEnum):
    """What a frame holds. The order is the order in which a shard takes them."""

    COMMANDS = 0
    READINGS = 1
    DEAD_LETTERS = 2


FRAME_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),  # the shard's grouping key (job.shards), not its number
        pa.field("kind", pa.int32()),
        pa.field("feed", pa.string()),  # empty for commands
        pa.field("partition", pa.int32()),
        pa.field("first_offset", pa.int64()),
        pa.field("next_offset", pa.int64()),
        pa.field("frame", pa.binary()),
    ]
)
FRAME_DDL = "shard int, kind int, feed string, partition int, first_offset long, next_offset long, frame binary"

# A definition may name thousands of streams, and every shard gets each frame: more would come near Arrow's 2 GiB.
COMMANDS_PER_FRAME = 500

Arrow = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def decode_control(plan: Plan) -> Arrow:
    """Return the function that turns control records (key, value, offset) into one copy for every shard."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        output_topics = OutputTopics(plan)
        for batch in batches:
            if not batch.num_rows:
                continue
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
                    yield _rows([(key, Kind.COMMANDS, "", 0, part[0].offset, part[-1].offset + 1, frame)])

    return decode


def decode_readings(plan: Plan) -> Arrow:
    """Return the function that turns feed records into frames of readings and of dead letters.

    Its input has the columns of Spark's Kafka source; a task reads one
    partition of one topic, since Spark's Kafka source makes one task of each.
    """

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        feeds = plan.feed_by_topic()
        decoders: dict[str, Decoder] = {}
        for batch in batches:
            if not batch.num_rows:
                continue
            feed = feeds[batch.column("topic")[0].as_py()]
            decoder = decoders.setdefault(feed.name, Decoder(feed))
            yield _decode_batch(plan, feed, decoder, batch)

    return decode


def _decode_batch(plan: Plan, feed: Feed, decoder: Decoder, batch: pa.RecordBatch) -> pa.RecordBatch:
    partition = batch.column("partition")[0].as_py()
    offsets = batch.column("offset")
    first, after = offsets[0].as_py(), offsets[-1].as_py() + 1
    record_times = batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000  # microseconds to milliseconds
    decoded = decoder.decode(batch.column("key"), batch.column("value"), record_times)
    frames = pack_readings(decoded.readings, plan.n_shards)
    rows = [
        (key, Kind.READINGS, feed.name, partition, first, after, frame)
        for key, frame in zip(plan.shard_keys, frames, strict=True)
    ]
    if decoded.bad:
        key = plan.shard_keys[partition % plan.n_shards]
        frame = _dead_letters(feed, batch, decoded)
        rows.append((key, Kind.DEAD_LETTERS, feed.name, partition, first, after, frame))
    return _rows(rows)


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


def _rows(rows: list[tuple[int, Kind, str, int, int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(np.array(column) if pa.types.is_integer(field.type) else column, field.type)
        for field, column in zip(FRAME_SCHEMA, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAME_SCHEMA)
