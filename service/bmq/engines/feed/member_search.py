"""Find the streams that are inside a region now.

Readings search from streams to regions; commands search from a region to its streams. The first command after readings
sorts the streams by their first dimension. Later commands use the same order until the next readings.
"""

import numpy as np

from bmq.engines.feed.watched_regions import WatchedRegions
from bmq.index.stream_table import StreamTable
from bmq.records import NEVER, Float64s, Int32s


class Residents:
    """The search for the members of regions, among the streams of one feed and shard."""

    def __init__(self, streams: StreamTable, regions: WatchedRegions, n_dims: int) -> None:
        self._streams = streams
        self._regions = regions
        self._n_dims = n_dims
        self._by_first_dimension: Int32s | None = None
        self._first_values: Float64s = np.empty(0)

    def moved(self) -> None:
        """Discard the order of the streams, because their values have changed."""
        self._by_first_dimension = None

    def inside(self, slot: int) -> Int32s:
        """Return the streams inside the region in ``slot`` and its scope, ascending; empty if it is not watched.

        Cost: the streams whose first dimension is in the region's range, and once between two batches O(s log s) for
        s streams.
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
        # "left" at both ends, because the region is [lo, hi): a value of lo is inside, a value of hi is not.
        begin, end = np.searchsorted(self._first_values, (region.lo[0], region.hi[0]), side="left")
        return self._by_first_dimension[begin:end]
