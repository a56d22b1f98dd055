"""One CSV line to the fields of a feed.

    stream id (not with "@key"), event time (if configured), dimensions in order, attributes (may be left out)

Knows the csv module and the order of the columns; what a reading needs is `readings_exact`'s to say.
"""

import csv
import re
from collections.abc import Mapping

from bmq.errors import DeadLetterCode, ReadingError
from bmq.records import Feed
from bmq.wire.fault_texts import shorten
from bmq.wire.numeral import Numeral

# The csv module refuses longer cells (csv.field_size_limit), so the fast path leaves longer lines to it.
MAX_CELL_CHARACTERS = 131_072

_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)


def csv_columns(feed: Feed) -> tuple[str, ...]:
    """Return the names of the columns of a feed's lines, in their order."""
    stream_id = () if feed.stream_id == "@key" else (feed.stream_id,)
    event_time = () if feed.event_time is None else (feed.event_time,)
    return (*stream_id, *event_time, *feed.dimensions, *feed.attributes)


class CsvLine:
    """Splits lines of one feed."""

    def __init__(self, feed: Feed) -> None:
        self._columns = csv_columns(feed)
        self._stream_id = feed.stream_id

    def fields(self, line: str) -> Mapping[str, object]:
        """Return the cells by name. An empty cell is absent, since CSV has no null.

        A cell that reads as a number is one; NaN and infinities too, so that they are told from text. A
        stream id is text as it stands.

        Raises
        ------
        ReadingError
            Not one line, a quote out of place, or more cells than columns: one comma too many would shift
            numbers into the wrong dimension.
        """
        try:
            lines = list(csv.reader([line], strict=True))
        except csv.Error as error:
            raise _not_csv(f"the record is no CSV: {error}. Send one line of cells and commas") from None
        if len(lines) != 1 or not lines[0]:
            raise _not_csv(f"the record is {shorten(line)}: send one line of {','.join(self._columns)}")
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


def read_cell(cell: str) -> str:
    """Return a cell that is not empty: a `Numeral` where it reads as a number, else as it stands."""
    text = cell.strip()
    return Numeral(text) if _NUMBER.fullmatch(text) else cell


def _not_csv(message: str) -> ReadingError:
    return ReadingError(DeadLetterCode.NOT_JSON, message)
