"""Events of one feed and shard before they are emitted: columns by slot in any order, and the function `emit_order`.

    moment   ----10-----------------15----------------20---->
    readings     |                  |                 |          at one moment: readings first,
    timers           confirmed, stream expired, query expired    then the timers due, in this order

The events carry slots; `crossing_records` turns them into `records.Crossings`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bmq.records import NEVER, Bools, Family, Float64s, Int8s, Int32s, Int64s, Kind, are_of_family
from bmq.records.column_records import take

T = TypeVar("T", bound=np.generic)


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


def some_events(
    n: int,
    *,
    queries: Int32s,
    streams: Int32s,
    moments: Int64s,
    when: When,
    signs: Int8s | int,
    reasons: Int8s | int,
    kinds: Int8s | int = Kind.BORDER.number,
    ordinals: Int32s,
    values: Float64s,
    rows: Int32s | int = -1,
    event_times: Int64s | None = None,
    passes: Int32s | int = 0,
) -> Events:
    """Return ``n`` events; one number stands for all rows. Without ``kinds``, they are crossings of border queries."""
    never = np.broadcast_to(np.int64(NEVER), n)
    return Events(
        queries=_column(queries, n, np.int32),
        streams=_column(streams, n, np.int32),
        moments=moments,
        whens=_column(int(when), n, np.int8),
        signs=_column(signs, n, np.int8),
        reasons=_column(reasons, n, np.int8),
        kinds=_column(kinds, n, np.int8),
        event_times=moments if event_times is None else event_times,
        ordinals=ordinals,
        confirmed_times=never,
        began=never,
        rows=_column(rows, n, np.int32),
        passes=_column(passes, n, np.int32),
        values=values,
    )


def _column(given: npt.NDArray[Any] | int, n: int, dtype: type[T]) -> npt.NDArray[T]:
    return np.broadcast_to(np.asarray(given, dtype=dtype), n)


def no_events(n_dims: int) -> Events:
    """Return no event."""
    none = np.empty(0, dtype=np.int32)
    return some_events(
        0,
        queries=none,
        streams=none,
        moments=np.empty(0, dtype=np.int64),
        when=When.AT_READING,
        signs=0,
        reasons=0,
        ordinals=none,
        values=np.empty((n_dims, 0)),
    )


def emit_order(events: Events, ranks: Int64s) -> npt.NDArray[np.intp]:
    """Return the positions of the events in the order in which they are emitted.

    Parameters
    ----------
    ranks : int64[n], the order of the query ids.

    Notes
    -----
    Events are in order of their moments, then of `When`. At one moment, events at readings are in order of their rows.
    The events of one reading are: passes in their order, all -, all +, transitions, events of match and select
    queries; each of these by query id (docs/semantics.md, order). Timer events of one moment are in order of their
    streams, so that the events that end with one stream stay together and may become one message. O(n log n).
    """
    sort = np.array([1, 0, 2])[events.signs + 1]  # leaves before enters
    sort[are_of_family(events.kinds, Family.TRANSITION)] = 3
    sort[are_of_family(events.kinds, Family.LEVEL)] = 4
    sort[events.passes > 0] = 0
    sort[events.whens != When.AT_READING] = 0
    return np.lexsort((ranks, events.passes, sort, events.streams, events.rows, events.whens, events.moments))
