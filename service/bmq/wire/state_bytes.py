"""Deltas of a shard's state as bytes: msgpack for commands, flags and texts, raw little-endian columns for rows.

The layout is in checkpoints. A change of it is a change of `job.replicas.FORMAT`.
"""

from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from bmq.kernels.tables.hashing import hash_ids
from bmq.records import (
    Attributes,
    Clock,
    Delete,
    Delta,
    Ids,
    JoinRows,
    Put,
    PutJoin,
    Readings,
    StreamRows,
    TrackingRows,
    WindowRows,
)
from bmq.records.attribute_texts import with_used_texts

_Number = TypeVar("_Number", bound=np.generic)


class _Ids(msgspec.Struct, frozen=True, array_like=True):
    """Ids as lengths, since most are shorter than a start."""

    lengths: bytes  # int32[n]
    utf8: bytes  # uint8[sum of lengths]


class _Attributes(msgspec.Struct, frozen=True, array_like=True):
    codes: bytes  # int32[n]
    texts: tuple[str, ...]


class _Streams(msgspec.Struct, frozen=True, array_like=True):
    """Rows of the stream table."""

    n_dims: int
    ids: _Ids
    event_times: bytes  # int64[n]
    ordinals: bytes  # int32[n]
    values: bytes  # float64[d, n]
    attributes: _Attributes | None


class _Readings(msgspec.Struct, frozen=True, array_like=True):
    n_dims: int
    ids: _Ids
    event_times: bytes  # int64[n]
    record_times: bytes  # int64[n]
    values: bytes  # float64[d, n]
    attributes: _Attributes | None
    partitions: bytes | None  # int32[n]


class _Pairs(msgspec.Struct, frozen=True, array_like=True):
    n_dims: int
    query_ids: tuple[str, ...]
    query_rows: bytes  # int32[n]
    ids: _Ids
    flags: bytes  # uint8[n]
    reasons: bytes  # int8[n]
    ordinals: bytes  # int32[n]
    begins: bytes  # int64[n]
    values: bytes  # float64[d, n]
    last_entered: bytes  # int64[n]
    n_events: bytes  # int32[n]


class _Window(msgspec.Struct, frozen=True, array_like=True):
    first: int
    readings: _Readings
    ordinals: bytes  # int32[n]


class _Join(msgspec.Struct, frozen=True, array_like=True):
    """What a feed keeps for joins."""

    streams: _Streams | None
    held: _Readings | None
    window: _Window | None
    n_recounted: int


class _Delta(msgspec.Struct, frozen=True, array_like=True):
    # One of each three is set; msgspec tells no two dataclasses of a union apart.
    commands: list[tuple[Put | None, PutJoin | None, Delete | None]]
    streams: dict[str, _Streams]
    silent: list[tuple[str, str, bool]]  # (query id, stream id, silent now)
    clocks: dict[str, Clock]
    held: dict[str, _Readings]
    pairs: dict[str, _Pairs]
    joins: dict[str, _Join]
    since: dict[str, tuple[int, int]]
    recounts: dict[str, int]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Delta)


def pack_delta(delta: Delta) -> bytes:
    """Return a delta as bytes.

    Beside its id, a stream takes about 16 + 8 d bytes (20 + 8 d with attributes), a held reading or one in a window as
    much and 8 more, a pair 34 + 8 d.
    """
    return _encoder.encode(
        _Delta(
            [
                (
                    command if isinstance(command, Put) else None,
                    command if isinstance(command, PutJoin) else None,
                    command if isinstance(command, Delete) else None,
                )
                for command in delta.commands
            ],
            {feed: _pack_streams(rows) for feed, rows in delta.streams.items()},
            [(query_id, stream, now) for (query_id, stream), now in delta.silent.items()],
            dict(delta.clocks),
            {feed: _pack_readings(readings) for feed, readings in delta.held.items()},
            {feed: _pack_trackings(rows) for feed, rows in delta.pairs.items()},
            {feed: _pack_join(rows) for feed, rows in delta.joins.items()},
            dict(delta.since),
            dict(delta.recounts),
        )
    )


def unpack_delta(packed: bytes) -> Delta:
    """Return the delta that ``pack_delta`` packed; its arrays are writable, aligned and the caller's own."""
    delta = _decoder.decode(packed)
    commands = (put or put_join or delete for put, put_join, delete in delta.commands)
    return Delta(
        tuple(command for command in commands if command is not None),
        {feed: _unpack_streams(rows) for feed, rows in delta.streams.items()},
        {(query_id, stream): now for query_id, stream, now in delta.silent},
        delta.clocks,
        {feed: _unpack_readings(readings) for feed, readings in delta.held.items()},
        {feed: _unpack_trackings(rows) for feed, rows in delta.pairs.items()},
        {feed: _unpack_join(rows) for feed, rows in delta.joins.items()},
        delta.since,
        delta.recounts,
    )


def _pack_streams(rows: StreamRows) -> _Streams:
    return _Streams(
        rows.values.shape[0],
        _pack_ids(rows.ids),
        _pack(rows.event_times, np.int64),
        _pack(rows.ordinals, np.int32),
        _pack(rows.values, np.float64),
        _pack_attributes(rows.attributes),
    )


def _unpack_streams(rows: _Streams) -> StreamRows:
    return StreamRows(
        _unpack_ids(rows.ids),
        _unpack(rows.event_times, np.int64),
        _unpack(rows.ordinals, np.int32),
        _unpack(rows.values, np.float64).reshape(rows.n_dims, -1),
        _unpack_attributes(rows.attributes),
    )


def _pack_readings(readings: Readings) -> _Readings:
    return _Readings(
        readings.values.shape[0],
        _pack_ids(readings.ids),
        _pack(readings.event_times, np.int64),
        _pack(readings.record_times, np.int64),
        _pack(readings.values, np.float64),
        _pack_attributes(readings.attributes),
        None if readings.partitions is None else _pack(readings.partitions, np.int32),
    )


def _unpack_readings(readings: _Readings) -> Readings:
    return Readings(
        _unpack_ids(readings.ids),
        _unpack(readings.event_times, np.int64),
        _unpack(readings.record_times, np.int64),
        _unpack(readings.values, np.float64).reshape(readings.n_dims, -1),
        _unpack_attributes(readings.attributes),
        None if readings.partitions is None else _unpack(readings.partitions, np.int32),
    )


def _pack_trackings(rows: TrackingRows) -> _Pairs:
    return _Pairs(
        rows.values.shape[0],
        rows.query_ids,
        _pack(rows.query_rows, np.int32),
        _pack_ids(rows.ids),
        _pack(rows.flags, np.uint8),
        _pack(rows.reasons, np.int8),
        _pack(rows.ordinals, np.int32),
        _pack(rows.begins, np.int64),
        _pack(rows.values, np.float64),
        _pack(rows.last_entered, np.int64),
        _pack(rows.n_events, np.int32),
    )


def _unpack_trackings(rows: _Pairs) -> TrackingRows:
    return TrackingRows(
        rows.query_ids,
        _unpack(rows.query_rows, np.int32),
        _unpack_ids(rows.ids),
        _unpack(rows.flags, np.uint8),
        _unpack(rows.reasons, np.int8),
        _unpack(rows.ordinals, np.int32),
        _unpack(rows.begins, np.int64),
        _unpack(rows.values, np.float64).reshape(rows.n_dims, -1),
        _unpack(rows.last_entered, np.int64),
        _unpack(rows.n_events, np.int32),
    )


def _pack_join(rows: JoinRows) -> _Join:
    return _Join(
        None if rows.streams is None else _pack_streams(rows.streams),
        None if rows.held is None else _pack_readings(rows.held),
        None if rows.window is None else _pack_window(rows.window),
        rows.n_recounted,
    )


def _unpack_join(rows: _Join) -> JoinRows:
    return JoinRows(
        None if rows.streams is None else _unpack_streams(rows.streams),
        None if rows.held is None else _unpack_readings(rows.held),
        None if rows.window is None else _unpack_window(rows.window),
        rows.n_recounted,
    )


def _pack_window(rows: WindowRows) -> _Window:
    return _Window(rows.first, _pack_readings(rows.readings), _pack(rows.ordinals, np.int32))


def _unpack_window(rows: _Window) -> WindowRows:
    return WindowRows(rows.first, _unpack_readings(rows.readings), _unpack(rows.ordinals, np.int32))


def _pack_ids(ids: Ids) -> _Ids:
    starts = ids.starts
    return _Ids(_pack(np.diff(starts), np.int32), ids.bytes[starts[0] : starts[-1]].tobytes())


def _unpack_ids(ids: _Ids) -> Ids:
    lengths = _unpack(ids.lengths, np.int32)
    starts = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    data = _unpack(ids.utf8, np.uint8)
    return Ids(starts, data, hash_ids(starts, data))


def _pack_attributes(attributes: Attributes | None) -> _Attributes | None:
    if attributes is None:
        return None
    # A shard's table has the texts of all its streams, a delta those of the ones touched.
    used = with_used_texts(attributes.codes, attributes.texts)
    return _Attributes(_pack(used.codes, np.int32), used.texts)


def _unpack_attributes(attributes: _Attributes | None) -> Attributes | None:
    return None if attributes is None else Attributes(_unpack(attributes.codes, np.int32), attributes.texts)


def _pack(column: npt.NDArray[np.generic], kind: type[np.generic]) -> bytes:
    return column.astype(np.dtype(kind).newbyteorder("<"), copy=False).tobytes()


def _unpack(packed: bytes, kind: type[_Number]) -> npt.NDArray[_Number]:
    """Return a column of this machine's own numbers; a copy, since a view of bytes is read-only."""
    return np.frombuffer(packed, np.dtype(kind).newbyteorder("<")).astype(kind)
