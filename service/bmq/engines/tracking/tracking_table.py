"""The rows of trackings: the arrays that hold them, and the search for the row of a (query, stream).

The table knows slots and rows. It does not know what a row means: `kernels.tracking.noise` and
`kernels.tracking.tran_seq` do.
"""

import numpy as np

from bmq.kernels.tracking import tracking_rows as kernel
from bmq.kernels.tracking.pending import due_of
from bmq.kernels.tracking.tracking_rows import BLOCK, Records, Table
from bmq.records import NEVER, Bytes, Int32s

# Four hash table entries for three rows: at three quarters full, a search that finds nothing looks at eight entries.
_ENTRIES, _ROWS = 4, 3


class TrackingTable:
    """Trackings by (query slot, stream slot).

    Memory: 37 + 8 * d bytes a row, and 12 more if the table keeps history. Rows and hash table grow together by an
    eighth. So a table of two dimensions without history, once it has some thousands of rows, takes at most 61 bytes a
    row in use. It does not shrink.

    Parameters
    ----------
    n_dims : dimensions of the feed.
    keeps_history : whether a row has the time of the last emitted + and the number of emitted events.
    """

    def __init__(self, n_dims: int, *, keeps_history: bool) -> None:
        self._keeps_history = keeps_history
        counts = np.zeros(kernel.N_COUNTS, dtype=np.int64)
        counts[kernel.REMOVED] = -1
        counts[[kernel.NEXT_DUE, kernel.DELAYED_DUE]] = kernel.FAR
        self.state = Table(
            np.empty(0, dtype=kernel.ROW),
            np.empty(0, dtype=kernel.HISTORY),
            np.empty((0, n_dims)),
            np.empty(0, dtype=np.int32),
            np.empty(0, dtype=np.int64),
            np.empty(0, dtype=np.bool_),
            counts,
        )
        self.grow()

    def __len__(self) -> int:
        return self.count(kernel.N_ROWS)

    def count(self, place: int) -> int:
        """Return one of the counts of `kernels.tracking.tracking_rows.Table`."""
        return int(self.state.counts[place])

    def next_due(self, *, has_moved: bool) -> int:
        """Return a time, epoch ms, before which no row is due; see ``Trackings.next_due``."""
        next_due = self.count(kernel.NEXT_DUE)
        return min(next_due, self.count(kernel.DELAYED_DUE)) if has_moved else next_due

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.state)

    def grow(self) -> None:
        """Make room for an eighth more rows."""
        old = self.state
        n_blocks = old.bounds.size + max(1, old.bounds.size // 8)
        capacity = n_blocks * BLOCK
        new = Table(
            np.zeros(capacity, dtype=kernel.ROW),
            np.empty(capacity if self._keeps_history else 0, dtype=kernel.HISTORY),
            # Zeros and not `np.empty`: the state includes the value of every row, but a value is written only when a
            # crossing becomes pending.
            np.zeros((capacity, old.values.shape[1])),
            np.full(capacity * _ENTRIES // _ROWS, -1, dtype=np.int32),
            np.full(n_blocks, kernel.FAR, dtype=np.int64),
            np.zeros(n_blocks, dtype=np.bool_),
            old.counts,
        )
        for larger, smaller in (
            (new.rows, old.rows),
            (new.history, old.history),
            (new.values, old.values),
            (new.bounds, old.bounds),
            (new.touched, old.touched),
        ):
            larger[: smaller.shape[0]] = smaller
        kernel.enter_all(new.rows, self.count(kernel.USED), new.table)
        self.state = new

    def find_or_add(self, options: Records, queries: Int32s, streams: Int32s) -> Int32s:
        """Return the row of each (query, stream); a (query, stream) without a row gets one in the default state."""
        rows = np.empty(queries.size, dtype=np.int32)
        done = kernel.find_or_add(self.state, options, queries, streams, 0, rows)
        while done < queries.size:
            self.grow()
            done = kernel.find_or_add(self.state, options, queries, streams, done, rows)
        return rows

    def kept_rows(self) -> Int32s:
        """Return the rows that are not in the default state, ascending."""
        flags = self.state.rows["flags"][: self.count(kernel.USED)]
        return np.flatnonzero(flags & ~np.uint8(kernel.TOUCHED)).astype(np.int32)

    def flags_of(self, rows: Int32s) -> Bytes:
        """Return the flags of ``rows``, without TOUCHED."""
        flags: Bytes = self.state.rows["flags"][rows] & ~np.uint8(kernel.TOUCHED)
        return flags

    def history_of(self, rows: Int32s) -> Records:
        """Return the history of ``rows``, HISTORY[n]; a table without history returns the default."""
        if self._keeps_history:
            history: Records = self.state.history[rows]
            return history
        return np.full(rows.size, np.array((NEVER, 0), dtype=kernel.HISTORY))

    def _check(self, options: Records) -> None:
        """State every invariant of the table; for tests."""
        state, n_used = self.state, self.count(kernel.USED)
        rows = state.rows[:n_used]
        taken = np.flatnonzero(rows["query"] >= 0)
        # Each row belongs to one (query, stream), and the hash table finds it; all other rows are in the list of
        # removed rows.
        assert taken.size == len(self)
        assert np.array_equal(np.sort(state.table[state.table >= 0]), taken)
        pairs = list(zip(rows["query"][taken].tolist(), rows["stream"][taken].tolist(), strict=True))
        assert len(set(pairs)) == len(pairs)
        assert [kernel.find(state, *pair) for pair in pairs] == taken.tolist()
        removed, row = [], self.count(kernel.REMOVED)
        while row >= 0:
            removed.append(row)
            row = int(rows[row]["behind"])
        assert sorted([*removed, *taken.tolist()]) == list(range(n_used))
        assert not rows["flags"][removed].any()
        # The list of a query holds its rows.
        for query in set(rows["query"][taken].tolist()):
            listed = kernel.rows_of(state, options, query)
            assert np.array_equal(np.sort(listed), np.flatnonzero(rows["query"] == query))
        # N_PENDING is the number of pending rows. No bound of a block is after the due of a row in it. A row in the
        # default state is touched.
        assert self.count(kernel.N_PENDING) == np.count_nonzero(rows["flags"] & kernel.PENDING)
        for row in taken.tolist():
            flags = int(rows["flags"][row])
            assert flags
            assert flags & kernel.PENDING != kernel.PENDING
            assert state.bounds[row // BLOCK] <= due_of(state, options, row)
            assert state.touched[row // BLOCK] or not flags & kernel.TOUCHED
            if self._keeps_history:
                last_entered, n_events = state.history[row].tolist()
                assert (flags & kernel.KEPT != 0) == (last_entered != NEVER or n_events > 0)
        assert self.next_due(has_moved=True) <= state.bounds.min(initial=kernel.FAR)
