"""Find the pairs of readings to test: for each new reading, ranges of the other side in some order.

If every query asks for it, a pair must be near in time or in rank, or in a band, or equal in a field. So the other side
is sorted by the axis that leaves the fewest pairs, and each new reading meets a few ranges of this order:

    right.price   8 [ 9   9.5   10.2   11 ]  14   20        new left.price 10, bands within -1 to 1

The module knows rows, and axes as columns of numbers. It does not know what an axis means.
"""

from typing import NamedTuple

import numpy as np

from bmq.kernels.window.pair_points import LARGEST
from bmq.records import Float64s, Int64s

N_SAMPLED = 4  # new readings whose pairs are counted on each axis, to find the axis that leaves the fewest
# An axis is sorted only if it leaves less than this part of the pairs. If it leaves more, a test of the excluded pairs
# costs less than the sort.
WORTH = 0.5


class Ranges(NamedTuple):
    """Ranges of ``order``, which holds rows of the other side, and for each range the row of its new reading."""

    begins: Int64s
    ends: Int64s
    order: Int64s
    readings: Int64s

    @property
    def n_pairs(self) -> int:
        """The number of pairs in the ranges."""
        return int(np.maximum(self.ends - self.begins, 0).sum())


class Asked(NamedTuple):
    """The new readings of one side, and the readings of the other side that may be in a pair with them.

    Attributes
    ----------
    side : of the new readings: 0 left, 1 right.
    readings : int64[m], rows of the new readings, ascending.
    others : int64[n], rows of the other side that may be in a pair, ascending.
    newest : int64[m], for each new reading: rows of the other side below it were applied before the reading.
    longest : the largest number of readings of the other side that a query looks back to; None: no limit.
    """

    side: int
    readings: Int64s
    others: Int64s
    newest: Int64s
    longest: int | None


def narrowest(
    asked: Asked,
    lefts: Float64s,
    rights: Float64s,
    unions: list[Float64s],
) -> Ranges:
    """Return ranges with few pairs that contain every pair that can satisfy a query.

    Parameters
    ----------
    lefts, rights : float64[d, n_left], float64[d, n_right]
        The parts of the readings on each axis, as of `WindowBoxes.parts_of`.
    unions : float64[2, k] for each axis
        The intervals that contain the boxes of all queries; [-inf, inf) excludes nothing.

    Notes
    -----
    The function counts the pairs that each axis leaves to some of the readings, and sorts by the axis that leaves the
    fewest. If this axis still leaves most pairs, it sorts by no axis. O(d n + (n + m) log n).
    """
    in_order = _by_order_of_application(asked)
    best, fewest = -1, in_order.n_pairs // asked.readings.size * WORTH
    for axis, union in enumerate(unions):
        if union[0, 0] <= -LARGEST and union[1, 0] == np.inf:
            continue
        n_left = _pairs_of_some(asked, lefts[axis], rights[axis], union)
        if n_left < fewest:
            best, fewest = axis, n_left
    if best < 0:
        return in_order
    return min(in_order, _by_axis(asked, lefts[best], rights[best], unions[best]), key=lambda ranges: ranges.n_pairs)


def _pairs_of_some(asked: Asked, left: Float64s, right: Float64s, union: Float64s) -> float:
    """Return the mean number of pairs of a new reading in a union, over a sample of the new readings."""
    some = asked.readings[:: 1 + asked.readings.size // N_SAMPLED, None]
    with np.errstate(invalid="ignore", over="ignore"):
        points = left[some] - right[asked.others] if asked.side == 0 else left[asked.others] - right[some]
    return sum(np.count_nonzero((lo <= points) & (points < hi)) for lo, hi in union.T.tolist()) / some.size


def _by_order_of_application(asked: Asked) -> Ranges:
    ends = np.searchsorted(asked.others, asked.newest)
    if asked.longest is None:
        begins = np.zeros_like(ends)
    else:
        begins = np.searchsorted(asked.others, asked.newest - asked.longest)
    return Ranges(begins, ends, asked.others, asked.readings)


def _by_axis(asked: Asked, left: Float64s, right: Float64s, union: Float64s) -> Ranges:
    sides = left, right
    sought, found = sides[asked.side][asked.readings], sides[1 - asked.side][asked.others]
    order = np.argsort(found)
    in_order = found[order]
    begins, ends = [], []
    # Ranges ascend. A right reading is its left reading less the coordinate, so for new left readings the intervals go
    # from the highest to the lowest.
    for lo, hi in union.T[:: 1 if asked.side == 1 else -1].tolist():
        # A rounded difference is in [lo, hi) only if the exact difference is above the float below lo. The sums below
        # are rounded, too, so both are widened by one float. A range may hold too many readings, and never too few.
        with np.errstate(invalid="ignore", over="ignore"):
            above = np.nextafter(lo, -np.inf)
            least, most = (sought + above, sought + hi) if asked.side == 1 else (sought - hi, sought - above)
            least, most = np.nextafter(least, -np.inf), np.nextafter(most, np.inf)
        begins.append(np.searchsorted(in_order, least, side="left"))
        ends.append(np.searchsorted(in_order, most, side="right"))
        # A reading without a number is in no box on an axis that excludes something.
        ends[-1][~np.isfinite(sought)] = 0
        if len(begins) > 1:
            begins[-1] = np.maximum(begins[-1], ends[-2])  # no pair may be in two ranges
    readings = np.repeat(asked.readings, union.shape[1])
    return Ranges(np.stack(begins, 1).ravel(), np.stack(ends, 1).ravel(), asked.others[order], readings)
