"""Drops late readings among the records of one partition. Knows readings, not their source."""

from dataclasses import replace

import numpy as np

from bmq.kernels.tables.hashing import hash_ids
from bmq.kernels.text.plain_records import gather_texts
from bmq.records import NEVER, Attributes, Ids, Int64s, Readings
from bmq.wire.readings_fast import read_only


class LateReadings:
    """Drops the late readings of one partition, batch after batch in the order of the offsets.

    A reading is late if it is more than ``max_lateness_ms`` older than the newest reading before it: that part of event
    time is already settled. This class compares only with the readings that it has seen itself. The shard compares with
    the readings of earlier micro-batches and of other partitions.

    Parameters
    ----------
    max_lateness_ms : int
        Above 0.
    """

    def __init__(self, max_lateness_ms: int) -> None:
        self._max_lateness_ms = max_lateness_ms
        self._newest = NEVER

    def drop(self, readings: Readings, partition: int) -> tuple[Readings, int]:
        """Return the readings that are not late, with their partition, and the number of late ones.

        Linear. If no reading is late, nothing is copied.
        """
        times = readings.event_times
        newest = np.maximum.accumulate(np.concatenate(([self._newest], times)))
        self._newest = int(newest[-1])
        # Added to the times and not subtracted from the newest: NEVER is the smallest int64 and would wrap around.
        is_late = times + self._max_lateness_ms < newest[:-1]
        rows = np.flatnonzero(~is_late)
        kept = readings if rows.size == times.size else _take(readings, rows)
        return with_partition(kept, partition), times.size - rows.size


def with_partition(readings: Readings, partition: int) -> Readings:
    """Return the readings with the number of their partition in each row."""
    return replace(readings, partitions=np.full(len(readings), partition, dtype=np.int32))


def _take(readings: Readings, rows: Int64s) -> Readings:
    ids = readings.ids
    # A read-only view, because the kernel is compiled for read-only bytes.
    starts, texts = gather_texts(rows, ids.starts[:-1], ids.starts[1:], read_only(ids.bytes[:]))
    attributes = readings.attributes
    return Readings(
        Ids(starts, texts, hash_ids(starts, texts)),
        readings.event_times[rows],
        readings.record_times[rows],
        np.ascontiguousarray(readings.values[:, rows]),
        None if attributes is None else Attributes(attributes.codes[rows], attributes.texts),
    )
