"""The table of record formats: how the records of a feed are scanned, read one by one, and compared.

    FastDecoder ──► scan              plain records, a whole batch at a time
    ExactDecoder ─► read              one record, whatever it is
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
    """How the records of one feed are written.

    Attributes
    ----------
    max_scan_bytes : longer records are left to `read`.
    n_quotes : how many quotes at each end of a text belong to the text of an attribute.
    """

    max_scan_bytes: int
    n_quotes: int

    def __init__(self, feed: Feed) -> None: ...

    def scan(self, starts: Int64s, data: Bytes, kinds: Int8s, begins: Int64s, ends: Int64s, numbers: Float64s) -> Bools:
        """Return which records are well-formed, and fill the other arrays for those.

        Parameters
        ----------
        starts : int64[n + 1], record i is ``data[starts[i]:starts[i + 1]]``.
        data : uint8[], read-only.
        kinds, begins, ends, numbers : [k, n], one row a field of `scanned_fields`; see `kernels.text.json_scan`.
        """

    def read(self, text: str) -> Mapping[str, object]:
        """Return the fields of one record by name, numbers as `Numeral`.

        Raises
        ------
        ReadingError
            The text is no record of this format.
        """

    @staticmethod
    def attributes_text(raw: bytes) -> str:
        """Return the canonical text of the attributes of a plain record, as `gather_attributes` gives them."""

    @staticmethod
    def where_text(value: object) -> str:
        """Return the text that an attribute must have to equal the value of a `where`."""


RECORD_FORMATS: Mapping[Format, type[RecordFormat]] = {
    Format.JSON: JsonRecords,
    Format.CSV: CsvRecords,
}
