"""Which pairs fit the conditions that queries put on the attributes of the readings."""

from collections.abc import Mapping

import numpy as np

from bmq.engines.window_records import Fits, Window
from bmq.records import Bools, Int32s, Int64s, JoinQuery, Where


class WindowConditions:
    """The conditions of queries, for the readings of two windows; each is worked out once, when first asked about.

    Parameters
    ----------
    queries : by slot.
    has_where : bool[2, n_slots], whether a query has a condition on a side.
    """

    def __init__(
        self, queries: Mapping[int, JoinQuery], has_where: Bools, windows: tuple[Window, Window], fits: Fits
    ) -> None:
        self._queries = queries
        self._has_where = has_where
        self._windows = windows
        self._fits = fits
        self._codes: dict[int, tuple[Int32s, Int64s]] = {}  # side -> codes, and which of them each row has
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
