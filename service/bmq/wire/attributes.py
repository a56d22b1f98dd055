"""The canonical texts of attribute values: two values are equal if their texts are. Readings and `where` share them.

    "north"   a string, as JSON         5.0       a number, as the nearest double; 5 and 5.0 are equal
    true      a boolean                 null      absent, or null
    -         a list, an object or a number beyond a double's range; these equal no value of a `where`

All attributes of one reading form one text: `concat_attributes` puts the texts of the values together, in the order
of the feed's attributes. This module knows values; it does not know in which field or query they occur.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from bmq.records import Attributes, Readings
from bmq.records.attribute_texts import NULL, OTHER, SEPARATOR
from bmq.wire.numeral import Numeral

# How many raw attribute texts a format caches with their canonical text: the same ones come back from batch to batch.
# With texts of some ten bytes the cache takes a few megabytes. A larger cache does not help a feed whose attributes
# hardly ever repeat.
CACHED_TEXTS = 16_384


def attribute_text(value: object) -> str:
    """Return the text of one value of a parsed JSON record; a number may be a `Numeral`.

    A whole number above 2**53 becomes the nearest double, like every number of a reading.
    """
    if isinstance(value, Numeral):
        return _number_text(float(value))
    if isinstance(value, str):
        # JSON can name half of a surrogate pair, but UTF-8 cannot write it: the escape is kept.
        return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number_text(float(value)) if isinstance(value, int | float) else OTHER


def concat_attributes(texts: Iterable[str]) -> str:
    """Return the text of all attributes of one reading, given the text of each in the order of the feed."""
    return SEPARATOR.join(texts)


def with_constants(readings: Readings, texts: Sequence[str]) -> Readings:
    """Return the readings with further attributes, which have the same texts in all of them."""
    if not texts:
        return readings
    more = concat_attributes(texts)
    if readings.attributes is None:
        return replace(readings, attributes=Attributes(np.zeros(len(readings), np.int32), (more,)))
    longer = tuple(concat_attributes((text, more)) for text in readings.attributes.texts)
    return replace(readings, attributes=replace(readings.attributes, texts=longer))


def _number_text(number: float) -> str:
    return repr(number + 0.0) if math.isfinite(number) else OTHER  # -0.0 equals 0.0; adding 0.0 gives both one text
