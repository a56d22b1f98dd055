"""The table of trackings: a hash table of rows, and a list of rows for each query.

    (query, stream) ──► home ──► table[h] = row ──► rows[row], values[row], history[row]
                                 -1: free, else try h + 1
    options[query].first ──► row ──behind──► row ──behind──► -1       the rows of a query

Rows keep their number until they are removed. A row that is in the default state again stays, empty, until what
changed is taken: whoever copies the table must hear that it is gone. Arrays in, numbers out.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from bmq.kernels.tables.hashing import mix
from bmq.records import NEVER, Bools, Float64s, Int32s, Int64s

Records = npt.NDArray[np.void]

FAR = 2**63 - 1  # the due of a row that waits for nothing

# Rows of a block. Fewer: more bounds to read in each batch. More: more rows to read where one is due or touched; with
# 256, taking a thousand changes in a million rows took a third longer.
BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS

# The flags of a row. All are in checkpoints but TOUCHED: never change one.
INSIDE = 1
VISIT_SHIFT = 1
NO, EMITTED, SILENT = range(3)
VISIT = 3 << VISIT_SHIFT
PENDING_IN, PENDING_OUT = 8, 16
PENDING = PENDING_IN | PENDING_OUT
KEPT = 32  # there is history to be kept
TOUCHED = 64
STATE = INSIDE | VISIT | PENDING

ROW = np.dtype(
    [
        ("begin", np.int64),  # event time of the crossing that waits; else when to ask whether the cooldown matters
        ("query", np.int32),  # -1: the row is removed
        ("stream", np.int32),
        ("ordinal", np.int32),  # of the crossing that waits, like the reason
        ("before", np.int32),  # neighbours in the list of the query; -1: none
        ("behind", np.int32),  # also the list of removed rows
        ("reason", np.int8),
        ("flags", np.uint8),
    ],
    align=True,
)
HISTORY = np.dtype([("last_entered", np.int64), ("n_events", np.int32)])
OPTIONS = np.dtype(
    [
        ("stay", np.int64),  # how long a crossing waits: IN, OUT; both are `within` in a transition query
        ("away", np.int64),
        ("cooldown", np.int64),
        ("max_events", np.int32),  # -1: any number
        ("first", np.int32),  # row of the query; -1: none
        ("pattern", np.int8),  # 0: border query
    ],
    align=True,
)

# Places in `Table.counts`.
USED, REMOVED, N_ROWS, N_PENDING, NEXT_DUE, N_SUPPRESSED, ACCESSES, N_COUNTS = range(8)


class Table(NamedTuple):
    """Pairs and what is kept of them.

    Attributes
    ----------
    rows : ROW[capacity]
    history : HISTORY[capacity], or of length 0 where none is kept.
    values : float64[capacity, d]
        Of the crossings that wait.
    table : int32[more than capacity]
    bounds : int64[capacity / BLOCK]
        At most the due of each row of the block; epoch ms.
    touched : bool[capacity / BLOCK]
    counts : int64[N_COUNTS]
        Rows ever used, the first removed one (-1: none), rows in the table, crossings that wait, a time before all
        bounds, events suppressed, accesses of Tran-Seq.
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
    # The product's high half and no mask, so that the table may have any size and grows by an eighth with the rows.
    h = mix((uint64(query) << uint64(32)) | uint64(stream))
    # Signed within the kernel: numba would make a float of a signed and an unsigned place.
    return int(np.int64(((h >> uint64(32)) * uint64(table.size)) >> uint64(32)))


@njit(cache=True, forceinline=True)
def find(tracked: Table, query: int, stream: int) -> int:
    """Return the row of a pair, or -1."""
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
    h = _home(table, rows[row].query, rows[row].stream)
    while table[h] >= 0:
        h = h + 1 if h + 1 < table.size else 0
    table[h] = row


@njit(cache=True)
def enter_all(rows: Records, n_used: int, table: Int32s) -> None:
    """Fill an empty ``table`` with the rows below ``n_used`` that belong to a pair. Raises nothing."""
    for row in range(n_used):
        if rows[row].query >= 0:
            _enter(rows, table, row)


@njit(cache=True)
def add(tracked: Table, options: Records, query: int, stream: int) -> int:
    """Return a row in the default state for a pair that has none; -1: there is no room."""
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
    """Remove a row from everything, whatever its state. Raises nothing."""
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
    """Take a row out of the hash table; those behind it move up, so that no probe meets a gap."""
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
    """Remove ``rows``. Raises nothing."""
    for row in rows:
        remove(tracked, options, row)


@njit(cache=True)
def find_or_add(tracked: Table, options: Records, queries: Int32s, streams: Int32s, first: int, rows: Int32s) -> int:
    """Write the rows of trackings ``first`` and later, with new ones where there is none; return the first not done.

    Raises nothing. Fewer than n: there is no more room; grow the table and call again.
    """
    for i in range(first, queries.size):
        row = find(tracked, queries[i], streams[i])
        if row < 0:
            row = add(tracked, options, queries[i], streams[i])
        if row < 0:
            return i
        rows[i] = row
    return int(queries.size)
