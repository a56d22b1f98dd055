"""Conjunctions of window joins as boxes in one space, in which a pair of readings is a point.

    axis                            coordinate of (l, r)          box of a query
    column of one side              l.qty                         [10, 20)
    difference of two columns       l.price - r.price             [-1, 1]: a band
    equality of two fields          l.symbol - r.symbol           [0, 0], each text is a number
    time                            r's time - l's time           [-right window, left window]
    rank                            +k or -k                      [-right count, left count]

Rank: when the later reading was applied, the earlier reading was the k-th last reading of its feed. The coordinate is
+k if the left reading is the earlier one, and -k if the right reading is.

Notes
-----
Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
section 6. Departures:

- A band is an interval of the difference, exact to the last bit. The paper keeps the two columns as axes, on which a
  band is a diagonal stripe, and cuts it into four boxes (object decomposition). These boxes hold more than the stripe,
  a query has up to four of them, and each pair that is found has to be tested again.
- Time and rank are signed, so that one axis serves the windows of both sides. Windows of all lengths and kinds are in
  one index.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from bmq.kernels.window.pair_points import LARGEST
from bmq.records import Conjunction, JoinQuery

EQUAL = (0.0, math.nextafter(0.0, 1.0))


class Measure(IntEnum):  # not a plain Enum, whose hash runs in Python: a registration needs some dozens
    """The quantity that an axis measures."""

    LEFT = 0  # a column of the left reading
    RIGHT = 1
    BAND = 2  # the difference of two columns
    EQUALITY = 3  # of two fields
    TIME = 4  # the difference of the event times
    RANK = 5  # among the last readings


class Axis(NamedTuple):
    """An axis: its measure, and the left and right column or field; None: the measure has no such column or field."""

    measure: Measure
    left: int | str | None = None
    right: int | str | None = None


TIME = Axis(Measure.TIME)
RANK = Axis(Measure.RANK)

Interval = tuple[float, float]  # half-open
Box = dict[Axis, Interval]  # a box is unbounded on an axis that it does not name


def boxes_of(query: JoinQuery) -> list[Box]:
    """Return the boxes of a query: one for each conjunction that some pair can satisfy."""
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
        # Not -inf, which means "no number": a band without ends still needs two numbers.
        box[axis] = (max(lo, band.lo, -LARGEST), min(hi, _behind(band.hi)))
    return box


def _behind(end: float) -> float:
    return math.nextafter(end, math.inf)


class FlatBoxes(NamedTuple):
    """Boxes as lists of numbers, because a hundred thousand dicts of tuples cost the garbage collector seconds.

    Attributes
    ----------
    axes : of the space.
    slots, sizes : for each box, the slot of its query and the number of its intervals.
    places, lo, hi : for each interval, the place of its axis in ``axes``, and its ends.
    without : slots of queries that have no box.
    """

    axes: tuple[Axis, ...]
    slots: list[int]
    sizes: list[int]
    places: list[int]
    lo: list[float]
    hi: list[float]
    without: list[int]


def flat_boxes(slots: Iterable[int], queries: Mapping[int, JoinQuery], axes: tuple[Axis, ...]) -> FlatBoxes:
    """Return the boxes of the queries in ``slots``; new axes follow ``axes``."""
    place_of = {axis: k for k, axis in enumerate(axes)}
    flat = FlatBoxes((), [], [], [], [], [], [])
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
