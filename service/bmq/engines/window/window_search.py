"""Find the boxes that hold a pair of a new reading and an earlier reading, in the cheaper of two ways.

    pairs ask boxes:   ranges of pairs ─► clusters of points ─► index of all boxes
    boxes ask windows: new readings ─► index of boxes on their side's columns ─► each box asks for a range of the window

The first way is cheaper for few pairs, for example if the bands are narrow or if fields must be equal. The second way
is cheaper for few boxes, for example if the queries select on the new reading's side.

Notes
-----
Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
sections 5 and 6. Departures: pairs that can satisfy no query are not made at all (`window_ranges`). For a cluster of
many pairs of one reading, the index is searched by that reading instead of the cluster's bounding box, which is mostly
determined by the reading. Then each box that was found searches the sorted window, instead of each pair the index.
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

# Pairs that are searched in the index at a time: 8 bytes an axis for each pair, so some megabytes.
CLUSTER = 1 << 16


class Costs(NamedTuple):
    """Costs in nanoseconds. They decide which way is taken, and never the answers.

    Attributes
    ----------
    pair : a search of the index by a pair, divided by the root of the number of boxes: a search takes 4 us at 10,000
        boxes of nine intervals each, and 12 us at 100,000.
    sort : to sort one reading of a window by a column, and to build the sets of bits.
    box : a search of six sorted axes by a box.
    reading : for each box and each reading of a window, to intersect the words of the sets.
    """

    pair: float = 40.0
    sort: float = 100.0
    box: float = 600.0
    reading: float = 0.1


class Held(NamedTuple):
    """Boxes, the rows of the pairs that they hold, and the number of tested candidates."""

    boxes: Int32s
    left_rows: Int32s
    right_rows: Int32s
    visits: int


class WindowSearch:
    """A search of two windows.

    Parameters
    ----------
    boxes : after `WindowBoxes.settle`.
    since : the numbers of the first left and right reading that count for any query.
    cluster : pairs that are searched at a time, as `CLUSTER`.
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
            # Only a pair has a rank: ranks limit how far to look back, but readings cannot be sorted by them.
            self._ranks, self._unions[self._rank_axis] = self._unions[self._rank_axis], EVERYWHERE

    def held(self) -> Iterator[Held]:
        """Yield the boxes and the pairs that they hold; no (box, pair) comes twice."""
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
        """Return whether the search by ``n_pairs`` pairs costs less than by ``n_boxes`` (new reading, box)."""
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
        # By range: `newest` of its new reading.
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
        """Return (boxes, starts, stops): for each new reading the range of boxes that hold it on its side's columns."""
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
        """Return the axes that depend on the other side's reading, and the orders of the window for them.

        Bands on the same column of that side share one order, and so does an axis of a left column alone.

        Returns
        -------
        axes : the axes that depend on the reading of the other side, except the axis of ranks.
        columns : for each order, the axis whose part it sorts by.
        orders : int64, for each of ``axes`` the number of its order.
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
