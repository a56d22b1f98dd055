"""Ranks: the approximate share of an axis' borders that lie below a value. Pure: arrays in, numbers out.

    rank 1 |                         ...·
           |              ......·····            straight lines between a few quantiles of the borders:
           |          ···'                       steep where borders crowd, flat where there are few
    rank 0 |____···'______________________ value

Equal steps of rank hold about equally many borders, whether the borders lie evenly, in towns, or anywhere else.

If many borders are equal, the rank jumps there: on them it is what lies below plus half their share, behind them plus
their whole share. So a value beside these borders has another rank than a value on them, and so has a value beyond all
borders:

                 beyond   1.0     ______
    on it          .75           ·
    between .5     ____________
            .25   ·            border
    0.0  ___

Knows the borders of one axis. It must not know regions, queries or cells. Invariant, on which all answers of the grids
rest: a rank never falls as the value rises, whatever is rounded.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s

# 64 straight lines, and one more for each border that is two knots. Up to a 64th of the borders may be in one step of
# rank with borders far away.
N_KNOTS = 65
# There are far more buckets than knots, so that nearly every bucket has no knot in it if borders lie evenly; the search
# then ends at once. The buckets take 4 KB: those of both axes stay in the first cache.
N_BUCKETS = 1024
MAX_PLACE = 2**31 - 1


class Ranks(NamedTuple):
    """The rank of every value of one axis, as straight lines: line i ends below knot i, and the last line does not end.

    Attributes
    ----------
    knots : float64[k], strictly increasing and finite. May be empty.
    lines : float64[k + 1, 4]
        For each line: a value on it, the rank there, the slope (may be 0 or infinite), and the rank that it must not
        exceed. Before the first knot the rank is 0, from the last knot on it is 1.
    start, per_unit : float
        Where the buckets begin, and how many buckets there are to one unit of the value.
    firsts : int32[N_BUCKETS + 1], the number of knots in the buckets before each one.
    """

    knots: Float64s
    lines: Float64s
    start: float
    per_unit: float
    firsts: Int32s

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.knots.nbytes + self.lines.nbytes + self.firsts.nbytes


def make_ranks(sample: Float64s) -> Ranks:
    """Return the ranks that a sample of borders (float64[n], ascending, finite) defines; O(n)."""
    places = np.linspace(0, sample.size - 1, min(sample.size, N_KNOTS)).astype(np.int64)
    quantiles, counts = np.unique(sample[places], return_counts=True)
    if not quantiles.size:
        return Ranks(quantiles, np.zeros((1, 4)), 0.0, 0.0, np.zeros(N_BUCKETS + 1, dtype=np.int32))
    # The outermost lines are left out: one border far away must not put all other borders into one bucket.
    start = float(quantiles[min(1, quantiles.size - 1)])
    width = float(quantiles[max(-2, -quantiles.size)]) - start
    per_unit = N_BUCKETS / width if width > 0 else 0.0
    # The least and the greatest border always get a rank apart from the values beyond them: no border lies beyond, but
    # many readings may.
    is_parted = counts > 1
    is_parted[[0, -1]] = True
    below = np.searchsorted(sample, quantiles) / sample.size
    behind = np.searchsorted(sample, quantiles, side="right") / sample.size
    on = np.where(is_parted, (below + behind) / 2, below)
    # Such a border gets one more knot, at the next larger float. It does not matter if there is no larger float, or if
    # that float is a knot already.
    with np.errstate(over="ignore"):
        knots = np.append(quantiles, np.nextafter(quantiles[is_parted], np.inf))
    knots, first_of = np.unique(knots, return_index=True)
    first_of, knots = first_of[np.isfinite(knots)], knots[np.isfinite(knots)]
    begin_ranks = np.append(on, behind[is_parted])[first_of]
    end_ranks = np.append(below, on[is_parted])[first_of]  # the rank at the end of the line that ends at the knot
    begin_ranks[-1] = 1.0
    lines = np.zeros((knots.size + 1, 4))
    lines[:, 0] = np.append(knots[0], knots)
    lines[1:, 1] = begin_ranks
    lines[1:, 3] = np.append(end_ranks[1:], 1.0)
    # The distance of two knots may exceed the largest float, and its inverse may be infinite: `ranks_of` handles both.
    with np.errstate(over="ignore", divide="ignore"):
        lines[1:-1, 2] = (end_ranks[1:] - begin_ranks[:-1]) / np.diff(knots)
    buckets = np.array([_bucket(float(knot), start, per_unit) for knot in knots], dtype=np.int64)
    firsts = np.searchsorted(buckets, np.arange(N_BUCKETS + 1)).astype(np.int32)
    return Ranks(knots, lines, start, per_unit, firsts)


@njit(cache=True, inline="always")
def _bucket(value: float, start: float, per_unit: float) -> int:
    """Return the bucket that holds ``value``; it never falls as ``value`` rises."""
    position = (value - start) * per_unit
    # NaN, the product of infinity and 0, becomes 0. If `per_unit` is 0, every other product is 0 as well.
    position = position if position > 0.0 else 0.0
    return int(position if position < N_BUCKETS - 1.0 else N_BUCKETS - 1.0)


@njit(cache=True, inline="always")
def rank_of(ranks: Ranks, value: float) -> float:
    """Return the rank (0..1) of one value, as ``ranks_of`` does."""
    return _rank_among(ranks.knots, ranks.lines, ranks.start, ranks.per_unit, ranks.firsts, value)


@njit(cache=True, inline="always")
def _rank_among(knots: Float64s, lines: Float64s, start: float, per_unit: float, firsts: Int32s, value: float) -> float:
    """Return the rank of one value, given the arrays of `Ranks`."""
    bucket = _bucket(value, start, per_unit)
    line, last = firsts[bucket], firsts[bucket + 1]
    while line < last:
        middle = (line + last) >> 1
        if value >= knots[middle]:
            line = middle + 1
        else:
            last = middle
    rank = lines[line, 1] + (value - lines[line, 0]) * lines[line, 2]
    # Rounding, or NaN from infinity times 0, must not carry the rank past the end of the line.
    return float(rank if rank < lines[line, 3] else lines[line, 3])


@njit(cache=True)
def ranks_of(ranks: Ranks, values: Float64s) -> Float64s:
    """Return the rank of each value, 0..1. It never falls as the value rises, whatever is rounded.

    Parameters
    ----------
    ranks : Ranks
    values : float64[n]
        Never NaN; may be infinite.

    Returns
    -------
    float64[n]

    Notes
    -----
    Raises nothing. O(1) a value where borders lie evenly, O(log knots) where they crowd.
    """
    found = np.empty(values.size, dtype=np.float64)
    # Taken out of the tuple once: access to the tuple in the loop made it take half as long again.
    knots, lines, start, per_unit, firsts = ranks
    for i in range(values.size):
        found[i] = _rank_among(knots, lines, start, per_unit, firsts, values[i])
    return found


@njit(cache=True)
def places_of(ranks: Ranks, values: Float64s, places: Int32s) -> None:
    """Write the place of each value: its rank in 31 bits, 0..2**31 - 1. It never falls as the value rises.

    Parameters
    ----------
    ranks : Ranks
    values : float64[n]
        Never NaN; may be infinite.
    places : int32[n]
        Written.

    Notes
    -----
    Raises nothing.
    """
    knots, lines, start, per_unit, firsts = ranks
    for i in range(values.size):
        places[i] = np.int64(_rank_among(knots, lines, start, per_unit, firsts, values[i]) * MAX_PLACE)
