"""One feed that takes part in joins: the last reading of all its streams, and the readings in windows.

Every shard keeps these of every stream of such a feed, and not only of its own streams, because a joined pair may need
any of them. The module knows readings and attributes, and no queries.
"""

import json
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bmq.engines.joins.join_states import Arrivals, States, no_states
from bmq.engines.scope.conditions import CODES_MIN, Conditions, number_of
from bmq.index.stream_table import Chained, StreamTable
from bmq.kernels.tables.hashing import shards_of
from bmq.records import (
    NEVER,
    Attributes,
    Bools,
    Feed,
    Float64s,
    Ids,
    Int32s,
    Int64s,
    JoinRows,
    Readings,
    StreamRows,
    UInt64s,
    Where,
    WindowRows,
)
from bmq.records.attribute_texts import NULL, OTHER, SEPARATOR
from bmq.records.column_records import concat, take

_EQUAL_TO_NOTHING = (NULL, OTHER)  # an absent attribute, and an object or a list; see `wire.attributes`


class JoinFeed:
    """The streams and windows of one feed in one shard.

    Parameters
    ----------
    shard, n_shards : which of the streams are this shard's own.
    """

    def __init__(self, feed: Feed, shard: int, n_shards: int) -> None:
        self.feed = feed
        self.n_dims = len(feed.dimensions)
        self.streams = StreamTable(self.n_dims + bool(feed.attributes), feed.stream_ttl_ms)
        self.n_windows = 0  # window joins that need `window`
        self.window = no_states(self.n_dims)
        self.first = 0  # the number of the first reading in `window` among all that were applied
        self.settled = NEVER  # epoch ms up to which silent streams without a lag are forgotten
        self._shard, self._n_shards = shard, n_shards
        self._conditions = Conditions(feed.attributes)
        self._numbers: Float64s = np.empty((len(feed.attributes), 0))  # by code; -inf: no number
        self._n_stored = 0  # readings of `window`, from its end, that no delta has

    # -- readings -----------------------------------------------------------------------------------------

    def apply(self, readings: Readings | None, settled: int, of_partners: int = NEVER) -> Arrivals:
        """Apply readings of all shards, given ascending by (partition, offset), and expire streams by ``settled``.

        Parameters
        ----------
        of_partners : epoch ms, the latest settled time before this batch of the feeds with which window joins join this
            feed. A window keeps a reading longer by its lag, or by how far it is behind this time if that is more:
            readings of the partner that are as far behind may still come. NEVER: no such feed has a clock.
        """
        read, moved, record_times = no_states(self.n_dims), np.empty(0, np.bool_), np.empty(0, np.int64)
        before = [no_states(self.n_dims)]
        returned, moments = [no_states(self.n_dims)], [np.empty(0, np.int64)]
        if readings is not None and len(readings):
            before.append(self.states(np.unique(self.streams.slots_of(readings.ids))))
            chained = self.streams.apply(self._carrying_codes(readings), self.settled)
            order = np.argsort(chained.event_times, kind="stable")
            values, codes = self._split(chained.values[:, order])
            slots = chained.slots[order]
            lags = self._lags_in_windows(readings, chained, of_partners)
            times, ordinals = chained.event_times[order], chained.ordinals[order]
            read = States(slots, times, ordinals, values, codes, None if lags is None else lags[order])
            moved, record_times = chained.moved[order], readings.record_times[chained.rows[order]]
            if chained.returned is not None and chained.returned.any():
                rows = np.flatnonzero(chained.returned)
                values, codes = self._split(chained.previous_values[:, rows])
                times = chained.previous_times[rows]
                returned.append(States(chained.slots[rows], times, np.zeros(rows.size, np.int32), values, codes))
                moments.append(times + self._ttl)
        silent = self.streams.silent_slots(settled)
        if silent.size:
            expired = self.states(silent)
            before.append(take(expired, ~np.isin(silent, before[-1].slots)))
            returned.append(expired)
            moments.append(expired.event_times + self._ttl)
            self.streams.forget(silent)
        self.settled = settled
        known = concat(before)
        if self.n_windows:
            self.window = concat([self.window, read])
            self._n_stored += len(read)
        else:
            self.first += len(read)
        return Arrivals(
            read,
            moved,
            record_times,
            concat(returned),
            np.concatenate(moments),
            take(known, np.argsort(known.slots)),
        )

    def _lags_in_windows(self, readings: Readings, chained: Chained, of_partners: int) -> Int64s | None:
        """Return by how much longer a window keeps each applied reading, int64[n] ms; None: no reading."""
        times = chained.event_times
        if not self.n_windows or (readings.lags is None and int(times.min(initial=of_partners)) >= of_partners):
            return None
        lags = np.zeros_like(times) if readings.lags is None else readings.lags[chained.rows]
        return lags if of_partners == NEVER else np.maximum(lags, of_partners - times)

    def nothing(self) -> Arrivals:
        """Return the arrivals of a batch without readings and expired streams."""
        none = no_states(self.n_dims)
        no_times: Int64s = np.empty(0, dtype=np.int64)
        return Arrivals(none, np.empty(0, dtype=np.bool_), no_times, none, no_times, none)

    @property
    def n_applied(self) -> int:
        """The number of applied readings; a replica follows it only while the feed has a window join."""
        return self.first + len(self.window)

    def count_from(self, number: int) -> None:
        """Keep readings for one more window join, which counts the readings from ``number`` on."""
        if not self.n_windows:  # else the readings are counted and numbered already
            self.first = number
        self.n_windows += 1

    def count_no_more(self) -> None:
        """Keep readings for one window join less; without window joins, drop all readings in the window."""
        self.n_windows -= 1
        if not self.n_windows:
            self.drop_first(len(self.window))

    def drop_first(self, n: int) -> None:
        """Drop the first ``n`` readings in the window."""
        kept = _between(self.window, n, len(self.window))
        if kept.lags is not None and not kept.lags.any():
            kept = replace(kept, lags=None)
        self.window = kept
        self.first += n

    # -- what is known ------------------------------------------------------------------------------------

    def states(self, slots: Int32s) -> States:
        """Return the last reading of each stream; event time NEVER: the stream has no reading."""
        table = self.streams
        values, codes = self._split(table.values[:, slots])
        return States(slots, table.last_times[slots], table.ordinals[slots], values, codes)

    def known(self) -> States:
        """Return the last reading of every stream that is known, ascending by slot."""
        return self.states(self.streams.seen_slots())

    def own(self, slots: Int32s) -> Bools:
        """Return which streams are this shard's own, bool[n]."""
        return self.owns(self.streams.ids_of(np.ascontiguousarray(slots)).hashes)

    def owns(self, hashes: UInt64s) -> Bools:
        """Return which hashes of stream ids belong to this shard, bool[n]."""
        owned: Bools = shards_of(hashes, self._n_shards) == self._shard
        return owned

    def columns(self, states: States) -> Float64s:
        """Return the dimensions and then the attributes as numbers, float64[c, n]; -inf: no number."""
        if not self.feed.attributes:
            return states.values
        return np.vstack([states.values, self._numbers[:, states.codes]])

    def fits(self, where: Where, codes: Int32s) -> Bools:
        """Return which attribute codes fit a condition, bool[n]."""
        return self._conditions.fits_where(where, codes) if where else np.ones(codes.size, dtype=np.bool_)

    def handles(self, field: str, states: States) -> npt.NDArray[np.generic]:
        """Return a handle for the text of a field in each state: states with equal handles have equal texts."""
        if field == self.feed.stream_id:
            return states.slots
        if field in self.feed.dimensions:
            row: Float64s = states.values[self.feed.dimensions.index(field)]
            return row
        return states.codes

    def texts(self, field: str, states: States) -> list[str | None]:
        """Return the text of a field in each state, which joins compare; None: equal to nothing. O(n), in Python."""
        if field == self.feed.stream_id:
            ids = self.streams.ids_of(states.slots)
            return [json.dumps(ids.text(i), ensure_ascii=False) for i in range(len(ids))]
        if field in self.feed.dimensions:
            return [repr(number + 0.0) for number in states.values[self.feed.dimensions.index(field)].tolist()]
        place = self.feed.attributes.index(field)
        texts = {code: self._conditions.text(code).split(SEPARATOR)[place] for code in np.unique(states.codes).tolist()}
        found = [texts[code] for code in states.codes.tolist()]
        return [None if text in _EQUAL_TO_NOTHING else text for text in found]

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self, held: Readings | None) -> JoinRows | None:
        """Return what changed since the last call, with the readings newly held; None: nothing."""
        streams = self._rows(self.streams.take_touched())
        window = None
        if self._n_stored:
            window = self._window_rows(len(self.window) - min(self._n_stored, len(self.window)), len(self.window))
            self._n_stored = 0
        has_streams = len(streams.ids) > 0
        if not has_streams and held is None and window is None:
            return None
        return JoinRows(streams if has_streams else None, held, window, self.streams.n_recounted)

    def pages(self, size: int) -> list[JoinRows]:
        """Return all streams and windows as pages of ``size`` rows."""
        slots = self.streams.seen_slots()
        pages = [JoinRows(n_recounted=self.streams.n_recounted)]
        for begin in range(0, slots.size, size):
            pages.append(JoinRows(self._rows(self.streams.rows_of(slots[begin : begin + size]))))
        if self.n_windows:
            begins = range(0, max(len(self.window), 1), size)
            pages += [JoinRows(window=self._window_rows(begin, begin + size)) for begin in begins]
        return pages

    def restore(self, rows: JoinRows) -> None:
        """Set streams and windows to rows that ``take_touched`` or ``pages`` of another shard returned."""
        self.streams.n_recounted = max(self.streams.n_recounted, rows.n_recounted)
        if rows.streams is not None:
            streams = rows.streams
            if streams.attributes is not None:
                codes = self._learn(streams.attributes)
                streams = replace(streams, values=np.vstack([streams.values, codes]), attributes=None)
            self.streams.put_rows(streams)
        if rows.window is not None:
            new, readings = rows.window, rows.window.readings
            if new.first != self.n_applied:  # the readings between have left the window, and so have all earlier ones
                self.drop_first(len(self.window))
                self.first = new.first
            codes = (
                self._learn(readings.attributes)
                if readings.attributes is not None
                else np.zeros(len(readings), dtype=np.int32)
            )
            slots = self.streams.slots_of(readings.ids)
            states = States(slots, readings.event_times, new.ordinals, readings.values, codes, readings.lags)
            self.window = concat([self.window, states])

    @property
    def _ttl(self) -> int:
        assert self.feed.stream_ttl_ms is not None
        return self.feed.stream_ttl_ms

    def _window_rows(self, begin: int, end: int) -> WindowRows:
        rows = _between(self.window, begin, end)
        attributes = self._attributes(rows.codes) if self.feed.attributes else None
        n = len(rows)
        ids, no_times = self._ids_of(rows.slots), np.zeros(n, np.int64)
        readings = Readings(ids, rows.event_times, no_times, rows.values, attributes, lags=rows.lags)
        return WindowRows(self.first + begin, readings, rows.ordinals)

    def _ids_of(self, slots: Int32s) -> Ids:
        return self.streams.ids_of(np.ascontiguousarray(slots))

    def _rows(self, rows: StreamRows) -> StreamRows:
        if not self.feed.attributes:
            return rows
        values, codes = self._split(rows.values)
        return replace(rows, values=values, attributes=self._attributes(codes))

    # -- attributes ---------------------------------------------------------------------------------------

    def _carrying_codes(self, readings: Readings) -> Readings:
        if readings.attributes is None:
            return readings
        return replace(readings, values=np.vstack([readings.values, self._learn(readings.attributes)]))

    def _split(self, carried: Float64s) -> tuple[Float64s, Int32s]:
        values = np.ascontiguousarray(carried[: self.n_dims])
        if not self.feed.attributes:
            return values, np.zeros(carried.shape[1], dtype=np.int32)
        return values, carried[self.n_dims].astype(np.int32)

    def _learn(self, attributes: Attributes) -> Int32s:
        conditions = self._conditions
        if conditions.n_codes > max(CODES_MIN, 2 * (self.streams.n_slots + len(self.window))):
            used = np.concatenate([self.streams.values[self.n_dims].astype(np.int32), self.window.codes])
            conditions.forget_all_but(np.unique(used))
        codes = conditions.learn(attributes.texts)
        n_more = int(codes.max(initial=-1)) + 1 - self._numbers.shape[1]
        if n_more > 0:
            more = np.full((len(self.feed.attributes), n_more + self._numbers.shape[1]), -np.inf)
            self._numbers = np.hstack([self._numbers, more])
        for code, text in zip(codes.tolist(), attributes.texts, strict=True):
            self._numbers[:, code] = [number_of(one) for one in text.split(SEPARATOR)]
        return codes[attributes.codes]

    def _attributes(self, codes: Int32s) -> Attributes:
        distinct, local = np.unique(codes, return_inverse=True)
        texts = tuple(self._conditions.text(code) for code in distinct.tolist())
        return Attributes(local.astype(np.int32), texts)

    def _check(self) -> None:
        """State every invariant; for tests."""
        self.streams._check()
        self._conditions._check()
        assert self.n_windows or not len(self.window)


def _between(states: States, begin: int, end: int) -> States:
    """Return a range of states; the values are C-contiguous, as the kernels need them."""
    rows = take(states, slice(begin, end))
    return replace(rows, values=np.ascontiguousarray(rows.values))
