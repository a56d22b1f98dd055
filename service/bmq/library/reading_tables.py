"""Tables of readings to the columns of the engine: pandas, Polars, Arrow, and all that exports Arrow's streams.

    table ─► Arrow table ─► id, event time, dimensions, attributes ─┬─► readings
                                                                   └─► bad rows: refused, or dropped and counted

A row means the same as a record of the service with the same values. Memory is shared where types and layout allow it.
Knows tables and one feed, not what the engine does with readings.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.errors import DeadLetterCode, ReadingError
from bmq.kernels.tables.hashing import hash_ids
from bmq.library.attribute_columns import read_attributes
from bmq.library.shared_arrays import as_writable, floats_of, one_array
from bmq.library.time_columns import read_times
from bmq.records import Bools, Feed, Float64s, Ids, Int64s, Readings
from bmq.records.plane import EAST, LARGEST_DEGREES, WEST
from bmq.wire.event_times import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS, range_of_numbers
from bmq.wire.readings_exact import MAX_ID_BYTES
from bmq.wire.readings_fast import BinaryColumn

BadReadings = Literal["refuse", "drop"]
HOW_TO_DROP = 'Monitor(bad_readings="drop") drops and counts such rows.'


class Fault(NamedTuple):
    """A rule that rows break: which rows, bool[n]; the code; the column; the rule with the way out."""

    rows: Bools
    code: DeadLetterCode
    column: str
    rule: str


class TableReader:
    """Reads the tables of one feed.

    Parameters
    ----------
    bad_readings : whether a row that is not a reading is an error, or is dropped.
    how_to_drop : the sentence of an error that says how such rows are dropped.
    cells : the attributes whose texts are cells of CSV; see `read_attributes`.
    """

    def __init__(
        self,
        feed: Feed,
        bad_readings: BadReadings,
        how_to_drop: str = HOW_TO_DROP,
        cells: Collection[str] = (),
    ) -> None:
        self._feed = feed
        self._bad_readings = bad_readings
        self._how_to_drop = how_to_drop
        self._cells = cells
        # The engine keeps what it holds back, and the caller may change the table after that.
        self._copies = feed.join or feed.max_lateness_ms > 0

    def read(self, readings: Any, first_row: int = 0) -> tuple[Readings | None, int]:
        """Return the readings in a table, in the order of its rows, and how many rows were dropped.

        There are no readings (None) if the table has no good row.

        Parameters
        ----------
        readings : a table of any form that `as_table` knows.
        first_row : the number of its first row, for errors.

        Raises
        ------
        ReadingError
            The table or a column is not what the feed declares, or a row is not a reading and ``bad_readings`` is
            "refuse".
        """
        feed = self._feed
        assert feed.event_time is not None
        names = [feed.stream_id, feed.event_time, *feed.dimensions, *feed.attributes]
        table = _select(feed, as_table(readings, feed.name, names), names)
        found = self._read(table, first_row)
        if found is None or isinstance(found, Readings):
            return found, 0
        good = self._read(table.filter(pa.array(~found)), first_row)
        assert good is None or isinstance(good, Readings)
        return good, int(np.count_nonzero(found))

    def _read(self, table: pa.Table, first_row: int) -> Readings | Bools | None:
        """Return the readings; or which rows are bad, if any is; or None, if there are no rows."""
        feed = self._feed
        if not table.num_rows:
            return None
        assert feed.event_time is not None
        id_column = _id_column(feed, one_array(table.column(feed.stream_id)))
        time_column = one_array(table.column(feed.event_time))
        event_times = read_times(feed.event_time, time_column, feed.event_time_unit)
        dimensions = [_number_column(feed, name, one_array(table.column(name))) for name in feed.dimensions]
        values = [floats_of(column) for column in dimensions]

        bad = np.zeros(table.num_rows, dtype=np.bool_)
        for fault in self._faults(id_column, time_column, event_times, dimensions, values):
            if fault.rows.any():
                self._refuse(fault, table, first_row)
                bad |= fault.rows
        if bad.any():
            return bad
        ids = _ids(id_column)
        attributes = read_attributes(table, feed.attributes, self._cells) if feed.attributes else None
        stacked = values[0].reshape(1, -1) if len(values) == 1 else np.stack(values)
        if feed.lonlat:
            stacked[0, stacked[0] == EAST] = WEST  # a copy already, because there are two dimensions
        if self._copies:
            ids = Ids(ids.starts, ids.bytes.copy(), ids.hashes)
            event_times = event_times.copy()
            stacked = stacked.copy()
        n = table.num_rows
        partitions = np.zeros(n, dtype=np.int32) if feed.max_lateness_ms else None
        return Readings(ids, event_times, np.full(n, -1, dtype=np.int64), stacked, attributes, partitions)

    def _faults(
        self,
        id_column: pa.Array,
        time_column: pa.Array,
        event_times: Int64s,
        dimensions: list[pa.Array],
        values: list[Float64s],
    ) -> Iterator[Fault]:
        """Yield every rule with the rows that break it, in the order of `wire.readings_exact`."""
        feed = self._feed
        lengths = pc.binary_length(id_column).fill_null(0).to_numpy(zero_copy_only=False)
        yield Fault(
            lengths == 0, DeadLetterCode.MISSING_FIELD, feed.stream_id, "every reading names its stream; name it"
        )
        yield Fault(
            lengths > MAX_ID_BYTES,
            DeadLetterCode.TOO_LARGE,
            feed.stream_id,
            f"a stream id has at most {MAX_ID_BYTES} bytes; shorten or hash it",
        )
        name = feed.event_time or ""
        yield Fault(_nulls(time_column), DeadLetterCode.MISSING_FIELD, name, "every reading has an event time; give it")
        first, last = FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS
        unit_rule = ""
        is_number = pa.types.is_integer(time_column.type) or pa.types.is_floating(time_column.type)
        if is_number and feed.event_time_unit is None:
            first, last = range_of_numbers(None)
            unit_rule = " or declare event_time_unit, because the number is probably of another unit;"
        rule = f"event times lie between {first} and {last} epoch milliseconds;{unit_rule} correct it"
        outside = ((event_times < first) | (event_times > last)) & ~_nulls(time_column)
        yield Fault(outside, DeadLetterCode.OUT_OF_RANGE, name, rule)
        for name, column, numbers in zip(feed.dimensions, dimensions, values, strict=True):
            rule = "a reading has a number for every dimension; give it"
            yield Fault(_nulls(column), DeadLetterCode.MISSING_FIELD, name, rule)
            rule = "a dimension is a finite number; correct it"
            yield Fault(~np.isfinite(numbers), DeadLetterCode.NOT_FINITE, name, rule)
        if feed.lonlat:
            for name, numbers, limit in zip(feed.dimensions, values, LARGEST_DEGREES, strict=True):
                rule = f"with space = 'lonlat' it lies between {-limit:g} and {limit:g} degrees, the longitude first"
                yield Fault(np.abs(numbers) > limit, DeadLetterCode.OUT_OF_RANGE, name, f"{rule}; send degrees")

    def _refuse(self, fault: Fault, table: pa.Table, first_row: int) -> None:
        if self._bad_readings == "drop":
            return
        row = int(np.flatnonzero(fault.rows)[0])
        value = table.column(fault.column)[row].as_py()
        n = int(np.count_nonzero(fault.rows))
        others = f" So it is in {n} rows." if n > 1 else ""
        raise ReadingError(
            fault.code,
            f"Feed {self._feed.name!r}, row {first_row + row}: {fault.column!r} is {value!r}, but "
            f"{fault.rule}.{others} {self._how_to_drop}",
        )


def as_table(readings: Any, feed: str, names: Sequence[str]) -> pa.Table:
    """Return readings of any supported form as an Arrow table, of a pandas frame only the columns ``names``.

    Raises
    ------
    ReadingError
        They have no such form.
    """
    if isinstance(readings, pa.Table):
        return readings
    if isinstance(readings, pa.RecordBatch):
        return pa.Table.from_batches([readings])
    try:
        if hasattr(readings, "iloc") and hasattr(readings, "columns"):
            # pandas: column by column, because a choice of columns is a copy, and a geometry is no Arrow column.
            return pa.table({name: readings[name] for name in names if name in readings.columns})
        if isinstance(readings, Mapping):
            readings = {name: readings[name] for name in names if name in readings}
        return pa.table(readings)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise ReadingError(
            DeadLetterCode.WRONG_TYPE,
            f"The readings of feed {feed!r} are of type {type(readings).__name__}, and cannot be read as a table: "
            f"{error}. Pass a frame of pandas or Polars, an Arrow table, or a dict of columns.",
        ) from None


def _select(feed: Feed, table: pa.Table, names: Sequence[str]) -> pa.Table:
    for name in names:
        n = table.column_names.count(name)
        if n != 1:
            raise ReadingError(
                DeadLetterCode.MISSING_FIELD,
                f"Feed {feed.name!r} needs one column {name!r}, but the table has {n} of that name. Its columns: "
                f"{', '.join(map(str, table.column_names)) or 'no'}. Rename a column, or name another one in the Feed.",
            )
    return table.select(names)


def _nulls(column: pa.Array) -> Bools:
    nulls: Bools = column.is_null().to_numpy(zero_copy_only=False).astype(np.bool_)
    return nulls


def _id_column(feed: Feed, column: pa.Array) -> pa.Array:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    is_whole = pa.types.is_integer(kind) or pa.types.is_null(kind)
    if not (is_text or is_whole):
        raise ReadingError(
            DeadLetterCode.WRONG_TYPE,
            f"Feed {feed.name!r}: column {feed.stream_id!r} is of type {kind}, but a stream id is text or a whole "
            "number. Cast the column.",
        )
    if pa.types.is_dictionary(column.type):
        return column.dictionary.cast(pa.large_string()).take(column.indices)
    return column.cast(pa.large_string())


def _number_column(feed: Feed, name: str, column: pa.Array) -> pa.Array:
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise ReadingError(
            DeadLetterCode.WRONG_TYPE,
            f"Feed {feed.name!r}: column {name!r} is of type {kind}, but a dimension is a number. Cast the column.",
        )
    return column


def _ids(column: pa.Array) -> Ids:
    binary = BinaryColumn.of(column.cast(pa.large_binary()))
    first, last = binary.starts[0], binary.starts[-1]
    starts, texts = binary.starts - first, as_writable(binary.bytes[first:last])
    return Ids(starts, texts, hash_ids(starts, texts))
