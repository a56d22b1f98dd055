"""Columns of several batches as those of one, and attribute tables cut down to what is used.

Knows the columns, and nothing of what they say.
"""

from collections.abc import Sequence

import numpy as np

from bmq.records.arrays import Int32s
from bmq.records.columns import Attributes, Ids, Readings


def concat_readings(parts: Sequence[Readings]) -> Readings:
    """Return the readings of all parts in their order; at least one part, all of one feed.

    Always a copy, even of one part: what comes in a frame is read-only, and each kernel behind would be compiled a
    second time for it.
    """
    attributes = [part.attributes for part in parts if part.attributes is not None]
    partitions = [part.partitions for part in parts if part.partitions is not None]
    return Readings(
        concat_ids([part.ids for part in parts]),
        np.concatenate([part.event_times for part in parts]),
        np.concatenate([part.record_times for part in parts]),
        np.concatenate([part.values for part in parts], axis=1),
        concat_attributes(attributes) if attributes else None,
        np.concatenate(partitions) if partitions else None,
    )


def concat_ids(parts: Sequence[Ids]) -> Ids:
    """Return the ids of all parts, in their order; always a copy."""
    starts = [np.zeros(1, np.int64)]
    n_bytes = 0
    for ids in parts:
        starts.append(ids.starts[1:] + (n_bytes - ids.starts[0]))
        n_bytes += int(ids.starts[-1] - ids.starts[0])
    return Ids(
        np.concatenate(starts),
        np.concatenate([ids.bytes[ids.starts[0] : ids.starts[-1]] for ids in parts]),
        np.concatenate([ids.hashes for ids in parts]),
    )


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
