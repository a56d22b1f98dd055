"""Queries that end in the middle of a batch: drop their later events, and let their members leave.

    readings ──•────•──────────•──────•──►
    due                   │

The stream table has applied the whole batch already. So the members at the due are the members after the batch, with
the crossings after the due undone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmq.engines.event_columns import Events, When
from bmq.engines.feed.feed_tables import FeedTables
from bmq.engines.feed.query_table import FOREVER
from bmq.engines.feed.slot_events import some_events
from bmq.index.stream_table import Chained
from bmq.records import Float64s, Int32s, Int64s, Reason, Sign


@dataclass(frozen=True, slots=True)
class TrackingMoments:
    """The (query, stream) whose trackings begin or end, if they have one: columns of n, values float64[d, n]."""

    queries: Int32s
    streams: Int32s
    moments: Int64s
    ordinals: Int32s
    values: Float64s


@dataclass(frozen=True, slots=True)
class Endings:
    """The effects of ended queries: the leaves of plain queries, and the ends of trackings."""

    leaves: list[Events]
    tracking_ends: list[TrackingMoments]


def end_queries(
    tables: FeedTables, found: Events, dues: list[tuple[int, int]], chained: Chained | None
) -> tuple[Events, Endings]:
    """Return the events that are not after the end of their query, and the effects of the ends.

    Parameters
    ----------
    found : events by region slot, of the whole batch.
    dues : (epoch ms, query slot) of the queries that end.

    Notes
    -----
    Cost: O(n log n) in the events and readings, however many queries end, plus the members of these queries.
    """
    due_by_slot = np.full(tables.queries.owners.size, FOREVER, dtype=np.int64)
    for due, slot in dues:
        due_by_slot[slot] = due
    owners = tables.queries.owners[found.queries]
    is_late = found.moments > due_by_slot[owners]
    late = _of_queries(found.where(is_late), owners[is_late])
    found, owners = found.where(~is_late), owners[~is_late]
    ends = (due_by_slot[owners] != FOREVER) & tables.queries.tracked[owners]
    before = _of_queries(found.where(ends), owners[ends])
    plain, tracked = [], []
    for _, slot in dues:
        if tables.queries.tracked[slot]:
            tracked.append((slot, np.union1d(tables.trackings.rows_of(slot)[0], before(slot).streams)))
        else:
            plain.append((slot, _members_before(tables.members(slot), late(slot))))
    return found, _endings(tables, plain, tracked, due_by_slot, chained)


def _of_queries(events: Events, owners: Int32s) -> Callable[[int], Events]:
    """Return a function from a query slot to the query's events, in the order in which they happen."""
    order = np.lexsort((events.passes, events.rows, events.whens, events.moments, owners))
    events, owners = events.where(order), owners[order]

    def of_query(slot: int) -> Events:
        begin, end = np.searchsorted(owners, np.array((slot, slot + 1), dtype=owners.dtype))
        return events.where(slice(begin, end))

    return of_query


def _members_before(members: Int32s, late: Events) -> Int32s:
    """Return the members before the late events, which are in the order in which they happen."""
    if not len(late):
        return members
    # Signs alternate: if the first event after the due is a leave, the stream was a member at the due.
    streams, first = np.unique(late.streams, return_index=True)
    was_inside = late.signs[first] < 0
    return np.union1d(np.setdiff1d(members, streams), streams[was_inside])


def _endings(
    tables: FeedTables,
    plain: list[tuple[int, Int32s]],
    tracked: list[tuple[int, Int32s]],
    due_by_slot: Int64s,
    chained: Chained | None,
) -> Endings:
    """Return the endings of ``plain`` and ``tracked``, both as (query slot, the query's streams)."""
    leaves, tracking_ends = [], []
    if plain:
        queries, streams = _as_columns(plain)
        leaves.append(
            some_events(
                queries.size,
                queries=queries,
                streams=streams,
                moments=due_by_slot[queries],
                when=When.QUERY_EXPIRED,
                signs=Sign.LEFT,
                reasons=Reason.QUERY_EXPIRED,
                ordinals=np.zeros(queries.size, dtype=np.int32),
                values=_values_at(tables, streams, due_by_slot[queries], chained),
            )
        )
    if tracked:
        queries, streams = _as_columns(tracked)
        moments = due_by_slot[queries]
        ordinals = np.zeros(queries.size, dtype=np.int32)
        values = _values_at(tables, streams, moments, chained)
        tracking_ends.append(TrackingMoments(queries, streams, moments, ordinals, values))
    return Endings(leaves, tracking_ends)


def _as_columns(streams_of: list[tuple[int, Int32s]]) -> tuple[Int32s, Int32s]:
    queries = np.repeat([slot for slot, _ in streams_of], [streams.size for _, streams in streams_of])
    return queries.astype(np.int32), np.concatenate([streams for _, streams in streams_of]).astype(np.int32)


def _values_at(tables: FeedTables, streams: Int32s, moments: Int64s, chained: Chained | None) -> Float64s:
    """Return the value of each stream's last reading at or before its moment, float64[d, n]."""
    values = tables.streams.values[: tables.n_dims, streams]
    if chained is None or not len(chained.slots) or not streams.size:
        return values
    n = chained.slots.size
    slots, times = np.concatenate([chained.slots, streams]), np.concatenate([chained.event_times, moments])
    # `lexsort` is stable: readings of one time stay in order, and a moment comes after the readings at it.
    order = np.lexsort((times, slots))
    readings_so_far = np.cumsum(order < n)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = readings_so_far
    by_stream = order[order < n]
    behind = place[n:]  # among the readings by stream and time, the first one after each moment
    rows = by_stream[np.minimum(behind, n - 1)]
    moved_on = (behind < n) & (chained.slots[rows] == streams)
    values[:, moved_on] = chained.previous_values[: tables.n_dims, rows[moved_on]]
    return values
