"""The canonical texts of attribute values: equal texts, equal values. Readings and `where` are written by it alike.

    "north"   a string, as JSON         5.0       a number, as the nearest double; 5 and 5.0 are one
    true      a boolean                 null      absent, or null
    -         a list, an object or a number beyond a double's range, which equal nothing

All attributes of one reading are one text: those of its values in the order of the feed's attributes, put
together by `concat_attributes`. Knows values, not where they stand.
"""

import json
import math
from collections.abc import Iterable

from bmq.records import Format
from bmq.wire.csv_readings import read_cell
from bmq.wire.numeral import Numeral

NULL = "null"
OTHER = "-"  # no JSON text, so that no value of a `where` is written like it
SEPARATOR = "\x1f"  # stands in no text: JSON escapes it


def attribute_text(value: object) -> str:
    """Return the text of one value as JSON gives it; a number may be a `Numeral`.

    A whole number above 2**53 is the nearest double, as every number of a reading is.
    """
    if isinstance(value, Numeral):
        return _number_text(float(value))
    if isinstance(value, str):
        # Half of a surrogate pair, which JSON can name and UTF-8 cannot write, stands as its escape.
        return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number_text(float(value)) if isinstance(value, int | float) else OTHER


def concat_attributes(texts: Iterable[str]) -> str:
    """Return the text of all attributes of one reading, given that of each in the order of the feed."""
    return SEPARATOR.join(texts)


def where_text(value: object, feed_format: Format) -> str:
    """Return the text that an attribute must have to equal the value of a `where`.

    A cell of CSV has no type: one that reads as a number is a number. So a string of a `where` is read by the rule
    of cells, else "17" would fit no reading of a CSV feed.
    """
    if feed_format is Format.CSV and isinstance(value, str):
        value = read_cell(value)
    return attribute_text(value)


def _number_text(number: float) -> str:
    return repr(number + 0.0) if math.isfinite(number) else OTHER  # -0.0 + 0.0 is 0.0, which it equals
