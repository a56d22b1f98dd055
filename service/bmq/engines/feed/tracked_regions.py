"""Turn crossings of regions into items of trackings.

    region entered          ──► IN
    region left             ──► OUT     if the query has no exit region
    exit region left        ──► OUT
    stream or query ends    ──► END     for every tracking that there may be

The module knows which slot belongs to which region. It does not know what a tracking does with an item.
"""

from collections.abc import Sequence

import numpy as np

from bmq.engines.event_columns import Events, When
from bmq.engines.feed.endings import TrackingMoments
from bmq.engines.feed.feed_tables import FeedTables
from bmq.engines.feed.query_table import NO_SLOT
from bmq.engines.feed.stream_expiry import Expiries
from bmq.engines.tracking.tracking_items import TrackingItems
from bmq.engines.tracking.trackings import AT_QUERY_EXPIRY, AT_READING, AT_STREAM_EXPIRY, END, IN, OUT
from bmq.records import Int32s, Reason


def items_of_crossings(tables: FeedTables, events: Events) -> TrackingItems:
    """Return the items of the crossings by readings; ``events`` are those of the regions of tracked queries."""
    events = events.where(events.whens == When.AT_READING)
    owners = tables.queries.owners[events.queries]
    with_exit = tables.queries.exit_slots[owners] != NO_SLOT
    is_exit = events.queries != owners
    entered = (events.signs > 0) & ~is_exit
    left = (events.signs < 0) & (is_exit | ~with_exit)
    counts = np.flatnonzero(entered | left)
    # In the order in which the events of one reading are emitted, so that a pass comes before what follows it.
    counts = counts[np.lexsort((events.passes[counts], events.rows[counts]))]
    events, owners = events.where(counts), owners[counts]
    return TrackingItems(
        queries=owners,
        streams=events.streams,
        moments=events.moments,
        classes=np.full(len(events), AT_READING, dtype=np.int8),
        actions=np.where(events.signs > 0, IN, OUT).astype(np.int8),
        reasons=events.reasons,
        event_times=events.event_times,
        ordinals=events.ordinals,
        rows=events.rows,
        passes=events.passes,
        values=events.values,
    )


def items_of_ends(
    tables: FeedTables, items: TrackingItems, expiries: Expiries, tracking_ends: Sequence[TrackingMoments]
) -> list[TrackingItems]:
    """Return the ends of the trackings of streams that fell silent, and of queries that ended.

    The ends include the trackings that this batch may begin; an end without a tracking does nothing.
    """
    ends = [items_at(end, AT_QUERY_EXPIRY, END, Reason.QUERY_EXPIRED) for end in tracking_ends]
    if not expiries.streams.size:
        return ends
    queries, streams = _trackings_of(tables, np.unique(expiries.streams), items)
    order = np.argsort(expiries.streams, kind="stable")
    expiring = expiries.streams[order]
    first = np.searchsorted(expiring, streams, side="left")
    counts = np.searchsorted(expiring, streams, side="right") - first
    which = np.repeat(np.arange(counts.size), counts)
    within = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = order[first[which] + within]
    of_query = tables.queries.stream_ttls[queries[which]] == expiries.ttls[rows]
    which, rows = which[of_query], rows[of_query]
    at = TrackingMoments(
        queries[which], streams[which], expiries.moments[rows], expiries.ordinals[rows], expiries.values[:, rows]
    )
    ends.append(items_at(at, AT_STREAM_EXPIRY, END, Reason.STREAM_EXPIRED))
    return ends


def _trackings_of(tables: FeedTables, streams: Int32s, items: TrackingItems) -> tuple[Int32s, Int32s]:
    """Return the (query, stream) of the streams' trackings and of those that ``items`` may begin, each once."""
    made = np.isin(items.streams, streams)
    queries, of = tables.trackings.rows_of_streams(streams)
    # One number for each (query, stream): sorting numbers is many times faster than sorting rows.
    keys = np.concatenate([queries, items.queries[made]]).astype(np.int64) << 32
    keys = np.unique(keys | np.concatenate([of, items.streams[made]]))
    return (keys >> 32).astype(np.int32), keys.astype(np.int32)


def items_at(at: TrackingMoments, moment_class: int, action: int, reason: Reason) -> TrackingItems:
    """Return items of one class, action and reason, which no reading of the batch caused."""
    n = at.queries.size
    return TrackingItems(
        queries=at.queries,
        streams=at.streams,
        moments=at.moments,
        classes=np.full(n, moment_class, dtype=np.int8),
        actions=np.full(n, action, dtype=np.int8),
        reasons=np.full(n, reason, dtype=np.int8),
        event_times=at.moments,
        ordinals=at.ordinals,
        rows=np.full(n, -1, dtype=np.int32),
        passes=np.zeros(n, dtype=np.int32),
        values=at.values,
    )
