"""Readings of streams by slot, as joins handle them, and the readings of one feed in one batch.

The module knows columns, and no queries.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bmq.records import Absent, Bools, Float64s, Int32s, Int64s


@dataclass(frozen=True, slots=True)
class States:
    """Readings of streams, one row each.

    Attributes
    ----------
    slots : int32[n], of the streams.
    event_times : int64[n], epoch ms; NEVER: the stream has no reading.
    ordinals : int32[n], as in `Crossings`.
    values : float64[d, n].
    codes : int32[n], of the attributes; zeros if the feed has no attributes.
    lags : int64[n], ms: by how much longer a window keeps each reading, because its stream or its feed is behind. None:
        no reading is kept longer.
    """

    slots: Int32s
    event_times: Int64s
    ordinals: Int32s
    values: Float64s
    codes: Int32s
    lags: Annotated[Int64s | None, Absent(0)] = None

    def __len__(self) -> int:
        return self.slots.size


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The readings and the expired streams of one feed in one batch.

    Attributes
    ----------
    read : the applied readings, ascending by (event time, partition, offset).
    moved : bool[n], False at first sight.
    record_times : int64[n], epoch ms.
    expired : the last reading of each stream that was silent for longer than `stream_ttl`.
    moments : int64[k], epoch ms at which each stream in ``expired`` expired.
    before : the last reading before the batch of each stream in ``read`` and ``expired``, ascending by slot; event
        time NEVER: the stream was unknown.
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
