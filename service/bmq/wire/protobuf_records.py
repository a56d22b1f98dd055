"""Feed records in Protobuf, one message a record without a header: the reader of one record, by a descriptor set.

A field within a message is named by its path, "location.lat". There is no scan: Google's library reads each record, and
then the exact path. This module knows descriptors; `readings_exact` knows the rules for a reading.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from bmq.errors import DeadLetterCode
from bmq.records import Bools, Bytes, Feed, Int64s
from bmq.records.attribute_texts import NULL, SEPARATOR
from bmq.wire.attributes import attribute_text, concat_attributes
from bmq.wire.fault_texts import refuse, suggestion
from bmq.wire.feed_fields import KEY, scanned_fields
from bmq.wire.numeral import Numeral
from bmq.wire.scanned_fields import ScannedFields

_DOT = "."
_TIMESTAMP = "google.protobuf.Timestamp"
_TIME = "a time"
_NUMBERS = frozenset({"a number"})
_CACHED_MESSAGES = 64


def protobuf_schema(descriptors: bytes, message: str) -> str:
    """Return the `schema` of a feed: a descriptor set and the name of a message in it, as one text."""
    return json.dumps({"message": message, "descriptors": b64encode(descriptors).decode()})


def check_protobuf_feed(feed: Feed) -> None:
    """Check that the records of a feed can be read.

    Raises
    ------
    ValueError
        The descriptors are no descriptor set, lack the message or a field of the feed, or the field has a type that the
        feed cannot use.
    """
    descriptor = _message_class(feed.schema).DESCRIPTOR
    scalars = _NUMBERS | {"a string", "an enum"}
    for names, usable, purpose in (
        (feed.dimensions, _NUMBERS, "a dimension is a number"),
        (
            [feed.event_time] if feed.event_time else [],
            _NUMBERS | {"a string", _TIME},
            "an event time is a number, a string or a Timestamp",
        ),
        ([] if feed.stream_id == KEY else [feed.stream_id], scalars, "a stream id is a string, an enum or a number"),
        (feed.attributes, scalars | {"a boolean"}, "an attribute is a string, an enum, a number or a boolean"),
    ):
        for name in names:
            found = _type_at(descriptor, name)
            if found not in usable:
                raise ValueError(f"the message has {found} as {name}; {purpose}")


class ProtobufRecords:
    """The Protobuf records of one feed; see `record_formats.RecordFormat`."""

    max_scan_bytes = 2**63 - 1  # the format adds no limit
    n_quotes = 0
    times_in_ms = False

    def __init__(self, feed: Feed) -> None:
        self._message_class = _message_class(feed.schema)
        self._paths = {name: name.split(_DOT) for name in scanned_fields(feed)}

    def scan(self, starts: Int64s, data: Bytes, fields: ScannedFields) -> Bools:
        """Return that no record is plain."""
        return np.zeros(starts.size - 1, dtype=np.bool_)

    def read(self, value: bytes) -> Mapping[str, object]:
        """Return the fields of the feed by path.

        A field that is not set is absent if its message can say so: a message, an `optional` field and one of a
        `oneof`. Any other field that is not set has its default, such as 0.

        Raises
        ------
        ReadingError
            The bytes are no message.
        """
        from google.protobuf.message import DecodeError

        message = self._message_class()
        try:
            message.ParseFromString(value)
        except DecodeError as error:
            refuse(
                DeadLetterCode.NOT_JSON,
                f"the record is no Protobuf of the feed's message: {error}. Send one message as it is, without the "
                "header of a schema registry",
            )
        return {name: _value_at(message, path) for name, path in self._paths.items()}

    @staticmethod
    def attributes_text(raw: bytes) -> str:
        """Return a text for a record that is not plain; nobody reads it."""
        return concat_attributes(NULL for _ in raw.decode().split(SEPARATOR))

    @staticmethod
    def where_text(value: object) -> str:
        """Return the canonical text of the value; values of Protobuf have a type, so no rule is needed."""
        return attribute_text(value)


@lru_cache(_CACHED_MESSAGES)
def _message_class(schema: str) -> Any:
    # Imported here, because the library reads configurations through this module, and may be without Protobuf.
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    found = json.loads(schema)
    files = descriptor_pb2.FileDescriptorSet()
    pool = descriptor_pool.DescriptorPool()
    try:
        files.ParseFromString(b64decode(found["descriptors"]))
        for file in files.file:
            pool.Add(file)
        descriptor = pool.FindMessageTypeByName(found["message"])
    except (DecodeError, TypeError) as error:
        raise ValueError(
            f"the file is no descriptor set: {error}; make it with protoc --include_imports --descriptor_set_out=FILE"
        ) from None
    except KeyError:
        names = [f"{file.package}.{one.name}".lstrip(_DOT) for file in files.file for one in file.message_type]
        raise ValueError(
            f"the descriptor set has no message {found['message']}. {suggestion(found['message'], names)}"
        ) from None
    return message_factory.GetMessageClass(descriptor)


def _type_at(descriptor: Any, path: str) -> str:
    """Return what the field at a path is, in words for a message."""
    for name in path.split(_DOT):
        field = None if descriptor is None else descriptor.fields_by_name.get(name)
        if field is None:
            known = [] if descriptor is None else list(descriptor.fields_by_name)
            raise ValueError(f"the message has no field {path}. {suggestion(name, known)}")
        if _is_repeated(field):
            return "a list or a map"
        descriptor = field.message_type
    if descriptor is not None:
        return _TIME if descriptor.full_name == _TIMESTAMP else "a message"
    return _words(field)


def _is_repeated(field: Any) -> bool:
    from google.protobuf import descriptor_pb2

    # The descriptor of a field has this under different names in different versions of the library.
    message = descriptor_pb2.DescriptorProto()
    field.containing_type.CopyToProto(message)
    return any(one.name == field.name and one.label == one.LABEL_REPEATED for one in message.field)


def _words(field: Any) -> str:
    if field.type == field.TYPE_BYTES:
        return "bytes"
    kinds = {field.CPPTYPE_STRING: "a string", field.CPPTYPE_BOOL: "a boolean", field.CPPTYPE_ENUM: "an enum"}
    return kinds.get(field.cpp_type, "a number")


def _value_at(message: Any, path: list[str]) -> object:
    """Return the value of the field at a path, a number as `Numeral`; None: it is absent."""
    *outer, last = path
    for name in outer:
        if not message.HasField(name):
            return None
        message = getattr(message, name)
    field = message.DESCRIPTOR.fields_by_name[last]
    if field.has_presence and not message.HasField(last):
        return None
    value = getattr(message, last)
    if field.message_type is not None:
        return str(value.ToJsonString())
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return Numeral(value) if known is None else str(known.name)
    return value if isinstance(value, str | bool) else Numeral(value)
