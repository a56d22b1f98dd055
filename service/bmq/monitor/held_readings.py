"""Readings that are held until no earlier reading can come: the buffer of one feed with `max_lateness`.

arrival ─► held ─── settled ───► released, by (event time, partition, offset)
└─► late: older than the settled time
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bmq.kernels.tables.stream_rows import gather_ids
from bmq.records import Ids, Int64s, Readings
from bmq.records.concat import concat_readings, with_used_texts


class _Part:
    """The readings of one batch by event time, and at one time in order of arrival; at least one reading."""

    def __init__(self, readings: Readings) -> None:
        times = readings.event_times
        if (times[1:] < times[:-1]).any():
            readings = take_readings(readings, np.argsort(times, kind="stable"))
        self._readings = readings
        self._begin = 0  # those before are gone

    def __len__(self) -> int:
        return len(self._readings) - self._begin

    @property
    def earliest(self) -> int:
        return int(self._readings.event_times[self._begin])

    @property
    def readings(self) -> Readings:
        return _between(self._readings, self._begin, len(self._readings))

    def take_before(self, settled: int) -> Readings:
        """Return the readings before ``settled``, and drop them from this part."""
        begin, end = self._begin, int(np.searchsorted(self._readings.event_times, settled, side="left"))
        taken = _between(self._readings, begin, end)
        self._begin = end
        if 2 * end > len(self._readings) > end:
            # What is gone takes no more memory than what is held.
            self._readings, self._begin = concat_readings([self.readings]), 0
        return taken


class HeldReadings:
    """The held readings of one feed and shard.

    Cost of a batch: the readings that it adds and releases, and one comparison for each earlier batch of which some
    readings are still held.
    """

    def __init__(self) -> None:
        self._parts: list[_Part] = []  # in order of arrival
        self._new: list[_Part] = []  # and these behind them, which no delta has told yet

    def add(self, readings: Readings, settled: int) -> int:
        """Hold readings, given ascending by (partition, offset), except late ones; return how many were late.

        ``settled`` is the settled time before the batch of the readings. Decoding has already dropped the readings
        that are late because of an earlier reading of the same batch.
        """
        in_time = readings.event_times >= settled
        n_late = int(np.count_nonzero(~in_time))
        if n_late:
            readings = take_readings(readings, np.flatnonzero(in_time))
        if len(readings):
            self._new.append(_Part(readings))
        return n_late

    def release(self, settled: int) -> Readings | None:
        """Return and drop the readings before ``settled``, by (event time, partition, offset); None: no readings."""
        due = [part.take_before(settled) for part in [*self._parts, *self._new] if part.earliest < settled]
        if not due:
            return None
        self._drop_empty()
        readings = concat_readings(due)
        assert readings.partitions is not None
        # Within a partition arrival is the order of offsets, and the sort is stable.
        return take_readings(readings, np.lexsort((readings.partitions, readings.event_times)))

    def take_new(self) -> Readings | None:
        """Return the readings that were added after the last call and are still held; None: no readings."""
        if not self._new:
            return None
        new = concat_readings([part.readings for part in self._new])
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
        readings = concat_readings(parts)
        for begin in range(0, len(readings), n_rows):
            yield _between(readings, begin, min(begin + n_rows, len(readings)))

    def __len__(self) -> int:
        return sum(map(len, [*self._parts, *self._new]))

    def _drop_empty(self) -> None:
        self._parts = [part for part in self._parts if len(part)]
        self._new = [part for part in self._new if len(part)]


def _between(readings: Readings, begin: int, end: int) -> Readings:
    """Return the readings of a range of rows, as views."""
    ids, attributes = readings.ids, readings.attributes
    return Readings(
        Ids(ids.starts[begin : end + 1], ids.bytes, ids.hashes[begin:end]),
        readings.event_times[begin:end],
        readings.record_times[begin:end],
        readings.values[:, begin:end],
        None if attributes is None else with_used_texts(attributes.codes[begin:end], attributes.texts),
        None if readings.partitions is None else readings.partitions[begin:end],
    )


def take_readings(readings: Readings, rows: Int64s) -> Readings:
    """Return the readings in ``rows``, in that order."""
    starts, data = gather_ids(rows.astype(np.int32), readings.ids.starts, readings.ids.bytes)
    attributes = readings.attributes
    return Readings(
        Ids(starts, data, readings.ids.hashes[rows]),
        readings.event_times[rows],
        readings.record_times[rows],
        np.ascontiguousarray(readings.values[:, rows]),
        None if attributes is None else replace(attributes, codes=attributes.codes[rows]),
        None if readings.partitions is None else readings.partitions[rows],
    )
