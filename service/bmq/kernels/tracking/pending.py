"""The pending crossings in the rows of trackings: when each is due, and which rows have changed.

    rows      |  block 0: 64 rows  |  block 1  |  block 2  |
    bounds    |  at most each due  |           |           |      looked at when bounds[block] is before now
    touched   |  any row changed   |           |           |      looked at when touched[block]

Knows rows, their due times and the options of queries. It must not know which events a row makes; those are `noise` and
`tran_seq`. Arrays in, numbers out. Invariant: a bound is never later than the due time of a row of its block.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.tracking.tracking_events import AT_QUERY_EXPIRY, FIRED, Items
from bmq.kernels.tracking.tracking_rows import (
    BLOCK,
    BLOCK_BITS,
    DELAYED_DUE,
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


class StreamTimes(NamedTuple):
    """How far time has come for each stream slot. A stream beyond an array has no reading, and no lag.

    Attributes
    ----------
    settled : int, epoch ms
        The settled time of the feed.
    lags : int64[], ms
        By how much the own time of each stream is behind the settled time.
    last_times : int64[], epoch ms
        The last applied reading of each stream.
    """

    settled: int
    lags: Int64s
    last_times: Int64s


@njit(cache=True, forceinline=True)
def own_time(times: StreamTimes, stream: int) -> int:
    """Return the epoch ms before which the timers of a stream fire."""
    return int(times.settled - times.lags[stream]) if stream < times.lags.size else int(times.settled)


@njit(cache=True, forceinline=True)
def due_of(tracked: Table, options: Records, row: int) -> int:
    """Return the due time (epoch ms) of a row, or `FAR` if it has none.

    If a crossing is pending, that is when it is confirmed. If the row holds only a cooldown, it is when to check
    whether the cooldown can still matter.
    """
    flags = tracked.rows[row].flags
    if flags & PENDING:
        option = options[tracked.rows[row].query]
        return int(tracked.rows[row].begin + (option.stay if flags & PENDING_IN else option.away))
    return int(tracked.rows[row].begin) if _cools_down(tracked, row) else FAR


@njit(cache=True, forceinline=True)
def _cools_down(tracked: Table, row: int) -> bool:
    """Return whether a row holds nothing but the time of its last +."""
    flags = tracked.rows[row].flags
    return bool(flags & STATE == 0 and flags & KEPT and tracked.history[row].n_events == 0)


@njit(cache=True, forceinline=True)
def lower_bound(tracked: Table, options: Records, row: int) -> None:
    """Lower the bounds to the due time of ``row``, which may be earlier than before."""
    due = due_of(tracked, options, row)
    block = row >> BLOCK_BITS
    tracked.bounds[block] = min(tracked.bounds[block], due)
    tracked.counts[NEXT_DUE] = min(tracked.counts[NEXT_DUE], due)


@njit(cache=True, forceinline=True)
def _set_kept(tracked: Table, options: Records, row: int) -> None:
    """Set the flag KEPT of a row by its history, and the time to check its cooldown if the row holds nothing else."""
    history = tracked.history[row]
    is_kept = history.last_entered != NEVER or history.n_events > 0
    tracked.rows[row].flags = tracked.rows[row].flags & ~KEPT | (KEPT if is_kept else 0)
    if _cools_down(tracked, row):
        tracked.rows[row].begin = history.last_entered + options[tracked.rows[row].query].cooldown


@njit(cache=True, forceinline=True)
def note_change(tracked: Table, options: Records, row: int) -> None:
    """Update the flags and bounds of a row after a change, and mark it as touched."""
    if tracked.history.size:
        _set_kept(tracked, options, row)
    tracked.rows[row].flags = tracked.rows[row].flags | TOUCHED
    tracked.touched[row >> BLOCK_BITS] = True
    lower_bound(tracked, options, row)


@njit(cache=True, forceinline=True)
def begin_pending(tracked: Table, row: int, items: Items, i: int, pending: int) -> None:
    """Make the crossing of item ``i`` pending in a row, with the flag ``pending``; it replaces a pending one."""
    begun = tracked.rows[row]
    if not begun.flags & PENDING:
        tracked.counts[N_PENDING] += 1
    begun.flags = begun.flags & ~PENDING | pending
    begun.begin, begun.ordinal, begun.reason = items.event_times[i], items.ordinals[i], items.reasons[i]
    for k in range(items.values.shape[0]):
        tracked.values[row, k] = items.values[k, i]


@njit(cache=True, forceinline=True)
def end_pending(tracked: Table, row: int) -> None:
    """Cancel the pending crossing of a row, if there is one."""
    if tracked.rows[row].flags & PENDING:
        tracked.counts[N_PENDING] -= 1
        tracked.rows[row].flags = tracked.rows[row].flags & ~PENDING


@njit(cache=True, forceinline=True)
def is_due_before(tracked: Table, options: Records, row: int, times: StreamTimes, items: Items, i: int) -> bool:
    """Return whether the crossing that is pending in a row fires before item ``i``.

    At the same moment it fires before an item of a class after FIRED, and after a reading. If the query of the item
    ends and the stream's own time is behind that, the crossing does not fire.
    """
    if not tracked.rows[row].flags & PENDING:
        return False
    due = due_of(tracked, options, row)
    if items.classes[i] == AT_QUERY_EXPIRY and due >= own_time(times, tracked.rows[row].stream):
        return False
    return bool(due < items.moments[i] or (due == items.moments[i] and items.classes[i] > FIRED))


@njit(cache=True)
def find_due(tracked: Table, options: Records, times: StreamTimes) -> tuple[Int32s, Int64s]:
    """Return the rows with a crossing that is due, and those with a cooldown that can no longer matter.

    Parameters
    ----------
    tracked, options : Table, OPTIONS[n_queries]
        The bounds are written, and when to check a cooldown again.
    times : StreamTimes
        A pending crossing is due if its due time is before the own time of its stream. A cooldown that ended before the
        last reading of its stream can no longer matter, because later readings are not earlier than that one. Any other
        cooldown is kept and checked again one cooldown after the settled time.

    Returns
    -------
    int32[k], int64[k]
        The rows, and when they were due. Afterwards the bounds hold for all other rows; the caller must handle these.

    Notes
    -----
    Raises nothing. Looks only at blocks whose bound is before the settled time: something in them is due, or something
    that was due has been cancelled, or would be due if its stream had no lag. The bound of such a crossing stays as it
    is, because a later reading may make the lag smaller. It is in DELAYED_DUE and not in NEXT_DUE, so that nobody looks
    at it again before the time moves or a reading comes.
    """
    settled, n_due = times.settled, 0
    for block in range(tracked.bounds.size):
        if tracked.bounds[block] < settled:
            n_due += min(BLOCK, tracked.counts[USED] - block * BLOCK)
    rows, dues, n_due = np.empty(n_due, dtype=np.int32), np.empty(n_due, dtype=np.int64), 0
    next_due, delayed_due = FAR, FAR
    for block in range(tracked.bounds.size):
        if tracked.bounds[block] < settled:
            bound, delayed = FAR, FAR
            for row in range(block * BLOCK, min((block + 1) * BLOCK, tracked.counts[USED])):
                due = due_of(tracked, options, row)
                is_over = due < settled
                if is_over and tracked.rows[row].flags & PENDING:
                    is_over = due < own_time(times, tracked.rows[row].stream)
                elif is_over:
                    due = _ask_cooldown(tracked, options, row, times)
                    is_over = due < settled
                if is_over:
                    rows[n_due], dues[n_due] = row, due
                    n_due += 1
                elif due < settled:
                    delayed = min(delayed, due)
                else:
                    bound = min(bound, due)
            tracked.bounds[block] = min(bound, delayed)
            next_due, delayed_due = min(next_due, bound), min(delayed_due, delayed)
        else:
            next_due = min(next_due, tracked.bounds[block])
    tracked.counts[NEXT_DUE], tracked.counts[DELAYED_DUE] = next_due, delayed_due
    return rows[:n_due], dues[:n_due]


@njit(cache=True)
def _ask_cooldown(tracked: Table, options: Records, row: int, times: StreamTimes) -> int:
    """Return a time before the settled time if a row's cooldown can no longer matter; else when to check it again."""
    asked, cooldown = tracked.rows[row], options[tracked.rows[row].query].cooldown
    last_times = times.last_times
    if asked.stream < last_times.size and tracked.history[row].last_entered + cooldown < last_times[asked.stream]:
        return int(asked.begin)
    asked.begin = times.settled + cooldown
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
    """Adapt the history of ``rows`` to new options of their query: forget what no longer counts, and lower the bounds.

    Parameters
    ----------
    tracked, options : Table, OPTIONS[n_queries]
        Written; ``options`` are the new ones.
    rows : int32[k]
    cooldown : int, ms
        The cooldown of the old options. A + that was emitted longer than this before the last reading of its stream is
        forgotten, because it may have been forgotten already. -1: each + is forgotten; `FAR`: none is.
    count : bool
        Whether to forget how many events were emitted.
    last_times : int64[], epoch ms
        The last reading of each stream slot. For a stream beyond the array, no cooldown is over.

    Notes
    -----
    Raises nothing. Does not mark rows as touched: a replica of the table gets the same options and does the same.
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
    """Set the flags of ``rows`` (each once) to ``flags`` (uint8[k]); remove rows without any flag; lower the bounds.

    The flag TOUCHED is left as it is. The caller writes the other fields of the rows and marks the change. Raises
    nothing.
    """
    for i in range(rows.size):
        row = rows[i]
        tracked.counts[N_PENDING] += int(flags[i] & PENDING != 0) - int(tracked.rows[row].flags & PENDING != 0)
        tracked.rows[row].flags = tracked.rows[row].flags & TOUCHED | flags[i]
        if flags[i]:
            lower_bound(tracked, options, row)
        elif not tracked.rows[row].flags:
            remove(tracked, options, row)
