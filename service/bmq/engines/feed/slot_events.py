"""Makes the events of one feed and shard, and puts them in the order in which they are emitted.

The events carry slots; `crossing_records` turns them into `records.Crossings`.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bmq.engines.event_columns import Events, When
from bmq.records import NEVER, Family, Float64s, Int8s, Int32s, Int64s, Kind, are_of_family

T = TypeVar("T", bound=np.generic)


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
