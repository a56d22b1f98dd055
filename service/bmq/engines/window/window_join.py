"""Window joins of two feeds: find the pairs of readings within sliding windows that satisfy a query.

Spatial Join CQ: pairs of readings are points, and the conjunctions of the queries are boxes.

    windows ─► pairs that boxes hold (window_search) ─► since, where ─► in order

The module knows rows and slots. The owner of a window removes readings from it; `WindowJoin.keep` returns how many.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bmq.engines.window.window_boxes import WindowBoxes
from bmq.engines.window.window_records import Fits, Window, WindowConditions, WindowPairs
from bmq.engines.window.window_search import CLUSTER, Costs, WindowSearch
from bmq.index.base import MatchIndex
from bmq.index.match.select_index import SelectIndex
from bmq.records import NEVER, Bools, Int32s, Int64s, JoinQuery
from bmq.records.column_records import concat, take

__all__ = ["Window", "WindowJoin", "WindowPairs"]

COSTS = Costs()
ALL_GONE = 2**63 - 1  # the number of a reading that never comes


class WindowJoin:
    """All window joins of one left and one right feed, by query slot.

    Parameters
    ----------
    n_left_columns, n_right_columns : columns of a window of each side.
    make : makes an index of the given number of dimensions.
    cluster, costs : as in `window_search`; tests make clusters small, and one way of the search free.

    Notes
    -----
    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
    section 6.
    Departures: see `window_space` and `window_search`.
    """

    def __init__(
        self,
        n_left_columns: int,
        n_right_columns: int,
        *,
        make: Callable[[int], MatchIndex] = SelectIndex,
        cluster: int = CLUSTER,
        costs: Costs = COSTS,
    ) -> None:
        self._n_columns = (n_left_columns, n_right_columns)
        self._cluster = cluster
        self._costs = costs
        self._queries: dict[int, JoinQuery] = {}
        self._boxes = WindowBoxes(make)
        self._since: Int64s = np.zeros((2, 0), dtype=np.int64)  # by side and slot, ALL_GONE: no query
        self._longest_ms: Int64s = np.zeros((2, 0), dtype=np.int64)  # by side and slot, -1: no such window
        self._longest_count: Int64s = np.zeros((2, 0), dtype=np.int64)  # by side and slot, 0: no such window
        self._has_where: Bools = np.zeros((2, 0), dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def nbytes(self) -> int:
        """Bytes of the indexes and of the columns by slot."""
        by_slot = (self._since, self._longest_ms, self._longest_count, self._has_where)
        return self._boxes.nbytes + sum(column.nbytes for column in by_slot)

    def put(self, slot: int, query: JoinQuery, since: tuple[int, int]) -> None:
        """Register a query.

        Parameters
        ----------
        slot : a small number that is not in use.
        query : if it has no alternatives, it finds no pairs, but its windows are kept.
        since : the number of the first reading of each side that counts for the query.

        Raises
        ------
        ValueError
            The slot is in use.
        """
        if slot in self._queries:
            raise ValueError(f"query slot {slot} is in use: remove its query first.")
        n_more = slot + 1 - self._since.shape[1]
        if n_more > 0:
            n_more = max(n_more, self._since.shape[1])
            room = ((0, 0), (0, n_more))
            self._since = np.pad(self._since, room, constant_values=ALL_GONE)
            self._longest_ms = np.pad(self._longest_ms, room, constant_values=-1)
            self._longest_count = np.pad(self._longest_count, room)
            self._has_where = np.pad(self._has_where, room)
        self._queries[slot] = query
        self._since[:, slot] = since
        for side, one in enumerate((query.left, query.right)):
            self._longest_ms[side, slot] = -1 if one.window_ms is None else one.window_ms
            self._longest_count[side, slot] = one.window_count or 0
            self._has_where[side, slot] = bool(one.where)
        self._boxes.put(slot, query)

    def remove(self, slot: int) -> None:
        """Remove a query.

        Raises
        ------
        KeyError
            The slot is not in use.
        """
        del self._queries[slot]
        self._since[:, slot], self._longest_ms[:, slot], self._longest_count[:, slot] = ALL_GONE, -1, 0
        self._boxes.remove(slot)

    def find(self, left: Window, right: Window, fits: Fits) -> WindowPairs:
        """Return the pairs whose later reading is new, that is, has a position of at least 0.

        Parameters
        ----------
        fits : returns which attribute codes fit a condition of a side; called once for each condition.

        Notes
        -----
        Time windows: the reading with the earlier event time must be within the time window of its own side, no matter
        which of the two was applied first. Counted windows: the reading that was applied earlier must be among the last
        n readings of its feed when the later reading is applied, if its side has a counted window of n readings.
        """
        windows = left, right
        self._boxes.settle()
        none: Int32s = np.empty(0, dtype=np.int32)
        parts = [WindowPairs(none, none, none, 0)]
        if self._boxes.n_live:
            conditions = WindowConditions(self._queries, self._has_where, windows, fits)
            left_since, right_since = self._since.min(axis=1).tolist()
            search = WindowSearch(
                self._boxes, windows, (left_since, right_since), cluster=self._cluster, costs=self._costs
            )
            for held in search.held():
                found = WindowPairs(self._boxes.query_by_box[held.boxes], held.left_rows, held.right_rows, held.visits)
                for side, window in enumerate(windows):
                    found = _at(found, window.first + found.rows(side) >= self._since[side][found.queries])
                    found = _at(found, conditions.fit(side, found.queries, found.rows(side)))
                parts.append(found)
        return replace(_in_order(concat(parts), windows), visits=sum(part.visits for part in parts))

    def keep(self, keep_from: Int64s, first: int, side: int, settled_other: int) -> int:
        """Return how many readings at the begin of a side's window no query needs any more.

        Parameters
        ----------
        keep_from : int64[n], epoch ms
            The event time and the lag of each reading in the window, in the order of application. A time window keeps
            a reading for its length from here.
        first : the number of the first reading in the window.
        settled_other : the settled time of the other feed, epoch ms. NEVER: not known.
        """
        rows = np.arange(keep_from.size)
        needed: Bools = rows >= keep_from.size - self._longest_count[side].max(initial=0)
        longest_ms = self._longest_ms[side].max(initial=-1)
        if longest_ms >= 0:
            needed |= keep_from >= max(settled_other - int(longest_ms), NEVER)
        needed &= first + rows >= self._since[side].min(initial=ALL_GONE)
        return int(np.argmax(needed)) if needed.any() else keep_from.size

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._boxes._check()
        assert len(self._boxes) == len(self)
        gone = np.setdiff1d(np.arange(self._since.shape[1]), list(self._queries))
        assert (self._since[:, gone] == ALL_GONE).all()


def _at(found: WindowPairs, rows: Bools) -> WindowPairs:
    return found if rows.all() else take(found, rows)


def _in_order(found: WindowPairs, windows: tuple[Window, Window]) -> WindowPairs:
    """Return all pairs in the order of `WindowPairs`, each once: several boxes of a query may hold the same pair."""
    left, right = windows[0].positions[found.left_rows], windows[1].positions[found.right_rows]
    later = np.maximum(left, right)
    # The earlier readings of one later reading are all of one feed, so their rows are in order of their positions.
    within = (found.queries.astype(np.int64) << 32) | np.where(left < right, found.left_rows, found.right_rows)
    order = np.argsort(within)
    order = order[np.argsort(later[order], kind="stable")]
    later, within = later[order], within[order]
    order = order[np.append(True, (later[1:] != later[:-1]) | (within[1:] != within[:-1]))[: order.size]]
    return take(found, order)
