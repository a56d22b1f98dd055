"""The rules for one feed record: when it is a reading, and otherwise the code and message of the fault.

Slow and complete. `readings_fast` must agree with this module for every record that it decodes. Knows one record; its
format reads the fields, and the caller knows its topic, partition and offset.
"""

from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from bmq.errors import DeadLetterCode
from bmq.records import Feed
from bmq.records.plane import EAST, LARGEST_DEGREES, WEST
from bmq.wire.attributes import attribute_text, concat_attributes
from bmq.wire.event_times import LAST_EVENT_TIME_MS, finite, read_event_time, refuse_missing
from bmq.wire.fault_texts import refuse, shown
from bmq.wire.feed_fields import KEY
from bmq.wire.numeral import Numeral
from bmq.wire.record_formats import RECORD_FORMATS

MAX_ID_BYTES = 1024  # every event of a stream carries its id; a longer id is a mistake of the producer


class ExactReading(NamedTuple):
    """One reading: the id as UTF-8, the event time in epoch milliseconds, one finite number for each dimension.

    attributes : the text of `wire.attributes`; None if the feed declares no attributes.
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
        A longer value is refused and not parsed.
    """

    def __init__(self, feed: Feed, max_record_bytes: int) -> None:
        self._feed = feed
        self._max_record_bytes = max_record_bytes
        self._format = RECORD_FORMATS[feed.format](feed)

    def decode(self, key: bytes | None, value: bytes | None, record_time: int) -> ExactReading:
        """Return the reading in one record.

        If a record has several faults, the first in this order is reported: the record as a whole, the stream id,
        the event time, the dimensions in their order, the place on the globe. Attributes never cause a fault.

        Raises
        ------
        ReadingError
            The record is not a reading; the code is the reason.
        """
        fields = self.fields(value)
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

    def fields(self, value: bytes | None) -> Mapping[str, object]:
        """Return the fields of a record by name. Raises ReadingError if it is no record of the format."""
        if value is None:
            refuse(DeadLetterCode.NOT_JSON, "the record has no value: send a reading; no stream can be deleted")
        if len(value) > self._max_record_bytes:
            refuse(
                DeadLetterCode.TOO_LARGE,
                f"the record has {len(value)} bytes, {self._max_record_bytes} are read: "
                "leave out what is no dimension or attribute",
            )
        return self._format.read(value)

    def _stream_id(self, key: bytes | None, fields: Mapping[str, object]) -> bytes:
        name = self._feed.stream_id
        stream_id = _key_id(key) if name == KEY else _field_id(name, fields.get(name))
        if len(stream_id) > MAX_ID_BYTES:
            refuse(
                DeadLetterCode.TOO_LARGE,
                f"the stream id has {len(stream_id)} bytes, {MAX_ID_BYTES} are the most: shorten or hash it",
            )
        return stream_id

    def _event_time(self, fields: Mapping[str, object], record_time: int) -> int:
        name = self._feed.event_time
        if name is not None:
            event_time = read_event_time(name, fields.get(name), self._feed.event_time_unit)
            self._refuse_far_future(name, event_time, fields.get(name), record_time)
            return event_time
        if not 0 <= record_time <= LAST_EVENT_TIME_MS:
            refuse(
                DeadLetterCode.OUT_OF_RANGE,
                f"the record's timestamp is {record_time}, but the feed takes it as event time: epoch milliseconds "
                "up to the year 9999; have the producer set it, or name a field as event_time",
            )
        return record_time

    def _refuse_far_future(self, name: str, event_time: int, value: object, record_time: int) -> None:
        limit = self._feed.max_future_ms
        # Kafka gives -1 for a record without a timestamp; nothing is ahead of that.
        if limit is not None and record_time >= 0 and event_time - limit > record_time:
            refuse(
                DeadLetterCode.OUT_OF_RANGE,
                f"{name} is {shown(value)}, {event_time - record_time} ms ahead of the record's own timestamp "
                f"{record_time}; the feed's max_future allows {limit} ms: correct the producer's clock or unit, allow "
                'more, or set max_future = "off"',
            )


def _key_id(key: bytes | None) -> bytes:
    if key is None:
        refuse(
            DeadLetterCode.NO_STREAM_ID,
            f'the record has no key, and the feed says stream_id = "{KEY}": send the stream id as the key',
        )
    if not key:
        _refuse_empty_id("the key")
    try:
        key.decode()
    except UnicodeDecodeError as error:
        refuse(DeadLetterCode.WRONG_TYPE, f"the key is no UTF-8 at byte {error.start}: a stream id is text")
    return key


def _field_id(name: str, value: object) -> bytes:
    if value is None:
        refuse_missing(name, "every reading names its stream")
    if value == "":
        _refuse_empty_id(name)
    if not isinstance(value, str):
        refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {shown(value)}: a stream id is a string or a number")
    try:
        # The text of a number is not normalized: 1.50 and 1.5 are two streams, 17 and "17" are one.
        return value.encode()
    except UnicodeEncodeError:
        refuse(DeadLetterCode.WRONG_TYPE, f"{name} holds half of a surrogate pair: a stream id is text")


def _refuse_empty_id(place: str) -> NoReturn:
    refuse(DeadLetterCode.MISSING_FIELD, f'{place} is "": a text of no characters is no stream id; send one')


def _dimension(name: str, value: object) -> float:
    if value is None:
        refuse_missing(name, "a reading has a number for every dimension")
    if not isinstance(value, Numeral):
        refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {shown(value)}: send a number, without quotes")
    return finite(name, value)


def _on_the_globe(feed: Feed, degrees: tuple[float, ...]) -> tuple[float, ...]:
    """Check the range of longitude and latitude and return them; longitude 180 becomes -180, the same meridian."""
    for name, number, limit in zip(feed.dimensions, degrees, LARGEST_DEGREES, strict=True):
        if abs(number) > limit:
            refuse(
                DeadLetterCode.OUT_OF_RANGE,
                f"{name} is {number!r}: the feed's space is lonlat, where it lies between {-limit:g} and {limit:g} "
                "degrees; send degrees, and name the longitude first in dimensions",
            )
    longitude, latitude = degrees
    return (WEST if longitude == EAST else longitude), latitude
