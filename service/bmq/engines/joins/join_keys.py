"""The texts that joins compare for equality, as numbers."""

import numpy as np

from bmq.engines.joins.join_feed import JoinFeed
from bmq.engines.joins.join_states import States
from bmq.records import Int64s
from bmq.records.column_records import take

NO_KEY = -1  # equal to nothing


class KeyTable:
    """Numbers of texts, the same for both sides of a join.

    The table keeps every text that it has seen, so its owner replaces it by a new table from time to time.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, feed: JoinFeed, field: str | None, states: States) -> Int64s:
        """Return the number of a field's text in each state, int64[n]; NO_KEY: equal to nothing.

        Without a field, all numbers are 0. Cost: O(n log n), and a dictionary look-up for each distinct text.
        """
        if field is None:
            return np.zeros(len(states), dtype=np.int64)
        _, first, inverse = np.unique(feed.handles(field, states), return_index=True, return_inverse=True)
        texts = feed.texts(field, take(states, first))
        table = self._numbers
        found = [NO_KEY if text is None else table.setdefault(text, len(table)) for text in texts]
        return np.array(found, dtype=np.int64)[inverse]
