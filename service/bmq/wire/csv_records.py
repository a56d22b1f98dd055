"""Feed records as CSV lines: a scan of plain ones, the parser of one line, and the texts of attributes.

    stream id (not with "@key"), event time (if configured), dimensions in order, attributes (may be left out)

Knows the csv module and the order of the columns. `readings_exact` knows the rules for a reading.
"""

import csv
import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from bmq.errors import DeadLetterCode, ReadingError
from bmq.records import Bools, Bytes, Feed, Int64s
from bmq.records.attribute_texts import NULL, SEPARATOR
from bmq.wire.attributes import CACHED_TEXTS, attribute_text, concat_attributes
from bmq.wire.fault_texts import shorten
from bmq.wire.feed_fields import KEY, scanned_fields
from bmq.wire.numeral import Numeral
from bmq.wire.record_texts import text_of_record
from bmq.wire.scanned_fields import ScannedFields

# The csv module refuses longer cells (csv.field_size_limit), so the fast path leaves longer lines to it.
MAX_CELL_CHARACTERS = 131_072

_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)


def csv_columns(feed: Feed) -> tuple[str, ...]:
    """Return the names of the columns of a feed's lines, in their order."""
    stream_id = () if feed.stream_id == KEY else (feed.stream_id,)
    event_time = () if feed.event_time is None else (feed.event_time,)
    return (*stream_id, *event_time, *feed.dimensions, *feed.attributes)


class CsvRecords:
    """The CSV records of one feed; see `record_formats.RecordFormat`."""

    max_scan_bytes = MAX_CELL_CHARACTERS
    n_quotes = 0
    times_in_ms = False

    def __init__(self, feed: Feed) -> None:
        self._columns = csv_columns(feed)
        self._stream_id = feed.stream_id
        fields = scanned_fields(feed)
        self._field_by_column: Int64s = np.array([fields.index(column) for column in self._columns], np.int64)

    def scan(self, starts: Int64s, data: Bytes, fields: ScannedFields) -> Bools:
        """Return for each line whether it is well-formed, and fill the arrays for those that are."""
        # Imported here, because the CLI reads definitions through this module and must not pay for loading numba.
        from bmq.kernels.text.csv_scan import scan_csv

        return scan_csv(starts, data, self._field_by_column, fields.kinds, fields.begins, fields.ends, fields.numbers)

    def read(self, value: bytes) -> Mapping[str, object]:
        """Return the cells by name. An empty cell is absent, because CSV has no null.

        A cell that reads as a number is a number, not a text. This includes NaN and infinities. The stream id is always
        a text, exactly as it is in the record.

        Raises
        ------
        ReadingError
            The text is not exactly one line, a quote is out of place, or there are more cells than columns: one comma
            too many would shift numbers into the wrong dimension.
        """
        text = text_of_record(value)
        try:
            lines = list(csv.reader([text], strict=True))
        except csv.Error as error:
            raise _not_csv(f"the record is no CSV: {error}. Send one line of cells and commas") from None
        if len(lines) != 1 or not lines[0]:
            raise _not_csv(f"the record is {shorten(text)}: send one line of {','.join(self._columns)}")
        cells = lines[0]
        if len(cells) > len(self._columns):
            raise _not_csv(
                f"the record has {len(cells)} cells for {len(self._columns)} columns: quote cells that hold "
                "a comma, or declare the further columns as attributes of the feed"
            )
        return {
            name: cell if name == self._stream_id else read_cell(cell)
            for name, cell in zip(self._columns, cells, strict=False)
            if cell
        }

    @staticmethod
    def attributes_text(raw: bytes) -> str:
        """Return the canonical text of cells without quotes; an empty cell is absent."""
        return _attributes_text(raw)

    @staticmethod
    def where_text(value: object) -> str:
        """Return the canonical text of the value; a string follows the rule for cells.

        A cell has no type: if it reads as a number, it is a number. Without this rule the string "17" in a `where`
        would match no reading.
        """
        return attribute_text(read_cell(value) if isinstance(value, str) else value)


@lru_cache(CACHED_TEXTS)
def _attributes_text(raw: bytes) -> str:
    return concat_attributes(
        attribute_text(read_cell(cell)) if cell else NULL for cell in raw.decode().split(SEPARATOR)
    )


def read_cell(cell: str) -> str:
    """Return a cell that is not empty: a `Numeral` if it reads as a number, otherwise unchanged."""
    text = cell.strip()
    return Numeral(text) if _NUMBER.fullmatch(text) else cell


def _not_csv(message: str) -> ReadingError:
    return ReadingError(DeadLetterCode.NOT_JSON, message)
