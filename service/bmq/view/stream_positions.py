"""The last reading of each stream of one feed, and how many queries it is inside.

Each stream has a slot, so that an update names it by a number and sends its id once. A slot has the revision of its
last change: a browser that has seen revision r needs the slots with a later one, whatever it has missed in between.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmq.view.bounded_ids import BoundedIds

MOST_STREAMS = 50_000  # of one feed; an update of all of them is about 2 MB, and a browser still draws them
_FIRST_SLOTS = 1_024


class StreamPositions:
    """The streams of one feed.

    Parameters
    ----------
    n_dims : number of dimensions of the feed.
    most : further streams are counted, and not kept.
    """

    def __init__(self, n_dims: int, most: int = MOST_STREAMS) -> None:
        self.ids: list[str] = []
        self._left_out = BoundedIds()
        self._most = most
        self._slots: dict[str, int] = {}
        self._values = np.full((_FIRST_SLOTS, n_dims), np.nan)
        self._times = np.zeros(_FIRST_SLOTS, np.int64)
        self._inside = np.zeros(_FIRST_SLOTS, np.int32)
        self._revisions = np.zeros(_FIRST_SLOTS, np.int64)
        self._born = np.zeros(_FIRST_SLOTS, np.int64)

    @property
    def n_left_out(self) -> int:
        """How many streams there are that are not kept, as far as they are counted."""
        return len(self._left_out)

    def apply(self, stream_id: str, event_time: int, values: Sequence[float], revision: int) -> None:
        """Keep a reading, unless a later one of the same stream is known."""
        slot = self._slot(stream_id, revision)
        if slot is None or event_time < self._times[slot]:
            return
        if np.isnan(self._values[slot, 0]):  # no browser has the id yet, because a stream without a reading is not sent
            self._born[slot] = revision
        self._values[slot] = values
        self._times[slot] = event_time
        self._revisions[slot] = revision

    def change_inside(self, stream_id: str, change: int, revision: int) -> None:
        """Add to the number of queries that hold the stream."""
        slot = self._slot(stream_id, revision)
        if slot is not None:
            self._inside[slot] += change
            self._revisions[slot] = revision

    def since(self, revision: int) -> dict[str, Any]:
        """Return the slots that changed after a revision, as lists side by side; empty if there are none.

        `born` has the ids of the slots that are new since then, by slot. A stream without a reading is left out.
        """
        n = len(self.ids)
        slots = np.flatnonzero((self._revisions[:n] > revision) & ~np.isnan(self._values[:n, 0]))
        if not slots.size:
            return {}
        return {
            "slots": slots.tolist(),
            "values": self._values[slots].T.tolist(),
            "times": self._times[slots].tolist(),
            "inside": self._inside[slots].tolist(),
            "born": {slot: self.ids[slot] for slot in slots[self._born[slots] > revision].tolist()},
        }

    def _slot(self, stream_id: str, revision: int) -> int | None:
        slot = self._slots.get(stream_id)
        if slot is not None:
            return slot
        slot = len(self.ids)
        if slot >= self._most:
            self._left_out.add(stream_id)
            return None
        if slot == self._times.size:
            self._grow()
        self.ids.append(stream_id)
        self._slots[stream_id] = slot
        self._born[slot] = revision
        return slot

    def _grow(self) -> None:
        n_dims = self._values.shape[1]
        self._values = np.concatenate((self._values, np.full((self._times.size, n_dims), np.nan)))
        for name in ("_times", "_inside", "_revisions", "_born"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate((column, np.zeros_like(column))))
