"""Which streams are inside a region now: the search from the region to its streams.

Readings search from streams to regions; commands search the other way. Streams are sorted by their first dimension when
a command asks, and that order serves until the next readings.
"""

import numpy as np

from bmq.engines.feed.watched_regions import WatchedRegions
from bmq.index.stream_table import StreamTable
from bmq.records import NEVER, Float64s, Int32s


class Residents:
    """The streams of one feed and shard, by value."""

    def __init__(self, streams: StreamTable, regions: WatchedRegions, n_dims: int) -> None:
        self._streams = streams
        self._regions = regions
        self._n_dims = n_dims
        self._by_first_dimension: Int32s | None = None
        self._first_values: Float64s = np.empty(0)

    def moved(self) -> None:
        """Take note that streams have other values now."""
        self._by_first_dimension = None

    def inside(self, slot: int) -> Int32s:
        """Return the streams inside the region in ``slot`` and its scope, ascending; none if it is not watched.

        Cost: the streams whose first dimension is in the region's range, and O(s log s) once between two batches.
        """
        if slot not in self._regions:
            return np.empty(0, dtype=np.int32)
        candidates = self._regions.named(slot)
        if candidates is None:
            candidates = self._in_range(slot)
        candidates = candidates[self._streams.last_times[candidates] != NEVER]
        carried = self._streams.values[:, candidates]
        codes = carried[self._n_dims].astype(np.int32) if len(carried) > self._n_dims else None
        held = self._regions.holds(slot, np.ascontiguousarray(carried[: self._n_dims]), codes)
        return np.sort(candidates[held])

    def _in_range(self, slot: int) -> Int32s:
        if self._by_first_dimension is None:
            seen = self._streams.seen_slots()
            self._by_first_dimension = seen[np.argsort(self._streams.values[0, seen], kind="stable")]
            self._first_values = self._streams.values[0, self._by_first_dimension]
        region = self._regions.region(slot)
        # Both ends by the same rule as the region: lo belongs, hi does not.
        begin, end = np.searchsorted(self._first_values, (region.lo[0], region.hi[0]), side="left")
        return self._by_first_dimension[begin:end]
