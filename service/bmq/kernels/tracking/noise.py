"""Noise options of border queries: what a crossing, an end and the time do to a membership. Arrays in, numbers out.

               IN: `stay_for`           due: +
    outside ────────────────────► pending in ───────► visit ──┐ OUT: `away_for`
       ▲           OUT: no event        │               ▲     ▼
       ├────────────────────────────────┘               └─ pending out
       └──────────────────────────────────────────────────── due: -     IN: no event

A visit is emitted or silent. A silent visit has no + and no -: the query was put silently, or the + was suppressed.
The rules are in docs/semantics.md.
"""

from numba import njit

from bmq.kernels.tracking.pending import begin_pending, due_of, end_pending, is_due_before, note_change
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
    items: Items,
    order: Int64s,
    first: int,
    events: Records,
    values: Float64s,
    n_events: int,
) -> tuple[int, int]:
    """Apply items ``order[first:]``, and emit what is due in between in the same row.

    Parameters
    ----------
    tracked, options : Table, OPTIONS[n_queries]
    items : Items
    order : int64[n]
        Which items, ascending by (moment, class, given order).
    first : int
        Where to go on after a call that ran out of room.
    events, values : EVENT[2 * n], float64[2 * n, d]
        Receive the events.
    n_events : int
        How many they hold.

    Returns
    -------
    tuple of int
        (the first of ``order`` not done, or n; the new ``n_events``). Fewer than n: grow the table and call again.

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
        if is_due_before(tracked, options, row, items, i):
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
    """Let the stream be inside; return the sign of the event, or 0."""
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
    """Let the stream be outside; return the sign of the event, or 0."""
    flags = tracked.rows[row].flags
    if not flags & INSIDE:
        return 0  # with an exit region: it left that one, and had not been in the other
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
    """End what there is of a membership; return the sign of the event, or 0."""
    end_pending(tracked, row)
    tracked.rows[row].flags &= ~INSIDE
    if items.classes[i] == AT_STREAM_EXPIRY:
        # A stream that comes back from there may do so with any time. Whether the row is still there, or was removed
        # since the stream had been seen after its cooldown, must then not be seen.
        history = tracked.history[row]
        if history.last_entered + options[items.queries[i]].cooldown < items.moments[i]:
            history.last_entered = NEVER
    return LEFT if _end_visit(tracked, options, row) else 0


@njit(cache=True)
def fire_memberships(
    tracked: Table, options: Records, rows: Int32s, moments: Int64s, events: Records, values: Float64s
) -> int:
    """Emit what is pending in ``rows``, confirmed at ``moments``; where nothing is pending, forget the last +.

    Parameters are those of ``run_memberships``; rows, moments : int32[k], int64[k]; events, values : of length k.
    Returns how many events there are. Raises nothing.
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
    """Let a membership begin; return whether there is an event."""
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
        # Without a cooldown it is not kept, so that the pair's row can go.
        history.last_entered = event_time
    return True


@njit(cache=True, forceinline=True)
def _end_visit(tracked: Table, options: Records, row: int) -> bool:
    """Let a membership end; return whether there is an event."""
    visit = (tracked.rows[row].flags & VISIT) >> VISIT_SHIFT
    tracked.rows[row].flags &= ~VISIT
    return visit == EMITTED and _may_emit(tracked, options, row)


@njit(cache=True, forceinline=True)
def _may_emit(tracked: Table, options: Records, row: int) -> bool:
    """Count an event; return whether it is one of the first `max_events`."""
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
    """Let ``rows`` be inside, with visits as given (EMITTED, SILENT) and nothing pending. Raises nothing."""
    for j in range(rows.size):
        end_pending(tracked, rows[j])
        tracked.rows[rows[j]].flags = INSIDE | visit[j] << VISIT_SHIFT
        note_change(tracked, options, rows[j])
