"""CSV files with a header line as Arrow tables. Columns are found by their names.

    stream id, attribute   the text of the cell; `library.attribute_columns` reads an attribute as the service does
    dimension              a number
    event time             a number or RFC 3339 text, as in a record of the service; a time without an offset is UTC
    an empty cell          absent

Arrow converts whole columns. If a cell of a column is of another form, each different cell is read by the rules of
`wire`. Knows cells, not the other rules for a reading.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from csv import Error as CellError
from csv import reader as read_csv
from functools import partial
from io import FileIO
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from bmq.backtest.pieces import HOW_TO_DROP
from bmq.errors import DeadLetterCode, ReadingError
from bmq.library.reading_tables import BadReadings
from bmq.records import Feed, TimeUnit
from bmq.wire.csv_records import read_cell
from bmq.wire.event_times import read_event_time
from bmq.wire.fault_texts import shown
from bmq.wire.numeral import Numeral

CSV_SUFFIXES = (".csv", ".csv.gz")

BLOCK_BYTES = 8_388_608  # some 200,000 rows; a row must be shorter
HEADER_BYTES = 1_048_576  # of a file, in which its first line is looked for; a longer line is not checked whole
_MS = pa.timestamp("ms", "UTC")
# The first one that fits all cells of a piece is used. Texts without an offset come last.
_TIMES = (pa.timestamp("us", "UTC"), pa.timestamp("us"))


class _CountedFile(FileIO):
    """A file that counts its bytes as they are read, also below a decompression."""

    n_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size) or b""
        self.n_read += len(found)
        return found


def open_csv(file: Path, feed: Feed, bad_readings: BadReadings, rows: int) -> Iterator[tuple[pa.Table, float]]:
    """Yield the rows in tables of at most ``rows``, each with the share of the file that is read with it.

    Parameters
    ----------
    feed : its stream id and event time are columns.
    bad_readings : "refuse": a dimension or event time that cannot be read is an error. "drop": it is null, so that the
        reader of tables drops the row.

    Raises
    ------
    ReadingError
        A column is missing or comes twice, or a cell is refused.
    pyarrow.ArrowException
        The file is not CSV in UTF-8, or a line has more or fewer cells than the header.
    """
    size = max(1, file.stat().st_size)
    is_zipped = file.suffix.lower() == ".gz"
    _check_header(file, feed, is_zipped)
    with _CountedFile(file) as counted:
        raw = pa.PythonFile(counted, "r")
        stream = pa.CompressedInputStream(raw, "gzip") if is_zipped else raw
        cells = _Cells(feed, bad_readings)
        for batch in _reader(stream, feed):
            table = cells.read(pa.Table.from_batches([batch]))
            share = min(1.0, counted.n_read / size)
            for first in range(0, table.num_rows, rows):
                yield table.slice(first, rows), share


def _check_header(file: Path, feed: Feed, is_zipped: bool) -> None:
    """Refuse a header that has a column of the feed twice: Arrow would read one of the two."""
    with gzip.open(file) if is_zipped else file.open("rb") as lines:
        try:
            start = lines.read(HEADER_BYTES)
        except (OSError, EOFError, zlib.error):
            return  # Arrow reports what is wrong with the file
    text = start.decode("utf-8-sig", errors="replace")
    header: list[str] = []
    with suppress(CellError):  # a cell beyond the limit of Python's reader
        header = next(read_csv([line for line in text.splitlines() if line][:1]), [])
    if twice := sorted(name for name in _names(feed) if header.count(name) > 1):
        raise ReadingError(
            DeadLetterCode.WRONG_TYPE,
            f"the first line has column {twice[0]!r} twice, so it is not known which one the feed means. Remove or "
            "rename one of them, or name another column for the id or the time with --stream-id or --event-time.",
        )


def _names(feed: Feed) -> list[str]:
    assert feed.event_time is not None
    return [feed.stream_id, feed.event_time, *feed.dimensions, *feed.attributes]


def _reader(stream: pa.NativeFile, feed: Feed) -> csv.CSVStreamingReader:
    names = _names(feed)
    try:
        return csv.open_csv(
            stream,
            csv.ReadOptions(block_size=BLOCK_BYTES),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=names,
                strings_can_be_null=True,
                null_values=[""],
            ),
        )
    except KeyError as error:
        raise ReadingError(
            DeadLetterCode.MISSING_FIELD,
            f"{error.args[0]}. The first line names the columns, and the feed needs {', '.join(names)}. Name another "
            "column for the id or the time with --stream-id or --event-time.",
        ) from None


class _Cells:
    """Reads the dimensions and event times of the tables of one file, in order."""

    def __init__(self, feed: Feed, bad_readings: BadReadings) -> None:
        self._feed = feed
        self._bad_readings = bad_readings
        self._n_rows = 0

    def read(self, table: pa.Table) -> pa.Table:
        """Return the table with numbers in place of the texts of numbers, and with times."""
        feed = self._feed
        assert feed.event_time is not None
        times = self._column(
            table, feed.event_time, _times, _MS, partial(_read_time, feed.event_time, feed.event_time_unit)
        )
        table = _with(table, feed.event_time, times)
        for name in feed.dimensions:
            numbers = self._column(
                table, name, lambda column: column.cast(pa.float64()), pa.float64(), partial(_number, name)
            )
            table = _with(table, name, numbers)
        self._n_rows += table.num_rows
        return table

    def _column(
        self,
        table: pa.Table,
        name: str,
        read_all: Callable[[pa.ChunkedArray], pa.ChunkedArray],
        kind: pa.DataType,
        read_one: Callable[[str], int | float],
    ) -> pa.ChunkedArray:
        """Return a column as ``kind``: at once if Arrow can read all its cells, otherwise by its different cells."""
        texts = table.column(name)
        with suppress(pa.ArrowInvalid):
            return read_all(texts)
        coded = texts.combine_chunks().dictionary_encode()
        read: list[int | float | None] = []
        for cell in coded.dictionary.to_pylist():
            read.append(None)
            try:
                read[-1] = read_one(cell)
            except ReadingError as error:
                if self._bad_readings == "refuse":
                    row = self._n_rows + pc.index(texts, cell).as_py()
                    raise ReadingError(error.code, f"row {row}: {error}. {HOW_TO_DROP}") from None
        return pa.chunked_array([pa.array(read, kind).take(coded.indices)])


def _times(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    with suppress(pa.ArrowInvalid):
        numbers = texts.cast(pa.int64())
        # Arrow also reads hexadecimal numbers, which are no event times.
        if not pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
            return numbers
    for kind in _TIMES[:-1]:
        with suppress(pa.ArrowInvalid):
            return texts.cast(kind)
    return texts.cast(_TIMES[-1])


def _read_time(name: str, unit: TimeUnit | None, cell: str) -> int:
    """Return epoch milliseconds."""
    read = read_cell(cell)
    if not isinstance(read, Numeral):
        with suppress(pa.ArrowInvalid):  # the forms without an offset
            return int(pa.scalar(cell).cast(_TIMES[-1]).cast(pa.int64()).as_py() // 1000)
        with suppress(ReadingError):  # without an offset, and finer than Arrow reads
            return read_event_time(name, f"{cell}Z", unit)
    return read_event_time(name, read, unit)


def _number(name: str, cell: str) -> float:
    read = read_cell(cell)
    if isinstance(read, Numeral):
        return float(read)
    raise ReadingError(DeadLetterCode.WRONG_TYPE, f"{name} is {shown(cell)}, but a dimension is a number; correct it")


def _with(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)
