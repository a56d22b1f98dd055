"""Conjunctions of window joins as boxes of one space, in which a pair of readings is a point.

    axis                            coordinate of (l, r)          box of a query
    left column                     l.qty                         [10, 20)
    right column                    r.qty                         [-inf, inf): not asked
    difference of two columns       l.price - r.price             [-1, 1]: a band
    time                            r's time - l's time           [-right window, left window]
    rank                            +k or -k                      [-right count, left count]

Rank: the earlier of the two was the k-th last reading of its feed when the later one was applied; k is positive
where the earlier one is the left one.

Notes
-----
Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
section 6.
Departures:

- A band is an interval of the difference, exact to the last bit. The paper keeps the two columns as axes, on which a
  band is a diagonal stripe, and cuts it into four boxes (object decomposition): these hold much more than the stripe,
  every query counts four times, and what is found has to be tested again.
- Time and rank are signed, so that one axis serves the windows of both sides; windows of different lengths and
  kinds are in one index.
- Disjunctions are as in the paper: a box for each conjunction.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from bmq.index.base import MatchIndex
from bmq.kernels.window_pairs import LARGEST
from bmq.records import Conjunction, Float64s, Int32s, Int64s, JoinQuery

NONE = -1  # in place of a column: the axis is not of this side


class Axis(NamedTuple):
    """What is measured on an axis: a column of one side, or the left one's less the right one's."""

    left: int
    right: int


TIME = Axis(-2, -2)
RANK = Axis(-3, -3)

MOST_PARTS = 8  # of a union: each is a search for each new reading; more would leave out little that fewer do not

Interval = tuple[float, float]  # half-open
Box = Mapping[Axis, Interval]


def boxes_of(query: JoinQuery) -> list[dict[Axis, Interval]]:
    """Return the boxes of a query, by axis; what is not there is unbounded. Conjunctions that never hold have none."""
    windows = _window_intervals(query)
    boxes = [_box(conjunction, windows) for conjunction in query.alternatives]
    return [box for box in boxes if all(lo < hi for lo, hi in box.values())]


def _window_intervals(query: JoinQuery) -> dict[Axis, Interval]:
    left, right = query.left, query.right
    intervals = {}
    for axis, ends in (
        (TIME, (right.window_ms, left.window_ms)),
        (RANK, (right.window_count, left.window_count)),
    ):
        if ends != (None, None):
            lo, hi = (np.inf if end is None else float(end) for end in ends)
            intervals[axis] = (-lo, _behind(hi))
    return intervals


def _box(conjunction: Conjunction, windows: Box) -> dict[Axis, Interval]:
    box = dict(windows)
    for side, region in enumerate((conjunction.left, conjunction.right)):
        for column, interval in enumerate(zip(region.lo, region.hi, strict=True)):
            if interval != (-np.inf, np.inf):
                box[Axis(column, NONE) if side == 0 else Axis(NONE, column)] = interval
    for band in conjunction.bands:
        axis = Axis(band.left, band.right)
        lo, hi = box.get(axis, (-np.inf, np.inf))
        # Not -inf, which stands for "no number": even a band without ends asks for two numbers.
        box[axis] = (max(lo, band.lo, -LARGEST), min(hi, _behind(band.hi)))
    return box


def _behind(end: float) -> float:
    return float(np.nextafter(end, np.inf))


class WindowBoxes:
    """The boxes of the queries that compare by the same fields, in one index.

    Axes come with the first query that needs them; then the index is built anew. They go when no query is left.

    Parameters
    ----------
    make_index : for how many dimensions.
    """

    def __init__(self, make_index: Callable[[int], MatchIndex]) -> None:
        self._make_index = make_index
        self.axes: tuple[Axis, ...] = ()
        self.index: MatchIndex | None = None
        self._standing: dict[int, list[dict[Axis, Interval]]] = {}
        self._waiting: dict[int, None] = {}  # slots whose boxes are not in the index yet
        self._boxes: dict[int, list[int]] = {}
        self._free: list[int] = []
        self._n_boxes = 0
        self.query_by_box: Int32s = np.empty(0, dtype=np.int32)
        self._ends: Float64s = np.empty((2, 0, 0))  # lower and upper ends by axis and box
        self._unions: list[Float64s] | None = None
        self.n_disjunctions = 0

    def __len__(self) -> int:
        return len(self._standing)

    @property
    def n_boxes(self) -> int:
        """How many conjunctions are in the index."""
        return self._n_boxes - len(self._free)

    @property
    def nbytes(self) -> int:
        """Bytes of the index, and of the ends beside it."""
        return self._ends.nbytes + self.query_by_box.nbytes + (self.index.nbytes if self.index is not None else 0)

    def put(self, slot: int, query: JoinQuery) -> None:
        """Add a query. It goes into the index when that is next asked, together with all others that came."""
        self._standing[slot] = boxes_of(query)
        self._waiting[slot] = None
        self.n_disjunctions += len(self._standing[slot]) > 1

    def remove(self, slot: int) -> None:
        """Forget a query."""
        self.n_disjunctions -= len(self._standing.pop(slot)) > 1
        if slot in self._waiting:
            del self._waiting[slot]
            return
        boxes = np.array(self._boxes.pop(slot), dtype=np.int32)
        assert self.index is not None
        self.index.deregister(boxes)
        self.query_by_box[boxes] = NONE
        self._free += boxes.tolist()
        self._unions = None
        if not self._standing:
            self._clear(())

    def settle(self) -> None:
        """Put into the index what came since the last call."""
        if not self._waiting:
            return
        known = set(self.axes)
        more = {axis: None for slot in self._waiting for box in self._standing[slot] for axis in box}
        added = tuple(axis for axis in more if axis not in known)
        if added or self.index is None:
            self._clear((*self.axes, *added))
            self._waiting = dict.fromkeys(self._standing)
        self._register(list(self._waiting))
        self._waiting = {}

    def parts_of(self, side: int, columns: Float64s, event_times: Int64s) -> Float64s:
        """Return what readings of one side bring to each axis, float64[d, n]; coordinates are left less right.

        The axis of ranks has zeros: ranks are of pairs.
        """
        parts = np.zeros((len(self.axes), event_times.size))
        for k, axis in enumerate(self.axes):
            column = axis[side]
            if axis == TIME:
                parts[k] = -event_times
            elif column >= 0:
                is_right_alone = side == 1 and axis.left == NONE
                parts[k] = -columns[column] if is_right_alone else columns[column]
                if side == 1:
                    parts[k][columns[column] == -np.inf] = np.inf
        return parts

    def unions(self) -> list[Float64s]:
        """Return, for each axis, where boxes are at all: disjoint intervals, float64[2, k] with k <= `MOST_PARTS`."""
        if self._unions is None:
            live = self.query_by_box[: self._n_boxes] != NONE
            self._unions = [_union(*self._ends[:, k, : self._n_boxes][:, live]) for k in range(len(self.axes))]
        return list(self._unions)

    def _clear(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self.index = self._make_index(max(len(axes), 1))
        self._boxes, self._free, self._n_boxes = {}, [], 0
        self._ends = np.empty((2, len(axes), 0))
        self.query_by_box = np.empty(0, dtype=np.int32)
        self._unions = None

    def _register(self, slots: Iterable[int]) -> None:
        place = {axis: k for k, axis in enumerate(self.axes)}
        numbers, queries, places, boxes, intervals = [], [], [], [], []
        for slot in slots:
            self._boxes[slot] = []
            for box in self._standing[slot]:
                number = self._free.pop() if self._free else self._n_boxes
                self._n_boxes = max(self._n_boxes, number + 1)
                self._boxes[slot].append(number)
                numbers.append(number)
                queries.append(slot)
                for axis, interval in box.items():
                    boxes.append(number)
                    places.append(place[axis])
                    intervals.append(interval)
        if not numbers:
            return
        self._make_room()
        self.query_by_box[numbers] = queries
        self._ends[0, :, numbers], self._ends[1, :, numbers] = -np.inf, np.inf
        if intervals:
            self._ends[:, places, boxes] = np.array(intervals).T
        assert self.index is not None
        self.index.register(np.array(numbers, dtype=np.int32), self._ends[0][:, numbers], self._ends[1][:, numbers])
        self._unions = None

    def _make_room(self) -> None:
        n_more = self._n_boxes - self._ends.shape[2]
        if n_more > 0:
            n_more = max(n_more, self._ends.shape[2])
            self._ends = np.concatenate((self._ends, np.zeros((2, len(self.axes), n_more))), axis=2)
            self.query_by_box = np.append(self.query_by_box, np.full(n_more, NONE, dtype=np.int32))

    def _check(self) -> None:
        """State every invariant; for tests."""
        self.settle()
        used = [number for boxes in self._boxes.values() for number in boxes]
        assert sorted([*used, *self._free]) == list(range(self._n_boxes))
        assert self._boxes.keys() == self._standing.keys()
        for slot, boxes in self._boxes.items():
            assert (self.query_by_box[boxes] == slot).all()
            for number, box in zip(boxes, self._standing[slot], strict=True):
                ends = [box.get(axis, (-np.inf, np.inf)) for axis in self.axes]
                assert (np.reshape(ends, (-1, 2)) == self._ends[:, :, number].T).all()
        assert (self.query_by_box[self._free] == NONE).all()
        assert self.n_disjunctions == sum(len(boxes) > 1 for boxes in self._boxes.values())
        if self.index is not None:
            self.index._check()


def _union(lo: Float64s, hi: Float64s) -> Float64s:
    """Return the union of [lo, hi) as disjoint intervals; where they are too many, the smallest gaps are closed."""
    if not lo.size:
        return np.empty((2, 0))
    order = np.argsort(lo)
    begins, ends = lo[order], np.maximum.accumulate(hi[order])
    gaps = np.flatnonzero(begins[1:] > ends[:-1])
    if gaps.size >= MOST_PARTS:
        widths = begins[gaps + 1] - ends[gaps]
        gaps = np.sort(gaps[np.argpartition(widths, -(MOST_PARTS - 1))[-(MOST_PARTS - 1) :]])
    return np.stack((begins[np.append(0, gaps + 1)], ends[np.append(gaps, -1)]))
