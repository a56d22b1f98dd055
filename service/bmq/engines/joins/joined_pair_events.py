"""Events of joins by slot, their order, and their conversion to `records.JoinedPairs`.

One row is one event: its query, its two streams with their readings, and its position in the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmq.engines.joins.join_feed import JoinFeed
from bmq.engines.joins.join_states import States
from bmq.records import NEVER, Int8s, Int32s, Int64s, JoinedPairs, JoinQuery, PairSide


@dataclass(frozen=True, slots=True)
class JoinedPairEvents:
    """Events of joins of two feeds, one row each.

    Attributes
    ----------
    queries : int32[n], slots.
    positions : int64[n], the position in the batch; equal for all events of one reading, expiry or command.
    signs, reasons : int8[n].
    moments : int64[n], epoch ms of an expiry; NEVER: the event time is the later event time of the two readings.
    left, right : States, n rows each; event time NEVER: the event has no such side.
    record_times : int64[n], epoch ms; -1: no reading caused the event.
    """

    queries: Int32s
    positions: Int64s
    signs: Int8s
    reasons: Int8s
    moments: Int64s
    left: States
    right: States
    record_times: Int64s

    def __len__(self) -> int:
        return self.queries.size

    @property
    def event_times(self) -> Int64s:
        """Epoch ms of each event, int64[n]."""
        later = np.maximum(self.left.event_times, self.right.event_times)
        return np.where(self.moments == NEVER, later, self.moments)


def emit_order(events: JoinedPairEvents, feeds: tuple[JoinFeed, JoinFeed], query_id: Callable[[int], str]) -> Int64s:
    """Return the positions of the events in the order in which they are emitted, int64[n].

    The events are in order of their position. Queries that end between the same two changes have one position, so their
    events are then in order of the moment of the end. At one position and moment all - come first, then all +, then the
    events without a sign. Each of these groups is in order of the query ids. Events of one query with a sign are then
    in order of the left and the right stream id; events without a sign keep their order. Ids compare as UTF-8 bytes.
    """
    group = np.where(events.signs == 0, 2, events.signs)
    queries = _ranks(events.queries, query_id)
    left, right = (
        _ranks(side.slots, feed.streams.text_of) for side, feed in zip((events.left, events.right), feeds, strict=True)
    )
    # The sort is stable: pairs of windows stay in the order in which their readings were applied.
    has_sign = events.signs != 0
    return np.lexsort((right * has_sign, left * has_sign, queries, group, events.moments, events.positions))


def _ranks(slots: Int32s, text: Callable[[int], str]) -> Int64s:
    distinct, inverse = np.unique(slots, return_inverse=True)
    keys = [text(slot).encode() for slot in distinct.tolist()]
    ranks = np.empty(distinct.size, dtype=np.int64)
    ranks[sorted(range(distinct.size), key=keys.__getitem__)] = np.arange(distinct.size)
    return ranks[inverse]


def to_pairs(
    events: JoinedPairEvents, left: JoinFeed, right: JoinFeed, query: Callable[[int], JoinQuery]
) -> JoinedPairs:
    """Return the events, in their order, with ids and definitions instead of slots."""
    distinct, query_rows = np.unique(events.queries, return_inverse=True)
    return JoinedPairs(
        tuple(query(slot) for slot in distinct.tolist()),
        query_rows.astype(np.int32),
        events.signs,
        events.reasons,
        events.event_times,
        _side(left, events.left),
        _side(right, events.right),
        events.record_times,
    )


def _side(feed: JoinFeed, states: States) -> PairSide:
    ids = feed.streams.ids_of(np.ascontiguousarray(states.slots, dtype=np.int32))
    return PairSide(feed.feed.name, ids, states.event_times, states.ordinals, states.values)
