"""What is pending in the rows of trackings, until when, and which rows have changed.

    rows      |  block 0: 64 rows  |  block 1  |  block 2  |
    bounds    |  at most each due  |           |           |      looked at when bounds[block] is before now
    touched   |  any row changed   |           |           |      looked at when touched[block]

Arrays in, numbers out.
"""

import numpy as np
from numba import njit

from bmq.kernels.tracking.tracking_events import FIRED, Items
from bmq.kernels.tracking.tracking_rows import (
    BLOCK,
    BLOCK_BITS,
    FAR,
    KEPT,
    N_PENDING,
    NEXT_DUE,
    PENDING,
    PENDING_IN,
    STATE,
    TOUCHED,
    USED,
    Records,
    Table,
    remove,
)
from bmq.records import NEVER, Bytes, Int32s, Int64s


@njit(cache=True, forceinline=True)
def due_of(tracked: Table, options: Records, row: int) -> int:
    """Return when a row is to be looked at: a crossing is due, or the cooldown may not matter any more; else FAR."""
    flags = tracked.rows[row].flags
    if flags & PENDING:
        option = options[tracked.rows[row].query]
        return int(tracked.rows[row].begin + (option.stay if flags & PENDING_IN else option.away))
    return int(tracked.rows[row].begin) if _cools_down(tracked, row) else FAR


@njit(cache=True, forceinline=True)
def _cools_down(tracked: Table, row: int) -> bool:
    """Return whether a row holds nothing but when the last + was emitted."""
    flags = tracked.rows[row].flags
    return bool(flags & STATE == 0 and flags & KEPT and tracked.history[row].n_events == 0)


@njit(cache=True, forceinline=True)
def lower_bound(tracked: Table, options: Records, row: int) -> None:
    """Let the bounds hold for ``row``, which may be due earlier than before."""
    due = due_of(tracked, options, row)
    block = row >> BLOCK_BITS
    tracked.bounds[block] = min(tracked.bounds[block], due)
    tracked.counts[NEXT_DUE] = min(tracked.counts[NEXT_DUE], due)


@njit(cache=True, forceinline=True)
def _set_kept(tracked: Table, options: Records, row: int) -> None:
    """Bring a row up to date with its history."""
    history = tracked.history[row]
    is_kept = history.last_entered != NEVER or history.n_events > 0
    tracked.rows[row].flags = tracked.rows[row].flags & ~KEPT | (KEPT if is_kept else 0)
    if _cools_down(tracked, row):
        tracked.rows[row].begin = history.last_entered + options[tracked.rows[row].query].cooldown


@njit(cache=True, forceinline=True)
def note_change(tracked: Table, options: Records, row: int) -> None:
    """Bring flags and bounds up to date with a row that has changed, and note that it has."""
    if tracked.history.size:
        _set_kept(tracked, options, row)
    tracked.rows[row].flags = tracked.rows[row].flags | TOUCHED
    tracked.touched[row >> BLOCK_BITS] = True
    lower_bound(tracked, options, row)


@njit(cache=True, forceinline=True)
def begin_pending(tracked: Table, row: int, items: Items, i: int, pending: int) -> None:
    """Let the crossing of item ``i`` wait in a row, in place of one that does."""
    begun = tracked.rows[row]
    if not begun.flags & PENDING:
        tracked.counts[N_PENDING] += 1
    begun.flags = begun.flags & ~PENDING | pending
    begun.begin, begun.ordinal, begun.reason = items.event_times[i], items.ordinals[i], items.reasons[i]
    for k in range(items.values.shape[0]):
        tracked.values[row, k] = items.values[k, i]


@njit(cache=True, forceinline=True)
def end_pending(tracked: Table, row: int) -> None:
    """Let nothing wait in a row."""
    if tracked.rows[row].flags & PENDING:
        tracked.counts[N_PENDING] -= 1
        tracked.rows[row].flags = tracked.rows[row].flags & ~PENDING


@njit(cache=True, forceinline=True)
def is_due_before(tracked: Table, options: Records, row: int, items: Items, i: int) -> bool:
    """Return whether the crossing that is pending in a row is due before item ``i`` happens."""
    if not tracked.rows[row].flags & PENDING:
        return False
    due = due_of(tracked, options, row)
    return bool(due < items.moments[i] or (due == items.moments[i] and items.classes[i] > FIRED))


@njit(cache=True)
def find_due(tracked: Table, options: Records, settled: int, last_times: Int64s) -> tuple[Int32s, Int64s]:
    """Return the rows in which a crossing is due, or which hold a cooldown that cannot matter any more.

    Parameters
    ----------
    tracked, options : Table, OPTIONS[n_queries]
    settled : epoch ms
        A crossing due before it is due.
    last_times : int64[], epoch ms
        The last reading of each stream. A cooldown that ended before it cannot matter: what comes is not earlier.
        Of the others, and of streams beyond the array, the cooldown is kept, and asked for again a cooldown later.

    Returns
    -------
    int32[k], int64[k]
        Rows, and when they were due. The bounds hold for all other rows: the caller sees to these.

    Notes
    -----
    Raises nothing. Looks at the blocks whose bound is before ``settled``: those in which something is due, and
    those in which what was due has been cancelled.
    """
    n_due = 0
    for block in range(tracked.bounds.size):
        if tracked.bounds[block] < settled:
            n_due += min(BLOCK, tracked.counts[USED] - block * BLOCK)
    rows, dues, n_due = np.empty(n_due, dtype=np.int32), np.empty(n_due, dtype=np.int64), 0
    next_due = FAR
    for block in range(tracked.bounds.size):
        if tracked.bounds[block] < settled:
            bound = FAR
            for row in range(block * BLOCK, min((block + 1) * BLOCK, tracked.counts[USED])):
                due = due_of(tracked, options, row)
                if due < settled and not tracked.rows[row].flags & PENDING:
                    due = _ask_cooldown(tracked, options, row, settled, last_times)
                if due < settled:
                    rows[n_due], dues[n_due] = row, due
                    n_due += 1
                else:
                    bound = min(bound, due)
            tracked.bounds[block] = bound
        next_due = min(next_due, tracked.bounds[block])
    tracked.counts[NEXT_DUE] = next_due
    return rows[:n_due], dues[:n_due]


@njit(cache=True)
def _ask_cooldown(tracked: Table, options: Records, row: int, settled: int, last_times: Int64s) -> int:
    """Return a time before ``settled`` where the cooldown in a row cannot matter; else when to ask again."""
    asked, cooldown = tracked.rows[row], options[tracked.rows[row].query].cooldown
    if asked.stream < last_times.size and tracked.history[row].last_entered + cooldown < last_times[asked.stream]:
        return int(asked.begin)
    asked.begin = settled + cooldown
    return int(asked.begin)


@njit(cache=True)
def take_touched(tracked: Table) -> Int32s:
    """Return the rows that have changed since the last call, int32[k], ascending. Raises nothing."""
    n_touched = 0
    for block in range(tracked.touched.size):
        if tracked.touched[block]:
            for row in range(block * BLOCK, min((block + 1) * BLOCK, tracked.counts[USED])):
                n_touched += tracked.rows[row].flags & TOUCHED != 0
    rows, n_touched = np.empty(n_touched, dtype=np.int32), 0
    for block in range(tracked.touched.size):
        if tracked.touched[block]:
            for row in range(block * BLOCK, min((block + 1) * BLOCK, tracked.counts[USED])):
                if tracked.rows[row].flags & TOUCHED:
                    tracked.rows[row].flags = tracked.rows[row].flags & ~TOUCHED
                    rows[n_touched] = row
                    n_touched += 1
            tracked.touched[block] = False
    return rows


@njit(cache=True)
def remove_gone(tracked: Table, options: Records, rows: Int32s) -> None:
    """Remove those of ``rows`` that are in the default state. Raises nothing."""
    for row in rows:
        if tracked.rows[row].flags == 0:
            remove(tracked, options, row)


@njit(cache=True)
def begin_history(
    tracked: Table, options: Records, rows: Int32s, cooldown: int, count: bool, last_times: Int64s
) -> None:
    """Forget what ``rows`` hold that does not count under the options of now; renew the bounds.

    Parameters
    ----------
    cooldown : ms, of the options before. A + that was visit longer than that before its stream's last reading is
        forgotten, since it may have been already. -1: each is; `FAR`: none is.
    count : forget how many events were visit.
    last_times : int64[], epoch ms, of each stream slot; of streams beyond it nothing is over.

    Notes
    -----
    Raises nothing. Notes no change: whoever copies the table has the same options, and does the same.
    """
    for row in rows:
        if tracked.history.size:
            last, stream = tracked.history[row].last_entered, tracked.rows[row].stream
            is_seen = last != NEVER and cooldown != FAR and stream < last_times.size
            if cooldown < 0 or (is_seen and last + cooldown < last_times[stream]):
                tracked.history[row].last_entered = NEVER
            if count:
                tracked.history[row].n_events = 0
            _set_kept(tracked, options, row)
            if tracked.rows[row].flags == 0:
                remove(tracked, options, row)
                continue
        lower_bound(tracked, options, row)


@njit(cache=True)
def set_flags(tracked: Table, options: Records, rows: Int32s, flags: Bytes) -> None:
    """Give ``rows`` (each once) ``flags``, without TOUCHED, and renew the bounds; remove those with no flag.

    Raises nothing. What else is in the rows is the caller's; so is noting a change.
    """
    for i in range(rows.size):
        row = rows[i]
        tracked.counts[N_PENDING] += int(flags[i] & PENDING != 0) - int(tracked.rows[row].flags & PENDING != 0)
        tracked.rows[row].flags = tracked.rows[row].flags & TOUCHED | flags[i]
        if flags[i]:
            lower_bound(tracked, options, row)
        elif not tracked.rows[row].flags:
            remove(tracked, options, row)
