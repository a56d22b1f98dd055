"""Readings that are held until no earlier reading can come: the buffer of one feed with `max_lateness`.

arrival ─► held ─── settled ───► released, by (event time, partition, offset)
└─► late: older than the settled time
"""

from collections.abc import Iterator

import numpy as np

from bmq.records import Readings
from bmq.records.column_records import concat, take


class _Part:
    """The readings of one batch by event time, and at one time in order of arrival; at least one reading."""

    def __init__(self, readings: Readings) -> None:
        times = readings.event_times
        if (times[1:] < times[:-1]).any():
            readings = take(readings, np.argsort(times, kind="stable"))
        self._readings = readings
        self._begin = 0  # the readings before this row are released

    def __len__(self) -> int:
        return len(self._readings) - self._begin

    @property
    def earliest(self) -> int:
        return int(self._readings.event_times[self._begin])

    @property
    def readings(self) -> Readings:
        return take(self._readings, slice(self._begin, len(self._readings)))

    def take_before(self, settled: int) -> Readings:
        """Return the readings before ``settled``, and drop them from this part."""
        begin, end = self._begin, int(np.searchsorted(self._readings.event_times, settled, side="left"))
        taken = take(self._readings, slice(begin, end))
        self._begin = end
        if 2 * end > len(self._readings) > end:
            # Released readings take no more memory than held ones.
            self._readings, self._begin = concat([self.readings]), 0
        return taken


class HeldReadings:
    """The held readings of one feed and shard.

    Cost of a batch: the readings that it adds and releases, and one comparison for each earlier batch of which some
    readings are still held.
    """

    def __init__(self) -> None:
        self._parts: list[_Part] = []  # in order of arrival
        self._new: list[_Part] = []  # behind them, and not in a delta yet

    def add(self, readings: Readings, settled: int) -> int:
        """Hold readings, given ascending by (partition, offset), except late ones; return how many were late.

        ``settled`` is the settled time before the batch of the readings. Decoding has already dropped the readings
        that are late because of an earlier reading of the same batch.
        """
        in_time = readings.event_times >= settled
        n_late = int(np.count_nonzero(~in_time))
        if n_late:
            readings = take(readings, in_time)
        if len(readings):
            self._new.append(_Part(readings))
        return n_late

    def release(self, settled: int) -> Readings | None:
        """Return and drop the readings before ``settled``, by (event time, partition, offset); None: no readings."""
        due = [part.take_before(settled) for part in [*self._parts, *self._new] if part.earliest < settled]
        if not due:
            return None
        self._drop_empty()
        readings = concat(due)
        assert readings.partitions is not None
        # Within a partition readings arrive in the order of offsets, and the sort is stable.
        return take(readings, np.lexsort((readings.partitions, readings.event_times)))

    def take_new(self) -> Readings | None:
        """Return the readings that were added after the last call and are still held; None: no readings."""
        if not self._new:
            return None
        new = concat([part.readings for part in self._new])
        self._parts += self._new
        self._new = []
        return new

    def restore(self, new: Readings | None, settled: int) -> None:
        """Follow another buffer: hold the readings that it holds anew, and drop all readings before ``settled``."""
        if new is not None:
            self._parts.append(_Part(new))
        for part in self._parts:
            if part.earliest < settled:
                part.take_before(settled)
        self._drop_empty()

    def pages(self, n_rows: int) -> Iterator[Readings]:
        """Yield all held readings, ``n_rows`` at a time; a buffer that restores the pages in order is the same."""
        parts = [part.readings for part in [*self._parts, *self._new]]
        if not parts:
            return
        readings = concat(parts)
        for begin in range(0, len(readings), n_rows):
            yield take(readings, slice(begin, min(begin + n_rows, len(readings))))

    def __len__(self) -> int:
        return sum(map(len, [*self._parts, *self._new]))

    def _drop_empty(self) -> None:
        self._parts = [part for part in self._parts if len(part)]
        self._new = [part for part in self._new if len(part)]
