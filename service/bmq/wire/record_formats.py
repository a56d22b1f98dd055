"""The table of record formats: how the records of a feed are scanned, read one by one, and compared.

    FastDecoder ──► scan              plain records, a whole batch at a time
    ExactDecoder ─► read              one record, plain or not
    both ─────────► attributes_text   attributes of plain records; `wire.attributes` has the texts of all others
    definitions ──► where_text        values of a `where`

A new format is a module with a class like this one, a line in the table, and its name in `records.Format`.
"""

from collections.abc import Mapping
from typing import Protocol

from bmq.records import Bools, Bytes, Feed, Format, Int64s
from bmq.wire.avro_records import AvroRecords
from bmq.wire.csv_records import CsvRecords
from bmq.wire.json_records import JsonRecords
from bmq.wire.protobuf_records import ProtobufRecords
from bmq.wire.scanned_fields import ScannedFields


class RecordFormat(Protocol):
    """The format of the records of one feed.

    Attributes
    ----------
    max_scan_bytes : longer records are left to `read`.
    n_quotes : how many bytes of quotes at each end of a string belong to the raw text of an attribute.
    times_in_ms : whether `scan` gives an event time that is a number in milliseconds, and not in the feed's unit.
    """

    max_scan_bytes: int
    n_quotes: int
    times_in_ms: bool

    def __init__(self, feed: Feed) -> None: ...

    def scan(self, starts: Int64s, data: Bytes, fields: ScannedFields) -> Bools:
        """Return for each record whether it is well-formed, and fill the arrays for those that are.

        Parameters
        ----------
        starts : int64[n + 1], record i is ``data[starts[i]:starts[i + 1]]``.
        data : uint8[], read-only.
        fields : filled, a row for each of `scanned_fields` of the feed.
        """

    def read(self, value: bytes) -> Mapping[str, object]:
        """Return the fields of one record by name, numbers as `Numeral`.

        Raises
        ------
        ReadingError
            The bytes are not a record of this format.
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
    Format.AVRO: AvroRecords,
    Format.PROTOBUF: ProtobufRecords,
}
