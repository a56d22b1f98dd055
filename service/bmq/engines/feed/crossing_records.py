"""Turn events by slot into `records.Crossings`, which carry stream ids, definitions and the previous reading."""

import numpy as np

from bmq.engines.event_columns import Events
from bmq.engines.feed.feed_tables import FeedTables
from bmq.index.stream_table import Chained
from bmq.records import NEVER, Crossings, Int32s, Int64s, Readings, Reason, RegionQuery

# Table slots for each given slot. Above it, sorting the given slots is faster; up to it, marking them in the table is.
MANY = 16


def to_crossings(
    tables: FeedTables,
    events: Events,
    chained: Chained | None,
    readings: Readings | None,
    emitted_as: RegionQuery | None = None,
    visit_numbers: Int32s | None = None,
) -> Crossings:
    """Return the events, in their order, as crossings.

    Parameters
    ----------
    chained, readings : the batch that ``events.rows`` points into; None: no event has a row.
    emitted_as : the definition that all events carry; None: each event carries the definition of its query.
    visit_numbers : int32[], the visit number for each number in ``events.passes``; None: there are no passes.
    """
    n = len(events)
    distinct, query_rows = numbered(events.queries, tables.queries.owners.size)
    queries = (
        tuple(tables.queries.query(int(slot)) for slot in distinct)
        if emitted_as is None
        else (emitted_as,) * distinct.size
    )
    previous_times = np.zeros(n, dtype=np.int64)
    previous_values = np.zeros((tables.n_dims, n))
    record_times = np.full(n, -1, dtype=np.int64)
    has_previous = np.zeros(n, dtype=np.bool_)
    if chained is not None and readings is not None and len(chained.rows):
        rows = np.maximum(events.rows, 0)
        caused = events.rows >= 0
        has_previous = caused & chained.moved[rows] & (events.reasons == Reason.MOVED)
        previous_times[has_previous] = chained.previous_times[rows[has_previous]]
        previous_values[:, has_previous] = chained.previous_values[: tables.n_dims, rows[has_previous]]
        record_times[caused] = readings.record_times[chained.rows[rows[caused]]]
    return Crossings(
        feed=tables.feed.name,
        ids=tables.streams.ids_of(np.ascontiguousarray(events.streams, dtype=np.int32)),
        queries=queries,
        query_rows=query_rows,
        signs=np.ascontiguousarray(events.signs),
        reasons=np.ascontiguousarray(events.reasons),
        kinds=np.ascontiguousarray(events.kinds),
        event_times=np.ascontiguousarray(events.event_times),
        ordinals=np.ascontiguousarray(events.ordinals),
        values=np.ascontiguousarray(events.values),
        previous_times=previous_times,
        previous_values=previous_values,
        has_previous=has_previous,
        record_times=record_times,
        passes=visit_numbers[events.passes] if visit_numbers is not None and events.passes.any() else None,
        confirmed_times=_unless_never(events.confirmed_times),
        began=_unless_never(events.began),
    )


def _unless_never(times: Int64s) -> Int64s | None:
    return np.ascontiguousarray(times) if (times != NEVER).any() else None


def numbered(slots: Int32s, n_slots: int) -> tuple[Int32s, Int32s]:
    """Return the distinct slots, ascending, and for each of ``slots`` its position among them, int32[n].

    Parameters
    ----------
    n_slots : greater than all slots.

    Notes
    -----
    O(n + n_slots) if ``n_slots`` is at most ``MANY`` * n, else O(n log n).
    """
    if n_slots > MANY * slots.size:
        distinct, numbers = np.unique(slots, return_inverse=True)
        return distinct.astype(np.int32), numbers.astype(np.int32)
    is_there = np.zeros(n_slots, dtype=np.bool_)
    is_there[slots] = True
    found = np.flatnonzero(is_there).astype(np.int32)
    number_of = np.empty(n_slots, dtype=np.int32)
    number_of[found] = np.arange(found.size, dtype=np.int32)
    return found, number_of[slots]
