"""Events of one feed and shard before they are emitted, as columns by slot in any order.

    moment   ----10-----------------15----------------20---->
    readings     |                  |                 |          at one moment: readings first,
    timers           confirmed, stream expired, query expired    then the timers due, in this order

Knows columns, and not where events come from.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s
from bmq.records.column_records import take


class When(IntEnum):
    """The cause of an event; its numbers are the order of events at one moment."""

    AT_READING = 0
    CONFIRMED = 1
    STREAM_EXPIRED = 2
    QUERY_EXPIRED = 3


@dataclass(frozen=True, slots=True)
class Events:
    """Events by slot.

    Attributes
    ----------
    queries, streams : int32[n], slots.
    moments : int64[n], epoch ms at which the event was decided: the time of the reading, or the due of the timer.
    whens : int8[n], `When`.
    signs, reasons, kinds : int8[n], as in `Crossings`.
    event_times : int64[n], epoch ms, the event time that is emitted: if the event was confirmed later, the time of the
        crossing.
    ordinals : int32[n], as in `Crossings`.
    confirmed_times, began : int64[n], epoch ms; NEVER: the event has no such time.
    rows : int32[n], the reading's row in the batch; -1: no reading.
    passes : int32[n], 0: no pass; else a number that ascends in the order in which passes of one reading are emitted.
    values : float64[d, n].
    """

    queries: Int32s
    streams: Int32s
    moments: Int64s
    whens: Int8s
    signs: Int8s
    reasons: Int8s
    kinds: Int8s
    event_times: Int64s
    ordinals: Int32s
    confirmed_times: Int64s
    began: Int64s
    rows: Int32s
    passes: Int32s
    values: Float64s

    def __len__(self) -> int:
        return self.queries.size

    def where(self, chosen: Bools | npt.NDArray[np.intp] | slice) -> "Events":
        """Return the chosen events: a mask, positions in the wanted order, or a range."""
        return take(self, chosen)
