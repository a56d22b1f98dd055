"""The effects of a put, an edit or a removal: which streams leave, which enter, and what is kept of the others.

    member before ──┬── inside now: its visit goes on      no member ──┬── inside now: enters, or is pending
                    └── outside now: leaves at once                    └── outside now: nothing

This module reads no readings: it compares the old definition with the new one at the last reading of each stream.
"""

import numpy as np

from bmq.engines.event_columns import Events, When
from bmq.engines.feed.endings import TrackingMoments
from bmq.engines.feed.feed_tables import FeedTables
from bmq.engines.feed.query_table import NO_SLOT
from bmq.engines.feed.slot_events import some_events
from bmq.engines.feed.tracked_regions import items_at
from bmq.engines.tracking.trackings import AT_READING, EMITTED, END, IN, NO, SILENT
from bmq.records import NEVER, Initial, Int8s, Int32s, Kind, Reason, RegionQuery, Sign


def put_query(tables: FeedTables, query: RegionQuery, reason: Reason, due: int) -> list[Events]:
    """Register or replace a query; return the events of the memberships that begin and end at once.

    Parameters
    ----------
    reason : of the events, unless only the query's options change.
    due : epoch ms at which the query ends; NEVER: it does not end, or the time is not known yet.
    """
    replaced = tables.queries.query(tables.queries.slot(query.query_id)) if query.query_id in tables.queries else None
    if replaced is None or not _watch_the_same(replaced, query):
        return _change_members(tables, replaced, query, reason, due)
    if replaced.stream_ttl_ms == query.stream_ttl_ms:
        return _change_options(tables, replaced, query, due)
    if replaced.is_tracked:
        return _change_silence(tables, replaced, query, due)
    return _change_members(tables, replaced, query, reason, due)


def remove_query(tables: FeedTables, query_id: str, reason: Reason) -> Events:
    """End the memberships of a query, and return their events; the query itself stays in the tables."""
    slot = tables.queries.slot(query_id)
    if tables.queries.query(slot).is_tracked:
        return _run_at_rest(tables, slot, tables.trackings.rows_of(slot)[0], END, reason)
    left = _end_silent(tables, query_id, tables.members(slot))
    return _events_at_rest(tables, slot, left, Sign.LEFT, reason)


def restore_query(tables: FeedTables, query: RegionQuery, due: int) -> None:
    """Register or replace a query without events; its trackings stay if they are of the same kind."""
    if query.query_id in tables.queries:
        slot = tables.queries.slot(query.query_id)
        old = tables.queries.query(slot)
        if old.is_tracked and not (query.is_tracked and old.kind is query.kind):
            tables.trackings.forget(slot)
    slot = tables.remember(query, due)
    if query.is_tracked:
        tables.trackings.set_options(slot, query, tables.streams.last_times)


def _watch_the_same(one: RegionQuery, other: RegionQuery) -> bool:
    """Return whether both watch the same streams in the same way, so that memberships and pending crossings stay.

    False for transition queries, because each edit drops their pending patterns.
    """
    return one.kind is not Kind.TRANSITION and all(
        getattr(one, name) == getattr(other, name)
        for name in ("kind", "region", "exit_region", "streams", "where", "enabled", "alternatives")
    )


def _change_options(tables: FeedTables, old: RegionQuery, new: RegionQuery, due: int) -> list[Events]:
    """Replace a query by one that watches the same: memberships and pending crossings stay."""
    slot = tables.queries.slot(old.query_id)
    tables.remember(new, due)
    if not old.is_tracked and new.is_tracked:
        members = tables.members(slot)
        visits = _visits_of_plain(tables, old.query_id, members)
        _end_silent(tables, old.query_id, members)
        tables.trackings.set_options(slot, new, tables.streams.last_times)
        tables.trackings.set_visits(slot, members, visits)
    elif new.is_tracked:
        tables.trackings.set_options(slot, new, tables.streams.last_times)
    elif old.is_tracked:
        return [_make_plain(tables, slot, new.query_id)]
    return []


def _change_silence(tables: FeedTables, old: RegionQuery, new: RegionQuery, due: int) -> list[Events]:
    """Replace a tracked query by one with another `stream_ttl`; return the events of memberships that begin and end.

    A pending crossing stays, unless the query does not know the stream now. If the new query is not tracked, pending
    crossings are confirmed at once, and the events include them.
    """
    slot = tables.queries.slot(old.query_id)
    tables.remember(new, due)
    streams, visits, inside = tables.trackings.rows_of(slot)
    unknown = streams[~tables.knows(slot, streams)]
    events = [_run_at_rest(tables, slot, unknown, END, Reason.QUERY_UPDATED)]  # by the options before
    if new.is_tracked:
        tables.trackings.set_options(slot, new, tables.streams.last_times)
    entered = np.setdiff1d(tables.members(slot), streams[inside | (visits != NO)])
    if new.initial is Initial.SILENT:
        _set_visits(tables, slot, entered, np.full(entered.size, SILENT, dtype=np.int8))
    elif new.is_tracked:
        events.append(_run_at_rest(tables, slot, entered, IN, Reason.QUERY_UPDATED))
    else:
        events.append(_events_at_rest(tables, slot, entered, Sign.ENTERED, Reason.QUERY_UPDATED))
    if not new.is_tracked:
        events.append(_make_plain(tables, slot, new.query_id))
    return events


def _make_plain(tables: FeedTables, slot: int, query_id: str) -> Events:
    """Confirm the pending crossings of a query that is not tracked any more; return their events.

    Its silent members go on as `SilentMembers`.
    """
    events = tables.trackings.flush(slot).events
    streams, visits, _ = tables.trackings.rows_of(slot)
    tables.trackings.forget(slot)
    tables.silent.begin_all(query_id, _texts(tables, streams[visits == SILENT]))
    return events


def _change_members(
    tables: FeedTables, old: RegionQuery | None, new: RegionQuery, reason: Reason, due: int
) -> list[Events]:
    """Register a query, or replace one that watched something else; return events of memberships that begin and end.

    1. Find the members before.
    2. Find the streams that are inside now.
    3. Let the members that are outside now leave.
    4. The visits of the members that stay go on.
    5. Let the others that are inside now enter.
    """
    before, codes, inside = _members_before(tables, old)  # 1
    was_tracked = old is not None and old.is_tracked
    slot = tables.remember(new, due)
    now = tables.members(slot)  # 2
    exit_slot = tables.queries.exit_slot(slot)
    if exit_slot != NO_SLOT and exit_slot in tables.regions:
        now = np.union1d(now, np.intersect1d(inside, tables.members(exit_slot)))
    if new.kind is Kind.TRANSITION:
        now = now[:0]  # a transition query has no members: it reacts to crossings only
    stays = np.isin(before, now, assume_unique=True)
    events = []
    if was_tracked:  # 3
        gone = np.setdiff1d(tables.trackings.rows_of(slot)[0], before[stays])
        events.append(_run_at_rest(tables, slot, gone, END, reason))
    elif old is not None:
        left = _end_silent(tables, new.query_id, before[~stays])
        events.append(_events_at_rest(tables, slot, left, Sign.LEFT, reason))
    if was_tracked and (not new.is_tracked or new.kind is not (old.kind if old else None)):  # 4
        tables.trackings.forget(slot)
    if new.is_tracked:
        tables.trackings.set_options(slot, new, tables.streams.last_times)
        _set_visits(tables, slot, before[stays], codes[stays])
        if not was_tracked:
            _end_silent(tables, new.query_id, before[stays])
    elif was_tracked:
        tables.silent.begin_all(new.query_id, _texts(tables, before[stays][codes[stays] == SILENT]))
    entered = np.setdiff1d(now, before, assume_unique=True)  # 5
    silently = new.initial is Initial.SILENT
    if new.is_tracked and silently:
        _set_visits(tables, slot, entered, np.full(entered.size, SILENT, dtype=np.int8))
    elif new.is_tracked:
        events.append(_run_at_rest(tables, slot, entered, IN, reason))
    elif silently:
        tables.silent.begin_all(new.query_id, _texts(tables, entered))
    else:
        events.append(_events_at_rest(tables, slot, entered, Sign.ENTERED, reason))
    return events


def _set_visits(tables: FeedTables, slot: int, streams: Int32s, visits: Int8s) -> None:
    if streams.size:
        tables.trackings.set_visits(slot, streams, visits)


def _members_before(tables: FeedTables, query: RegionQuery | None) -> tuple[Int32s, Int8s, Int32s]:
    """Return the members, ascending, their visits (EMITTED or SILENT), and the streams that were inside."""
    if query is None:
        return _no_slots(), np.empty(0, dtype=np.int8), _no_slots()
    slot = tables.queries.slot(query.query_id)
    if not query.is_tracked:
        members = tables.members(slot)
        return members, _visits_of_plain(tables, query.query_id, members), members
    streams, visits, inside = tables.trackings.rows_of(slot)
    order = np.argsort(streams)
    streams, visits, inside = streams[order], visits[order], inside[order]
    return streams[visits != NO], visits[visits != NO], streams[inside]


def _visits_of_plain(tables: FeedTables, query_id: str, members: Int32s) -> Int8s:
    silent = [tables.silent.is_silent(query_id, text) for text in _texts(tables, members)] if tables.silent else False
    return np.where(silent, SILENT, EMITTED) * np.ones(members.size, dtype=np.int8)


def _events_at_rest(tables: FeedTables, slot: int, streams: Int32s, sign: Sign, reason: Reason) -> Events:
    """Return events that no reading caused, with each stream's last time and value."""
    return some_events(
        streams.size,
        queries=np.full(streams.size, slot, dtype=np.int32),
        streams=streams,
        moments=tables.streams.last_times[streams],
        when=When.AT_READING,
        signs=sign,
        reasons=reason,
        ordinals=tables.streams.ordinals[streams],
        values=tables.streams.values[: tables.n_dims, streams],
    )


def _run_at_rest(tables: FeedTables, slot: int, streams: Int32s, action: int, reason: Reason) -> Events:
    """Apply ``action`` to the trackings of ``streams`` at their last readings; return the events."""
    at = TrackingMoments(
        np.full(streams.size, slot, dtype=np.int32),
        streams.astype(np.int32),
        tables.streams.last_times[streams],
        tables.streams.ordinals[streams],
        tables.streams.values[: tables.n_dims, streams],
    )
    return tables.trackings.run(items_at(at, AT_READING, action, reason), NEVER).events


def _end_silent(tables: FeedTables, query_id: str, left: Int32s) -> Int32s:
    """End the silent memberships among ``left``, and return the streams whose leave has an event."""
    if query_id not in tables.silent.query_ids():
        return left
    return left[tables.silent.end_all(query_id, _texts(tables, left))]


def _texts(tables: FeedTables, slots: Int32s) -> list[str]:
    return [tables.streams.text_of(int(slot)) for slot in slots]


def _no_slots() -> Int32s:
    return np.empty(0, dtype=np.int32)
