"""The last readings of the streams of a feed in the middle of a batch: between the state before it and the one after.

    before the batch ── reading ── reading ──►│ position          what was the last reading of each stream here?

Knows the readings of one batch, and no queries.
"""

import numpy as np

from bmq.engines.joins.join_feed import JoinFeed
from bmq.engines.joins.join_states import Arrivals, States
from bmq.records import Int32s, Int64s
from bmq.records.column_records import take


class Past:
    """The last reading of the streams of a feed at any position in one batch.

    Parameters
    ----------
    positions : int64[n], the position of each reading of ``arrivals`` in the order of the batch; ascending.
    """

    def __init__(self, feed: JoinFeed, arrivals: Arrivals, positions: Int64s) -> None:
        self._feed, self._arrivals = feed, arrivals
        self.positions = positions
        self._order = np.lexsort((positions, arrivals.read.slots))
        self._slots = arrivals.read.slots[self._order].astype(np.int64)
        self._scale = int(positions.max(initial=0)) + 2
        self._keys = self._slots * self._scale + positions[self._order]

    def at(self, slots: Int32s, positions: Int64s) -> States:
        """Return the last reading of each stream right after its position in ``positions``."""
        bounded = np.minimum(positions, self._scale - 1)
        found = np.searchsorted(self._keys, slots * np.int64(self._scale) + bounded, side="right") - 1
        in_batch = found >= 0
        in_batch[in_batch] = self._slots[found[in_batch]] == slots[in_batch]
        before = self._arrivals.before
        rows = np.searchsorted(before.slots, slots)
        rows[rows == len(before)] = 0
        touched = before.slots[rows] == slots if len(before) else np.zeros(slots.size, dtype=np.bool_)
        states = self._feed.states(slots)
        for chosen, source, at in (
            (touched & ~in_batch, before, rows),
            (in_batch, self._arrivals.read, self._order[found] if self._order.size else found),
        ):
            picked = take(source, at[chosen]) if chosen.any() else None
            if picked is not None:
                states.event_times[chosen], states.ordinals[chosen] = picked.event_times, picked.ordinals
                states.values[:, chosen], states.codes[chosen] = picked.values, picked.codes
        return states
