"""The boxes of window joins in an index, while commands add and remove queries.

The module knows boxes by number, and the contribution of each reading to each axis of their space (`window_space`).
"""

from collections.abc import Callable

import numpy as np

from bmq.engines.window.window_records import Window
from bmq.engines.window.window_space import TIME, Axis, FlatBoxes, Measure, boxes_of, flat_boxes
from bmq.index.base import MatchIndex
from bmq.records import Float64s, Int32s, JoinQuery

# Intervals of a union. Each interval costs a search for each new reading; more intervals would exclude little more.
MOST_PARTS = 8
EVERYWHERE: Float64s = np.array([[-np.inf], [np.inf]])  # a union that excludes nothing
NONE = -1  # instead of a query's slot: the box is free


class WindowBoxes:
    """The boxes of all queries, by number, in one index.

    The first query that needs an axis adds it, and then the index is built anew. The axes are removed together when the
    last query is removed.

    Parameters
    ----------
    make_index : makes an index of the given number of dimensions.

    Attributes
    ----------
    axes : of the space.
    query_by_box : int32[n_boxes], slots; ``NONE``: the box is free.
    ends : float64[n_boxes, d, 2], lower and upper ends.
    """

    def __init__(self, make_index: Callable[[int], MatchIndex]) -> None:
        self._make_index = make_index
        self._queries: dict[int, JoinQuery] = {}
        self._pending: dict[int, None] = {}  # slots whose boxes are not in the index yet
        self._unions: list[Float64s] | None = None
        self._clear(())

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def n_live(self) -> int:
        """The number of boxes in the index."""
        return self._n_boxes - len(self._free)

    @property
    def nbytes(self) -> int:
        """Bytes of the indexes, and of the ends beside them."""
        n_bytes = self.ends.nbytes + self.query_by_box.nbytes + self.index.nbytes
        return n_bytes + sum(index.nbytes for index in self._by_side.values())

    def put(self, slot: int, query: JoinQuery) -> None:
        """Add a query. It is pending until `settle` puts the boxes of all new queries into the index together."""
        self._queries[slot] = query
        self._pending[slot] = None

    def remove(self, slot: int) -> None:
        """Remove a query."""
        del self._queries[slot]
        if slot in self._pending:
            del self._pending[slot]
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
        """Put the boxes of the pending queries into the index."""
        if not self._pending:
            return
        new = flat_boxes(self._pending, self._queries, self.axes)
        if new.axes != self.axes:
            if len(self._pending) < len(self._queries):
                new = flat_boxes(self._queries, self._queries, new.axes)
            self._clear(new.axes)
        self._register(new)
        self._pending = {}

    # -- questions ----------------------------------------------------------------------------------------

    def parts_of(self, side: int, window: Window) -> Float64s:
        """Return the part of each reading of one side in the coordinate of each axis, float64[d, n].

        The coordinate of a pair is its left part less its right part. A reading without a number has the part -inf on
        the left and inf on the right. The axis of ranks has zeros, because only a pair has a rank.
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
            elif isinstance(of_side, str) and of_side in window.keys:  # else no query compares it any more
                keys = window.keys[of_side]
                parts[k] = np.where(keys < 0, -np.inf if side == 0 else np.inf, keys)
        return parts

    def unions(self) -> list[Float64s]:
        """Return for each axis the union of all boxes on it: disjoint intervals, float64[2, k], k <= `MOST_PARTS`."""
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

    def _register(self, new: FlatBoxes) -> None:
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


def _union(lo: Float64s, hi: Float64s) -> Float64s:
    """Return the union of [lo, hi) as disjoint intervals; if they are more than `MOST_PARTS`, it closes small gaps."""
    if not lo.size:
        return np.empty((2, 0))
    order = np.argsort(lo)
    begins, ends = lo[order], np.maximum.accumulate(hi[order])
    gaps = np.flatnonzero(begins[1:] > ends[:-1])
    if gaps.size >= MOST_PARTS:
        widths = begins[gaps + 1] - ends[gaps]
        gaps = np.sort(gaps[np.argpartition(widths, -(MOST_PARTS - 1))[-(MOST_PARTS - 1) :]])
    return np.stack((begins[np.append(0, gaps + 1)], ends[np.append(gaps, -1)]))
