"""Frames: many readings, commands or dead letters as the value of one row.

A frame exists for one batch, between the tasks that decode and the stateful operator. During an update of the service
the two may run different builds, so each frame carries its format number. Knows bytes, not how they travel.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from bmq.errors import StateError
from bmq.kernels.tables.hashing import hash_ids, shards_of
from bmq.kernels.tables.partition import count_by_shard, rows_by_shard, scatter_by_shard
from bmq.records import Attributes, Command, Ids, Int64s, Readings
from bmq.records.attribute_texts import with_used_texts
from bmq.wire.command_places import CommandPlaces, command_of_places, command_to_places

FORMAT = 5  # of every frame; a change of a layout below needs a new number
_FORMAT_KEY = b"bmq.frame"
_ALIGNMENT = 8  # bytes; kernels are compiled for aligned arrays
# Only feeds that declare attributes, or hold readings back, have these columns.
_ATTRIBUTES = "attributes"
_PARTITION = "partition"

_DEAD_LETTERS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("code", pa.string()),
        pa.field("message", pa.string()),
        pa.field("feed", pa.string()),
    ],
    metadata={_FORMAT_KEY: str(FORMAT)},
)


def pack_readings(readings: Readings, n_shards: int) -> list[bytes]:
    """Return one frame for each shard. Rows keep their order; a frame may have no rows.

    A frame does not contain the hashes: to compute a hash again costs less than eight bytes in the shuffle.
    """
    shards = shards_of(readings.ids.hashes, n_shards)
    row_starts, byte_starts = count_by_shard(shards, readings.ids.starts, n_shards)
    id_starts, id_bytes, *columns = scatter_by_shard(
        shards,
        row_starts,
        byte_starts,
        readings.ids.starts,
        readings.ids.bytes,
        readings.event_times,
        readings.record_times,
        readings.values,
    )
    has_options = readings.attributes is not None or readings.partitions is not None
    rows = rows_by_shard(shards, row_starts) if has_options else None
    schema = _readings_schema(readings)
    frames = []
    for shard in range(n_shards):
        first, last = row_starts[shard], row_starts[shard + 1]
        ids = pa.Array.from_buffers(
            pa.large_binary(),
            last - first,
            [
                None,
                pa.py_buffer(id_starts[first + shard : last + shard + 1]),
                pa.py_buffer(id_bytes[byte_starts[shard] : byte_starts[shard + 1]]),
            ],
        )
        event_times, record_times, values = (column[..., first:last] for column in columns)
        numbers = map(pa.array, (event_times, record_times, *values))
        options = [] if rows is None else _option_columns(readings, rows[first:last])
        frames.append(_pack(pa.record_batch([ids, *numbers, *options], schema)))
    return frames


def _option_columns(readings: Readings, rows: Int64s) -> list[pa.Array]:
    """Return the optional columns of some rows, in the order of `_readings_schema`."""
    columns = []
    if readings.attributes is not None:
        used = with_used_texts(readings.attributes.codes[rows], readings.attributes.texts)
        columns.append(pa.DictionaryArray.from_arrays(used.codes, pa.array(used.texts, pa.string())))
    if readings.partitions is not None:
        columns.append(pa.array(readings.partitions[rows]))
    return columns


def unpack_readings(frame: bytes | memoryview) -> Readings:
    """Return the readings of one frame. Ids and times are views of the frame and keep it alive.

    Raises
    ------
    StateError
        The frame has another format, or the bytes are not a frame.
    """
    batch = _unpack(frame)
    ids, event_times, record_times, *others = batch.columns
    names = batch.schema.names[3:]
    _, starts_buffer, bytes_buffer = ids.buffers()
    # Without any id, Arrow may write an empty buffer of starts.
    starts = np.frombuffer(starts_buffer if len(ids) else bytes(8), np.int64, len(ids) + 1)
    id_bytes = np.frombuffer(bytes_buffer or b"", np.uint8)
    partitions = others.pop().to_numpy() if names[-1] == _PARTITION else None
    attributes = None
    if _ATTRIBUTES in names:
        column = others.pop()
        attributes = Attributes(column.indices.to_numpy(), tuple(column.dictionary.to_pylist()))
    return Readings(
        Ids(starts, id_bytes, hash_ids(starts, id_bytes)),
        event_times.to_numpy(),
        record_times.to_numpy(),
        np.stack([column.to_numpy() for column in others]),
        attributes,
        partitions,
    )


def _readings_schema(readings: Readings) -> pa.Schema:
    fields = [
        pa.field("id", pa.large_binary()),
        pa.field("event_time", pa.int64()),
        pa.field("record_time", pa.int64()),
        *(pa.field(f"value_{dimension}", pa.float64()) for dimension in range(readings.values.shape[0])),
    ]
    if readings.attributes is not None:
        fields.append(pa.field(_ATTRIBUTES, pa.dictionary(pa.int32(), pa.string())))
    if readings.partitions is not None:
        fields.append(pa.field(_PARTITION, pa.int32()))
    return pa.schema(fields, metadata={_FORMAT_KEY: str(FORMAT)})


class _CommandFrame(msgspec.Struct, frozen=True, array_like=True):
    format: int
    commands: list[CommandPlaces]


def pack_commands(commands: Sequence[Command]) -> bytes:
    """Return the commands as one frame, in their order; borders stay exact, including infinities."""
    return msgspec.msgpack.encode(_CommandFrame(FORMAT, [command_to_places(command) for command in commands]))


def unpack_commands(frame: bytes | memoryview) -> list[Command]:
    """Return the commands of one frame.

    Raises
    ------
    StateError
        The frame has another format, or the bytes are not a frame.
    """
    try:
        decoded = msgspec.msgpack.decode(frame, type=_CommandFrame)
    except msgspec.MsgspecError as error:
        raise _unknown_format(f"a frame of commands cannot be read ({error})") from None
    if decoded.format != FORMAT:
        raise _unknown_format(f"a frame of commands has format {decoded.format}")
    commands = map(command_of_places, decoded.commands)
    return [command for command in commands if command is not None]


def pack_dead_letters(feed: str, *columns: pa.Array | Sequence[str]) -> bytes:
    """Return bad records of one feed as a frame: the original bytes, their position in Kafka, code and message.

    Parameters
    ----------
    columns : the columns of the frame but `feed`, in the order of `unpack_dead_letters`.
    """
    with_feed = (*columns, pa.repeat(feed, len(columns[0])))
    packed = [
        column.cast(field.type) if isinstance(column, pa.Array) else pa.array(column, field.type)
        for column, field in zip(with_feed, _DEAD_LETTERS, strict=True)
    ]
    return _pack(pa.record_batch(packed, schema=_DEAD_LETTERS))


def unpack_dead_letters(frame: bytes | memoryview) -> pa.RecordBatch:
    """Return the columns key, value, topic, partition, offset, code, message and feed of one frame.

    Raises
    ------
    StateError
        The frame has another format, or the bytes are not a frame.
    """
    return _unpack(frame)


def _pack(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpack(frame: bytes | memoryview) -> pa.RecordBatch:
    buffer = pa.py_buffer(frame)
    if buffer.address % _ALIGNMENT:
        buffer = pa.py_buffer(bytes(frame))
    try:
        stream = pa.ipc.open_stream(buffer)
        found = (stream.schema.metadata or {}).get(_FORMAT_KEY, b"none").decode()
        if found == str(FORMAT):
            return stream.read_next_batch()
    except (pa.ArrowInvalid, StopIteration) as error:
        raise _unknown_format(f"a frame cannot be read ({error})") from None
    raise _unknown_format(f"a frame has format {found}")


def _unknown_format(fault: str) -> StateError:
    return StateError(
        f"{fault}; this build reads format {FORMAT}. Stop every worker of the other build, then start the "
        "service again: frames are made anew from the topics."
    )
