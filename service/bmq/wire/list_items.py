"""One JSON record with a list of readings: a record for each item of the list, and the readings in them.

    {"id": "v7", "points": [{"x": 1}, {"x": 2}]}  ─►  {"id": "v7", "points": {"x": 1}}
                                                      {"id": "v7", "points": {"x": 2}}

Slow and complete. `reading_lists` must agree with this module for every record that it decodes.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from bmq.errors import DeadLetterCode, ReadingError
from bmq.records import Feed
from bmq.wire.event_times import refuse_missing
from bmq.wire.fault_texts import refuse, shown
from bmq.wire.json_paths import value_at
from bmq.wire.numeral import Numeral
from bmq.wire.readings_exact import ExactDecoder, ExactReading

# What is beside a list is copied for each of its items: a record of 1 MiB, half of it a list of ten thousand items,
# would take 5 GiB. So a record whose items take more than this is refused.
MOST_ITEM_BYTES = 33_554_432
_DOT = "."


class ExactListDecoder:
    """Decodes one record at a time.

    Parameters
    ----------
    feed : with `readings`.
    max_record_bytes : a longer record is refused and not parsed.
    """

    def __init__(self, feed: Feed, max_record_bytes: int) -> None:
        assert feed.readings is not None
        self._path = feed.readings
        self._decoder = ExactDecoder(replace(feed, readings=None), max_record_bytes)

    def decode(self, key: bytes | None, value: bytes | None, record_time: int) -> list[ExactReading]:
        """Return the readings in one record. Raises ReadingError if one item is not a reading."""
        readings = []
        for place, record in enumerate(self.records_of_items(value)):
            try:
                readings.append(self._decoder.decode(key, record, record_time))
            except ReadingError as fault:
                raise ReadingError(fault.code, in_item(self._path, place, str(fault))) from fault
        return readings

    def records_of_items(self, value: bytes | None) -> list[bytes]:
        """Return a record for each item of the list.

        Raises
        ------
        ReadingError
            The record is no JSON object, has no list, or its items would take too many bytes.
        """
        document = self._decoder.fields(value)
        names = [self._path] if self._path in document else self._path.split(_DOT)
        found = value_at(document, names)
        if found is None:
            refuse_missing(self._path, "the feed reads its readings from this list")
        if not isinstance(found, list):
            refuse(DeadLetterCode.WRONG_TYPE, f"{self._path} is {shown(found)}: send a list of readings")
        beside = len(_json_text(_with_item(document, names, None)))
        if len(found) * beside + len(value or b"") > MOST_ITEM_BYTES:
            refuse(DeadLetterCode.TOO_LARGE, too_many_items(self._path, len(found)))
        return [_json_text(_with_item(document, names, item)).encode() for item in found]


def in_item(path: str, place: int, message: str) -> str:
    """Return the message of a fault in an item, which is the ``place``-th of the list, counted from 0."""
    return f"item {place} of {path}: {message}"


def too_many_items(path: str, n: int) -> str:
    """Return the message for a record whose items take too many bytes."""
    return (
        f"the record has {n} items in {path}, which take more than {MOST_ITEM_BYTES} bytes with a copy of what is "
        "beside the list for each of them: send shorter lists, or less beside them"
    )


def _with_item(document: Mapping[str, object], names: list[str], item: object) -> dict[str, object]:
    """Return the document with an item in the place of the list."""
    name, *others = names
    inner = document[name]
    return {**document, name: _with_item(inner, others, item) if others and isinstance(inner, Mapping) else item}


def _json_text(value: object) -> str:
    """Return the JSON of a parsed value, each number with the text that it had."""
    if isinstance(value, Numeral):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{_json_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_text, value)) + "]"
    return json.dumps(value)
