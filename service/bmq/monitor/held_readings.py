"""Readings that are held until their stream has gone on: the buffer of one feed with `max_lateness`.

    arrival ─┬─► held ─┬─ the settled time is beyond it and its lag ────┬─► released, in order
             │         └─ its stream's newest reading is far ahead ─────┘
             └─► late: its stream's newest reading was far ahead before

"Far ahead" is more than `max_lateness`. The order is that of (event time, partition, offset).

A reading without a lag needs no look at its stream: the clock of the feed is at least as far as the newest reading of
any stream. So only readings with a lag cost more than a comparison with the settled time.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bmq.index.stream_table import StreamTable
from bmq.kernels.tables.own_newest import find_late
from bmq.records import NEVER, Bools, Int32s, Int64s, Readings
from bmq.records.column_records import concat, take


def with_lags(readings: Readings, settled: int) -> Readings:
    """Return readings with their lags; ``settled`` is the settled time before their batch. O(n)."""
    times = readings.event_times
    if not times.size or int(times.min()) >= settled:
        return readings
    return replace(readings, lags=np.maximum(settled - times, 0))


class _Part:
    """The readings of one batch without a lag, by event time, and at one time in order of arrival; at least one."""

    def __init__(self, readings: Readings) -> None:
        times = readings.event_times
        if (times[1:] < times[:-1]).any():
            readings = take(readings, np.argsort(times, kind="stable"))
        self._readings = readings
        self._begin = 0  # the readings before this row are released
        self._slots: Int32s | None = None  # of all rows, from the first time that they are asked for

    def __len__(self) -> int:
        return len(self._readings) - self._begin

    @property
    def earliest(self) -> int:
        return int(self._readings.event_times[self._begin])

    @property
    def event_times(self) -> Int64s:
        return self._readings.event_times[self._begin :]

    @property
    def readings(self) -> Readings:
        return take(self._readings, slice(self._begin, len(self._readings)))

    def slots(self, streams: StreamTable) -> Int32s:
        if self._slots is None:
            self._slots = streams.slots_of(self._readings.ids)
        return self._slots[self._begin :]

    def take_before(self, settled: int) -> Readings:
        """Return the readings before ``settled``, and drop them from this part."""
        begin, end = self._begin, int(np.searchsorted(self._readings.event_times, settled, side="left"))
        taken = take(self._readings, slice(begin, end))
        self._begin = end
        if 2 * end > len(self._readings) > end:
            # Released readings take no more memory than held ones.
            self._slots = None if self._slots is None else self._slots[end:].copy()
            self._readings, self._begin = concat([self.readings]), 0
        return taken


class _Behind:
    """The held readings that have a lag, in order of arrival. The last ``n_new`` are not in a delta yet."""

    def __init__(self, readings: Readings, slots: Int32s) -> None:
        assert readings.lags is not None
        self.readings, self.slots, self.lags = readings, slots, readings.lags
        self.n_new = 0

    def add(self, readings: Readings, slots: Int32s) -> None:
        both = concat([self.readings, readings])
        assert both.lags is not None
        self.readings, self.slots, self.lags = both, np.concatenate([self.slots, slots]), both.lags
        self.n_new += len(readings)

    def take(self, chosen: Bools) -> Readings:
        """Return some readings, bool[n], and drop them."""
        taken = take(self.readings, chosen)
        if len(taken):
            new = np.arange(chosen.size) >= chosen.size - self.n_new
            self.n_new -= int(np.count_nonzero(chosen & new))
            self.readings, self.slots, self.lags = take(self.readings, ~chosen), self.slots[~chosen], self.lags[~chosen]
        return taken

    def take_new(self) -> Readings:
        """Return the readings that are not in a delta yet; they are in one from now on."""
        n = len(self.readings)
        new = take(self.readings, slice(n - self.n_new, n))
        self.n_new = 0
        return new


class HeldReadings:
    """The held readings of one feed and shard.

    Cost of a batch: the readings that it adds and releases, and one comparison for each earlier batch of which some
    readings are still held. If a reading that is added or held has a lag, one comparison for each held reading and
    a copy of one number for each stream.

    Parameters
    ----------
    streams : the stream table to which the released readings are applied.
    """

    def __init__(self, streams: StreamTable, max_lateness_ms: int) -> None:
        self._streams = streams
        self._max_lateness = max_lateness_ms
        self._parts: list[_Part] = []  # in order of arrival
        self._new: list[_Part] = []  # behind them, and not in a delta yet
        self._behind: _Behind | None = None

    def advance(self, readings: Readings | None, before: int, settled: int) -> tuple[Readings | None, int]:
        """Hold readings, except late ones, and release the readings whose turn has come.

        Parameters
        ----------
        readings : given ascending by (partition, offset); None: no readings.
        before, settled : epoch ms, the settled time before the batch of the readings and with it.

        Returns
        -------
        The released readings by (event time, partition, offset), None if there are none, and the number of late ones.
        """
        newest, n_late = None, 0
        if readings is not None and len(readings):
            if self._may_be_behind(readings.event_times, before):
                readings, newest, n_late = self._in_time(readings)
            self._hold(with_lags(readings, before), is_new=True)
        due = [part.take_before(settled) for part in [*self._parts, *self._new] if part.earliest < settled]
        due += self._release_behind(settled, newest)
        self._drop_empty()
        if not due:
            return None, n_late
        released = concat(due)
        assert released.partitions is not None
        # Within a partition readings arrive in the order of offsets, and the sort is stable. Readings with and without
        # a lag never have the same event time: those without are released when later ones at this time would have one.
        return take(released, np.lexsort((released.partitions, released.event_times))), n_late

    def take_new(self) -> Readings | None:
        """Return the readings that were added after the last call and are still held; None: no readings."""
        new = [part.readings for part in self._new]
        self._parts += self._new
        self._new = []
        if self._behind is not None and self._behind.n_new:
            new.append(self._behind.take_new())
        return concat(new) if new else None

    def restore(self, new: Readings | None, settled: int) -> None:
        """Follow another buffer: hold the readings that it holds anew, and drop all that it has released.

        The stream table is restored already.
        """
        if new is not None:
            self._hold(new, is_new=False)
        for part in self._parts:
            if part.earliest < settled:
                part.take_before(settled)
        self._release_behind(settled, None)
        self._drop_empty()

    def pages(self, n_rows: int) -> Iterator[Readings]:
        """Yield all held readings, ``n_rows`` at a time; a buffer that restores the pages in order is the same."""
        parts = [part.readings for part in [*self._parts, *self._new]]
        if self._behind is not None:
            parts.append(self._behind.readings)
        if not parts:
            return
        readings = concat(parts)
        for begin in range(0, len(readings), n_rows):
            yield take(readings, slice(begin, min(begin + n_rows, len(readings))))

    def __len__(self) -> int:
        return sum(map(len, [*self._parts, *self._new])) + (len(self._behind.readings) if self._behind else 0)

    def _may_be_behind(self, event_times: Int64s, before: int) -> bool:
        """Return whether some reading has a lag, or is late; it may be a false alarm. O(n)."""
        if int(event_times.min()) < before:
            return True
        is_overtaken = event_times + self._max_lateness < np.maximum.accumulate(event_times)
        return bool(is_overtaken.any())

    def _in_time(self, readings: Readings) -> tuple[Readings, Int64s, int]:
        """Return the readings that are not late, the newest time of each stream with them, and the number of late ones.

        The newest times are int64[n_slots], epoch ms; NEVER: none.
        """
        assert readings.partitions is not None
        slots = self._streams.slots_of(readings.ids)
        newest = self._newest()
        late = np.zeros(slots.size, dtype=np.bool_)
        scratch = np.full(newest.size, NEVER, dtype=np.int64)
        find_late(slots, readings.partitions, readings.event_times, self._max_lateness, newest, scratch, late)
        n_late = int(np.count_nonzero(late))
        return (take(readings, ~late) if n_late else readings), newest, n_late

    def _newest(self) -> Int64s:
        """Return the newest time of each stream among its last reading and its held readings, as ``_in_time`` does."""
        parts = [*self._parts, *self._new]
        slots = [part.slots(self._streams) for part in parts]  # before the copy: a stream may get its slot here
        newest = self._streams.last_times.copy()
        for of_part, part in zip(slots, parts, strict=True):
            np.maximum.at(newest, of_part, part.event_times)
        if self._behind is not None:
            np.maximum.at(newest, self._behind.slots, self._behind.readings.event_times)
        return newest

    def _hold(self, readings: Readings, *, is_new: bool) -> None:
        if readings.lags is not None:
            has_lag = readings.lags > 0
            behind = take(readings, has_lag)
            readings = replace(take(readings, ~has_lag), lags=None)
            if len(behind):
                if self._behind is None:
                    self._behind = _Behind(take(behind, slice(0, 0)), np.empty(0, dtype=np.int32))
                self._behind.add(behind, self._streams.slots_of(behind.ids))
                if not is_new:
                    self._behind.n_new -= len(behind)
        if len(readings):
            (self._new if is_new else self._parts).append(_Part(readings))

    def _release_behind(self, settled: int, newest: Int64s | None) -> list[Readings]:
        """Return and drop the readings with a lag whose turn has come."""
        behind = self._behind
        if behind is None:
            return []
        times = behind.readings.event_times
        newest = self._newest() if newest is None else newest
        chosen = (times + behind.lags < settled) | (times + self._max_lateness < newest[behind.slots])
        taken = behind.take(chosen)
        if not len(behind.readings):
            self._behind = None
        return [taken] if len(taken) else []

    def _drop_empty(self) -> None:
        self._parts = [part for part in self._parts if len(part)]
        self._new = [part for part in self._new if len(part)]
