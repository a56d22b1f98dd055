"""The rule for one feed record: what a reading is, and the code and message of what is none.

Slow and complete. `readings_fast` must agree with it wherever it answers at all. Knows JSON and one record;
from which topic, partition and offset it came is the caller's to say.
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, NoReturn

from bmq.errors import DeadLetterCode, ReadingError
from bmq.records import Feed, Format
from bmq.wire.attributes import attribute_text, concat_attributes
from bmq.wire.csv_readings import CsvLine
from bmq.wire.fault_texts import shorten
from bmq.wire.numeral import Numeral

KEY = "@key"
MAX_ID_BYTES = 1024  # every event of a stream carries its id; longer ones are a mistake of the producer
# 0001-01-01 and the last millisecond of 9999: what RFC 3339 can write, and every consumer of events can read.
FIRST_EVENT_TIME_MS = -62_135_596_800_000
LAST_EVENT_TIME_MS = 253_402_300_799_999
MAX_LONGITUDE_DEG = 180.0
MAX_LATITUDE_DEG = 90.0
MAX_NESTING = 100  # of lists and objects; the parser would meet Python's own limit at about 1,000

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))?", re.ASCII
)
_BRACKET_OR_STRING = re.compile(r'[\[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class ExactReading(NamedTuple):
    """One reading: the id as UTF-8, the event time in epoch milliseconds, one finite number a dimension.

    attributes : as `wire.attributes` writes them; None where the feed has none.
    """

    stream_id: bytes
    event_time: int
    values: tuple[float, ...]
    attributes: str | None = None


class ExactDecoder:
    """Decodes one record at a time.

    Parameters
    ----------
    feed : Feed
    max_record_bytes : int
        Longer values are refused unread.
    """

    def __init__(self, feed: Feed, max_record_bytes: int) -> None:
        self._feed = feed
        self._max_record_bytes = max_record_bytes
        self._csv = CsvLine(feed)

    def decode(self, key: bytes | None, value: bytes | None, record_time: int) -> ExactReading:
        """Return the reading in one record.

        Of a record with several faults the first counts, in this order: the record as a whole, the stream id,
        the event time, the dimensions in their order, the place on the globe. No attribute is a fault.

        Raises
        ------
        ReadingError
            The record is no reading; the code says why.
        """
        fields = self._fields(value)
        stream_id = self._stream_id(key, fields)
        event_time = self._event_time(fields, record_time)
        values = tuple(_dimension(name, fields.get(name)) for name in self._feed.dimensions)
        attributes = self._feed.attributes
        return ExactReading(
            stream_id,
            event_time,
            _on_the_globe(self._feed, values) if self._feed.lonlat else values,
            concat_attributes(attribute_text(fields.get(name)) for name in attributes) if attributes else None,
        )

    def _fields(self, value: bytes | None) -> Mapping[str, object]:
        if value is None:
            _refuse(DeadLetterCode.NOT_JSON, "the record has no value: send a reading; no stream can be deleted")
        if len(value) > self._max_record_bytes:
            _refuse(
                DeadLetterCode.TOO_LARGE,
                f"the record has {len(value)} bytes, {self._max_record_bytes} are read: "
                "leave out what is no dimension or attribute",
            )
        try:
            text = value.decode()
        except UnicodeDecodeError as error:
            _refuse(DeadLetterCode.NOT_JSON, f"the record is no UTF-8 at byte {error.start}: send UTF-8")
        return self._csv.fields(text) if self._feed.format is Format.CSV else _json_fields(text)

    def _stream_id(self, key: bytes | None, fields: Mapping[str, object]) -> bytes:
        name = self._feed.stream_id
        stream_id = _key_id(key) if name == KEY else _field_id(name, fields.get(name))
        if len(stream_id) > MAX_ID_BYTES:
            _refuse(
                DeadLetterCode.TOO_LARGE,
                f"the stream id has {len(stream_id)} bytes, {MAX_ID_BYTES} are the most: shorten or hash it",
            )
        return stream_id

    def _event_time(self, fields: Mapping[str, object], record_time: int) -> int:
        name = self._feed.event_time
        if name is not None:
            event_time = read_event_time(name, fields.get(name))
            self._refuse_far_future(name, event_time, fields.get(name), record_time)
            return event_time
        if not 0 <= record_time <= LAST_EVENT_TIME_MS:
            _refuse(
                DeadLetterCode.OUT_OF_RANGE,
                f"the record's timestamp is {record_time}, but the feed takes it as event time: epoch milliseconds "
                "up to the year 9999; have the producer set it, or name a field as event_time",
            )
        return record_time

    def _refuse_far_future(self, name: str, event_time: int, value: object, record_time: int) -> None:
        limit = self._feed.max_future_ms
        if limit is not None and event_time - limit > record_time:
            _refuse(
                DeadLetterCode.OUT_OF_RANGE,
                f"{name} is {_shown(value)}, {event_time - record_time} ms after the record's own timestamp "
                f"{record_time}; the feed's max_future allows {limit} ms: correct the producer's clock or unit, or "
                "allow more",
            )


def _refuse(code: DeadLetterCode, message: str) -> NoReturn:
    # JSON may name half of a surrogate pair, which no message can carry: it goes to Kafka as UTF-8.
    raise ReadingError(code, message.encode(errors="backslashreplace").decode())


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


# The standard parser, since it hands out a number's text: an id keeps its digits, and 1e999 is told from NaN.
_json = json.JSONDecoder(parse_float=Numeral, parse_int=Numeral, parse_constant=_refuse_constant)


def read_json(text: str) -> object:
    """Return the value of a JSON text, numbers as `Numeral`. Raises ValueError where it is none."""
    value: object = _json.decode(text)
    return value


def _json_fields(text: str) -> Mapping[str, object]:
    """Return the members of the JSON object; of a name that occurs twice the last one, as JSON parsers do."""
    if _nesting(text) > MAX_NESTING:
        _refuse(
            DeadLetterCode.TOO_LARGE,
            f"the record is nested more than {MAX_NESTING} deep: only its top level is read",
        )
    try:
        fields = read_json(text)
    except ValueError as error:
        _refuse(DeadLetterCode.NOT_JSON, f"the record is no JSON: {error}. Send one JSON object")
    if not isinstance(fields, dict):
        _refuse(DeadLetterCode.NOT_JSON, f"the record is {_shown(fields)}: send one JSON object")
    return fields


def _nesting(text: str) -> int:
    """Return how deep lists and objects are nested, or less where the text is no JSON."""
    if text.count("{") + text.count("[") <= MAX_NESTING:
        return 0
    depth = deepest = 0
    for token in _BRACKET_OR_STRING.finditer(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        deepest = max(deepest, depth)
    return deepest


def _key_id(key: bytes | None) -> bytes:
    if key is None:
        _refuse(
            DeadLetterCode.NO_STREAM_ID,
            f'the record has no key, and the feed says stream_id = "{KEY}": send the stream id as the key',
        )
    try:
        key.decode()
    except UnicodeDecodeError as error:
        _refuse(DeadLetterCode.WRONG_TYPE, f"the key is no UTF-8 at byte {error.start}: a stream id is text")
    return key


def _field_id(name: str, value: object) -> bytes:
    if value is None:
        _refuse_missing(name, "every reading names its stream")
    if not isinstance(value, str):
        _refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {_shown(value)}: a stream id is a string or a number")
    try:
        # A number's text as it stands: 1.50 and 1.5 are two streams, 17 and "17" are one.
        return value.encode()
    except UnicodeEncodeError:
        _refuse(DeadLetterCode.WRONG_TYPE, f"{name} holds half of a surrogate pair: a stream id is text")


def read_event_time(name: str, value: object) -> int:
    """Return a time in epoch milliseconds: a `Numeral` of them, or RFC 3339. Raises ReadingError; ``name`` is told."""
    if value is None:
        _refuse_missing(name, "every reading has an event time")
    if isinstance(value, Numeral):
        # Whole milliseconds in range are exact doubles; a fraction is rounded down, before 1970 too.
        milliseconds = math.floor(_finite(name, value))
    elif isinstance(value, str):
        milliseconds = _read_rfc3339(name, value)
    else:
        _refuse(
            DeadLetterCode.WRONG_TYPE,
            f"{name} is {_shown(value)}: an event time is epoch milliseconds or RFC 3339 text",
        )
    if not FIRST_EVENT_TIME_MS <= milliseconds <= LAST_EVENT_TIME_MS:
        _refuse(
            DeadLetterCode.OUT_OF_RANGE,
            f"{name} is {_shown(value)}: years 1 to 9999 are read; epoch times are in milliseconds",
        )
    return milliseconds


def _read_rfc3339(name: str, text: str) -> int:
    parts = _RFC3339.fullmatch(text)
    if parts is None:
        _refuse(
            DeadLetterCode.WRONG_TYPE,
            f"{name} is {_shown(text)}: write 2023-11-14T22:13:20.250Z, or epoch milliseconds as a number",
        )
    if parts[8] is None and text[-1] not in "Zz":
        _refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {_shown(text)}, without an offset: append Z or +01:00")
    try:
        at = datetime(*(int(part) for part in parts.group(1, 2, 3, 4, 5, 6)), tzinfo=UTC)  # type: ignore[misc, arg-type]
        offset = timedelta(hours=int(parts[9] or 0), minutes=int(parts[10] or 0))
        if offset >= timedelta(days=1) or int(parts[10] or 0) > 59:
            raise ValueError("the offset is a day or more, or has more than 59 minutes")
    except ValueError as error:
        _refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {_shown(text)}: {error}; send a time that exists")
    since = at - _EPOCH + (offset if parts[8] == "-" else -offset)
    return since // _MILLISECOND + int((parts[7] or "0")[:3].ljust(3, "0"))


def _dimension(name: str, value: object) -> float:
    if value is None:
        _refuse_missing(name, "a reading has a number for every dimension")
    if not isinstance(value, Numeral):
        _refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {_shown(value)}: send a number, without quotes")
    return _finite(name, value)


def _on_the_globe(feed: Feed, degrees: tuple[float, ...]) -> tuple[float, ...]:
    """Return longitude and latitude with the one name of the antimeridian."""
    limits = (MAX_LONGITUDE_DEG, MAX_LATITUDE_DEG)
    for name, number, limit in zip(feed.dimensions, degrees, limits, strict=True):
        if abs(number) > limit:
            _refuse(
                DeadLetterCode.OUT_OF_RANGE,
                f"{name} is {number!r}: the feed's space is lonlat, where it lies between {-limit:g} and {limit:g} "
                "degrees; send degrees, and name the longitude first in dimensions",
            )
    longitude, latitude = degrees
    return (-MAX_LONGITUDE_DEG if longitude == MAX_LONGITUDE_DEG else longitude), latitude


def _finite(name: str, numeral: Numeral) -> float:
    number = float(numeral)
    if not math.isfinite(number):
        _refuse(DeadLetterCode.NOT_FINITE, f"{name} is {_shown(numeral)}: send a finite number, up to 1.79e308")
    return number


def _refuse_missing(name: str, rule: str) -> NoReturn:
    _refuse(DeadLetterCode.MISSING_FIELD, f"{name} is absent or null: {rule}; send it, or correct the feed")


def _shown(value: object) -> str:
    """Return a value for a message: a number as it stood, long ones shortened, containers by kind."""
    if isinstance(value, Numeral):
        return value if len(value) <= 60 else f"{value[:57]}..."
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return shorten(value)
