"""The input and the output of a window join: windows, pairs, and the conditions on the attributes of readings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bmq.records import Bools, Float64s, Int32s, Int64s, JoinQuery, Where

# (side, condition, attribute codes) -> bool[n], which codes fit the condition.
Fits = Callable[[int, Where, Int32s], Bools]


@dataclass(frozen=True, slots=True)
class Window:
    """Readings of one side that may be joined, in the order in which they were applied.

    Attributes
    ----------
    columns : float64[c, n], the feed's dimensions, then its attributes as numbers; -inf: no number.
    event_times : int64[n], epoch ms.
    codes : int32[n], of the attributes; zeros if the feed has no attributes.
    keys : for each compared field: field -> int64[n], equal numbers for equal texts; -1: equal to nothing.
    first : the number of row 0 among all applied readings of the feed; the numbers of the other rows follow.
    positions : int64[n], ascending, the position in the merged sequence of both feeds; negative: before this batch.
    own : bool[n], whether the reading may be in a pair of this shard.
    """

    columns: Float64s
    event_times: Int64s
    codes: Int32s
    keys: Mapping[str, Int64s]
    first: int
    positions: Int64s
    own: Bools

    def __len__(self) -> int:
        return self.positions.size


@dataclass(frozen=True, slots=True)
class WindowPairs:
    """Pairs of rows of two windows, and the query that each pair satisfies.

    Attributes
    ----------
    queries, left_rows, right_rows : int32[k], in order of the position of the later reading, then of the query's slot,
        then of the position of the earlier reading.
    visits : the number of tested candidates.
    """

    queries: Int32s
    left_rows: Int32s
    right_rows: Int32s
    visits: int

    def rows(self, side: int) -> Int32s:
        """Return the rows of the left window (0) or of the right one (1)."""
        return (self.left_rows, self.right_rows)[side]


class WindowConditions:
    """The conditions of queries for the readings of two windows; each condition is evaluated once, at its first use.

    Parameters
    ----------
    queries : slot -> query.
    has_where : bool[2, n_slots], whether a query has a condition on a side.
    fits : see `Fits`.
    """

    def __init__(
        self, queries: Mapping[int, JoinQuery], has_where: Bools, windows: tuple[Window, Window], fits: Fits
    ) -> None:
        self._queries = queries
        self._has_where = has_where
        self._windows = windows
        self._fits = fits
        self._codes: dict[int, tuple[Int32s, Int64s]] = {}  # side -> distinct codes, and by row its place in them
        self._fitting: dict[tuple[int, Where], Bools] = {}

    def fit(self, side: int, queries: Int32s, rows: Int32s) -> Bools:
        """Return whether the reading in each row of a side's window fits its query, bool[k]."""
        fit: Bools = np.ones(queries.size, dtype=np.bool_)
        asking = np.flatnonzero(self._has_where[side][queries])
        if not asking.size:
            return fit
        order = asking[np.argsort(queries[asking], kind="stable")]
        slots, begins = np.unique(queries[order], return_index=True)
        for slot, of_one in zip(slots.tolist(), np.split(order, begins[1:]), strict=True):
            query = self._queries[slot]
            fit[of_one] = self._fitting_rows(side, (query.left, query.right)[side].where)[rows[of_one]]
        return fit

    def _fitting_rows(self, side: int, where: Where) -> Bools:
        if (side, where) not in self._fitting:
            if side not in self._codes:
                codes, code_by_row = np.unique(self._windows[side].codes, return_inverse=True)
                self._codes[side] = codes.astype(np.int32), code_by_row
            codes, code_by_row = self._codes[side]
            self._fitting[side, where] = self._fits(side, where, codes)[code_by_row]
        return self._fitting[side, where]
