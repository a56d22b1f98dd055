"""The table of trackings: a hash table of rows, and a list of rows for each query. Arrays in, numbers out.

A tracking is what is kept of one (query, stream); each has one row.

    (query, stream) ──► home ──► table[h] = row ──► rows[row], values[row], history[row]
                                 -1: free, else try h + 1
    options[query].first ──► row ──behind──► row ──behind──► -1       the rows of a query

A row keeps its number until it is removed. A row that returns to the default state stays in the table, empty, until its
change has been taken: a replica of the table must receive that the tracking is gone.

Knows rows and lists. It must not know what is pending in a row or when it is due; that is `pending`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from bmq.kernels.tables.hashing import mix
from bmq.records import NEVER, Bools, Float64s, Int32s, Int64s

Records = npt.NDArray[np.void]

FAR = 2**63 - 1  # the due time of a row in which nothing is pending

# Rows of a block. With fewer, each batch reads more bounds. With more, it reads more rows where one is due or touched:
# with 256, taking a thousand changes in a million rows took a third longer.
BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS

# The flags of a row. All except TOUCHED are in checkpoints: never change one.
INSIDE = 1
VISIT_SHIFT = 1
NO, EMITTED, SILENT = range(3)
VISIT = 3 << VISIT_SHIFT
PENDING_IN, PENDING_OUT = 8, 16
PENDING = PENDING_IN | PENDING_OUT
KEPT = 32  # the row has history that must be kept
TOUCHED = 64
STATE = INSIDE | VISIT | PENDING

ROW = np.dtype(
    [
        ("begin", np.int64),  # event time of the pending crossing; if none, when to check the cooldown
        ("query", np.int32),  # -1: the row is removed
        ("stream", np.int32),
        ("ordinal", np.int32),  # of the pending crossing, like the reason
        ("before", np.int32),  # the neighbours in the query's list of rows; -1: none
        ("behind", np.int32),  # in a removed row: the next removed row
        ("reason", np.int8),
        ("flags", np.uint8),
    ],
    align=True,
)
HISTORY = np.dtype([("last_entered", np.int64), ("n_events", np.int32)])
OPTIONS = np.dtype(
    [
        ("stay", np.int64),  # ms that IN (stay) or OUT (away) is pending; transition queries: `within`
        ("away", np.int64),
        ("cooldown", np.int64),
        ("max_events", np.int32),  # -1: any number
        ("first", np.int32),  # the first row of the query; -1: none
        ("pattern", np.int8),  # 0: border query; else `records.Pattern`
    ],
    align=True,
)

# The places of the numbers in `Table.counts`.
USED, REMOVED, N_ROWS, N_PENDING, NEXT_DUE, DELAYED_DUE, N_SUPPRESSED, ACCESSES, N_COUNTS = range(9)


class Table(NamedTuple):
    """The rows of trackings, and what finds them.

    Attributes
    ----------
    rows : ROW[capacity]
    history : HISTORY[capacity], or of length 0 if no query needs history.
    values : float64[capacity, d]
        The value of the stream at the pending crossing of each row.
    table : int32[more than capacity]
        The hash table: row numbers; -1: free.
    bounds : int64[capacity / BLOCK], epoch ms
        For each block of rows a time that is not later than the due time of any of them.
    touched : bool[capacity / BLOCK]
        Whether a row of the block has changed.
    counts : int64[N_COUNTS]
        USED: rows ever used. REMOVED: the first removed row (-1: none). N_ROWS: rows in the table. N_PENDING: pending
        crossings. NEXT_DUE: a time not later than the due time of any row, except those that a lag delays, epoch ms.
        DELAYED_DUE: the same for these rows. N_SUPPRESSED: events suppressed. ACCESSES: accesses as Tran-Seq counts
        them.
    """

    rows: Records
    history: Records
    values: Float64s
    table: Int32s
    bounds: Int64s
    touched: Bools
    counts: Int64s


@njit(cache=True, forceinline=True)
def _home(table: Int32s, query: int, stream: int) -> int:
    """Return where in ``table`` the search for (query, stream) begins."""
    # The high half of the product and not a mask, so that the table may have any size and grow by an eighth with the
    # rows.
    h = mix((uint64(query) << uint64(32)) | uint64(stream))
    # Signed within the kernel: numba makes a float of a signed and an unsigned number.
    return int(np.int64(((h >> uint64(32)) * uint64(table.size)) >> uint64(32)))


@njit(cache=True, forceinline=True)
def find(tracked: Table, query: int, stream: int) -> int:
    """Return the row of the tracking of (query, stream), or -1 if there is none."""
    h = _home(tracked.table, query, stream)
    row = tracked.table[h]
    while row >= 0:
        if tracked.rows[row].stream == stream and tracked.rows[row].query == query:
            return int(row)
        h = h + 1 if h + 1 < tracked.table.size else 0
        row = tracked.table[h]
    return -1


@njit(cache=True)
def _enter(rows: Records, table: Int32s, row: int) -> None:
    """Add a row to the hash table."""
    h = _home(table, rows[row].query, rows[row].stream)
    while table[h] >= 0:
        h = h + 1 if h + 1 < table.size else 0
    table[h] = row


@njit(cache=True)
def enter_all(rows: Records, n_used: int, table: Int32s) -> None:
    """Add all rows below ``n_used`` that are not removed to an empty ``table``. Raises nothing."""
    for row in range(n_used):
        if rows[row].query >= 0:
            _enter(rows, table, row)


@njit(cache=True)
def add(tracked: Table, options: Records, query: int, stream: int) -> int:
    """Return a row in the default state for a (query, stream) that has none; -1 if there is no room."""
    row = tracked.counts[REMOVED]
    if row >= 0:
        tracked.counts[REMOVED] = tracked.rows[row].behind
    elif tracked.counts[USED] < tracked.rows.size:
        row = tracked.counts[USED]
        tracked.counts[USED] += 1
    else:
        return -1
    tracked.counts[N_ROWS] += 1
    added, behind = tracked.rows[row], options[query].first
    added.query, added.stream = query, stream
    added.flags = 0
    added.before, added.behind = -1, behind
    if behind >= 0:
        tracked.rows[behind].before = row
    options[query].first = row
    if tracked.history.size:
        tracked.history[row].last_entered = NEVER
        tracked.history[row].n_events = 0
    _enter(tracked.rows, tracked.table, row)
    return int(row)


@njit(cache=True)
def remove(tracked: Table, options: Records, row: int) -> None:
    """Remove a row from the table and from its query's list, whatever its state. Raises nothing."""
    removed = tracked.rows[row]
    if removed.flags & PENDING:
        tracked.counts[N_PENDING] -= 1
    tracked.counts[N_ROWS] -= 1
    if removed.behind >= 0:
        tracked.rows[removed.behind].before = removed.before
    if removed.before >= 0:
        tracked.rows[removed.before].behind = removed.behind
    else:
        options[removed.query].first = removed.behind
    _leave(tracked, row)
    removed.query, removed.flags = -1, 0
    removed.behind = tracked.counts[REMOVED]
    tracked.counts[REMOVED] = row


@njit(cache=True)
def _leave(tracked: Table, row: int) -> None:
    """Remove a row from the hash table and move the rows behind it up, so that no search ends at a gap."""
    table, size = tracked.table, tracked.table.size
    hole = _home(table, tracked.rows[row].query, tracked.rows[row].stream)
    while table[hole] != row:
        hole = hole + 1 if hole + 1 < size else 0
    h = hole
    while True:
        h = h + 1 if h + 1 < size else 0
        other = table[h]
        if other < 0:
            break
        home = _home(table, tracked.rows[other].query, tracked.rows[other].stream)
        if (h - home) % size >= (h - hole) % size:
            table[hole] = other
            hole = h
    table[hole] = -1


@njit(cache=True)
def rows_of(tracked: Table, options: Records, query: int) -> Int32s:
    """Return the rows of a query, int32[k]. Raises nothing."""
    n_found, row = 0, options[query].first
    while row >= 0:
        n_found += 1
        row = tracked.rows[row].behind
    rows, n_found, row = np.empty(n_found, dtype=np.int32), 0, options[query].first
    while row >= 0:
        rows[n_found] = row
        n_found += 1
        row = tracked.rows[row].behind
    return rows


@njit(cache=True)
def remove_all(tracked: Table, options: Records, rows: Int32s) -> None:
    """Remove ``rows`` (int32[k]). Raises nothing."""
    for row in rows:
        remove(tracked, options, row)


@njit(cache=True)
def find_or_add(tracked: Table, options: Records, queries: Int32s, streams: Int32s, first: int, rows: Int32s) -> int:
    """Write the rows of the trackings from ``first`` on, adding missing rows; return the first one not done.

    Parameters
    ----------
    tracked, options : Table, OPTIONS[n_queries]
        Written.
    queries, streams : int32[n]
        The query slot and the stream slot of each tracking.
    first : int
        Where to continue after a call that ran out of room; 0 in the first call.
    rows : int32[n]
        Written.

    Notes
    -----
    Raises nothing. If the result is less than n, there is no more room: the caller enlarges the table and calls again.
    """
    for i in range(first, queries.size):
        row = find(tracked, queries[i], streams[i])
        if row < 0:
            row = add(tracked, options, queries[i], streams[i])
        if row < 0:
            return i
        rows[i] = row
    return int(queries.size)
