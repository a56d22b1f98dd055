"""JSON records with a list of readings: each record becomes one record for each item, and these are decoded as usual.

    {"id": "v7", "points": [{"x": 1}, {"x": 2}]}  ─►  {"id": "v7", "points": {"x": 1}}
                                                      {"id": "v7", "points": {"x": 2}}

So a field of an item has a path through the list, "points.x", and all other fields belong to each of the readings. A
record is read as a whole: if one item is not a reading, the record is a dead letter. Knows bytes and one feed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from bmq.errors import DeadLetterCode, ReadingError
from bmq.kernels.text.json_items import find_items
from bmq.kernels.text.json_skip import OTHER
from bmq.kernels.text.plain_records import gather_texts
from bmq.records import Bools, Bytes, Feed, Int64s
from bmq.records.column_records import concat, take
from bmq.wire.json_paths import PathScanner
from bmq.wire.list_items import MOST_ITEM_BYTES, ExactListDecoder, in_item, too_many_items
from bmq.wire.readings import MAX_RECORD_BYTES, BadRecord, Decoded, Decoder
from bmq.wire.readings_fast import BinaryColumn
from bmq.wire.scanned_fields import ScannedFields

_OPEN_LIST = ord("[")


@dataclass(frozen=True, slots=True)
class _Items:
    """Records for items; those of one record are in one object.

    Attributes
    ----------
    rows : int64[m], the record of the batch that each item is in, ascending.
    starts, data : the record of item j is ``data[starts[j]:starts[j + 1]]``.
    """

    rows: Int64s
    starts: Int64s
    data: Bytes


class ListDecoder:
    """Decodes the records of one feed with a list of readings, as `readings.Decoder` does.

    Parameters
    ----------
    feed : with `readings`.
    max_record_bytes : a longer record is a dead letter (`too_large`).
    """

    def __init__(self, feed: Feed, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        assert feed.readings is not None
        self._path = feed.readings
        self._max_record_bytes = max_record_bytes
        self._scanner = PathScanner((self._path,))
        self._decoder = Decoder(replace(feed, readings=None), max_record_bytes)
        self._exact = ExactListDecoder(feed, max_record_bytes)

    def decode(self, keys: pa.BinaryArray | None, values: pa.BinaryArray, record_times: Int64s) -> Decoded:
        """Return the readings and the bad records of a batch; the parameters are those of `Decoder.decode`.

        A position in `Decoded.rows` stands there once for each item of the record.
        """
        times = np.ascontiguousarray(record_times)
        column = BinaryColumn.of(values)
        lists, is_plain = self._find_lists(column)
        bad: list[BadRecord] = []
        parts = [
            self._decode_items(keys, times, items, bad) for items in self._plain_items(column, lists, is_plain, bad)
        ]
        for row in np.flatnonzero(~is_plain).tolist():
            try:
                items = self._items_of(row, values[row].as_py())
            except ReadingError as fault:
                bad.append(BadRecord(row, fault.code, str(fault)))
            else:
                parts.append(self._decode_items(keys, times, items, bad))
        bad.sort(key=lambda one: one.row)
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows, kind="stable")
        return Decoded(rows[order], take(concat([part.readings for part in parts]), order), bad)

    def _find_lists(self, column: BinaryColumn) -> tuple[ScannedFields, Bools]:
        """Return where the lists are, and in which records they were found without Python."""
        fields = ScannedFields.empty(1, column.starts.size - 1)
        found = self._scanner.scan(column.starts, column.bytes, fields) & (fields.kinds[0] == OTHER)
        found &= np.diff(column.starts) <= self._max_record_bytes
        if column.is_null is not None:
            found &= ~column.is_null
        found[found] = column.bytes[fields.begins[0, found]] == _OPEN_LIST
        return fields, found

    def _plain_items(
        self, column: BinaryColumn, lists: ScannedFields, is_plain: Bools, bad: list[BadRecord]
    ) -> Iterator[_Items]:
        """Yield the records for the items of plain records; add the records that have too many to ``bad``."""
        rows = np.flatnonzero(is_plain)
        begins, ends = lists.begins[0, rows], lists.ends[0, rows]
        starts, item_begins, item_ends = find_items(begins, ends, column.bytes)
        n_items = np.diff(starts)
        beside = column.starts[rows + 1] - column.starts[rows] - (ends - begins)
        lengths = np.concatenate(([0], np.cumsum(item_ends - item_begins)))
        sizes = n_items * beside + lengths[starts[1:]] - lengths[starts[:-1]]
        is_too_large = sizes > MOST_ITEM_BYTES
        bad += [
            BadRecord(int(rows[i]), DeadLetterCode.TOO_LARGE, too_many_items(self._path, int(n_items[i])))
            for i in np.flatnonzero(is_too_large)
        ]
        good = np.flatnonzero(~is_too_large)
        # A part ends where the bytes of all records up to there pass another multiple.
        ends_of_parts = np.flatnonzero(np.diff(np.cumsum(sizes[good]) // MOST_ITEM_BYTES)) + 1
        for part in np.split(good, ends_of_parts):
            of_item = np.repeat(part, n_items[part])
            items = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in part] or [part])
            record = rows[of_item]
            # Three pieces for each item: what is before the list, the item, and what is behind the list.
            first = np.stack((column.starts[record], item_begins[items], ends[of_item]), axis=1).ravel()
            after = np.stack((begins[of_item], item_ends[items], column.starts[record + 1]), axis=1).ravel()
            pieces, data = gather_texts(np.arange(first.size), first, after, column.bytes)
            yield _Items(record, np.ascontiguousarray(pieces[::3]), data)

    def _items_of(self, row: int, value: bytes | None) -> _Items:
        """Return the records for the items of a record that the scan does not know, or raise ReadingError."""
        texts = self._exact.records_of_items(value)
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return _Items(np.full(len(texts), row), starts, np.frombuffer(b"".join(texts), np.uint8))

    def _decode_items(self, keys: pa.BinaryArray | None, times: Int64s, items: _Items, bad: list[BadRecord]) -> Decoded:
        """Return the readings of records all of whose items are readings; add the other records to ``bad``."""
        records = pa.Array.from_buffers(
            pa.large_binary(), items.rows.size, [None, pa.py_buffer(items.starts), pa.py_buffer(items.data)]
        )
        some_keys = None if keys is None else keys.take(pa.array(items.rows))
        decoded = self._decoder.decode(some_keys, records, times[items.rows])
        first_bad: dict[int, BadRecord] = {}
        for one in decoded.bad:
            first_bad.setdefault(int(items.rows[one.row]), one)
        for row, one in first_bad.items():
            place = one.row - int(np.searchsorted(items.rows, row))
            bad.append(BadRecord(row, one.code, in_item(self._path, place, one.message)))
        rows = items.rows[decoded.rows]
        good = np.flatnonzero(~np.isin(rows, list(first_bad)))
        return Decoded(rows[good], take(decoded.readings, good), [])
