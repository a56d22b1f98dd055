"""Feed records in Avro, one record a message without a header: a scan of batches, and the reader of one record.

Both run the program that `wire.avro_schema` compiles from the schema of the feed. This module knows the binary
encoding; `readings_exact` knows the rules for a reading.
"""

import struct
from collections.abc import Mapping
from functools import lru_cache

from bmq.errors import DeadLetterCode
from bmq.records import Bools, Bytes, Feed, Int64s, TimeUnit
from bmq.records import avro_program as ops
from bmq.records.attribute_texts import NULL, SEPARATOR
from bmq.records.avro_program import AvroProgram
from bmq.wire.attributes import CACHED_TEXTS, attribute_text, concat_attributes
from bmq.wire.avro_schema import compile_feed
from bmq.wire.fault_texts import refuse
from bmq.wire.feed_fields import scanned_fields
from bmq.wire.numeral import Numeral
from bmq.wire.scanned_fields import ScannedFields

_SEVEN_BITS = 0x7F  # of each byte of a varint; a byte above is not the last one
_LAST_SHIFT = 63  # of the tenth byte of a varint, which has one bit


class AvroRecords:
    """The Avro records of one feed; see `record_formats.RecordFormat`."""

    max_scan_bytes = 2**63 - 1  # the format adds no limit
    n_quotes = 0
    times_in_ms = True

    def __init__(self, feed: Feed) -> None:
        self._program = compile_feed(feed)
        self._fields = scanned_fields(feed)
        self._n_dims = len(feed.dimensions)
        self._time_field = -1 if feed.event_time is None else self._n_dims
        self._power = (feed.event_time_unit or TimeUnit.MS).power
        self._first_attribute = len(self._fields) - len(feed.attributes)

    def scan(self, starts: Int64s, data: Bytes, fields: ScannedFields) -> Bools:
        """Return for each record whether it is well-formed, and fill the arrays for those that are."""
        # Imported here, because the CLI reads definitions through this module and must not pay for loading numba.
        from bmq.kernels.avro.avro_scan import scan_avro

        program = self._program
        return scan_avro(
            starts,
            data,
            program.steps,
            program.jumps,
            program.n_counters,
            self._n_dims,
            self._time_field,
            self._power,
            self._first_attribute,
            fields.kinds,
            fields.begins,
            fields.ends,
            fields.numbers,
        )

    def read(self, value: bytes) -> Mapping[str, object]:
        """Return the fields of the feed by path; a field in a record that is null is absent.

        Raises
        ------
        ReadingError
            The bytes are not exactly one record of the schema.
        """
        try:
            return {self._fields[field]: found for field, found in _Reader(value, self._program).run()}
        except ValueError as fault:
            refuse(
                DeadLetterCode.NOT_JSON,
                f"the record is no Avro of the feed's schema: {fault}. Send one record as it is, without the header of "
                "a file or of a schema registry",
            )

    @staticmethod
    def attributes_text(raw: bytes) -> str:
        """Return the canonical text of texts; an empty one is absent."""
        return _attributes_text(raw)

    @staticmethod
    def where_text(value: object) -> str:
        """Return the canonical text of the value; values of Avro have a type, so no rule is needed."""
        return attribute_text(value)


@lru_cache(CACHED_TEXTS)
def _attributes_text(raw: bytes) -> str:
    return concat_attributes(attribute_text(text) if text else NULL for text in raw.decode().split(SEPARATOR))


class _Reader:
    """Runs the program on one record; a ValueError says at which byte what is wrong."""

    def __init__(self, value: bytes, program: AvroProgram) -> None:
        self._value = value
        self._program = program
        self._at = 0

    def run(self) -> list[tuple[int, object]]:
        """Return (field, value) of the wanted fields, numbers as `Numeral`."""
        found: list[tuple[int, object]] = []
        steps: list[list[int]] = self._program.steps.tolist()
        jumps: list[int] = self._program.jumps.tolist()
        counters = [0] * self._program.n_counters
        step = 0
        while step < len(steps):
            operation, a, b, field = steps[step]
            step += 1
            if operation == ops.UNION:
                step = jumps[b + self._number_below(a, "branches of a union")]
            elif operation == ops.JUMP:
                step = a
            elif operation == ops.BLOCK:
                counters[b] = self._count_items()
                step = step if counters[b] else a
            elif operation == ops.NEXT:
                counters[b] -= 1
                step = a + 1 if counters[b] else a
            else:
                value = self._read(operation, a, b)
                if field >= 0:
                    found.append((field, value))
        if self._at != len(self._value):
            raise ValueError(f"it ends at byte {self._at}, but {len(self._value)} bytes were sent")
        return found

    def _read(self, operation: int, a: int, b: int) -> object:
        begin = self._at
        if operation == ops.STRING:
            try:
                return self._take(self._varint()).decode()
            except UnicodeDecodeError:
                raise ValueError(f"the text at byte {begin} is no UTF-8") from None
        if operation == ops.VARINT:
            return Numeral(self._varint())
        if operation == ops.DOUBLE:
            return Numeral(struct.unpack("<d", self._take(8))[0])
        if operation == ops.FLOAT:
            return Numeral(struct.unpack("<f", self._take(4))[0])
        if operation == ops.ENUM:
            return self._program.symbols[b][self._number_below(a, "symbols of an enum")]
        if operation == ops.BOOLEAN:
            byte = self._take(1)[0]
            if byte > 1:
                raise ValueError(f"the boolean at byte {begin} is {byte}, not 0 or 1")
            return bool(byte)
        if operation == ops.FIXED:
            return self._take(a)
        return self._take(self._varint()) if operation == ops.BYTES else None

    def _count_items(self) -> int:
        count = self._varint()
        if count < 0:
            self._varint()  # the size of the block in bytes, which only those need who pass over it
        return abs(count)

    def _number_below(self, limit: int, what: str) -> int:
        begin = self._at
        number = self._varint()
        if not 0 <= number < limit:
            raise ValueError(f"byte {begin} has number {number} of {limit} {what}")
        return number

    def _varint(self) -> int:
        begin, bits, shift = self._at, 0, 0
        while True:
            byte = self._take(1)[0]
            if shift == _LAST_SHIFT and byte > 1:
                raise ValueError(f"the number at byte {begin} has more than 64 bits")
            bits |= (byte & _SEVEN_BITS) << shift
            if byte <= _SEVEN_BITS:
                return bits >> 1 ^ -(bits & 1)
            shift += 7

    def _take(self, n: int) -> bytes:
        begin, left = self._at, len(self._value) - self._at
        if not 0 <= n <= left:
            raise ValueError(f"{n} bytes are announced at byte {begin}, where {left} are left")
        self._at += n
        return self._value[begin : self._at]
