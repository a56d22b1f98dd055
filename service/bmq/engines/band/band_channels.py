"""The band joins of two feeds in channels, and the events of their changes.

A *channel* is all band joins with the same two columns, conditions, equality and `report`. They look at the same
values, so one `BandJoin` holds them. In a channel each stream has one number. A stream has no number if it is unknown
or out of scope. In a channel that reports pairs, a left stream of another shard has no number either, so each pair
belongs to one shard. A channel that reports queries holds the streams of all shards on both sides, and reports only the
changes that streams of this shard cause.
"""

from dataclasses import dataclass

import numpy as np

from bmq.engines.band.band_join import BandJoin, Entries, count_in_band
from bmq.engines.joins.join_feed import JoinFeed
from bmq.engines.joins.join_keys import NO_KEY, KeyTable
from bmq.engines.joins.join_states import Arrivals, States
from bmq.engines.joins.joined_pair_events import JoinedPairEvents
from bmq.engines.joins.past_states import Past
from bmq.records import NEVER, Band, Bools, Float64s, Int8s, Int32s, Int64s, JoinQuery, JoinSide, Reason
from bmq.records.column_records import take

LEFT, RIGHT = 0, 1
KEYS_MIN = 1 << 16  # the channels keep up to so many texts without a rebuild: some megabytes


@dataclass(frozen=True, slots=True)
class Changes:
    """The readings and expiries of two feeds in one batch, in order.

    Attributes
    ----------
    sides : int8[n], LEFT or RIGHT.
    streams : int32[n], slots of that side.
    moments : int64[n], epoch ms, ascending.
    is_expiry : bool[n]; False: a reading.
    rows : int64[n], the row in ``read`` or ``expired`` of the arrivals of that side.
    arrivals : of both sides.
    left, right : the last readings of the streams of a side after each change.
    """

    sides: Int8s
    streams: Int32s
    moments: Int64s
    is_expiry: Bools
    rows: Int64s
    arrivals: tuple[Arrivals, Arrivals]
    left: Past
    right: Past

    def __len__(self) -> int:
        return self.sides.size


@dataclass(frozen=True, slots=True)
class ChannelKey:
    """The common part of all band joins of a channel: columns, conditions and equality of each side, and `report`."""

    columns: tuple[int, int]
    sides: tuple[JoinSide, JoinSide]
    reports_queries: bool


class BandChannels:
    """The band joins of two feeds, by query slot."""

    def __init__(self, left: JoinFeed, right: JoinFeed) -> None:
        self._feeds = (left, right)
        self._keys = KeyTable()
        self._most_keys = KEYS_MIN
        self._channels: dict[ChannelKey, BandJoin] = {}
        self._key_by_slot: dict[int, ChannelKey] = {}
        self._bands: dict[int, Band] = {}
        self._entries: dict[ChannelKey, tuple[Entries, Entries]] = {}  # of all shards, of the present readings
        self._is_stale = False

    def put(self, slot: int, query: JoinQuery) -> None:
        """Register a query in a free slot."""
        band, key = query.alternatives[0].bands[0], _key_of(query)
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = BandJoin()
            self._load(key, channel)
        self._key_by_slot[slot], self._bands[slot] = key, band
        _put(channel, key, [slot], [band])

    def remove(self, slot: int) -> None:
        """Remove the query in ``slot``, if there is one."""
        key = self._key_by_slot.pop(slot, None)
        if key is None:
            return
        del self._bands[slot]
        channel = self._channels[key]
        channel.remove(np.array([slot], dtype=np.int32))
        if not len(channel):
            del self._channels[key]

    def pairs(self, slot: int) -> tuple[Int32s, Int32s]:
        """Return the pairs of a query that are in band now, as left and right slots.

        If the query reports queries and not pairs, there are no pairs.
        """
        key = self._key_by_slot.get(slot)
        if key is None or key.reports_queries:
            return self.no_pairs()
        self._refresh()
        found = self._channels[key].pairs(np.array([slot], dtype=np.int32))
        return found.left, found.right

    def count_pairs(self, query: JoinQuery, most: int) -> int:
        """Return how many pairs of all shards a query would have now; if more than ``most``, some number above it.

        Cost: O(n log n) for n streams, once for each channel until streams change; then as `BandJoin.pairs`, but only
        up to ``most`` pairs.
        """
        key = _key_of(query)
        left, right = self._feeds
        if key.reports_queries or left.streams.n_seen * right.streams.n_seen <= most:
            return 0
        self._refresh()
        if key not in self._entries:  # those of one channel at a time: there may be as many channels as queries
            self._entries = {key: (self._entries_of(key, LEFT), self._entries_of(key, RIGHT))}
        entries = self._entries[key]
        band = query.alternatives[0].bands[0]
        return count_in_band(band.lo, band.hi, *entries, most)

    def _entries_of(self, key: ChannelKey, side: int) -> Entries:
        """Return the values of the streams of all shards, in order."""
        states = self._feeds[side].known()
        values, keys = self._of_states(key, side, states, of_all_shards=True)
        there = np.flatnonzero(~np.isnan(values) & (keys != NO_KEY))
        order = there[np.lexsort((values[there], keys[there]))]
        return keys[order], values[order], states.slots[order]

    def no_pairs(self) -> tuple[Int32s, Int32s]:
        """Return no pairs."""
        return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)

    def streams_were_set(self) -> None:
        """Note that the streams of a feed were set without `change`, so the channels must be built anew."""
        self._is_stale = True

    def forget_texts(self) -> None:
        """Have the channels built anew if most texts of the key table may belong to former readings only."""
        self._is_stale |= len(self._keys) > self._most_keys

    def change(self, changes: Changes, begin: int, end: int) -> tuple[list[JoinedPairEvents], int]:
        """Apply the changes from ``begin`` to before ``end``; return the events and the number of tested candidates."""
        self._refresh()
        parts = []
        visits = 0
        sides, streams = changes.sides[begin:end], changes.streams[begin:end]
        own = self._own(sides, streams) if any(key.reports_queries for key in self._channels) else None
        for key, channel in self._channels.items():
            values, keys = self._values(key, changes, begin, end)
            found = channel.change(sides, streams, values, keys, own if key.reports_queries else None)
            visits += found.visits
            if found.rows.size:
                parts.append(_events(changes, found.rows + np.int32(begin), found.queries, found.others, found.signs))
        return parts, visits

    def _own(self, sides: Int8s, streams: Int32s) -> Bools:
        """Return which changes are of streams of this shard: only these are reported."""
        own = np.zeros(sides.size, dtype=np.bool_)
        for side, feed in enumerate(self._feeds):
            chosen = np.flatnonzero(sides == side)
            own[chosen] = feed.own(streams[chosen])
        return own

    def _values(self, key: ChannelKey, changes: Changes, begin: int, end: int) -> tuple[Float64s, Int64s]:
        values = np.full(end - begin, np.nan)
        keys = np.zeros(end - begin, dtype=np.int64)
        for side in (LEFT, RIGHT):
            chosen = np.flatnonzero((changes.sides[begin:end] == side) & ~changes.is_expiry[begin:end])
            states = take(changes.arrivals[side].read, changes.rows[begin:end][chosen])
            values[chosen], keys[chosen] = self._of_states(key, side, states)
        return values, keys

    def _of_states(
        self, key: ChannelKey, side: int, states: States, *, of_all_shards: bool = False
    ) -> tuple[Float64s, Int64s]:
        """Return the numbers of streams in a channel (NaN: it has no number), and their keys of equality."""
        feed, own = self._feeds[side], key.sides[side]
        column = key.columns[side]
        numbers = states.values[column] if column < feed.n_dims else feed.columns(states)[column]
        fits = feed.fits(own.where, states.codes) & np.isfinite(numbers)
        if side == LEFT and not key.reports_queries and not of_all_shards:
            fits &= feed.own(states.slots)
        return np.where(fits, numbers, np.nan), self._keys.numbers(feed, own.equal, states)

    def _load(self, key: ChannelKey, channel: BandJoin) -> None:
        for side in (LEFT, RIGHT):
            states = self._feeds[side].known()
            values, keys = self._of_states(key, side, states)
            there = np.flatnonzero(~np.isnan(values))
            # In the order of the channel, so that each entry goes behind the last one and no entry moves.
            order = there[np.lexsort((states.slots[there], values[there], keys[there]))]
            channel.change(np.full(order.size, side, dtype=np.int8), states.slots[order], values[order], keys[order])

    def prepare(self) -> None:
        """Get ready for the next readings; the caller does this before the feeds apply them.

        A stale channel that is built later has the values of these readings already, so the readings would change
        nothing.
        """
        self._refresh()
        self._entries.clear()

    def _refresh(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        self._entries.clear()
        self._keys = KeyTable()
        self._channels = {key: BandJoin() for key in self._channels}
        slots_by_key: dict[ChannelKey, list[int]] = {key: [] for key in self._channels}
        for slot, key in self._key_by_slot.items():
            slots_by_key[key].append(slot)
        for key, channel in self._channels.items():
            self._load(key, channel)
            _put(channel, key, slots_by_key[key], [self._bands[slot] for slot in slots_by_key[key]])
        self._most_keys = max(KEYS_MIN, 2 * len(self._keys))

    def _check(self) -> None:
        """State every invariant; for tests."""
        assert set(self._key_by_slot.values()) == set(self._channels)
        for channel in self._channels.values():
            channel._check()


def _key_of(query: JoinQuery) -> ChannelKey:
    band = query.alternatives[0].bands[0]
    return ChannelKey((band.left, band.right), (query.left, query.right), query.reports_queries)


def _put(channel: BandJoin, key: ChannelKey, slots: list[int], bands: list[Band]) -> None:
    lo, hi = (np.array([getattr(band, end) for band in bands]) for end in ("lo", "hi"))
    channel.put(np.array(slots, dtype=np.int32), lo, hi, key.reports_queries)


def _events(changes: Changes, rows: Int32s, queries: Int32s, others: Int32s, signs: Int8s) -> JoinedPairEvents:
    """Return the events of the changes ``rows``; if a stream in ``others`` is -1, the event has no such side."""
    positions = rows.astype(np.int64)
    of_left = changes.sides[rows] == LEFT
    is_expiry = changes.is_expiry[rows]
    reasons = np.full(rows.size, Reason.STREAM_EXPIRED, dtype=np.int8)
    record_times = np.full(rows.size, -1, dtype=np.int64)
    for side, arrivals in enumerate(changes.arrivals):
        chosen = np.flatnonzero((changes.sides[rows] == side) & ~is_expiry)
        at = changes.rows[rows[chosen]]
        reasons[chosen] = np.where(arrivals.moved[at], Reason.MOVED, Reason.FIRST_SEEN)
        record_times[chosen] = arrivals.record_times[at]
    own, other = changes.streams[rows], np.maximum(others, 0)
    left = changes.left.at(np.where(of_left, own, other), positions)
    right = changes.right.at(np.where(of_left, other, own), positions)
    alone = others < 0
    left.event_times[alone & ~of_left] = NEVER
    right.event_times[alone & of_left] = NEVER
    return JoinedPairEvents(
        queries,
        2 * positions,
        signs,
        reasons,
        np.where(is_expiry, changes.moments[rows], NEVER),
        left,
        right,
        record_times,
    )
