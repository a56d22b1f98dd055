"""Queries that end in the middle of a batch: what they would have told later is dropped, and their members leave.

readings ──•────•────────•──────•──►
due           members at the due = members now, with what came after it taken back
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bmq.engines.feed.query_table import FOREVER
from bmq.engines.feed.slot_events import Events, When, some_events
from bmq.index.stream_table import Chained
from bmq.records import Float64s, Int32s, Int64s, Reason, Sign

if TYPE_CHECKING:
    from bmq.engines.feed.feed_engine import FeedEngine


@dataclass(frozen=True, slots=True)
class TrackingEnds:
    """Trackings of tracked queries that may be there, and end: columns of n, values float64[d, n]."""

    queries: Int32s
    streams: Int32s
    moments: Int64s
    values: Float64s


@dataclass(frozen=True, slots=True)
class Endings:
    """What the end of queries does: leaves of plain ones, and the ends of tracked pairs."""

    leaves: list[Events]
    tracking_ends: list[TrackingEnds]


def end_queries(
    engine: "FeedEngine", found: Events, dues: list[tuple[int, int]], chained: Chained | None
) -> tuple[Events, Endings]:
    """Return the events without those behind the end of their query, and what the ends bring about.

    Parameters
    ----------
    found : events of region slots, of the whole batch.
    dues : (epoch ms, query slot) of the queries that end.

    Notes
    -----
    Cost: O(n log n) for the events and readings, however many queries end, and their members.
    """
    due_by_slot = np.full(engine.queries.owners.size, FOREVER, dtype=np.int64)
    for due, slot in dues:
        due_by_slot[slot] = due
    owners = engine.queries.owners[found.queries]
    is_late = found.moments > due_by_slot[owners]
    late = _of_queries(found.where(is_late), owners[is_late])
    found, owners = found.where(~is_late), owners[~is_late]
    ends = (due_by_slot[owners] != FOREVER) & engine.queries.tracked[owners]
    before = _of_queries(found.where(ends), owners[ends])
    plain, tracked = [], []
    for _, slot in dues:
        if engine.queries.tracked[slot]:
            tracked.append((slot, np.union1d(engine.trackings.rows_of(slot)[0], before(slot).streams)))
        else:
            plain.append((slot, _members_before(engine.members(slot), late(slot))))
    return found, _endings(engine, plain, tracked, due_by_slot, chained)


def _of_queries(events: Events, owners: Int32s) -> Callable[[int], Events]:
    """Return what gives the events of one query, as they come about."""
    order = np.lexsort((events.passes, events.rows, events.whens, events.moments, owners))
    events, owners = events.where(order), owners[order]

    def of_query(slot: int) -> Events:
        begin, end = np.searchsorted(owners, np.array((slot, slot + 1), dtype=owners.dtype))
        return events.where(slice(begin, end))

    return of_query


def _members_before(members: Int32s, late: Events) -> Int32s:
    """Return the members before the late events, given in order, made them what they are now."""
    if not len(late):
        return members
    # Signs alternate, so the first one after the due says what the stream was at it.
    streams, first = np.unique(late.streams, return_index=True)
    was_inside = late.signs[first] < 0
    return np.union1d(np.setdiff1d(members, streams), streams[was_inside])


def _endings(
    engine: "FeedEngine",
    plain: list[tuple[int, Int32s]],
    tracked: list[tuple[int, Int32s]],
    due_by_slot: Int64s,
    chained: Chained | None,
) -> Endings:
    """Return the ends of (query slot, its streams)."""
    leaves, tracking_ends = [], []
    if plain:
        queries, streams = _pairs_of(plain)
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
                values=_values_at(engine, streams, due_by_slot[queries], chained),
            )
        )
    if tracked:
        queries, streams = _pairs_of(tracked)
        moments = due_by_slot[queries]
        tracking_ends.append(TrackingEnds(queries, streams, moments, _values_at(engine, streams, moments, chained)))
    return Endings(leaves, tracking_ends)


def _pairs_of(streams_of: list[tuple[int, Int32s]]) -> tuple[Int32s, Int32s]:
    queries = np.repeat([slot for slot, _ in streams_of], [streams.size for _, streams in streams_of])
    return queries.astype(np.int32), np.concatenate([streams for _, streams in streams_of]).astype(np.int32)


def _values_at(engine: "FeedEngine", streams: Int32s, moments: Int64s, chained: Chained | None) -> Float64s:
    """Return the value of each stream's last reading at its moment or before, float64[d, n]."""
    values = engine.streams.values[: engine.n_dims, streams]
    if chained is None or not len(chained.slots) or not streams.size:
        return values
    n = chained.slots.size
    slots, times = np.concatenate([chained.slots, streams]), np.concatenate([chained.event_times, moments])
    # Readings of one time stay in order, and a moment comes behind those at it.
    order = np.lexsort((times, slots))
    readings_so_far = np.cumsum(order < n)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = readings_so_far
    by_stream = order[order < n]
    behind = place[n:]  # of the readings by stream and time, the one behind each moment
    rows = by_stream[np.minimum(behind, n - 1)]
    moved_on = (behind < n) & (chained.slots[rows] == streams)
    values[:, moved_on] = chained.previous_values[: engine.n_dims, rows[moved_on]]
    return values
