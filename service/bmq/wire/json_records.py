"""Feed records as JSON objects: a scan of plain ones, the parser of one record, and the texts of attributes.

"north"␟5␟        attributes as `kernels.text.plain_records.gather_attributes` gives them; ␟ is the separator
"north"␟5.0␟null  their canonical text, by the rules of `wire.attributes`
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NoReturn

from bmq.errors import DeadLetterCode
from bmq.records import Bools, Bytes, Feed, Int64s
from bmq.records.attribute_texts import NULL, OTHER, SEPARATOR
from bmq.wire.attributes import CACHED_TEXTS, attribute_text, concat_attributes
from bmq.wire.fault_texts import refuse, shown
from bmq.wire.feed_fields import scanned_fields
from bmq.wire.json_paths import PathScanner, encoded_names, has_paths, with_paths
from bmq.wire.numeral import Numeral
from bmq.wire.record_texts import text_of_record
from bmq.wire.scanned_fields import ScannedFields

MAX_NESTING = 100  # of lists and objects; the parser would meet Python's own limit at about 1,000

# A string may lack its closing quote: otherwise the search would run to the end of the text from each of its quotes.
_BRACKET_OR_STRING = re.compile(r'[\[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


class JsonRecords:
    """The JSON records of one feed; see `record_formats.RecordFormat`."""

    max_scan_bytes = 2**63 - 1  # the format adds no limit
    n_quotes = 1
    times_in_ms = False

    def __init__(self, feed: Feed) -> None:
        self._fields = scanned_fields(feed)
        self._names = encoded_names(self._fields)
        self._paths = PathScanner(self._fields) if has_paths(self._fields) else None

    def scan(self, starts: Int64s, data: Bytes, fields: ScannedFields) -> Bools:
        """Return for each record whether it is well-formed, and fill the arrays for those that are."""
        if self._paths is not None:
            return self._paths.scan(starts, data, fields)
        # Imported here, because the CLI reads definitions through this module and must not pay for loading numba.
        from bmq.kernels.text.json_scan import scan_json

        return scan_json(starts, data, *self._names, fields.kinds, fields.begins, fields.ends, fields.numbers)

    def read(self, value: bytes) -> Mapping[str, object]:
        """Return the members of the JSON object, and the fields of the feed that are within its members.

        If a name occurs twice, the last one counts, as in JSON parsers.
        """
        text = text_of_record(value)
        if _nesting(text) > MAX_NESTING:
            refuse(
                DeadLetterCode.TOO_LARGE,
                f"the record is nested more than {MAX_NESTING} deep: only the feed's fields are read",
            )
        try:
            fields = _parse(text)
        except ValueError as error:
            refuse(DeadLetterCode.NOT_JSON, f"the record is no JSON: {error}. Send one JSON object")
        if not isinstance(fields, dict):
            refuse(DeadLetterCode.NOT_JSON, f"the record is {shown(fields)}: send one JSON object")
        return fields if self._paths is None else with_paths(fields, self._fields)

    @staticmethod
    def attributes_text(raw: bytes) -> str:
        """Return the canonical text of JSON values. An empty text means absent; a single bracket, a list or object."""
        return _attributes_text(raw)

    @staticmethod
    def where_text(value: object) -> str:
        """Return the canonical text of the value; JSON values have a type, so no rule is needed."""
        return attribute_text(value)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


# The standard parser, because it passes on the text of a number: an id keeps its digits, and 1e999 differs from NaN.
_json = json.JSONDecoder(parse_float=Numeral, parse_int=Numeral, parse_constant=_refuse_constant)


def _parse(text: str) -> object:
    """Return the value of a JSON text, numbers as `Numeral`. Raises ValueError if the text is not JSON."""
    value: object = _json.decode(text)
    return value


def _nesting(text: str) -> int:
    """Return how deep lists and objects are nested: 0 if certainly within the limit, any number if it is not JSON."""
    if text.count("{") + text.count("[") <= MAX_NESTING:
        return 0
    depth = deepest = 0
    for token in _BRACKET_OR_STRING.finditer(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        deepest = max(deepest, depth)
    return deepest


@lru_cache(CACHED_TEXTS)
def _attributes_text(raw: bytes) -> str:
    return concat_attributes(map(_attribute_text, raw.decode().split(SEPARATOR)))


def _attribute_text(value: str) -> str:
    if not value:
        return NULL
    if value in ("[", "{"):
        return OTHER
    if value[0] == '"' and "\\" not in value:
        return value  # a string without escapes is canonical already
    return attribute_text(_parse(value))
