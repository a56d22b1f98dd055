"""Which pairs of readings a cluster is made of: for each new reading, ranges of the other side in some order.

A pair has to be near in time, or in rank, or in a band, or equal in a field, if every query asks for that. So the other
side is sorted by what leaves the fewest pairs, and each new reading meets a few ranges of it:

    right.price   8 [ 9   9.5   10.2   11 ]  14   20        new left.price 10, bands within -1 to 1

Knows rows, and axes as columns of numbers; not what they mean.
"""

from typing import NamedTuple

import numpy as np

from bmq.kernels.window.pair_points import LARGEST
from bmq.records import Float64s, Int64s

N_SAMPLED = 4  # new readings whose pairs are counted on each axis, to find which leaves the fewest
WORTH = 0.5  # of the pairs: what an axis must leave at most to be sorted; what it leaves out costs less to look at


class Ranges(NamedTuple):
    """Ranges of ``order``, rows of the other side, and the row of the new reading that each belongs to."""

    begins: Int64s
    ends: Int64s
    order: Int64s
    readings: Int64s

    @property
    def n_pairs(self) -> int:
        """How many pairs the ranges hold."""
        return int(np.maximum(self.ends - self.begins, 0).sum())


class Asked(NamedTuple):
    """One side's new readings and what may be on the other.

    Attributes
    ----------
    side : of the new readings: 0 left, 1 right.
    readings : int64[m], rows of the new readings, ascending.
    others : int64[n], rows of the other side that may take part, ascending.
    newest : int64[m], only rows of the other side below this one were applied before the reading.
    longest : most readings of the other side that any query looks back to; None: no limit.
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
    """Return the ranges that hold the fewest pairs, among them all that any query can want.

    Parameters
    ----------
    lefts, rights : float64[d, n_left], float64[d, n_right]
        What the readings bring to each axis.
    unions : float64[2, k] for each axis
        Where coordinates can be; [-inf, inf) where nothing is left out.

    Notes
    -----
    The axis is chosen by how many pairs it leaves to some of the readings; one order is sorted, if any. An axis that
    leaves most of them is not worth it. O(d n + (n + m) log n).
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
    """Return how many pairs of a new reading are in a union, in the mean of some."""
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
    # From the lowest range to the highest: what a left reading meets is below it by the coordinate.
    for lo, hi in union.T[:: 1 if asked.side == 1 else -1].tolist():
        # A rounded difference is in [lo, hi) only if the exact one is above the float below lo; and what is computed
        # from the ends here is rounded, too. A range may hold too much, never too little.
        with np.errstate(invalid="ignore", over="ignore"):
            above = np.nextafter(lo, -np.inf)
            least, most = (sought + above, sought + hi) if asked.side == 1 else (sought - hi, sought - above)
            least, most = np.nextafter(least, -np.inf), np.nextafter(most, np.inf)
        begins.append(np.searchsorted(in_order, least, side="left"))
        ends.append(np.searchsorted(in_order, most, side="right"))
        # What is no number is nowhere on an axis of which something is left out.
        ends[-1][~np.isfinite(sought)] = 0
        if len(begins) > 1:
            begins[-1] = np.maximum(begins[-1], ends[-2])  # one pair is not to be in two ranges
    readings = np.repeat(asked.readings, union.shape[1])
    return Ranges(np.stack(begins, 1).ravel(), np.stack(ends, 1).ravel(), asked.others[order], readings)
