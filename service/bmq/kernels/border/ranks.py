"""Ranks: about what share of an axis' borders lies below a value. Pure: arrays in, numbers out.

    rank 1 |                         ...·
           |              ......·····            straight lines between a few quantiles of the borders:
           |          ···'                       steep where borders crowd, flat where there are few
    rank 0 |____···'______________________ value

Equal steps of rank hold about equally many borders, whether these lie evenly, in towns, or anywhere else.

Where many borders are equal, the rank jumps: to half their share on them, to all of it behind them. So what lies beside
them has another rank, and so has what lies beyond all borders:

                 beyond   1.0     ______
    on it          .75           ·
    between .5     ____________
            .25   ·            border
    0.0  ___
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s

# 64 straight lines, and one more where a border is two knots; a 64th of the borders may share a step with far ones.
N_KNOTS = 65
# Buckets far outnumber knots, so that where borders lie evenly nearly every bucket is free of knots and the
# search ends at once. 4 KB: both axes stay in the first cache.
N_BUCKETS = 1024
MAX_PLACE = 2**31 - 1


class Ranks(NamedTuple):
    """The rank of every value of one axis: line i ends below knot i, and the last one does not end.

    Attributes
    ----------
    knots : float64[k], strictly increasing and finite. May be empty.
    lines : float64[k + 1, 4]
        A value on the line, the rank there, the rise (may be 0 or infinite), and the rank not to be exceeded.
        Before the first knot the rank is 0, from the last on 1.
    start, per_unit : where the buckets begin, and how many there are to a unit.
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
    """Return the ranks that a sample of borders (float64[n], ascending, finite) shows; O(n)."""
    places = np.linspace(0, sample.size - 1, min(sample.size, N_KNOTS)).astype(np.int64)
    quantiles, counts = np.unique(sample[places], return_counts=True)
    if not quantiles.size:
        return Ranks(quantiles, np.zeros((1, 4)), 0.0, 0.0, np.zeros(N_BUCKETS + 1, dtype=np.int32))
    # Without the outermost lines: one border far away must not put all others into one bucket.
    start = float(quantiles[min(1, quantiles.size - 1)])
    width = float(quantiles[max(-2, -quantiles.size)]) - start
    per_unit = N_BUCKETS / width if width > 0 else 0.0
    # The outermost ones are always parted from what lies beyond: there is no border, and there may be many readings.
    is_parted = counts > 1
    is_parted[[0, -1]] = True
    below = np.searchsorted(sample, quantiles) / sample.size
    behind = np.searchsorted(sample, quantiles, side="right") / sample.size
    on = np.where(is_parted, (below + behind) / 2, below)
    # A knot more at the next number; that there may be none, or that it may be a knot, is no harm.
    with np.errstate(over="ignore"):
        knots = np.append(quantiles, np.nextafter(quantiles[is_parted], np.inf))
    knots, first_of = np.unique(knots, return_index=True)
    first_of, knots = first_of[np.isfinite(knots)], knots[np.isfinite(knots)]
    begin_ranks = np.append(on, behind[is_parted])[first_of]
    end_ranks = np.append(below, on[is_parted])[first_of]  # of the line that ends at the knot
    begin_ranks[-1] = 1.0
    lines = np.zeros((knots.size + 1, 4))
    lines[:, 0] = np.append(knots[0], knots)
    lines[1:, 1] = begin_ranks
    lines[1:, 3] = np.append(end_ranks[1:], 1.0)
    # Knots may lie further apart than a float can say, or nearer than its inverse can: `ranks_of` knows.
    with np.errstate(over="ignore", divide="ignore"):
        lines[1:-1, 2] = (end_ranks[1:] - begin_ranks[:-1]) / np.diff(knots)
    buckets = np.array([_bucket(float(knot), start, per_unit) for knot in knots], dtype=np.int64)
    firsts = np.searchsorted(buckets, np.arange(N_BUCKETS + 1)).astype(np.int32)
    return Ranks(knots, lines, start, per_unit, firsts)


@njit(cache=True, inline="always")
def _bucket(value: float, start: float, per_unit: float) -> int:
    """Return the bucket that holds ``value``; it never falls as ``value`` rises."""
    position = (value - start) * per_unit
    # NaN, which infinity times 0 gives, becomes 0, as everything else is where `per_unit` is 0.
    position = position if position > 0.0 else 0.0
    return int(position if position < N_BUCKETS - 1.0 else N_BUCKETS - 1.0)


@njit(cache=True, inline="always")
def rank_of(ranks: Ranks, value: float) -> float:
    """Return the rank of one value, as ``ranks_of``."""
    return _rank_among(ranks.knots, ranks.lines, ranks.start, ranks.per_unit, ranks.firsts, value)


@njit(cache=True, inline="always")
def _rank_among(knots: Float64s, lines: Float64s, start: float, per_unit: float, firsts: Int32s, value: float) -> float:
    bucket = _bucket(value, start, per_unit)
    line, last = firsts[bucket], firsts[bucket + 1]
    while line < last:
        middle = (line + last) >> 1
        if value >= knots[middle]:
            line = middle + 1
        else:
            last = middle
    rank = lines[line, 1] + (value - lines[line, 0]) * lines[line, 2]
    # Rounding, or NaN from infinity times 0, must not carry it past the line's end.
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
    # Taken out of the tuple once: taken out in the loop, they cost half as much again.
    knots, lines, start, per_unit, firsts = ranks
    for i in range(values.size):
        found[i] = _rank_among(knots, lines, start, per_unit, firsts, values[i])
    return found


@njit(cache=True)
def places_of(ranks: Ranks, values: Float64s, places: Int32s) -> None:
    """Write the place of each value, its rank in 31 bits: 0..2**31 - 1. It never falls as the value rises.

    Parameters
    ----------
    ranks : Ranks
    values : float64[n]
        Never NaN; may be infinite.
    places : int32[n]

    Notes
    -----
    Raises nothing.
    """
    knots, lines, start, per_unit, firsts = ranks
    for i in range(values.size):
        places[i] = np.int64(_rank_among(knots, lines, start, per_unit, firsts, values[i]) * MAX_PLACE)
