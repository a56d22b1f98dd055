"""The window joins of two feeds: turn the pairs that they find into events.

The feeds own the windows (`JoinFeed.window`), because a feed may be joined with several others.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bmq.engines.band.band_channels import Changes
from bmq.engines.joins.join_feed import JoinFeed
from bmq.engines.joins.join_keys import KeyTable
from bmq.engines.joins.join_states import Arrivals
from bmq.engines.joins.joined_pair_events import JoinedPairEvents
from bmq.engines.window.window_join import Window, WindowJoin, WindowPairs
from bmq.records import NEVER, Bools, Int32s, Int64s, JoinQuery, Reason, Sign, Where
from bmq.records.column_records import take


class WindowChannel:
    """The window joins of two feeds, by query slot.

    Attributes
    ----------
    since : slot -> the numbers of the first left and the first right reading that count for the query.
    """

    def __init__(self, left: JoinFeed, right: JoinFeed) -> None:
        self._feeds = (left, right)
        self.since: dict[int, tuple[int, int]] = {}
        self._queries: dict[int, JoinQuery] = {}
        n_columns = [feed.n_dims + len(feed.feed.attributes) for feed in self._feeds]
        self._join = WindowJoin(n_columns[0], n_columns[1])

    def put(self, slot: int, query: JoinQuery, since: tuple[int, int]) -> None:
        """Register a query; it replaces the query in its slot if there is one."""
        for feed, number in zip(self._feeds, since, strict=True):
            feed.count_from(number)
        if slot in self.since:  # after `count_from`: a feed without window joins drops its window
            self.remove(slot)
        self.since[slot] = since
        self._queries[slot] = query
        # A disabled query finds no pairs, but keeps its windows, because an edit may enable it again.
        self._join.put(slot, query if query.enabled else replace(query, alternatives=()), since)

    def remove(self, slot: int) -> None:
        """Remove the query in ``slot``, if there is one."""
        if self.since.pop(slot, None) is None:
            return
        del self._queries[slot]
        self._join.remove(slot)
        for feed in self._feeds:
            feed.count_no_more()

    def find(
        self, changes: Changes, left: Arrivals, right: Arrivals, dues: Mapping[int, int]
    ) -> tuple[list[JoinedPairEvents], int]:
        """Return the pairs of the readings of a batch, and the number of tested candidates.

        Parameters
        ----------
        dues : slot -> epoch ms at which the query ends, for the queries that end in this batch. Their pairs with a
            later event time are left out.
        """
        if not self.since or not (len(left.read) or len(right.read)):
            return [], 0
        keys = KeyTable()  # one for each batch, so that it keeps no texts of readings that left the windows
        windows = [self._window(0, changes.left.positions, keys), self._window(1, changes.right.positions, keys)]
        found = self._join.find(windows[0], windows[1], self._fits)
        events = self._events(found, windows, left, right)
        if dues:
            slots = np.array(list(dues), dtype=np.int32)
            ends = np.array([dues[slot] for slot in slots.tolist()])
            order = np.argsort(slots)
            at = np.minimum(np.searchsorted(slots[order], events.queries), slots.size - 1)
            late = (slots[order][at] == events.queries) & (events.event_times > ends[order][at])
            events = take(events, ~late)
        return [events], found.visits

    def needed(self, side: int, settled_other: int) -> int:
        """Return how many of the oldest readings in a feed's window no query needs any more."""
        feed = self._feeds[side]
        if not self.since:
            return len(feed.window)
        window = feed.window
        keep_from = window.event_times if window.lags is None else window.event_times + window.lags
        return self._join.keep(keep_from, feed.first, side, settled_other)

    def _window(self, side: int, positions: Int64s, keys: KeyTable) -> Window:
        feed = self._feeds[side]
        states = feed.window
        n_old = len(states) - positions.size
        fields = {
            query_side.equal
            for query in self._queries.values()
            for query_side in [(query.left, query.right)[side]]
            if query_side.equal is not None
        }
        return Window(
            columns=feed.columns(states),
            event_times=states.event_times,
            codes=states.codes,
            keys={field: keys.numbers(feed, field, states) for field in fields},
            first=feed.first,
            positions=np.concatenate([np.arange(-n_old, 0), positions]),
            own=feed.own(states.slots) if side == 0 else np.ones(len(states), dtype=np.bool_),
        )

    def _fits(self, side: int, where: Where, codes: Int32s) -> Bools:
        return self._feeds[side].fits(where, codes)

    def _events(self, found: WindowPairs, windows: list[Window], left: Arrivals, right: Arrivals) -> JoinedPairEvents:
        rows = (found.left_rows, found.right_rows)
        positions = [window.positions[own] for window, own in zip(windows, rows, strict=True)]
        record_times = np.empty(found.queries.size, dtype=np.int64)
        left_is_later = positions[0] > positions[1]
        for side, arrivals, chosen in ((0, left, left_is_later), (1, right, ~left_is_later)):
            n_old = len(self._feeds[side].window) - len(arrivals.read)
            record_times[chosen] = arrivals.record_times[rows[side][chosen] - n_old]
        n = found.queries.size
        return JoinedPairEvents(
            found.queries,
            2 * np.maximum(positions[0], positions[1]),
            np.full(n, Sign.NONE, dtype=np.int8),
            np.full(n, Reason.MOVED, dtype=np.int8),
            np.full(n, NEVER, dtype=np.int64),
            take(self._feeds[0].window, rows[0]),
            take(self._feeds[1].window, rows[1]),
            record_times,
        )
