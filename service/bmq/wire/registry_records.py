"""Feed records in Avro with the header of a schema registry: each record names the schema that it was written with.

    00 | 00 00 00 07 | 06 76 31 37 …
    magic  schema id   the record in the binary encoding

The records of a batch are divided by schema, and each part is decoded as records of a schema file are. Knows the
header; the caller knows the registry.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from bmq.errors import DeadLetterCode, ReadingError
from bmq.kernels.text.plain_records import gather_texts
from bmq.records import Feed, Format, Int64s, Readings
from bmq.records.column_records import concat, take
from bmq.wire.avro_schema import compile_feed, unit_of_time
from bmq.wire.fault_texts import refuse
from bmq.wire.readings import MAX_RECORD_BYTES, BadRecord, Decoded, Decoder
from bmq.wire.readings_exact import ExactDecoder, ExactReading
from bmq.wire.readings_fast import BinaryColumn
from bmq.wire.record_texts import REGISTRY_BYTES, REGISTRY_MAGIC

_ID_WEIGHTS = np.array([1 << 24, 1 << 16, 1 << 8, 1], dtype=np.int64)
_NO_HEADER = (
    "the record does not begin with the header of a schema registry, a byte 0 and four bytes of the schema id: send it "
    "with a serializer for the registry, or name a schema_file if no record of the feed has a header"
)

# Returns the Avro schema with an id, as JSON. Raises ValueError, with a clause about the schema, if it has none.
SchemaSource = Callable[[int], str]


def feed_of_schema(feed: Feed, schema_id: int, source: SchemaSource) -> Feed:
    """Return the feed for the records of one schema.

    Raises
    ------
    ReadingError
        `not_json`: there is no such Avro schema. `wrong_type`: the feed cannot be read with it.
    """
    try:
        schema = source(schema_id)
    except ValueError as fault:
        refuse(DeadLetterCode.NOT_JSON, f"the record names the schema {schema_id}, but {fault}")
    try:
        unit = feed.event_time_unit
        if feed.event_time is not None:
            unit = unit_of_time(schema, feed.event_time, unit)
        found = replace(feed, schema=schema, event_time_unit=unit)
        compile_feed(found)
    except ValueError as fault:
        refuse(
            DeadLetterCode.WRONG_TYPE,
            f"the record has the schema {schema_id}: {fault}. Correct the feed, or send records that have its fields",
        )
    return found


class ExactRegistryDecoder:
    """Decodes one record at a time, as `readings_exact.ExactDecoder` does.

    Parameters
    ----------
    feed : of the registry, without a schema.
    source : what knows the schemas.
    max_record_bytes : a longer record is refused and not parsed.
    """

    def __init__(self, feed: Feed, source: SchemaSource, max_record_bytes: int) -> None:
        self._feed = feed
        self._source = source
        self._max_record_bytes = max_record_bytes

    def decode(self, key: bytes | None, value: bytes | None, record_time: int) -> ExactReading:
        """Return the reading in one record. Raises ReadingError if it is not a reading."""
        if value is None or len(value) < REGISTRY_BYTES or value[0] != REGISTRY_MAGIC:
            refuse(DeadLetterCode.NOT_JSON, _NO_HEADER)
        feed = feed_of_schema(self._feed, int.from_bytes(value[1:REGISTRY_BYTES], "big"), self._source)
        return ExactDecoder(feed, self._max_record_bytes).decode(key, value[REGISTRY_BYTES:], record_time)


@dataclass(frozen=True, slots=True)
class _Part:
    """The records of one schema: their positions in the batch, and what is in them."""

    rows: Int64s
    decoded: Decoded


class RegistryDecoder:
    """Decodes the records of one feed, as `readings.Decoder` does.

    Parameters
    ----------
    feed : of the registry, without a schema.
    source : what knows the schemas. It is asked once a batch for each schema. What it raises, except ValueError, ends
        the decode: a registry that does not answer makes no dead letters.
    max_record_bytes : a longer record is a dead letter (`too_large`); the header is not counted.
    """

    def __init__(self, feed: Feed, source: SchemaSource, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self._feed = feed
        self._source = source
        self._max_record_bytes = max_record_bytes

    def decode(self, keys: pa.BinaryArray | None, values: pa.BinaryArray, record_times: Int64s) -> Decoded:
        """Return the readings and the bad records of a batch; the parameters are those of `Decoder.decode`."""
        column = BinaryColumn.of(values)
        begins, ends = column.starts[:-1], column.starts[1:]
        has_header = ends - begins >= REGISTRY_BYTES
        if column.is_null is not None:
            has_header &= ~column.is_null
        has_header[has_header] = column.bytes[begins[has_header]] == REGISTRY_MAGIC
        with_header = np.flatnonzero(has_header)
        id_bytes = column.bytes[begins[with_header][:, None] + np.arange(1, REGISTRY_BYTES)]
        schema_ids = id_bytes.astype(np.int64) @ _ID_WEIGHTS

        bad = [BadRecord(row, DeadLetterCode.NOT_JSON, _NO_HEADER) for row in np.flatnonzero(~has_header).tolist()]
        parts = []
        for schema_id in np.unique(schema_ids).tolist():
            rows = with_header[schema_ids == schema_id]
            try:
                feed = feed_of_schema(self._feed, schema_id, self._source)
            except ReadingError as fault:
                bad += [BadRecord(row, fault.code, str(fault)) for row in rows.tolist()]
                continue
            starts, data = gather_texts(rows, begins + REGISTRY_BYTES, ends, column.bytes)
            records = pa.Array.from_buffers(
                pa.large_binary(), rows.size, [None, pa.py_buffer(starts), pa.py_buffer(data)]
            )
            decoder = Decoder(feed, self._max_record_bytes)
            some_keys = None if keys is None else keys.take(pa.array(rows))
            parts.append(_Part(rows, decoder.decode(some_keys, records, np.ascontiguousarray(record_times)[rows])))
        return self._as_one(parts, bad)

    def _as_one(self, parts: list[_Part], bad: list[BadRecord]) -> Decoded:
        """Return the readings of all parts in the order of their records."""
        for part in parts:
            bad += [BadRecord(int(part.rows[one.row]), one.code, one.message) for one in part.decoded.bad]
        bad.sort(key=lambda one: one.row)
        if not parts:
            return Decoded(np.zeros(0, dtype=np.int64), self._no_readings(), bad)
        rows = np.concatenate([part.rows[part.decoded.rows] for part in parts])
        if len(parts) == 1:
            return Decoded(rows, parts[0].decoded.readings, bad)
        order = np.argsort(rows)
        readings = concat([part.decoded.readings for part in parts])
        return Decoded(rows[order], take(readings, order), bad)

    def _no_readings(self) -> Readings:
        any_format = replace(self._feed, format=Format.JSON)
        return Decoder(any_format).decode(None, pa.array([], pa.binary()), np.zeros(0, dtype=np.int64)).readings
