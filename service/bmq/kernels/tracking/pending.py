"""What waits in the rows of tracked pairs, until when, and which rows have changed.

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
    N_WAITING,
    NEXT_DUE,
    STATE,
    TOUCHED,
    USED,
    WAITS,
    WAITS_IN,
    Records,
    Table,
    remove,
)
from bmq.records import NEVER, Bytes, Int32s, Int64s


@njit(cache=True, forceinline=True)
def due_of(pairs: Table, options: Records, row: int) -> int:
    """Return when a row is to be looked at: a crossing is due, or the cooldown may not matter any more; else FAR."""
    flags = pairs.rows[row].flags
    if flags & WAITS:
        option = options[pairs.rows[row].query]
        return int(pairs.rows[row].begin + (option.stay if flags & WAITS_IN else option.away))
    return int(pairs.rows[row].begin) if _cools_down(pairs, row) else FAR


@njit(cache=True, forceinline=True)
def _cools_down(pairs: Table, row: int) -> bool:
    """Return whether a row holds nothing but when a + was told."""
    flags = pairs.rows[row].flags
    return bool(flags & STATE == 0 and flags & KEPT and pairs.history[row].n_events == 0)


@njit(cache=True, forceinline=True)
def lower_bound(pairs: Table, options: Records, row: int) -> None:
    """Let the bounds hold for ``row``, which may be due earlier than before."""
    due = due_of(pairs, options, row)
    block = row >> BLOCK_BITS
    pairs.bounds[block] = min(pairs.bounds[block], due)
    pairs.counts[NEXT_DUE] = min(pairs.counts[NEXT_DUE], due)


@njit(cache=True, forceinline=True)
def _set_kept(pairs: Table, options: Records, row: int) -> None:
    """Bring a row up to date with its history."""
    history = pairs.history[row]
    is_kept = history.last_entered != NEVER or history.n_events > 0
    pairs.rows[row].flags = pairs.rows[row].flags & ~KEPT | (KEPT if is_kept else 0)
    if _cools_down(pairs, row):
        pairs.rows[row].begin = history.last_entered + options[pairs.rows[row].query].cooldown


@njit(cache=True, forceinline=True)
def note_change(pairs: Table, options: Records, row: int) -> None:
    """Bring flags and bounds up to date with a row that has changed, and note that it has."""
    if pairs.history.size:
        _set_kept(pairs, options, row)
    pairs.rows[row].flags = pairs.rows[row].flags | TOUCHED
    pairs.touched[row >> BLOCK_BITS] = True
    lower_bound(pairs, options, row)


@njit(cache=True, forceinline=True)
def begin_wait(pairs: Table, row: int, items: Items, i: int, waits: int) -> None:
    """Let the crossing of item ``i`` wait in a row, in place of one that does."""
    begun = pairs.rows[row]
    if not begun.flags & WAITS:
        pairs.counts[N_WAITING] += 1
    begun.flags = begun.flags & ~WAITS | waits
    begun.begin, begun.ordinal, begun.reason = items.event_times[i], items.ordinals[i], items.reasons[i]
    for k in range(items.values.shape[0]):
        pairs.values[row, k] = items.values[k, i]


@njit(cache=True, forceinline=True)
def end_wait(pairs: Table, row: int) -> None:
    """Let nothing wait in a row."""
    if pairs.rows[row].flags & WAITS:
        pairs.counts[N_WAITING] -= 1
        pairs.rows[row].flags = pairs.rows[row].flags & ~WAITS


@njit(cache=True, forceinline=True)
def is_due_before(pairs: Table, options: Records, row: int, items: Items, i: int) -> bool:
    """Return whether the crossing that waits in a row is due before item ``i`` happens."""
    if not pairs.rows[row].flags & WAITS:
        return False
    due = due_of(pairs, options, row)
    return bool(due < items.moments[i] or (due == items.moments[i] and items.classes[i] > FIRED))


@njit(cache=True)
def find_due(pairs: Table, options: Records, settled: int, last_times: Int64s) -> tuple[Int32s, Int64s]:
    """Return the rows in which a crossing is due, or which hold a cooldown that cannot matter any more.

    Parameters
    ----------
    pairs, options : Table, OPTIONS[n_queries]
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
    for block in range(pairs.bounds.size):
        if pairs.bounds[block] < settled:
            n_due += min(BLOCK, pairs.counts[USED] - block * BLOCK)
    rows, dues, n_due = np.empty(n_due, dtype=np.int32), np.empty(n_due, dtype=np.int64), 0
    next_due = FAR
    for block in range(pairs.bounds.size):
        if pairs.bounds[block] < settled:
            bound = FAR
            for row in range(block * BLOCK, min((block + 1) * BLOCK, pairs.counts[USED])):
                due = due_of(pairs, options, row)
                if due < settled and not pairs.rows[row].flags & WAITS:
                    due = _ask_cooldown(pairs, options, row, settled, last_times)
                if due < settled:
                    rows[n_due], dues[n_due] = row, due
                    n_due += 1
                else:
                    bound = min(bound, due)
            pairs.bounds[block] = bound
        next_due = min(next_due, pairs.bounds[block])
    pairs.counts[NEXT_DUE] = next_due
    return rows[:n_due], dues[:n_due]


@njit(cache=True)
def _ask_cooldown(pairs: Table, options: Records, row: int, settled: int, last_times: Int64s) -> int:
    """Return a time before ``settled`` where the cooldown in a row cannot matter; else when to ask again."""
    asked, cooldown = pairs.rows[row], options[pairs.rows[row].query].cooldown
    if asked.stream < last_times.size and pairs.history[row].last_entered + cooldown < last_times[asked.stream]:
        return int(asked.begin)
    asked.begin = settled + cooldown
    return int(asked.begin)


@njit(cache=True)
def take_touched(pairs: Table) -> Int32s:
    """Return the rows that have changed since the last call, int32[k], ascending. Raises nothing."""
    n_touched = 0
    for block in range(pairs.touched.size):
        if pairs.touched[block]:
            for row in range(block * BLOCK, min((block + 1) * BLOCK, pairs.counts[USED])):
                n_touched += pairs.rows[row].flags & TOUCHED != 0
    rows, n_touched = np.empty(n_touched, dtype=np.int32), 0
    for block in range(pairs.touched.size):
        if pairs.touched[block]:
            for row in range(block * BLOCK, min((block + 1) * BLOCK, pairs.counts[USED])):
                if pairs.rows[row].flags & TOUCHED:
                    pairs.rows[row].flags = pairs.rows[row].flags & ~TOUCHED
                    rows[n_touched] = row
                    n_touched += 1
            pairs.touched[block] = False
    return rows


@njit(cache=True)
def remove_gone(pairs: Table, options: Records, rows: Int32s) -> None:
    """Remove those of ``rows`` that are in the default state. Raises nothing."""
    for row in rows:
        if pairs.rows[row].flags == 0:
            remove(pairs, options, row)


@njit(cache=True)
def begin_history(pairs: Table, options: Records, rows: Int32s, cooldown: int, count: bool, last_times: Int64s) -> None:
    """Forget what ``rows`` hold that does not count under the options of now; renew the bounds.

    Parameters
    ----------
    cooldown : ms, of the options before. A + that was told longer than that before its stream's last reading is
        forgotten, since it may have been already. -1: each is; `FAR`: none is.
    count : forget how many events were told.
    last_times : int64[], epoch ms, of each stream slot; of streams beyond it nothing is over.

    Notes
    -----
    Raises nothing. Notes no change: whoever copies the table has the same options, and does the same.
    """
    for row in rows:
        if pairs.history.size:
            last, stream = pairs.history[row].last_entered, pairs.rows[row].stream
            is_seen = last != NEVER and cooldown != FAR and stream < last_times.size
            if cooldown < 0 or (is_seen and last + cooldown < last_times[stream]):
                pairs.history[row].last_entered = NEVER
            if count:
                pairs.history[row].n_events = 0
            _set_kept(pairs, options, row)
            if pairs.rows[row].flags == 0:
                remove(pairs, options, row)
                continue
        lower_bound(pairs, options, row)


@njit(cache=True)
def set_flags(pairs: Table, options: Records, rows: Int32s, flags: Bytes) -> None:
    """Give ``rows`` (each once) ``flags``, without TOUCHED, and renew the bounds; remove those with no flag.

    Raises nothing. What else is in the rows is the caller's; so is noting a change.
    """
    for i in range(rows.size):
        row = rows[i]
        pairs.counts[N_WAITING] += int(flags[i] & WAITS != 0) - int(pairs.rows[row].flags & WAITS != 0)
        pairs.rows[row].flags = pairs.rows[row].flags & TOUCHED | flags[i]
        if flags[i]:
            lower_bound(pairs, options, row)
        elif not pairs.rows[row].flags:
            remove(pairs, options, row)
