"""Stream ids that are given as texts, as columns."""

from collections.abc import Sequence

import numpy as np

from bmq.kernels.tables.hashing import hash_ids
from bmq.records import Ids


def ids_of_texts(texts: Sequence[str]) -> Ids:
    """Return the texts as ids, in their order."""
    encoded = [text.encode() for text in texts]
    starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=starts[1:])
    utf8 = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return Ids(starts, utf8, hash_ids(starts, utf8))
