"""Which boxes hold which pairs of a new reading and one that came before, in the cheaper of two ways.

    pairs ask boxes:   ranges of pairs ─► clusters of points ─► index of all boxes
    boxes ask windows: new readings ─► index of boxes on their side's columns ─► each box asks for a range of the window

The first is for few pairs, be it that the bands are narrow or that fields have to be equal; the second for few boxes,
as where queries select on the new reading's side.

Notes
-----
Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
sections 5 and 6. Departures: pairs that no query can want are not made at all (`window_ranges`). A cluster of many
pairs of one reading is looked up by that reading, which is most of what its bounding box says; then each query found
asks the sorted window, in place of each pair asking the index.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bmq.engines.window.window_boxes import EVERYWHERE, WindowBoxes
from bmq.engines.window.window_ranges import Asked, Ranges, narrowest
from bmq.engines.window.window_records import Window
from bmq.engines.window.window_space import RANK, Measure
from bmq.kernels.window.pair_points import coordinates, pairs_of_ranges
from bmq.kernels.window.sorted_windows import sort_window
from bmq.kernels.window.window_probe import Others, Probes, probe
from bmq.records import Bools, Int32s, Int64s

# Pairs that are joined with the index at a time: 8 bytes an axis each, so some megabytes.
CLUSTER = 1 << 16


class Costs(NamedTuple):
    """What things cost in nanoseconds: which way is cheaper depends on it, the answers do not.

    Attributes
    ----------
    pair : of a pair that asks the index, times the root of the number of boxes: 4 us at 10,000 boxes of nine intervals
        each, and 12 at 100,000.
    sort : of sorting a reading of a window by a column, and of the sets.
    box : of a box that searches six sorted axes.
    reading : of a box for each reading of a window, as its words are intersected.
    """

    pair: float = 40.0
    sort: float = 100.0
    box: float = 600.0
    reading: float = 0.1


class Held(NamedTuple):
    """Boxes, and the rows of the pairs that they hold; visits: candidates looked at."""

    boxes: Int32s
    left_rows: Int32s
    right_rows: Int32s
    visits: int


class WindowSearch:
    """A search of two windows.

    Parameters
    ----------
    boxes : settled.
    since : the numbers of the first left and right reading that may count.
    cluster : as the constant.
    costs : as measured; tests make one way free.
    """

    def __init__(
        self,
        boxes: WindowBoxes,
        windows: tuple[Window, Window],
        since: tuple[int, int],
        *,
        cluster: int,
        costs: Costs,
    ) -> None:
        self._boxes = boxes
        self._windows = windows
        self._since = since
        self._cluster = cluster
        self._costs = costs
        self._lefts, self._rights = (boxes.parts_of(side, window) for side, window in enumerate(windows))
        self._unions = boxes.unions()
        self._rank_axis = boxes.axes.index(RANK) if RANK in boxes.axes else -1
        self._ranks = EVERYWHERE
        if RANK in boxes.axes:
            # Ranks are of pairs: they limit how far to look back, and are no order of readings.
            self._ranks, self._unions[self._rank_axis] = self._unions[self._rank_axis], EVERYWHERE

    def held(self) -> Iterator[Held]:
        """Yield what boxes hold; no pair comes twice for a box."""
        for side in range(2):
            asked = self._asked(side)
            if not (asked.readings.size and asked.others.size):
                continue
            ranges = narrowest(asked, self._lefts, self._rights, self._unions)
            if self._pairs_are_cheaper(asked, ranges.n_pairs, asked.readings.size):
                yield from self._pairs_ask(asked, ranges)
                continue
            boxes, starts, stops = self._boxes_of_side(asked)
            if self._pairs_are_cheaper(asked, ranges.n_pairs, int((stops - starts).sum())):
                yield from self._pairs_ask(asked, ranges)
            else:
                yield self._boxes_ask(asked, boxes, starts, stops)

    def _pairs_are_cheaper(self, asked: Asked, n_pairs: int, n_boxes: int) -> bool:
        """Return whether so many pairs cost less to ask about than so many boxes, counted for each new reading."""
        costs, size = self._costs, asked.others.size
        n_sorted = len(self._orders(asked.side)[1])
        by_boxes = n_sorted * size * costs.sort + n_boxes * (costs.box + size * costs.reading)
        return bool(n_pairs * costs.pair * np.sqrt(self._boxes.n_live) <= by_boxes)

    def _asked(self, side: int) -> Asked:
        new, old = self._windows[side], self._windows[1 - side]
        readings = np.flatnonzero((new.positions >= 0) & new.own & _counts(new, self._since[side]))
        longest = -self._ranks[0, 0] if side == 0 else self._ranks[1, -1]
        return Asked(
            side,
            readings,
            others=np.flatnonzero(old.own & _counts(old, self._since[1 - side])),
            newest=np.searchsorted(old.positions, new.positions[readings]),
            longest=int(longest) if np.isfinite(longest) else None,
        )

    # -- pairs ask boxes ----------------------------------------------------------------------------------

    def _pairs_ask(self, asked: Asked, ranges: Ranges) -> Iterator[Held]:
        # Which of the new readings each range belongs to.
        newest = asked.newest[np.searchsorted(asked.readings, ranges.readings)]
        start = (0, 0)
        while start[0] < ranges.begins.size:
            chosen, others, start = pairs_of_ranges(
                ranges.begins, ranges.ends, ranges.order, newest, start, self._cluster
            )
            readings = ranges.readings[chosen].astype(np.int32)
            left_rows, right_rows = (readings, others) if asked.side == 0 else (others, readings)
            points = coordinates(self._lefts, self._rights, left_rows, right_rows)
            if self._rank_axis >= 0:
                ranks = newest[chosen] - others
                points[self._rank_axis] = -ranks if asked.side == 0 else ranks
            moves = self._boxes.index.stab(points)
            yield Held(moves.queries, left_rows[moves.rows], right_rows[moves.rows], moves.visits)

    # -- boxes ask windows --------------------------------------------------------------------------------

    def _boxes_of_side(self, asked: Asked) -> tuple[Int32s, Int64s, Int64s]:
        """Return boxes, and which of them hold each new reading on its side's columns: a range for each."""
        index, axes = self._boxes.by_side(asked.side), self._boxes.axes_of(asked.side)
        if index is None:
            live = self._boxes.live()
            zeros = np.zeros(asked.readings.size, dtype=np.int64)
            return live, zeros, zeros + live.size
        sign, parts = (1.0, self._lefts) if asked.side == 0 else (-1.0, self._rights)
        moves = index.stab(sign * parts[axes][:, asked.readings])
        ends = np.searchsorted(moves.rows, np.arange(asked.readings.size + 1))
        return moves.queries, ends[:-1], ends[1:]

    def _boxes_ask(self, asked: Asked, boxes: Int32s, starts: Int64s, stops: Int64s) -> Held:
        own, other = (self._lefts, self._rights) if asked.side == 0 else (self._rights, self._lefts)
        axes, columns, orders = self._orders(asked.side)
        parts = np.ascontiguousarray(other[:, asked.others])
        found, visits = probe(
            Probes(asked.side, np.ascontiguousarray(own[:, asked.readings]), asked.newest, starts, stops, boxes),
            Others(asked.others, parts, np.array(axes, dtype=np.int64), orders, sort_window(parts[columns])),
            self._boxes.ends,
            self._rank_axis,
        )
        readings, others = asked.readings[found[1]].astype(np.int32), asked.others[found[2]].astype(np.int32)
        return Held(found[0], *((readings, others) if asked.side == 0 else (others, readings)), visits)

    def _orders(self, side: int) -> tuple[list[int], list[int], Int64s]:
        """Return the axes that depend on the other side's reading, those by which to sort, and which serves each.

        Bands on the same column of that side are by one order, and so is what is asked of a left column alone.
        """
        numbers: dict[tuple[Measure, int | str | None], int] = {}
        axes: list[int] = []
        columns: list[int] = []
        orders: list[int] = []
        for k, axis in enumerate(self._boxes.axes):
            if axis == RANK or axis.measure is (Measure.LEFT, Measure.RIGHT)[side]:
                continue
            measure = Measure.BAND if axis.measure is Measure.LEFT else axis.measure
            key = measure, axis.right if side == 0 else axis.left
            if key not in numbers:
                numbers[key] = len(columns)
                columns.append(k)
            axes.append(k)
            orders.append(numbers[key])
        return axes, columns, np.array(orders, dtype=np.int64)


def _counts(window: Window, since: int) -> Bools:
    counts: Bools = window.first + np.arange(len(window)) >= since
    return counts
