"""Deltas of a shard's state as bytes: msgpack for commands, flags and texts, raw little-endian columns for rows.

The fields of the records in `records.state` say what is written, in their order:

    record with columns     an array of its fields; behind the number of dimensions, if it has values
    column                  the bytes of its numbers, of the dtype that its annotation declares
    Ids, Attributes,        as the functions below say
    commands, silent
    any other type          as msgspec writes it

The layout is in checkpoints. A change of it is a change of `job.replicas.FORMAT`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args, get_origin

import msgspec
import numpy as np
import numpy.typing as npt

from bmq.kernels.tables.hashing import hash_ids
from bmq.records import Attributes, Delete, Delta, Ids, Put, Query
from bmq.records.attribute_texts import with_used_texts
from bmq.records.record_fields import RecordField, fields_of
from bmq.wire.command_places import AcceptedPlaces, accepted_of_places, accepted_to_places

Accepted = Put[Query] | Delete
_Column = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Codec:
    """How the values of one type are packed.

    Attributes
    ----------
    packed : the type that msgspec writes and reads.
    pack, unpack : to a value of that type, and back.
    """

    packed: Any
    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def pack_delta(delta: Delta) -> bytes:
    """Return a delta as bytes.

    Beside its id, a stream takes about 16 + 8 d bytes (20 + 8 d with attributes), a held reading or one in a window as
    much and 8 more, a tracking 34 + 8 d.
    """
    return _encoder.encode(_delta.pack(delta))


def unpack_delta(packed: bytes) -> Delta:
    """Return the delta that ``pack_delta`` packed; its arrays are writable, aligned and the caller's own."""
    delta: Delta = _delta.unpack(_decoder.decode(packed))
    return delta


# -- columns ----------------------------------------------------------------------------------------------


def _pack_column(column: _Column, dtype: np.dtype[Any]) -> bytes:
    return column.astype(dtype.newbyteorder("<"), copy=False).tobytes()


def _unpack_column(packed: bytes, dtype: np.dtype[Any]) -> _Column:
    """Return a column of this machine's own numbers; a copy, because a view of bytes is read-only."""
    return np.frombuffer(packed, dtype.newbyteorder("<")).astype(dtype)


_LENGTH, _CODE, _BYTE = np.dtype(np.int32), np.dtype(np.int32), np.dtype(np.uint8)


class _Ids(msgspec.Struct, frozen=True, array_like=True):
    """Ids as lengths, because most are shorter than a start."""

    lengths: bytes  # int32[n]
    utf8: bytes  # uint8[sum of lengths]


def _pack_ids(ids: Ids) -> _Ids:
    starts = ids.starts
    return _Ids(_pack_column(np.diff(starts), _LENGTH), ids.bytes[starts[0] : starts[-1]].tobytes())


def _unpack_ids(ids: _Ids) -> Ids:
    lengths = _unpack_column(ids.lengths, _LENGTH)
    starts = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    utf8 = _unpack_column(ids.utf8, _BYTE)
    return Ids(starts, utf8, hash_ids(starts, utf8))


class _Attributes(msgspec.Struct, frozen=True, array_like=True):
    codes: bytes  # int32[n]
    texts: tuple[str, ...]


def _pack_attributes(attributes: Attributes) -> _Attributes:
    # A shard's table has the texts of all its streams, a delta those of the streams touched.
    used = with_used_texts(attributes.codes, attributes.texts)
    return _Attributes(_pack_column(used.codes, _CODE), used.texts)


def _unpack_attributes(attributes: _Attributes) -> Attributes:
    return Attributes(_unpack_column(attributes.codes, _CODE), attributes.texts)


# -- commands and flags -----------------------------------------------------------------------------------


def _pack_commands(commands: tuple[Accepted, ...]) -> list[AcceptedPlaces]:
    return [accepted_to_places(command) for command in commands]


def _unpack_commands(packed: list[AcceptedPlaces]) -> tuple[Accepted, ...]:
    return tuple(command for command in map(accepted_of_places, packed) if command is not None)


_PackedSilent = tuple[str, str, bool]  # query id, stream id, silent now


def _pack_silent(silent: Mapping[tuple[str, str], bool]) -> list[_PackedSilent]:
    return [(query_id, stream, now) for (query_id, stream), now in silent.items()]


def _unpack_silent(packed: list[_PackedSilent]) -> dict[tuple[str, str], bool]:
    return {(query_id, stream): now for query_id, stream, now in packed}


_OF_TYPE: dict[Any, _Codec] = {
    Ids: _Codec(_Ids, _pack_ids, _unpack_ids),
    Attributes: _Codec(_Attributes, _pack_attributes, _unpack_attributes),
    tuple[Accepted, ...]: _Codec(list[AcceptedPlaces], _pack_commands, _unpack_commands),
    Mapping[tuple[str, str], bool]: _Codec(list[_PackedSilent], _pack_silent, _unpack_silent),
}


# -- records ----------------------------------------------------------------------------------------------


def _codec_of(kind: Any) -> _Codec | None:
    """Return how a type is packed; None: as msgspec does it."""
    if kind in _OF_TYPE:
        return _OF_TYPE[kind]
    if get_origin(kind) is Mapping:
        return _mapping_codec(*get_args(kind))
    return _record_codec(kind) if isinstance(kind, type) and is_dataclass(kind) else None


def _field_codec(field: RecordField) -> _Codec | None:
    codec = _codec_of(field.type) if field.dtype is None else _column_codec(field.dtype)
    if codec is None or not field.is_optional:
        return codec
    pack, unpack = codec.pack, codec.unpack
    return _Codec(
        codec.packed | None,
        lambda value: None if value is None else pack(value),
        lambda packed: None if packed is None else unpack(packed),
    )


def _column_codec(dtype: np.dtype[Any]) -> _Codec:
    return _Codec(bytes, lambda column: _pack_column(column, dtype), lambda packed: _unpack_column(packed, dtype))


def _mapping_codec(key: Any, value: Any) -> _Codec:
    codec = _codec_of(value)
    if codec is None:
        return _Codec(dict[key, value], dict, lambda packed: packed)
    pack, unpack = codec.pack, codec.unpack
    return _Codec(
        dict[key, codec.packed],  # type: ignore[name-defined]
        lambda values: {name: pack(one) for name, one in values.items()},
        lambda packed: {name: unpack(one) for name, one in packed.items()},
    )


def _record_codec(record: type) -> _Codec | None:
    """Return how a record with columns is packed; None: neither it nor a record in it has any."""
    fields = fields_of(record)
    codecs = [_field_codec(field) for field in fields]
    if all(codec is None for codec in codecs):
        return None
    steps = [(field, codec or _as_it_is(field)) for field, codec in zip(fields, codecs, strict=True)]
    by_dimension = [field.name for field in fields if field.by_dimension]
    # The bytes of values alone do not say their shape.
    head = [("n_dims", int)] if by_dimension else []
    packed_fields = [*head, *((field.name, codec.packed) for field, codec in steps)]
    packed = msgspec.defstruct(f"_{record.__name__}", packed_fields, frozen=True, array_like=True)

    def pack(rows: Any) -> msgspec.Struct:
        n_dims = [getattr(rows, name).shape[0] for name in by_dimension[:1]]
        return packed(*n_dims, *(codec.pack(getattr(rows, field.name)) for field, codec in steps))

    def unpack(found: Any) -> Any:
        columns = {field.name: codec.unpack(getattr(found, field.name)) for field, codec in steps}
        for name in by_dimension:
            columns[name] = columns[name].reshape(found.n_dims, -1)
        return record(**columns)

    return _Codec(packed, pack, unpack)


def _as_it_is(field: RecordField) -> _Codec:
    return _Codec(field.type | None if field.is_optional else field.type, lambda value: value, lambda packed: packed)


_codec_of_delta = _record_codec(Delta)
assert _codec_of_delta is not None
_delta = _codec_of_delta
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_delta.packed)
