"""The table of record formats: how the records of a feed are scanned, read one by one, and compared.

    FastDecoder ──► scan              plain records, a whole batch at a time
    ExactDecoder ─► read              one record, plain or not
    both ─────────► attributes_text   attributes of plain records; `wire.attributes` has the texts of all others
    definitions ──► where_text        values of a `where`

A new format is a module with a class like this one, a line in the table, and its name in `records.Format`.
"""

from collections.abc import Mapping
from typing import Protocol

from bmq.records import Bools, Bytes, Feed, Float64s, Format, Int8s, Int64s
from bmq.wire.csv_records import CsvRecords
from bmq.wire.json_records import JsonRecords


class RecordFormat(Protocol):
    """The format of the records of one feed.

    Attributes
    ----------
    max_scan_bytes : longer records are left to `read`.
    n_quotes : how many bytes of quotes at each end of a string belong to the raw text of an attribute.
    """

    max_scan_bytes: int
    n_quotes: int

    def __init__(self, feed: Feed) -> None: ...

    def scan(self, starts: Int64s, data: Bytes, kinds: Int8s, begins: Int64s, ends: Int64s, numbers: Float64s) -> Bools:
        """Return for each record whether it is well-formed, and fill the other arrays for those that are.

        Parameters
        ----------
        starts : int64[n + 1], record i is ``data[starts[i]:starts[i + 1]]``.
        data : uint8[], read-only.
        kinds, begins, ends, numbers : [k, n], a row for each field of `scanned_fields`; see `kernels.text.json_scan`.
        """

    def read(self, text: str) -> Mapping[str, object]:
        """Return the fields of one record by name, numbers as `Numeral`.

        Raises
        ------
        ReadingError
            The text is not a record of this format.
        """

    @staticmethod
    def attributes_text(raw: bytes) -> str:
        """Return the canonical text of all attributes of a plain record; ``raw`` comes from `gather_attributes`."""

    @staticmethod
    def where_text(value: object) -> str:
        """Return the canonical text that an attribute must have to equal a value of a `where`."""


RECORD_FORMATS: Mapping[Format, type[RecordFormat]] = {
    Format.JSON: JsonRecords,
    Format.CSV: CsvRecords,
}
