"""The readings of streams as joins handle them, by slot, and what a batch did to one feed.

Knows columns, and no queries.
"""

from dataclasses import dataclass

import numpy as np

from bmq.records import Bools, Float64s, Int32s, Int64s


@dataclass(frozen=True, slots=True)
class States:
    """Readings of streams, one row each: slots int32[n], event_times int64[n], ordinals int32[n], values float64[d, n].

    codes : int32[n], of the attributes; zeros where the feed has none.
    """

    slots: Int32s
    event_times: Int64s
    ordinals: Int32s
    values: Float64s
    codes: Int32s

    def __len__(self) -> int:
        return self.slots.size


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a batch did to one feed.

    Attributes
    ----------
    read : the readings applied, ascending by (event time, partition, offset).
    moved : bool[n], false at first sight. record_times : int64[n].
    expired : the last reading of each stream that fell silent for too long; moments : int64[k], when.
    before : what each stream of ``read`` and ``expired`` was before the batch, ascending by slot; event time NEVER:
        unknown.
    """

    read: States
    moved: Bools
    record_times: Int64s
    expired: States
    moments: Int64s
    before: States


def no_states(n_dims: int) -> States:
    """Return no readings, with values of ``n_dims`` dimensions."""
    no_times: Int64s = np.empty(0, dtype=np.int64)
    none: Int32s = np.empty(0, dtype=np.int32)
    return States(none, no_times, none, np.empty((n_dims, 0)), none)
