"""Deltas of a shard's state as bytes: msgpack for commands and flags, raw columns for streams.

The layout is in checkpoints. A change of it is a change of `job.replicas.FORMAT`.
"""

import msgspec
import numpy as np

from bmq.kernels.hashing import hash_ids
from bmq.records import Delete, Delta, Ids, Put, StreamRows


class _Streams(msgspec.Struct, frozen=True, array_like=True):
    """Rows of the stream table; little-endian columns. Ids as lengths, since most are shorter than a start."""

    n_dims: int
    lengths: bytes  # int32[n]
    ids: bytes  # uint8[sum of lengths]
    event_times: bytes  # int64[n]
    ordinals: bytes  # int32[n]
    values: bytes  # float64[d, n]


class _Delta(msgspec.Struct, frozen=True, array_like=True):
    puts_and_deletes: list[tuple[Put | None, Delete | None]]
    streams: dict[str, _Streams]
    silent: list[tuple[str, str, bool]]  # (query id, stream id, silent now)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Delta)


def pack_delta(delta: Delta) -> bytes:
    """Return a delta as bytes: about 24 + 8 * d bytes and its id for each stream."""
    return _encoder.encode(
        _Delta(
            [(command, None) if isinstance(command, Put) else (None, command) for command in delta.commands],
            {feed: _pack_streams(rows) for feed, rows in delta.streams.items()},
            [(query_id, stream, now) for (query_id, stream), now in delta.silent.items()],
        )
    )


def unpack_delta(packed: bytes) -> Delta:
    """Return the delta that ``pack_delta`` packed."""
    delta = _decoder.decode(packed)
    commands = [put or delete for put, delete in delta.puts_and_deletes]
    return Delta(
        tuple(command for command in commands if command is not None),
        {feed: _unpack_streams(rows) for feed, rows in delta.streams.items()},
        {(query_id, stream): now for query_id, stream, now in delta.silent},
    )


def _pack_streams(rows: StreamRows) -> _Streams:
    starts = rows.ids.starts
    return _Streams(
        rows.values.shape[0],
        np.diff(starts).astype("<i4").tobytes(),
        rows.ids.bytes[starts[0] : starts[-1]].tobytes(),
        rows.event_times.astype("<i8", copy=False).tobytes(),
        rows.ordinals.astype("<i4", copy=False).tobytes(),
        rows.values.astype("<f8", copy=False).tobytes(),
    )


def _unpack_streams(rows: _Streams) -> StreamRows:
    lengths = np.frombuffer(rows.lengths, dtype="<i4")
    starts = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    data = np.frombuffer(rows.ids, dtype=np.uint8)
    return StreamRows(
        Ids(starts, data, hash_ids(starts, data)),
        np.frombuffer(rows.event_times, dtype="<i8"),
        np.frombuffer(rows.ordinals, dtype="<i4"),
        np.frombuffer(rows.values, dtype="<f8").reshape(rows.n_dims, -1),
    )
