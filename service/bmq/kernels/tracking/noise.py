"""Noise options of border queries: how crossings, endings and time change a membership. Arrays in, numbers out.

               IN: `stay_for`           due: +
    outside ────────────────────► pending in ───────► visit ──┐ OUT: `away_for`
       ▲           OUT: no event        │               ▲     ▼
       ├────────────────────────────────┘               └─ pending out
       └──────────────────────────────────────────────────── due: -     IN: no event

Each visit is emitted or silent. Neither the + nor the - of a silent visit is emitted. A visit is silent if the query
was put silently or if its + was suppressed (`cooldown`, `max_events`). docs/semantics.md has the rules.

Knows rows of trackings, the options of queries and items. It must not know regions, readings or the wire format.
"""

from numba import njit

from bmq.kernels.tracking.pending import StreamTimes, begin_pending, due_of, end_pending, is_due_before, note_change
from bmq.kernels.tracking.tracking_events import AT_STREAM_EXPIRY, IN, OUT, Items, write_item, write_pending
from bmq.kernels.tracking.tracking_rows import (
    EMITTED,
    INSIDE,
    N_SUPPRESSED,
    PENDING_IN,
    PENDING_OUT,
    SILENT,
    VISIT,
    VISIT_SHIFT,
    Records,
    Table,
    add,
    find,
)
from bmq.records import NEVER, Float64s, Int32s, Int64s

ENTERED, LEFT = 1, -1


@njit(cache=True)
def run_memberships(
    tracked: Table,
    options: Records,
    times: StreamTimes,
    items: Items,
    order: Int64s,
    first: int,
    events: Records,
    values: Float64s,
    n_events: int,
) -> tuple[int, int]:
    """Apply items ``order[first:]`` and write their events; before an item, fire a crossing of its row that is due.

    Parameters
    ----------
    tracked, options : Table, OPTIONS[n_queries]
        Written.
    times : StreamTimes
    items : Items
    order : int64[n]
        The numbers of the items, ascending by (moment, class, given order).
    first : int
        Where in ``order`` to continue after a call that ran out of room; 0 in the first call.
    events, values : EVENT[2 * n], float64[2 * n, d]
        Written: the events and the values of their streams. An item makes at most two: one that was due, and its own.
    n_events : int
        How many events they hold already.

    Returns
    -------
    tuple of int
        (the first place of ``order`` not done, or n; the new ``n_events``). If the first is less than n, the caller
        enlarges the table and calls again.

    Notes
    -----
    Raises nothing. O(1) an item, no allocation.
    """
    for k in range(first, order.size):
        i = order[k]
        action = items.actions[i]
        row = find(tracked, items.queries[i], items.streams[i])
        if row < 0:
            if action != IN:
                continue
            row = add(tracked, options, items.queries[i], items.streams[i])
            if row < 0:
                return k, n_events
        if is_due_before(tracked, options, row, times, items, i):
            n_events = _fire(tracked, options, row, due_of(tracked, options, row), events, values, n_events)
        if action == IN:
            sign = _come_in(tracked, options, row, items, i)
        elif action == OUT:
            sign = _go_out(tracked, options, row, items, i)
        else:
            sign = _end(tracked, options, row, items, i)
        note_change(tracked, options, row)
        if sign:
            write_item(items, i, sign, NEVER, events, values, n_events)
            n_events += 1
    return int(order.size), n_events


@njit(cache=True, forceinline=True)
def _come_in(tracked: Table, options: Records, row: int, items: Items, i: int) -> int:
    """Apply the in-crossing of item ``i`` to ``row``; return the sign of the event, or 0 if there is none."""
    flags = tracked.rows[row].flags
    tracked.rows[row].flags = flags | INSIDE
    if flags & PENDING_OUT:
        end_pending(tracked, row)
    elif flags & (VISIT | PENDING_IN) == 0:
        if options[items.queries[i]].stay > 0:
            begin_pending(tracked, row, items, i, PENDING_IN)
        elif _begin_visit(tracked, options, row, items.event_times[i]):
            return ENTERED
    return 0


@njit(cache=True, forceinline=True)
def _go_out(tracked: Table, options: Records, row: int, items: Items, i: int) -> int:
    """Apply the out-crossing of item ``i`` to ``row``; return the sign of the event, or 0 if there is none."""
    flags = tracked.rows[row].flags
    if not flags & INSIDE:
        return 0  # the query has an exit region: the stream left that one and had not been in the entry region
    tracked.rows[row].flags = flags & ~INSIDE
    if flags & PENDING_IN:
        end_pending(tracked, row)
    elif flags & VISIT:
        if options[items.queries[i]].away > 0:
            begin_pending(tracked, row, items, i, PENDING_OUT)
        elif _end_visit(tracked, options, row):
            return LEFT
    return 0


@njit(cache=True, forceinline=True)
def _end(tracked: Table, options: Records, row: int, items: Items, i: int) -> int:
    """End the membership of ``row``, whatever its state; return the sign of the event, or 0 if there is none."""
    end_pending(tracked, row)
    tracked.rows[row].flags &= ~INSIDE
    if items.classes[i] == AT_STREAM_EXPIRY:
        # After its expiry, a stream may return with any event time. The row may or may not have been removed already,
        # which depends on readings of the stream after the cooldown. So that this makes no difference, a + whose
        # cooldown ended before the expiry is forgotten here.
        history = tracked.history[row]
        if history.last_entered + options[items.queries[i]].cooldown < items.moments[i]:
            history.last_entered = NEVER
    return LEFT if _end_visit(tracked, options, row) else 0


@njit(cache=True)
def fire_memberships(
    tracked: Table, options: Records, rows: Int32s, moments: Int64s, events: Records, values: Float64s
) -> int:
    """Fire the pending crossings of ``rows`` and write their events; return how many events there are.

    A row without a pending crossing is there because its cooldown is over: its last + is forgotten.

    Parameters
    ----------
    tracked, options : Table, OPTIONS[n_queries]
        Written.
    rows, moments : int32[k], int64[k], epoch ms
        The rows, and when each was due; a + or - is confirmed at that moment.
    events, values : EVENT[k], float64[k, d]
        Written.

    Notes
    -----
    Raises nothing.
    """
    n_events = 0
    for j in range(rows.size):
        if tracked.rows[rows[j]].flags & (PENDING_IN | PENDING_OUT):
            n_events = _fire(tracked, options, rows[j], moments[j], events, values, n_events)
        else:
            tracked.history[rows[j]].last_entered = NEVER
        note_change(tracked, options, rows[j])
    return n_events


@njit(cache=True, forceinline=True)
def _fire(
    tracked: Table, options: Records, row: int, moment: int, events: Records, values: Float64s, n_events: int
) -> int:
    """Confirm the pending crossing of ``row``, write its event unless suppressed, return the new ``n_events``."""
    if tracked.rows[row].flags & PENDING_IN:
        end_pending(tracked, row)
        emits, sign = _begin_visit(tracked, options, row, tracked.rows[row].begin), ENTERED
    else:
        end_pending(tracked, row)
        emits, sign = _end_visit(tracked, options, row), LEFT
    if not emits:
        return n_events
    write_pending(tracked, row, sign, moment, events, values, n_events)
    events[n_events].event_times = tracked.rows[row].begin
    events[n_events].confirmed_times = moment
    return n_events + 1


@njit(cache=True, forceinline=True)
def _begin_visit(tracked: Table, options: Records, row: int, event_time: int) -> bool:
    """Begin a visit in ``row``; return whether its + is emitted. If not, the visit is silent."""
    option, history = options[tracked.rows[row].query], tracked.history[row]
    flags = tracked.rows[row].flags & ~VISIT
    tracked.rows[row].flags = flags | SILENT << VISIT_SHIFT
    last = history.last_entered
    if option.cooldown > 0 and last != NEVER and event_time <= last + option.cooldown:
        tracked.counts[N_SUPPRESSED] += 1
        return False
    if not _may_emit(tracked, options, row):
        return False
    tracked.rows[row].flags = flags | EMITTED << VISIT_SHIFT
    if option.cooldown > 0:
        # Without a cooldown, this time is not kept, so that the row can be removed.
        history.last_entered = event_time
    return True


@njit(cache=True, forceinline=True)
def _end_visit(tracked: Table, options: Records, row: int) -> bool:
    """End the visit in ``row``; return whether its - is emitted."""
    visit = (tracked.rows[row].flags & VISIT) >> VISIT_SHIFT
    tracked.rows[row].flags &= ~VISIT
    return visit == EMITTED and _may_emit(tracked, options, row)


@njit(cache=True, forceinline=True)
def _may_emit(tracked: Table, options: Records, row: int) -> bool:
    """Return whether ``max_events`` allows one more event of the row, and count that event."""
    most = options[tracked.rows[row].query].max_events
    if most < 0:
        return True
    if tracked.history[row].n_events >= most:
        tracked.counts[N_SUPPRESSED] += 1
        return False
    tracked.history[row].n_events += 1
    return True


@njit(cache=True)
def set_visits(tracked: Table, options: Records, rows: Int32s, visit: Int32s) -> None:
    """Set ``rows`` to inside, with visits as given (int32[k], EMITTED or SILENT) and nothing pending.

    Raises nothing.
    """
    for j in range(rows.size):
        end_pending(tracked, rows[j])
        tracked.rows[rows[j]].flags = INSIDE | visit[j] << VISIT_SHIFT
        note_change(tracked, options, rows[j])
