"""Tracked pairs of border queries: what a crossing, an end and the time do to a membership. Arrays in, numbers out.

               IN: waits `stay`            due: told
    outside ────────────────────► waits in ─────────► told ──┐ OUT: waits `away`
       ▲           OUT: nothing is said │               ▲    ▼
       ├────────────────────────────────┘               └─ waits out
       └──────────────────────────────────────────────────── due: told     IN: nothing is said

Told is loud or silent: a silent member was put silently, or its + was kept back, and leaves without a word.
The rules are in docs/semantics.md.
"""

from numba import njit

from bmq.kernels.tracking.pending import begin_wait, due_of, end_wait, is_due_before, note_change
from bmq.kernels.tracking.tracking_events import AT_STREAM_EXPIRY, IN, OUT, Items, write_item, write_waiting
from bmq.kernels.tracking.tracking_rows import (
    INSIDE,
    LOUD,
    N_SUPPRESSED,
    SILENT,
    TOLD,
    TOLD_SHIFT,
    WAITS_IN,
    WAITS_OUT,
    Records,
    Table,
    add,
    find,
)
from bmq.records import NEVER, Float64s, Int32s, Int64s

ENTERED, LEFT = 1, -1


@njit(cache=True)
def run_memberships(
    pairs: Table,
    options: Records,
    items: Items,
    order: Int64s,
    first: int,
    events: Records,
    values: Float64s,
    n_events: int,
) -> tuple[int, int]:
    """Apply items ``order[first:]``, and tell what is due in between in the same pair.

    Parameters
    ----------
    pairs, options : Table, OPTIONS[n_queries]
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
        row = find(pairs, items.queries[i], items.streams[i])
        if row < 0:
            if action != IN:
                continue
            row = add(pairs, options, items.queries[i], items.streams[i])
            if row < 0:
                return k, n_events
        if is_due_before(pairs, options, row, items, i):
            n_events = _fire(pairs, options, row, due_of(pairs, options, row), events, values, n_events)
        if action == IN:
            sign = _come_in(pairs, options, row, items, i)
        elif action == OUT:
            sign = _go_out(pairs, options, row, items, i)
        else:
            sign = _end(pairs, options, row, items, i)
        note_change(pairs, options, row)
        if sign:
            write_item(items, i, sign, NEVER, events, values, n_events)
            n_events += 1
    return int(order.size), n_events


@njit(cache=True, forceinline=True)
def _come_in(pairs: Table, options: Records, row: int, items: Items, i: int) -> int:
    """Let the stream be inside; return the sign of what is said, or 0."""
    flags = pairs.rows[row].flags
    pairs.rows[row].flags = flags | INSIDE
    if flags & WAITS_OUT:
        end_wait(pairs, row)
    elif flags & (TOLD | WAITS_IN) == 0:
        if options[items.queries[i]].stay > 0:
            begin_wait(pairs, row, items, i, WAITS_IN)
        elif _tell_entered(pairs, options, row, items.event_times[i]):
            return ENTERED
    return 0


@njit(cache=True, forceinline=True)
def _go_out(pairs: Table, options: Records, row: int, items: Items, i: int) -> int:
    """Let the stream be outside; return the sign of what is said, or 0."""
    flags = pairs.rows[row].flags
    if not flags & INSIDE:
        return 0  # with an exit region: it left that one, and had not been in the other
    pairs.rows[row].flags = flags & ~INSIDE
    if flags & WAITS_IN:
        end_wait(pairs, row)
    elif flags & TOLD:
        if options[items.queries[i]].away > 0:
            begin_wait(pairs, row, items, i, WAITS_OUT)
        elif _tell_left(pairs, options, row):
            return LEFT
    return 0


@njit(cache=True, forceinline=True)
def _end(pairs: Table, options: Records, row: int, items: Items, i: int) -> int:
    """End what there is of a membership; return the sign of what is said, or 0."""
    end_wait(pairs, row)
    pairs.rows[row].flags &= ~INSIDE
    if items.classes[i] == AT_STREAM_EXPIRY:
        # A stream that comes back from there may do so with any time. Whether the row is still there, or was removed
        # since the stream had been seen after its cooldown, must then not be seen.
        history = pairs.history[row]
        if history.last_entered + options[items.queries[i]].cooldown < items.moments[i]:
            history.last_entered = NEVER
    return LEFT if _tell_left(pairs, options, row) else 0


@njit(cache=True)
def fire_memberships(
    pairs: Table, options: Records, rows: Int32s, moments: Int64s, events: Records, values: Float64s
) -> int:
    """Tell what waits in ``rows``, confirmed at ``moments``; forget when a + was told where nothing waits.

    Parameters are those of ``run_memberships``; rows, moments : int32[k], int64[k]; events, values : of length k.
    Returns how many events there are. Raises nothing.
    """
    n_events = 0
    for j in range(rows.size):
        if pairs.rows[rows[j]].flags & (WAITS_IN | WAITS_OUT):
            n_events = _fire(pairs, options, rows[j], moments[j], events, values, n_events)
        else:
            pairs.history[rows[j]].last_entered = NEVER
        note_change(pairs, options, rows[j])
    return n_events


@njit(cache=True, forceinline=True)
def _fire(
    pairs: Table, options: Records, row: int, moment: int, events: Records, values: Float64s, n_events: int
) -> int:
    if pairs.rows[row].flags & WAITS_IN:
        end_wait(pairs, row)
        said, sign = _tell_entered(pairs, options, row, pairs.rows[row].begin), ENTERED
    else:
        end_wait(pairs, row)
        said, sign = _tell_left(pairs, options, row), LEFT
    if not said:
        return n_events
    write_waiting(pairs, row, sign, moment, events, values, n_events)
    events[n_events].event_times = pairs.rows[row].begin
    events[n_events].confirmed_times = moment
    return n_events + 1


@njit(cache=True, forceinline=True)
def _tell_entered(pairs: Table, options: Records, row: int, event_time: int) -> bool:
    """Let a membership begin; return whether there is an event."""
    option, history = options[pairs.rows[row].query], pairs.history[row]
    flags = pairs.rows[row].flags & ~TOLD
    pairs.rows[row].flags = flags | SILENT << TOLD_SHIFT
    last = history.last_entered
    if option.cooldown > 0 and last != NEVER and event_time <= last + option.cooldown:
        pairs.counts[N_SUPPRESSED] += 1
        return False
    if not _may_tell(pairs, options, row):
        return False
    pairs.rows[row].flags = flags | LOUD << TOLD_SHIFT
    if option.cooldown > 0:
        # Without a cooldown it is not kept, so that the pair's row can go.
        history.last_entered = event_time
    return True


@njit(cache=True, forceinline=True)
def _tell_left(pairs: Table, options: Records, row: int) -> bool:
    """Let a membership end; return whether there is an event."""
    told = (pairs.rows[row].flags & TOLD) >> TOLD_SHIFT
    pairs.rows[row].flags &= ~TOLD
    return told == LOUD and _may_tell(pairs, options, row)


@njit(cache=True, forceinline=True)
def _may_tell(pairs: Table, options: Records, row: int) -> bool:
    """Count an event; return whether it is one of the first `max_events`."""
    most = options[pairs.rows[row].query].max_events
    if most < 0:
        return True
    if pairs.history[row].n_events >= most:
        pairs.counts[N_SUPPRESSED] += 1
        return False
    pairs.history[row].n_events += 1
    return True


@njit(cache=True)
def set_told(pairs: Table, options: Records, rows: Int32s, told: Int32s) -> None:
    """Let ``rows`` be inside, told as given, and nothing wait. Raises nothing."""
    for j in range(rows.size):
        end_wait(pairs, rows[j])
        pairs.rows[rows[j]].flags = INSIDE | told[j] << TOLD_SHIFT
        note_change(pairs, options, rows[j])
