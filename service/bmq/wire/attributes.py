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

from bmq.wire.numeral import Numeral

NULL = "null"
OTHER = "-"  # no JSON text, so that no value of a `where` is written like it
SEPARATOR = "\x1f"  # stands in no text: JSON escapes it
# Raw attributes whose canonical text a format remembers: they come back from batch to batch. Texts of some ten bytes
# are a few megabytes. More do not help a feed whose attributes hardly ever come back.
CACHED_TEXTS = 16_384


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


def _number_text(number: float) -> str:
    return repr(number + 0.0) if math.isfinite(number) else OTHER  # -0.0 + 0.0 is 0.0, which it equals
