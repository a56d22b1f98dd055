"""Tables of attribute texts, cut down to what is used and joined. Knows nothing of what the texts say."""

from collections.abc import Sequence

import numpy as np

from bmq.records import Attributes, Int32s


def with_used_texts(codes: Int32s, texts: Sequence[str]) -> Attributes:
    """Return the attributes with those texts only that some code means, in their order.

    Linear in the codes and the texts; a Python object is touched for each used text, none for a code.
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


def concat_attributes(parts: Sequence[Attributes]) -> Attributes:
    """Return the attributes of all parts in their order, each text once; always a copy."""
    texts: list[str] = []
    codes = []
    for part in parts:
        codes.append(part.codes + np.int32(len(texts)))
        texts += part.texts
    return with_each_text_once(np.concatenate(codes), texts)
