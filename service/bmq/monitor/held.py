"""Readings that are held back until no earlier one can come: the buffer of one feed with `max_lateness`.

arrival ─► held ─── settled ───► released, by (event time, partition, offset)
└─► late: older than what is settled already
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bmq.kernels.streams import gather_ids
from bmq.records import NEVER, Attributes, Bools, Ids, Int64s, Readings


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
        readings = join_readings(parts)
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
        new = join_readings(self._new)
        self._parts.append(new)
        self._new = []
        return new

    def restore(self, new: Readings | None, settled: int) -> None:
        """Follow another shard's buffer: hold what it holds anew, and nothing before ``settled``."""
        if new is not None:
            self._parts.append(new)
        if settled != NEVER and any((part.event_times < settled).any() for part in self._parts):
            readings = join_readings(self._parts)
            self._parts = _chosen(readings, readings.event_times >= settled, 0, len(readings))

    def all(self) -> Readings | None:
        """Return everything that is held, in order of arrival; None: nothing."""
        parts = [*self._parts, *self._new]
        return join_readings(parts) if parts else None

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


def join_readings(parts: Sequence[Readings]) -> Readings:
    """Return the readings of all parts, in their order; at least one part, all of one feed."""
    if len(parts) == 1:
        return parts[0]
    starts = [np.zeros(1, dtype=np.int64)]
    n_bytes = 0
    for part in parts:
        starts.append(part.ids.starts[1:] + (n_bytes - part.ids.starts[0]))
        n_bytes += int(part.ids.starts[-1] - part.ids.starts[0])
    texts = [part.ids.bytes[part.ids.starts[0] : part.ids.starts[-1]] for part in parts]
    return Readings(
        Ids(np.concatenate(starts), np.concatenate(texts), np.concatenate([part.ids.hashes for part in parts])),
        np.concatenate([part.event_times for part in parts]),
        np.concatenate([part.record_times for part in parts]),
        np.concatenate([part.values for part in parts], axis=1),
        _join_attributes([part.attributes for part in parts if part.attributes is not None]),
        np.concatenate([part.partitions for part in parts if part.partitions is not None])
        if parts[0].partitions is not None
        else None,
    )


def _join_attributes(parts: Sequence[Attributes]) -> Attributes | None:
    if not parts:
        return None
    rows: dict[str, int] = {}
    codes = []
    for part in parts:
        local = np.array([rows.setdefault(text, len(rows)) for text in part.texts], dtype=np.int32)
        codes.append(local[part.codes])
    return Attributes(np.concatenate(codes), tuple(rows))
