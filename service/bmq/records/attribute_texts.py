"""Attribute tables cut down to the texts that are used, and equal texts made one.

`wire.attributes` says what a text is.
"""

from collections.abc import Sequence

import numpy as np

from bmq.records.arrays import Int32s
from bmq.records.columns import Attributes

SEPARATOR = "\x1f"  # between the values in a text; no value contains it
NULL = "null"  # a value that is absent, or null
OTHER = "-"  # a list, an object or a number beyond a double's range; no JSON text, so no value of a `where`


def with_used_texts(codes: Int32s, texts: Sequence[str]) -> Attributes:
    """Return the attributes with only those texts that some code uses, in their order.

    Linear in the codes and the texts. Python touches an object for each used text, and none for a code.
    """
    is_used = np.zeros(len(texts), dtype=np.bool_)
    is_used[codes] = True
    if is_used.all():
        return Attributes(codes, tuple(texts))
    new_codes = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    return Attributes(new_codes[codes], tuple(texts[row] for row in np.flatnonzero(is_used).tolist()))


def with_each_text_once(codes: Int32s, texts: Sequence[str]) -> Attributes:
    """Return the attributes with equal texts made one, in the order in which they first stand."""
    row_of: dict[str, int] = {}
    new_codes = np.array([row_of.setdefault(text, len(row_of)) for text in texts], dtype=np.int32)
    return Attributes(new_codes[codes], tuple(row_of))
