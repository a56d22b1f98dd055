"""What a put or an edit changes: which streams leave, which enter, and what is kept of those that stay.

member before ──┬── inside now: its visit goes on     no member ──┬── inside now: enters, or is pending
└── outside now: leaves at once                   └── outside now: nothing
"""

from typing import TYPE_CHECKING

import numpy as np

from bmq.engines.feed.query_table import NO_SLOT
from bmq.engines.feed.slot_events import Events, When, some_events
from bmq.engines.feed.tracked_regions import events_of_trackings
from bmq.engines.tracking.tracking_items import TrackingItems
from bmq.engines.tracking.trackings import AT_READING, EMITTED, END, IN, NO, SILENT
from bmq.records import NEVER, Initial, Int8s, Int32s, Kind, Reason, RegionQuery, Sign

if TYPE_CHECKING:
    from bmq.engines.feed.feed_engine import FeedEngine


def watch_the_same(one: RegionQuery, other: RegionQuery) -> bool:
    """Return whether both look at the same streams in the same way, so that what is known of them stays.

    Not so of transition queries: each edit drops what is pending.
    """
    return one.kind is not Kind.TRANSITION and all(
        getattr(one, name) == getattr(other, name)
        for name in ("kind", "region", "exit_region", "streams", "where", "enabled", "alternatives")
    )


def change_options(engine: "FeedEngine", old: RegionQuery, new: RegionQuery, due: int) -> list[Events]:
    """Replace a query that watches what it did: memberships and what is pending stay."""
    slot = engine.queries.slot(old.query_id)
    engine.remember(new, due)
    if not old.is_tracked and new.is_tracked:
        members = engine.members(slot)
        visits = _visits_of_plain(engine, old.query_id, members)
        end_silent(engine, old.query_id, members)
        engine.trackings.set_options(slot, new, engine.streams.last_times)
        engine.trackings.set_visits(slot, members, visits)
    elif new.is_tracked:
        engine.trackings.set_options(slot, new, engine.streams.last_times)
    elif old.is_tracked:
        return [_make_plain(engine, slot, new.query_id)]
    return []


def change_silence(engine: "FeedEngine", old: RegionQuery, new: RegionQuery, due: int) -> list[Events]:
    """Replace a tracked query by one with another `stream_ttl`; return what begins and ends.

    What is pending stays, unless the stream is unknown to the query now. If the new query is not tracked, what is
    pending is emitted.
    """
    slot = engine.queries.slot(old.query_id)
    engine.remember(new, due)
    streams, visits, inside = engine.trackings.rows_of(slot)
    unknown = streams[~engine.knows(slot, streams)]
    events = [run_at_rest(engine, slot, unknown, END, Reason.QUERY_UPDATED)]  # by the options of its visits
    if new.is_tracked:
        engine.trackings.set_options(slot, new, engine.streams.last_times)
    entered = np.setdiff1d(engine.members(slot), streams[inside | (visits != NO)])
    if new.initial is Initial.SILENT:
        _set_visits(engine, slot, entered, np.full(entered.size, SILENT, dtype=np.int8))
    elif new.is_tracked:
        events.append(run_at_rest(engine, slot, entered, IN, Reason.QUERY_UPDATED))
    else:
        events.append(events_at_rest(engine, slot, entered, Sign.ENTERED, Reason.QUERY_UPDATED))
    if not new.is_tracked:
        events.append(_make_plain(engine, slot, new.query_id))
    return events


def _make_plain(engine: "FeedEngine", slot: int, query_id: str) -> Events:
    """Tell what waits of a query that is tracked no more, and keep who is a silent member."""
    events = engine.trackings.flush(slot)
    streams, visits, _ = engine.trackings.rows_of(slot)
    engine.trackings.forget(slot)
    engine.silent.begin_all(query_id, _texts(engine, streams[visits == SILENT]))
    return events_of_trackings(events)


def change_members(
    engine: "FeedEngine", old: RegionQuery | None, new: RegionQuery, reason: Reason, due: int
) -> list[Events]:
    """Register a query, or replace one that watched something else; return what begins and ends.

    1. Find the members before.
    2. Find the streams that are inside now.
    3. Let the members that are outside now leave.
    4. The visits of the members that stay go on.
    5. Let the others that are inside now enter.
    """
    before, codes, inside = _members_before(engine, old)  # 1
    was_tracked = old is not None and old.is_tracked
    slot = engine.remember(new, due)
    now = engine.members(slot)  # 2
    exit_slot = engine.queries.exit_slot(slot)
    if exit_slot != NO_SLOT and exit_slot in engine.regions:
        now = np.union1d(now, np.intersect1d(inside, engine.members(exit_slot)))
    if new.kind is Kind.TRANSITION:
        now = now[:0]  # what is no crossing is nothing to it
    stays = np.isin(before, now, assume_unique=True)
    events = []
    if was_tracked:  # 3
        gone = np.setdiff1d(engine.trackings.rows_of(slot)[0], before[stays])
        events.append(run_at_rest(engine, slot, gone, END, reason))
    elif old is not None:
        left = end_silent(engine, new.query_id, before[~stays])
        events.append(events_at_rest(engine, slot, left, Sign.LEFT, reason))
    if was_tracked and (not new.is_tracked or new.kind is not (old.kind if old else None)):  # 4
        engine.trackings.forget(slot)
    if new.is_tracked:
        engine.trackings.set_options(slot, new, engine.streams.last_times)
        _set_visits(engine, slot, before[stays], codes[stays])
        if not was_tracked:
            end_silent(engine, new.query_id, before[stays])
    elif was_tracked:
        engine.silent.begin_all(new.query_id, _texts(engine, before[stays][codes[stays] == SILENT]))
    entered = np.setdiff1d(now, before, assume_unique=True)  # 5
    silently = new.initial is Initial.SILENT
    if new.is_tracked and silently:
        _set_visits(engine, slot, entered, np.full(entered.size, SILENT, dtype=np.int8))
    elif new.is_tracked:
        events.append(run_at_rest(engine, slot, entered, IN, reason))
    elif silently:
        engine.silent.begin_all(new.query_id, _texts(engine, entered))
    else:
        events.append(events_at_rest(engine, slot, entered, Sign.ENTERED, reason))
    return events


def _set_visits(engine: "FeedEngine", slot: int, streams: Int32s, visits: Int8s) -> None:
    if streams.size:
        engine.trackings.set_visits(slot, streams, visits)


def _members_before(engine: "FeedEngine", query: RegionQuery | None) -> tuple[Int32s, Int8s, Int32s]:
    """Return the members, ascending, their visits (EMITTED or SILENT), and the streams that were inside."""
    if query is None:
        return _no_slots(), np.empty(0, dtype=np.int8), _no_slots()
    slot = engine.queries.slot(query.query_id)
    if not query.is_tracked:
        members = engine.members(slot)
        return members, _visits_of_plain(engine, query.query_id, members), members
    streams, visits, inside = engine.trackings.rows_of(slot)
    order = np.argsort(streams)
    streams, visits, inside = streams[order], visits[order], inside[order]
    return streams[visits != NO], visits[visits != NO], streams[inside]


def _visits_of_plain(engine: "FeedEngine", query_id: str, members: Int32s) -> Int8s:
    silent = [engine.silent.is_silent(query_id, text) for text in _texts(engine, members)] if engine.silent else False
    return np.where(silent, SILENT, EMITTED) * np.ones(members.size, dtype=np.int8)


def events_at_rest(engine: "FeedEngine", slot: int, streams: Int32s, sign: Sign, reason: Reason) -> Events:
    """Return events that no reading caused: each stream's last time and value."""
    return some_events(
        streams.size,
        queries=np.full(streams.size, slot, dtype=np.int32),
        streams=streams,
        moments=engine.streams.last_times[streams],
        when=When.AT_READING,
        signs=sign,
        reasons=reason,
        ordinals=engine.streams.ordinals[streams],
        values=engine.streams.values[: engine.n_dims, streams],
    )


def run_at_rest(engine: "FeedEngine", slot: int, streams: Int32s, action: int, reason: Reason) -> Events:
    """Return what tracked pairs tell when ``action`` happens to them at their streams' last readings."""
    n = streams.size
    times = engine.streams.last_times[streams]
    items = TrackingItems(
        queries=np.full(n, slot, dtype=np.int32),
        streams=streams.astype(np.int32),
        moments=times,
        classes=np.full(n, AT_READING, dtype=np.int8),
        actions=np.full(n, action, dtype=np.int8),
        reasons=np.full(n, reason, dtype=np.int8),
        event_times=times,
        ordinals=engine.streams.ordinals[streams],
        rows=np.full(n, -1, dtype=np.int32),
        passes=np.zeros(n, dtype=np.int32),
        values=np.ascontiguousarray(engine.streams.values[: engine.n_dims, streams]),
    )
    return events_of_trackings(engine.trackings.run(items, NEVER))


def end_silent(engine: "FeedEngine", query_id: str, left: Int32s) -> Int32s:
    """End the silent ones among the memberships that end, and return the others: those have an event."""
    if query_id not in engine.silent.query_ids():
        return left
    return left[engine.silent.end_all(query_id, _texts(engine, left))]


def _texts(engine: "FeedEngine", slots: Int32s) -> list[str]:
    return [engine.streams.text_of(int(slot)) for slot in slots]


def _no_slots() -> Int32s:
    return np.empty(0, dtype=np.int32)
