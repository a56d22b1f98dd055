"""The queries that stand now, by row, for baselines that are built anew when one comes or goes."""

import numpy as np

from bmq.records import Bools, Float64s, Int32s


class StandingQueries:
    """Query slots and regions. A change costs O(m), as the papers' experiments have a fixed query set.

    Attributes
    ----------
    slots : int32[m], each once.
    regions : float64[m, d, 2], lower and upper border.
    """

    def __init__(self, n_dims: int) -> None:
        self.slots: Int32s = np.empty(0, dtype=np.int32)
        self.regions: Float64s = np.empty((0, n_dims, 2))

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries, as `BorderIndex.register`."""
        both = np.concatenate((self.slots, slots.astype(np.int32)))
        if np.unique(both).size < both.size:
            raise ValueError(
                f"one of the query slots {slots} is registered already or comes twice: deregister it first."
            )
        # Asked this way around, a NaN is refused, too.
        if not (lo < hi).all():
            raise ValueError("a lower border is not below the upper one: refuse the query at the edge.")
        self.slots = both
        self.regions = np.concatenate((self.regions, np.stack((lo.T, hi.T), axis=-1, dtype=np.float64)))

    def deregister(self, slots: Int32s) -> None:
        """Forget queries, as `BorderIndex.deregister`."""
        gone: Bools = np.isin(self.slots, slots)
        if np.count_nonzero(gone) < slots.size:
            raise ValueError(f"one of the query slots {slots} is not registered or comes twice: name each once.")
        self.slots = self.slots[~gone]
        self.regions = self.regions[~gone]
