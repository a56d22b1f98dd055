"""Feed records to readings, whole Arrow batches at a time.

    records ─► fast path: plain records to columns ─┬─► readings, in the order of the records
                  └─► the others, one by one: exact ─┴─► bad records, each with a code and a message

Both paths give the same result; they differ only in speed. Knows bytes and one feed, not the source of the records.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bmq.errors import DeadLetterCode, ReadingError
from bmq.kernels.tables.hashing import hash_ids
from bmq.kernels.text.plain_records import gather_texts
from bmq.records import Attributes, Feed, Ids, Int64s, Readings
from bmq.records.attribute_texts import with_each_text_once
from bmq.wire.readings_exact import ExactDecoder, ExactReading
from bmq.wire.readings_fast import BinaryColumn, FastDecoder, PlainReadings, read_only

# Kafka's own default limit for a message is the same; longer messages exist only if an operator allows them, and they
# are not readings.
MAX_RECORD_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that is not a reading: its position in the batch, and the reason."""

    row: int
    code: DeadLetterCode
    message: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """The contents of a batch of records.

    Attributes
    ----------
    rows : int64[m], positions of the good records, ascending.
    readings : Readings
        One for each of ``rows``, in the same order.
    bad : list of BadRecord
        All other records, ascending by position.
    """

    rows: Int64s
    readings: Readings
    bad: list[BadRecord]


class Decoder:
    """Decodes the records of one feed.

    Parameters
    ----------
    feed : Feed
    max_record_bytes : int
        A longer value is a dead letter (`too_large`).
    """

    def __init__(self, feed: Feed, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self._fast = FastDecoder(feed, max_record_bytes)
        self._exact = ExactDecoder(feed, max_record_bytes)

    def decode(self, keys: pa.BinaryArray | None, values: pa.BinaryArray, record_times: Int64s) -> Decoded:
        """Return the readings and the bad records of a batch. Raises nothing for any bytes.

        Parameters
        ----------
        keys, values : binary[n]
            Record keys and values; None for keys: no record has a key.
        record_times : int64[n]
            The records' own timestamps, epoch milliseconds.

        Notes
        -----
        Linear in the bytes. A plain record costs a fraction of a microsecond, any other record several microseconds.
        """
        # Arrow's columns are read-only, but all arrays of readings are writable (see `read_only`).
        record_times = np.require(record_times, np.int64, ["C", "W"])
        columns = self._fast.decode(
            None if keys is None else BinaryColumn.of(keys), BinaryColumn.of(values), record_times
        )
        if columns.plain.all():
            return _decoded(np.arange(len(values)), columns, record_times, [])
        columns, bad = self._decode_others(columns, keys, values, record_times)
        return _decoded(np.flatnonzero(columns.plain), columns, record_times, bad)

    def _decode_others(
        self,
        columns: PlainReadings,
        keys: pa.BinaryArray | None,
        values: pa.BinaryArray,
        record_times: Int64s,
    ) -> tuple[PlainReadings, list[BadRecord]]:
        """Decode the other records exactly; return the columns with all good records, and the bad records."""
        rows = np.flatnonzero(~columns.plain)
        found: dict[int, ExactReading] = {}
        bad = []
        others = pa.array(rows)
        other_keys = [None] * rows.size if keys is None else keys.take(others).to_pylist()
        for row, key, value in zip(rows.tolist(), other_keys, values.take(others).to_pylist(), strict=True):
            try:
                found[row] = self._exact.decode(key, value, int(record_times[row]))
            except ReadingError as error:
                bad.append(BadRecord(row, error.code, str(error)))
        return (_with_found(columns, found) if found else columns), bad


def _with_found(columns: PlainReadings, found: dict[int, ExactReading]) -> PlainReadings:
    """Return the columns with the found readings in their rows; their ids follow the other ids."""
    rows = np.array(list(found))
    columns.plain[rows] = True
    columns.values[:, rows] = np.array([reading.values for reading in found.values()]).T
    # Copied, because they may be views of the caller's arrays.
    event_times = columns.event_times.copy()
    event_times[rows] = [reading.event_time for reading in found.values()]
    id_lengths = np.array([len(reading.stream_id) for reading in found.values()])
    id_begins, id_ends = columns.id_begins.copy(), columns.id_ends.copy()
    id_ends[rows] = columns.id_bytes.size + np.cumsum(id_lengths)
    id_begins[rows] = id_ends[rows] - id_lengths
    more_ids = np.frombuffer(b"".join(reading.stream_id for reading in found.values()), np.uint8)
    id_bytes = read_only(np.concatenate((columns.id_bytes, more_ids)))
    attributes = None
    if columns.attributes is not None:
        codes = columns.attributes.codes.copy()
        codes[rows] = len(columns.attributes.texts) + np.arange(rows.size)
        more_texts = [reading.attributes for reading in found.values() if reading.attributes is not None]
        attributes = with_each_text_once(codes, [*columns.attributes.texts, *more_texts])
    return PlainReadings(columns.plain, id_begins, id_ends, id_bytes, event_times, columns.values, attributes)


def _decoded(rows: Int64s, columns: PlainReadings, record_times: Int64s, bad: list[BadRecord]) -> Decoded:
    starts, id_bytes = gather_texts(rows, columns.id_begins, columns.id_ends, columns.id_bytes)
    ids = Ids(starts, id_bytes, hash_ids(starts, id_bytes))
    attributes = columns.attributes
    if bad:
        readings = Readings(
            ids,
            columns.event_times[rows],
            record_times[rows],
            np.ascontiguousarray(columns.values[:, rows]),
            None if attributes is None else Attributes(attributes.codes[rows], attributes.texts),
        )
    else:
        readings = Readings(ids, columns.event_times, record_times, columns.values, attributes)
    return Decoded(rows, readings, bad)
