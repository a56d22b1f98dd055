"""Whole Arrow batches of feed records to columns, for plain records only.

Kernels read Arrow's buffers directly, without a Python object for each record. A record is plain only if the result
certainly equals the result of `readings_exact`; every other record, good or bad, is left to that module. So an odd
record costs one exact decode and does not slow down the others. A scan that recognizes too few records costs time, but
never gives a wrong result.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bmq.kernels.text.characters import are_utf8
from bmq.kernels.text.json_skip import LONG_NUMBER, NUMBER, TEXT
from bmq.kernels.text.plain_records import gather_attributes, gather_texts, read_times
from bmq.records import Attributes, Bools, Bytes, Feed, Float64s, Int64s, TimeUnit
from bmq.records.attribute_texts import with_each_text_once
from bmq.records.plane import EAST, POLE, WEST
from bmq.wire.event_times import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS, range_of_numbers
from bmq.wire.feed_fields import KEY, scanned_fields
from bmq.wire.readings_exact import MAX_ID_BYTES
from bmq.wire.record_formats import RECORD_FORMATS
from bmq.wire.scanned_fields import ScannedFields


@dataclass(frozen=True, slots=True)
class BinaryColumn:
    """A column of byte strings as arrays over Arrow's own memory.

    Attributes
    ----------
    starts : int64[n + 1], value i is bytes[starts[i]:starts[i + 1]].
    bytes : uint8[], read-only.
    is_null : bool[n], or None if no value is null.
    """

    starts: Int64s
    bytes: Bytes
    is_null: Bools | None

    @classmethod
    def of(cls, column: pa.Array) -> "BinaryColumn":
        """Return a view of a binary or large_binary array; only the starts are copied."""
        _, starts, data = column.buffers()
        dtype = np.int64 if pa.types.is_large_binary(column.type) else np.int32
        every_start = np.frombuffer(starts, dtype) if len(column) else np.zeros(column.offset + 1, dtype)
        return cls(
            every_start[column.offset : column.offset + len(column) + 1].astype(np.int64),
            read_only(np.frombuffer(data or b"", np.uint8)),
            column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None,
        )


def read_only(column: Bytes) -> Bytes:
    """Return ``column``, no longer writable: numba compiles a kernel again for each mixture of both flags."""
    column.flags.writeable = False
    return column


@dataclass(frozen=True, slots=True)
class PlainReadings:
    """The result of the fast path: columns of n rows, valid only in the plain rows.

    Attributes
    ----------
    plain : bool[n].
    id_begins, id_ends : int64[n], the position of the id in id_bytes.
    id_bytes : uint8[].
    event_times : int64[n], epoch milliseconds.
    values : float64[d, n], C-contiguous.
    attributes : None if the feed declares no attributes.
    """

    plain: Bools
    id_begins: Int64s
    id_ends: Int64s
    id_bytes: Bytes
    event_times: Int64s
    values: Float64s
    attributes: Attributes | None


class FastDecoder:
    """Decodes the plain records of whole batches of one feed.

    Parameters
    ----------
    feed : Feed
        Its field names differ from each other; the configuration checks this.
    max_record_bytes : int
        A longer value is not plain.
    """

    def __init__(self, feed: Feed, max_record_bytes: int) -> None:
        names = scanned_fields(feed)
        self._time_field = None if feed.event_time is None else names.index(feed.event_time)
        self._id_field = None if feed.stream_id == KEY else names.index(feed.stream_id)
        self._first_attribute = len(names) - len(feed.attributes)
        self._n_fields = len(names)
        self._n_dimensions = len(feed.dimensions)
        self._feed = feed
        self._format = RECORD_FORMATS[feed.format](feed)
        self._max_record_bytes = min(max_record_bytes, self._format.max_scan_bytes)

    def decode(self, keys: BinaryColumn | None, values: BinaryColumn, record_times: Int64s) -> PlainReadings:
        """Return the columns of n records, and which of them are plain."""
        scan, plain = self._scan(values)
        plain &= np.diff(values.starts) <= self._max_record_bytes
        if values.is_null is not None:
            plain &= ~values.is_null  # Arrow does not define which bytes a null has

        for field in range(self._n_dimensions):
            _read_long_numbers(scan, field, plain, values.bytes)
        plain &= (scan.kinds[: self._n_dimensions] == NUMBER).all(axis=0)
        id_begins, id_ends, id_bytes = self._find_ids(scan, plain, keys, values)
        id_lengths = id_ends - id_begins
        plain &= (id_lengths > 0) & (id_lengths <= MAX_ID_BYTES)
        if self._time_field is None:
            times = record_times
            plain &= (times >= 0) & (times <= LAST_EVENT_TIME_MS)
        else:
            times = self._read_times(scan, plain, values.bytes)
            if self._feed.max_future_ms is not None:
                plain &= (times - self._feed.max_future_ms <= record_times) | (record_times < 0)
        numbers = scan.numbers[: self._n_dimensions]
        if self._feed.lonlat:
            longitudes, latitudes = numbers
            plain &= (np.abs(longitudes) <= EAST) & (np.abs(latitudes) <= POLE)
            longitudes[longitudes == EAST] = WEST
        attributes = self._read_attributes(scan, plain, values.bytes) if self._feed.attributes else None
        return PlainReadings(plain, id_begins, id_ends, id_bytes, times, numbers, attributes)

    def _scan(self, values: BinaryColumn) -> tuple[ScannedFields, Bools]:
        scan = ScannedFields.empty(self._n_fields, values.starts.size - 1)
        return scan, self._format.scan(values.starts, values.bytes, scan)

    def _find_ids(
        self, scan: ScannedFields, plain: Bools, keys: BinaryColumn | None, values: BinaryColumn
    ) -> tuple[Int64s, Int64s, Bytes]:
        """Return (begins, ends, bytes) of the ids; clear ``plain`` for each record without an id."""
        if self._id_field is not None:
            # The text of a number is the id, not normalized.
            kinds = scan.kinds[self._id_field]
            plain &= (kinds == TEXT) | (kinds == NUMBER) | (kinds == LONG_NUMBER)
            return scan.begins[self._id_field], scan.ends[self._id_field], values.bytes
        if keys is None:
            plain[:] = False
            return values.starts[:-1], values.starts[1:], values.bytes
        plain &= are_utf8(keys.starts, keys.bytes)
        if keys.is_null is not None:
            plain &= ~keys.is_null
        return keys.starts[:-1], keys.starts[1:], keys.bytes

    def _read_times(self, scan: ScannedFields, plain: Bools, data: Bytes) -> Int64s:
        field, unit = self._time_field, self._feed.event_time_unit
        return read_times(
            plain,
            scan.kinds[field],
            scan.begins[field],
            scan.ends[field],
            scan.numbers[field],
            data,
            0 if self._format.times_in_ms else (unit or TimeUnit.MS).power,
            *range_of_numbers(unit),
            FIRST_EVENT_TIME_MS,
            LAST_EVENT_TIME_MS,
        )

    def _read_attributes(self, scan: ScannedFields, plain: Bools, data: Bytes) -> Attributes:
        """Return the attributes of all records; canonical texts are computed once for each different raw text."""
        fields = slice(self._first_attribute, None)
        starts, texts = gather_attributes(
            plain, scan.kinds[fields], scan.begins[fields], scan.ends[fields], data, self._format.n_quotes
        )
        column = pa.Array.from_buffers(
            pa.large_binary(), plain.size, [None, pa.py_buffer(starts), pa.py_buffer(texts)]
        ).dictionary_encode()
        found = [self._format.attributes_text(text) for text in column.dictionary.to_pylist()]
        return with_each_text_once(column.indices.to_numpy(), found)


def _read_long_numbers(scan: ScannedFields, field: int, plain: Bools, data: Bytes) -> None:
    """Turn LONG_NUMBER into NUMBER in the plain rows of a field; Arrow rounds a decimal to the nearest double."""
    rows = np.flatnonzero(plain & (scan.kinds[field] == LONG_NUMBER))
    if not rows.size:
        return
    starts, texts = gather_texts(rows, scan.begins[field], scan.ends[field], data)
    column = pa.Array.from_buffers(pa.large_string(), rows.size, [None, pa.py_buffer(starts), pa.py_buffer(texts)])
    scan.numbers[field, rows] = column.cast(pa.float64()).to_numpy()
    scan.kinds[field, rows] = NUMBER
