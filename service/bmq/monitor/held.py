"""Readings that are held back until no earlier one can come: the buffer of one feed with `max_lateness`.

arrival ─► held ─── settled ───► released, by (event time, partition, offset)
└─► late: older than what is settled already
"""

from dataclasses import replace

import numpy as np

from bmq.kernels.streams import gather_ids
from bmq.records import NEVER, Bools, Ids, Int64s, Readings
from bmq.records.joining import concat_readings


class HeldReadings:
    """Readings of one feed and shard that wait, in order of arrival."""

    def __init__(self) -> None:
        self._parts: list[Readings] = []
        self._new: list[Readings] = []

    def add(self, readings: Readings, settled: int) -> int:
        """Hold readings, given ascending by (partition, offset), but for late ones; return how many were late.

        ``settled`` is that of before their batch, in which decoding has already dropped those late within it.
        """
        in_time = readings.event_times >= settled
        n_late = int(np.count_nonzero(~in_time))
        if n_late:
            readings = take_readings(readings, np.flatnonzero(in_time))
        if len(readings):
            self._new.append(readings)
        return n_late

    def release(self, settled: int) -> Readings | None:
        """Return the readings before ``settled``, ordered by (event time, partition, offset), and hold them no more."""
        parts = [*self._parts, *self._new]
        if not parts or settled == NEVER:
            return None
        if not any((part.event_times < settled).any() for part in parts):
            return None
        readings = concat_readings(parts)
        due = readings.event_times < settled
        n_old = sum(map(len, self._parts))
        self._parts = _chosen(readings, ~due, 0, n_old)
        self._new = _chosen(readings, ~due, n_old, len(readings))
        rows = np.flatnonzero(due)
        assert readings.partitions is not None
        # Within a partition arrival is the order of offsets, and the sort is stable.
        order = np.lexsort((readings.partitions[rows], readings.event_times[rows]))
        return take_readings(readings, rows[order])

    def take_new(self) -> Readings | None:
        """Return the readings that came since the last call and are still held; None: there are none."""
        if not self._new:
            return None
        new = concat_readings(self._new)
        self._parts.append(new)
        self._new = []
        return new

    def restore(self, new: Readings | None, settled: int) -> None:
        """Follow another shard's buffer: hold what it holds anew, and nothing before ``settled``."""
        if new is not None:
            self._parts.append(new)
        if settled != NEVER and any((part.event_times < settled).any() for part in self._parts):
            readings = concat_readings(self._parts)
            self._parts = _chosen(readings, readings.event_times >= settled, 0, len(readings))

    def all(self) -> Readings | None:
        """Return everything that is held, in order of arrival; None: nothing."""
        parts = [*self._parts, *self._new]
        return concat_readings(parts) if parts else None

    def __len__(self) -> int:
        return sum(map(len, [*self._parts, *self._new]))


def _chosen(readings: Readings, chosen: Bools, begin: int, end: int) -> list[Readings]:
    rows = begin + np.flatnonzero(chosen[begin:end])
    return [take_readings(readings, rows)] if rows.size else []


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
