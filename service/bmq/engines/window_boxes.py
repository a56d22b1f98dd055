"""Conjunctions of window joins as boxes of one space, in which a pair of readings is a point.

    axis                            coordinate of (l, r)          box of a query
    column of one side              l.qty                         [10, 20)
    difference of two columns       l.price - r.price             [-1, 1]: a band
    equality of two fields          l.symbol - r.symbol           [0, 0], texts being numbers
    time                            r's time - l's time           [-right window, left window]
    rank                            +k or -k                      [-right count, left count]

Rank: the earlier of the two was the k-th last reading of its feed when the later one was applied; k is positive
where the earlier one is the left one.

Notes
-----
Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
section 6. Departures:

- A band is an interval of the difference, exact to the last bit. The paper keeps the two columns as axes, on which a
  band is a diagonal stripe, and cuts it into four boxes (object decomposition). These hold more than the stripe, a
  query counts up to four times, and what is found has to be tested again.
- Time and rank are signed, so that one axis serves the windows of both sides; windows of all lengths and kinds are
  in one index.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from bmq.engines.window_records import Window
from bmq.index.base import MatchIndex
from bmq.kernels.window_pairs import LARGEST
from bmq.records import Conjunction, Float64s, Int32s, JoinQuery

MOST_PARTS = 8  # of a union: each is a search for each new reading; more would leave out little that fewer do not
EVERYWHERE: Float64s = np.array([[-np.inf], [np.inf]])  # a union that leaves out nothing
NONE = -1  # in place of a query's slot: the box is free
EQUAL = (0.0, math.nextafter(0.0, 1.0))


class Measure(IntEnum):  # and no plain Enum, whose hash is computed in Python: a registration takes some dozens
    """What an axis is of."""

    LEFT = 0  # a column of the left reading
    RIGHT = 1
    BAND = 2  # the difference of two columns
    EQUALITY = 3  # of two fields
    TIME = 4  # the difference of the event times
    RANK = 5  # among the last readings


class Axis(NamedTuple):
    """An axis: what it measures, of which columns or fields; None: of none."""

    measure: Measure
    left: int | str | None = None
    right: int | str | None = None


TIME = Axis(Measure.TIME)
RANK = Axis(Measure.RANK)

Interval = tuple[float, float]  # half-open
Box = dict[Axis, Interval]  # what is not there is unbounded


def boxes_of(query: JoinQuery) -> list[Box]:
    """Return the boxes of a query: one for each conjunction that can hold at all."""
    of_all = _intervals_of_all(query)
    boxes = [_box(conjunction, of_all) for conjunction in query.alternatives]
    return [box for box in boxes if all(lo < hi for lo, hi in box.values())]


def _intervals_of_all(query: JoinQuery) -> Box:
    left, right = query.left, query.right
    intervals: Box = {}
    for axis, lengths in (
        (TIME, (right.window_ms, left.window_ms)),
        (RANK, (right.window_count, left.window_count)),
    ):
        if lengths != (None, None):
            back, on = (math.inf if length is None else float(length) for length in lengths)
            intervals[axis] = (-back, _behind(on))
    if left.equal is not None:
        intervals[Axis(Measure.EQUALITY, left.equal, right.equal)] = EQUAL
    return intervals


def _box(conjunction: Conjunction, of_all: Box) -> Box:
    box = dict(of_all)
    for column, interval in enumerate(zip(conjunction.left.lo, conjunction.left.hi, strict=True)):
        if interval != (-math.inf, math.inf):
            box[Axis(Measure.LEFT, left=column)] = interval
    for column, interval in enumerate(zip(conjunction.right.lo, conjunction.right.hi, strict=True)):
        if interval != (-math.inf, math.inf):
            box[Axis(Measure.RIGHT, right=column)] = interval
    for band in conjunction.bands:
        axis = Axis(Measure.BAND, band.left, band.right)
        lo, hi = box.get(axis, (-math.inf, math.inf))
        # Not -inf, which stands for "no number": even a band without ends asks for two numbers.
        box[axis] = (max(lo, band.lo, -LARGEST), min(hi, _behind(band.hi)))
    return box


def _behind(end: float) -> float:
    return math.nextafter(end, math.inf)


class WindowBoxes:
    """The boxes of all queries, by number, in one index.

    Axes come with the first query that needs them; then the index is built anew. They go when no query is left.

    Parameters
    ----------
    make_index : for how many dimensions.

    Attributes
    ----------
    axes : of the space.
    query_by_box : int32[n_boxes], slots; ``NONE``: the box is free.
    ends : float64[n_boxes, d, 2], lower and upper ends.
    """

    def __init__(self, make_index: Callable[[int], MatchIndex]) -> None:
        self._make_index = make_index
        self._queries: dict[int, JoinQuery] = {}
        self._waiting: dict[int, None] = {}  # slots whose boxes are not in the index yet
        self._unions: list[Float64s] | None = None
        self._clear(())

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def n_live(self) -> int:
        """How many conjunctions are in the index."""
        return self._n_boxes - len(self._free)

    @property
    def nbytes(self) -> int:
        """Bytes of the indexes, and of the ends beside them."""
        n_bytes = self.ends.nbytes + self.query_by_box.nbytes + self.index.nbytes
        return n_bytes + sum(index.nbytes for index in self._by_side.values())

    def put(self, slot: int, query: JoinQuery) -> None:
        """Add a query. It goes into the index when that is next asked, together with all others that came."""
        self._queries[slot] = query
        self._waiting[slot] = None

    def remove(self, slot: int) -> None:
        """Forget a query."""
        del self._queries[slot]
        if slot in self._waiting:
            del self._waiting[slot]
        else:
            boxes = np.array(self._boxes.pop(slot), dtype=np.int32)
            for index in (self.index, *self._by_side.values()):
                index.deregister(boxes)
            self.query_by_box[boxes] = NONE
            self._free += boxes.tolist()
            self._unions = None
        if not self._queries:
            self._clear(())

    def settle(self) -> None:
        """Put into the index what came since the last call."""
        if not self._waiting:
            return
        new = _flat(self._waiting, self._queries, self.axes)
        if new.axes != self.axes:
            if len(self._waiting) < len(self._queries):
                new = _flat(self._queries, self._queries, new.axes)
            self._clear(new.axes)
        self._register(new)
        self._waiting = {}

    # -- questions ----------------------------------------------------------------------------------------

    def parts_of(self, side: int, window: Window) -> Float64s:
        """Return what readings of one side bring to each axis, float64[d, n]; coordinates are left less right.

        -inf on the left and inf on the right is no number. The axis of ranks has zeros: ranks are of pairs.
        """
        parts = np.zeros((len(self.axes), len(window)))
        for k, axis in enumerate(self.axes):
            of_side = (axis.left, axis.right)[side]
            if axis == TIME:
                parts[k] = -window.event_times
            elif isinstance(of_side, int):
                column = window.columns[of_side]
                parts[k] = -column if axis.measure is Measure.RIGHT else column
                if side == 1:
                    parts[k][column == -np.inf] = np.inf
            elif isinstance(of_side, str) and of_side in window.keys:  # else the last query that compared it has gone
                keys = window.keys[of_side]
                parts[k] = np.where(keys < 0, -np.inf if side == 0 else np.inf, keys)
        return parts

    def unions(self) -> list[Float64s]:
        """Return, for each axis, where boxes are at all: disjoint intervals, float64[2, k] with k <= `MOST_PARTS`."""
        if self._unions is None:
            live = self.ends[: self._n_boxes][self.query_by_box[: self._n_boxes] != NONE]
            self._unions = [_union(live[:, k, 0], live[:, k, 1]) for k in range(len(self.axes))]
        return list(self._unions)

    def live(self) -> Int32s:
        """Return the numbers of all boxes."""
        return np.flatnonzero(self.query_by_box[: self._n_boxes] != NONE).astype(np.int32)

    def by_side(self, side: int) -> MatchIndex | None:
        """Return the index of the boxes on the axes of one side's columns; None: there are no such axes."""
        axes = self.axes_of(side)
        if not axes:
            return None
        if side not in self._by_side:
            index = self._by_side[side] = self._make_index(len(axes))
            live = self.live()
            index.register(live, *self.ends[live][:, axes].transpose(2, 1, 0))
        return self._by_side[side]

    def axes_of(self, side: int) -> list[int]:
        """Return the axes of one side's columns."""
        measure = (Measure.LEFT, Measure.RIGHT)[side]
        return [k for k, axis in enumerate(self.axes) if axis.measure is measure]

    # -- changes ------------------------------------------------------------------------------------------

    def _clear(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self.index = self._make_index(max(len(axes), 1))
        self._by_side: dict[int, MatchIndex] = {}
        self._boxes: dict[int, list[int]] = {}
        self._free: list[int] = []
        self._n_boxes = 0
        self.query_by_box: Int32s = np.empty(0, dtype=np.int32)
        self.ends: Float64s = np.empty((0, len(axes), 2))
        self._unions = None

    def _register(self, new: "_Flat") -> None:
        numbers = np.array([self._number(slot) for slot in new.slots], dtype=np.int32)
        for slot in new.without:
            self._boxes[slot] = []
        if not numbers.size:
            return
        self._make_room()
        self.query_by_box[numbers] = new.slots
        self.ends[numbers] = (-np.inf, np.inf)
        owners = np.repeat(numbers, new.sizes)
        self.ends[owners, new.places] = np.stack((new.lo, new.hi), axis=1)
        ends = np.ascontiguousarray(self.ends[numbers].transpose(2, 1, 0))
        self.index.register(numbers, *ends)
        for side, index in self._by_side.items():
            index.register(numbers, *ends[:, self.axes_of(side)])
        self._unions = None

    def _number(self, slot: int) -> int:
        """Return the number of one more box of a query."""
        if self._free:
            number = self._free.pop()
        else:
            number, self._n_boxes = self._n_boxes, self._n_boxes + 1
        self._boxes.setdefault(slot, []).append(number)
        return number

    def _make_room(self) -> None:
        n_more = self._n_boxes - self.query_by_box.size
        if n_more > 0:
            n_more = max(n_more, self.query_by_box.size)
            self.ends = np.concatenate((self.ends, np.zeros((n_more, *self.ends.shape[1:]))))
            self.query_by_box = np.append(self.query_by_box, np.full(n_more, NONE, dtype=np.int32))

    def _check(self) -> None:
        """State every invariant; for tests."""
        self.settle()
        used = [number for boxes in self._boxes.values() for number in boxes]
        assert sorted([*used, *self._free]) == list(range(self._n_boxes))
        assert sorted(used) == self.live().tolist()
        assert self._boxes.keys() == self._queries.keys()
        for slot, boxes in self._boxes.items():
            assert (self.query_by_box[boxes] == slot).all()
            for number, box in zip(boxes, boxes_of(self._queries[slot]), strict=True):
                ends = [box.get(axis, (-np.inf, np.inf)) for axis in self.axes]
                assert (self.ends[number] == np.reshape(ends, (-1, 2))).all()
        for index in (self.index, *self._by_side.values()):
            index._check()


class _Flat(NamedTuple):
    """Boxes as lists of numbers: a hundred thousand dicts of tuples keep the garbage collector busy for seconds.

    axes : of the space. slots, sizes : a row a box, its query and how many intervals it has. places, lo, hi : a row an
        interval, its axis and its ends. without : queries that have no box.
    """

    axes: tuple[Axis, ...]
    slots: list[int]
    sizes: list[int]
    places: list[int]
    lo: list[float]
    hi: list[float]
    without: list[int]


def _flat(slots: Iterable[int], queries: Mapping[int, JoinQuery], axes: tuple[Axis, ...]) -> _Flat:
    """Return the boxes of the queries in ``slots``; axes that come to ``axes`` stand behind."""
    place_of = {axis: k for k, axis in enumerate(axes)}
    flat = _Flat((), [], [], [], [], [], [])
    for slot in slots:
        boxes = boxes_of(queries[slot])
        if not boxes:
            flat.without.append(slot)
        for box in boxes:
            flat.slots.append(slot)
            flat.sizes.append(len(box))
            for axis, (lo, hi) in box.items():
                flat.places.append(place_of.setdefault(axis, len(place_of)))
                flat.lo.append(lo)
                flat.hi.append(hi)
    return flat._replace(axes=tuple(place_of))


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
