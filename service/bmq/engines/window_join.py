"""Window joins of two feeds: which pairs of readings within sliding windows satisfy which queries.

Spatial Join CQ: pairs that may be joined are points, the queries' conjunctions are boxes, and a cluster of points at a
time is joined with the boxes.

    windows ─► ranges of pairs ─► clusters of points ─► index of boxes ─► where, equal, since ─► pairs
               (window_ranges)                          (window_boxes)

Knows rows and slots. What a window still holds is for its owner to say, who asks `WindowJoin.keep`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bmq.engines.window_boxes import RANK, WindowBoxes
from bmq.engines.window_ranges import EVERYWHERE, Asked, narrowest
from bmq.index.base import MatchIndex
from bmq.index.select import SelectIndex
from bmq.kernels.window_pairs import coordinates, pairs_of_ranges
from bmq.records import NEVER, Bools, Float64s, Int32s, Int64s, JoinQuery, Where

# Pairs that are joined with the index at a time: 8 bytes an axis each, so some megabytes.
CLUSTER = 1 << 16

ALL_GONE = 2**63 - 1  # the number of a first reading that never comes

Fields = tuple[str | None, str | None]
Fits = Callable[[int, Where, Int32s], Bools]


@dataclass(frozen=True, slots=True)
class Window:
    """Readings of one side that may be joined, in the order in which they were applied.

    Attributes
    ----------
    columns : float64[c, n], the feed's dimensions, then its attributes as numbers; -inf: no number.
    event_times : int64[n], epoch ms.
    codes : int32[n], of the attributes; zeros where the feed has none.
    keys : field -> int64[n], equal numbers for equal texts; -1: equal to nothing. For each field that is compared.
    first : the number of row 0 among all readings that were ever applied of the feed; the others follow.
    positions : int64[n], ascending, where each stands in the merged sequence of both feeds; negative: before this
        batch.
    own : bool[n], whether it may be part of a pair here.
    """

    columns: Float64s
    event_times: Int64s
    codes: Int32s
    keys: Mapping[str, Int64s]
    first: int
    positions: Int64s
    own: Bools


@dataclass(frozen=True, slots=True)
class WindowPairs:
    """Pairs of rows of two windows, and the query that each satisfies; visits: candidates looked at.

    queries, left_rows, right_rows : int32[k], by the position of the later reading, the query's slot, and the position
        of the earlier reading.
    """

    queries: Int32s
    left_rows: Int32s
    right_rows: Int32s
    visits: int


class _Found(NamedTuple):
    queries: Int32s
    left_rows: Int32s
    right_rows: Int32s

    def at(self, rows: Int64s | Bools) -> "_Found":
        return _Found(self.queries[rows], self.left_rows[rows], self.right_rows[rows])


class WindowJoin:
    """All window joins of one left and one right feed, by query slot.

    Parameters
    ----------
    n_left_columns, n_right_columns : columns of a window of each side.
    make : makes an index of so many dimensions.
    cluster : as the constant; tests set it low.

    Notes
    -----
    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
    section 6.
    Departures: see `window_boxes`; and pairs that no query can want are not made at all (`window_ranges`). Queries that
    compare different fields for equality have an index for each two fields.
    """

    def __init__(
        self,
        n_left_columns: int,
        n_right_columns: int,
        *,
        make: Callable[[int], MatchIndex] = SelectIndex,
        cluster: int = CLUSTER,
    ) -> None:
        self._n_columns = (n_left_columns, n_right_columns)
        self._make = make
        self._cluster = cluster
        self._queries: dict[int, JoinQuery] = {}
        self._boxes: dict[Fields, WindowBoxes] = {}
        self._since: Int64s = np.zeros((2, 0), dtype=np.int64)  # by side and slot, ALL_GONE: no query
        self._longest_ms: Int64s = np.zeros((2, 0), dtype=np.int64)  # by side and slot, -1: no such window
        self._longest_count: Int64s = np.zeros((2, 0), dtype=np.int64)  # by side and slot, 0: no such window
        self._has_where: Bools = np.zeros((2, 0), dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def nbytes(self) -> int:
        """Bytes of the indexes, and of what is kept by slot."""
        return sum(boxes.nbytes for boxes in self._boxes.values()) + self._since.nbytes + self._has_where.nbytes

    def put(self, slot: int, query: JoinQuery, since: tuple[int, int]) -> None:
        """Register a query.

        Parameters
        ----------
        slot : a small number that is not in use.
        query : one without alternatives finds nothing; windows are kept for it, though.
        since : the number of the first reading of each side that counts.

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
        fields = query.left.equal, query.right.equal
        if fields not in self._boxes:
            self._boxes[fields] = WindowBoxes(self._make)
        self._boxes[fields].put(slot, query)

    def remove(self, slot: int) -> None:
        """Forget a query.

        Raises
        ------
        KeyError
            The slot is not in use.
        """
        query = self._queries.pop(slot)
        self._since[:, slot], self._longest_ms[:, slot], self._longest_count[:, slot] = ALL_GONE, -1, 0
        fields = query.left.equal, query.right.equal
        self._boxes[fields].remove(slot)
        if not len(self._boxes[fields]):
            del self._boxes[fields]

    def find(self, left: Window, right: Window, fits: Fits) -> WindowPairs:
        """Return the pairs whose later reading is new, that is, has a position from 0 on.

        Parameters
        ----------
        fits : asked with a side, a condition and codes of attributes, tells which of the codes it fits; it is asked
            once a call for a condition.

        Notes
        -----
        The earlier reading is in the time window of its side, unless it has the later event time: then the window of
        the later reading's side decides. It is in a counted window while it is among that many last readings of its
        feed.
        """
        windows = left, right
        conditions = _Conditions(self._queries, self._has_where, windows, fits)
        parts: list[_Found] = []
        visits = 0
        for fields, boxes in self._boxes.items():
            boxes.settle()
            if not boxes.n_boxes or boxes.index is None:
                continue
            for pairs, points in self._clusters(boxes, fields, windows):
                moves = boxes.index.stab(points)
                visits += moves.visits
                queries = boxes.query_by_box[moves.queries]
                rows = moves.rows
                if boxes.n_disjunctions:
                    rows, queries = _each_once(rows, queries)
                found = _Found(queries, pairs.left[rows], pairs.right[rows])
                found = found.at(self._count(found, windows))
                parts.append(conditions.filtered(found))
        return _in_order(parts, windows, visits)

    def keep(self, event_times: Int64s, first: int, side: int, settled_other: int) -> int:
        """Return how many readings at the begin of a side's window no query needs any more.

        Parameters
        ----------
        event_times : int64[n], epoch ms, in the order of application.
        first : the number of the first of them.
        settled_other : epoch ms before which the other feed's readings have come, those out of order aside; NEVER:
            not known.
        """
        rows = np.arange(event_times.size)
        needed: Bools = rows >= event_times.size - self._longest_count[side].max(initial=0)
        longest_ms = self._longest_ms[side].max(initial=-1)
        if longest_ms >= 0:
            needed |= event_times >= max(settled_other - int(longest_ms), NEVER)
        needed &= first + rows >= self._since[side].min(initial=ALL_GONE)
        return int(np.argmax(needed)) if needed.any() else event_times.size

    def _check(self) -> None:
        """State every invariant; for tests."""
        for boxes in self._boxes.values():
            boxes._check()
        assert sum(len(boxes) for boxes in self._boxes.values()) == len(self)
        gone = np.setdiff1d(np.arange(self._since.shape[1]), list(self._queries))
        assert (self._since[:, gone] == ALL_GONE).all()

    def _clusters(
        self, boxes: WindowBoxes, fields: Fields, windows: tuple[Window, Window]
    ) -> Iterator[tuple["_Rows", Float64s]]:
        """Yield pairs, no more than a cluster at a time, and where they are in the boxes' space."""
        lefts, rights = (
            boxes.parts_of(side, window.columns, window.event_times) for side, window in enumerate(windows)
        )
        keys = None
        if fields[0] is not None and fields[1] is not None:
            keys = windows[0].keys[fields[0]], windows[1].keys[fields[1]]
        unions = boxes.unions()
        ranks = None
        if RANK in boxes.axes:
            at_rank = boxes.axes.index(RANK)
            # Ranks are of pairs, so they limit what is asked for, and not by an order of the readings.
            ranks, unions[at_rank] = unions[at_rank], EVERYWHERE
        for side in range(2):
            asked = self._asked(side, windows, ranks)
            if not (asked.readings.size and asked.others.size):
                continue
            ranges = narrowest(asked, lefts, rights, unions, keys)
            # The reading of each range, among those asked about.
            newest = asked.newest[np.searchsorted(asked.readings, ranges.readings)]
            start = (0, 0)
            while start[0] < ranges.begins.size:
                chosen, others, start = pairs_of_ranges(
                    ranges.begins, ranges.ends, ranges.order, newest, start, self._cluster
                )
                readings = ranges.readings[chosen].astype(np.int32)
                pairs = _Rows(*((readings, others) if side == 0 else (others, readings)))
                if keys is not None:
                    equal = (keys[0][pairs.left] == keys[1][pairs.right]) & (keys[0][pairs.left] >= 0)
                    pairs, chosen, others = _Rows(pairs.left[equal], pairs.right[equal]), chosen[equal], others[equal]
                points = coordinates(lefts, rights, *pairs)
                if ranks is not None:
                    points[at_rank] = (newest[chosen] - others) * (-1 if side == 0 else 1)
                yield pairs, points

    def _asked(self, side: int, windows: tuple[Window, Window], ranks: Float64s | None) -> Asked:
        new, old = windows[side], windows[1 - side]
        since = self._since.min(axis=1)
        readings = np.flatnonzero((new.positions >= 0) & new.own & (_numbers(new) >= since[side]))
        others = np.flatnonzero(old.own & (_numbers(old) >= since[1 - side]))
        longest = np.inf
        if ranks is not None:
            longest = -ranks[0, 0] if side == 0 else ranks[1, -1]
        return Asked(
            side,
            readings,
            others,
            newest=np.searchsorted(old.positions, new.positions[readings]),
            longest=int(longest) if np.isfinite(longest) else None,
        )

    def _count(self, found: _Found, windows: tuple[Window, Window]) -> Bools:
        """Return whether both readings of each pair have come since its query counts."""
        counts: Bools = np.ones(found.queries.size, dtype=np.bool_)
        for since, window, rows in zip(self._since, windows, found[1:], strict=True):
            counts &= window.first + rows >= since[found.queries]
        return counts


class _Rows(NamedTuple):
    left: Int32s
    right: Int32s


class _Conditions:
    """The conditions of queries on the attributes of the readings of two windows, each worked out at most once."""

    def __init__(
        self, queries: Mapping[int, JoinQuery], has_where: Bools, windows: tuple[Window, Window], fits: Fits
    ) -> None:
        self._queries = queries
        self._has_where = has_where
        self._windows = windows
        self._fits = fits
        self._codes: list[tuple[Int32s, Int64s] | None] = [None, None]
        self._fitting: dict[tuple[int, Where], Bools] = {}

    def filtered(self, found: _Found) -> _Found:
        """Return the pairs of which both readings are what their query asks of the attributes."""
        for side in range(2):
            asking = np.flatnonzero(self._has_where[side][found.queries])
            if not asking.size:
                continue
            order = asking[np.argsort(found.queries[asking], kind="stable")]
            queries, begins = np.unique(found.queries[order], return_index=True)
            fits: Bools = np.ones(found.queries.size, dtype=np.bool_)
            for slot, rows in zip(queries.tolist(), np.split(order, begins[1:]), strict=True):
                fits[rows] = self._fitting_rows(side, self._queries[slot])[found[1 + side][rows]]
            found = found.at(fits)
        return found

    def _fitting_rows(self, side: int, query: JoinQuery) -> Bools:
        """Return which rows of a side's window a query's condition fits."""
        where = (query.left, query.right)[side].where
        if (side, where) not in self._fitting:
            codes = self._codes[side]
            if codes is None:
                distinct, code_by_row = np.unique(self._windows[side].codes, return_inverse=True)
                codes = self._codes[side] = distinct.astype(np.int32), code_by_row
            self._fitting[side, where] = self._fits(side, where, codes[0])[codes[1]]
        return self._fitting[side, where]


def _numbers(window: Window) -> Int64s:
    return window.first + np.arange(window.positions.size)


def _each_once(rows: Int32s, queries: Int32s) -> tuple[Int32s, Int32s]:
    """Return the rows and queries with those that come again left out."""
    keys = np.unique(rows.astype(np.int64) << 32 | queries)
    return (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)


def _in_order(parts: list[_Found], windows: tuple[Window, Window], visits: int) -> WindowPairs:
    """Return all pairs as `WindowPairs` orders them."""
    none: Int32s = np.empty(0, dtype=np.int32)
    queries, left_rows, right_rows = (np.concatenate([none, *(part[column] for part in parts)]) for column in range(3))
    left, right = windows[0].positions[left_rows], windows[1].positions[right_rows]
    order = np.lexsort((np.minimum(left, right), queries, np.maximum(left, right)))
    return WindowPairs(queries[order], left_rows[order], right_rows[order], visits)
