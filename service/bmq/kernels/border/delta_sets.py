"""The RS list of one dimension without written RS nodes: delta query sets in border order. Arrays in, numbers out.

    rows, ascending by lower border      q0 [10, 30)   q1 [20, 30)   q2 [25, 40)
    borders            10        20   25   30        40
              ----------|---------|----|----|---------|------
    RS node     (0, 0)    (1, 0) (2,0)(3,0) (3, 2)     (3, 3)
    +DQ           -         q0     q1   q2     -         -
    -DQ           -         -      -    -    q0 q1       q2

RS node (p, q) lies behind p lower and q upper borders. So the +DQ of the RS nodes on the way to (p', q') are the
rows p..p' - 1 of the query table, and their -DQ are the entries q..q' - 1 of `minus_rows`. A row before p begins at
or below every value of RS node (p, q).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.kernels.border.ranks import Ranks, make_ranks, rank_of
from bmq.records import Float64s

# Unsigned, since numba then knows that no index counts from the end: that check was a third of a search.
Places = npt.NDArray[np.uint32]

LOWER, UPPER = 0, 1  # which end of a region

# Four borders of either kind lie behind a bucket's beginning, or fewer: those are compared without a branch. A
# fourth more queries to a bucket save a byte a query, and a search takes half as long again.
QUERIES_PER_BUCKET = 2
WINDOW = 4
# A summary for 16 delta queries: 12 bytes, 0.75 a query. Of 32, the two blocks in which a long move begins and ends
# cost more than the summaries between them.
BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS
_SAMPLE_SIZE = 4096  # borders that show where borders crowd: 64 for each line of `ranks`


class DeltaSets(NamedTuple):
    """The RS list of the regions [lo, hi) of a query table of one dimension.

    Attributes
    ----------
    ends : float64[2 * m]
        Lower and upper border of each row, lower ones ascending: the query table's own memory.
    minus_rows : uint32[m]
        Rows, ascending by upper border. Unbounded rows come last, and no value is behind them.
    ranks : Ranks
        Of the borders.
    firsts : uint32[2 * n_buckets]
        How many lower and how many upper borders lie in the buckets before each one: equal steps of rank. At most
        m - WINDOW, so that a window fits behind.
    highest : float64[ceil(m / BLOCK)]
        The highest upper border in each block of rows: the last queries to be jumped over.
    lowest : uint32[ceil(m / BLOCK)]
        The lowest row, so the lowest lower border, in each block of ``minus_rows``.
    narrowest : float
        The least ``hi - lo``, rounded as the difference of two values is.
    """

    ends: Float64s
    minus_rows: Places
    ranks: Ranks
    firsts: Places
    highest: Float64s
    lowest: Places
    narrowest: float


def build_delta_sets(regions: Float64s) -> DeltaSets:
    """Return the delta query sets of float64[m, 1, 2] regions, ascending by lower border; O(m log m).

    Notes
    -----
    Source: Lee et al., BMQ-Index, MDM 2006, section 3.1. Departure: an RS node is a pair of numbers and takes no
    memory. A query is stored once in +DQ, as its row of the query table, and once in -DQ.
    """
    m = len(regions)
    ends = regions.reshape(-1)
    lower, upper = ends[LOWER::2], ends[UPPER::2]
    # Stable sorting merges runs, and upper borders in the order of the lower ones are nearly sorted.
    minus_rows = np.argsort(upper, kind="stable").astype(np.uint32)
    sample = ends[:: 1 + 2 * (m // _SAMPLE_SIZE)]  # an odd step, so that both ends are met
    ranks = make_ranks(np.sort(sample[np.isfinite(sample)]))
    firsts = np.full(2 * max(1, m // QUERIES_PER_BUCKET), m, dtype=np.uint32)
    _count_before(ends, minus_rows, ranks, firsts)
    np.minimum(firsts, max(0, m - WINDOW), out=firsts)
    blocks = np.arange(0, m, BLOCK)
    highest = np.maximum.reduceat(upper, blocks)
    lowest = np.minimum.reduceat(minus_rows, blocks)
    with np.errstate(over="ignore"):  # the widest may be wider than a float can say; then it is infinite
        narrowest = float((upper - lower).min())
    return DeltaSets(ends, minus_rows, ranks, firsts, highest, lowest, narrowest)


@njit(cache=True, forceinline=True)
def signed(place: int) -> int:
    """Return an unsigned number as numba's usual kind; it remembers that it is not negative."""
    return int(np.int64(place))


@njit(cache=True, forceinline=True)
def bucket_of(rank: float, n_buckets: int) -> int:
    """Return the bucket that holds the values of ``rank``; it never falls as the rank rises."""
    return min(int(rank * n_buckets), n_buckets - 1)


@njit(cache=True, forceinline=True)
def border_at(ends: Float64s, minus_rows: Places, end: int, place: int) -> float:
    """Return the lower (or upper) border number ``place`` in ascending order."""
    row = place if end == LOWER else signed(minus_rows[place])
    return float(ends[2 * row + end])


@njit(cache=True)
def _count_before(ends: Float64s, minus_rows: Places, ranks: Ranks, firsts: Places) -> None:
    """Write how many borders lie in the buckets before each one, where that is less than all."""
    n_buckets = firsts.size // 2
    for end in range(2):
        bucket = 0
        for place in range(minus_rows.size):
            own = bucket_of(rank_of(ranks, border_at(ends, minus_rows, end, place)), n_buckets)
            while bucket <= own:
                firsts[2 * bucket + end] = place
                bucket += 1


@njit(cache=True)
def _search_on(ends: Float64s, minus_rows: Places, end: int, first: int, value: float) -> int:
    """Return how many lower (or upper) borders are at or below ``value``; ``first`` are known to be."""
    step = 1
    low = first
    # >= and not >, here and below: a reading on a border belongs to the upper segment.
    while low + step <= minus_rows.size and value >= border_at(ends, minus_rows, end, low + step - 1):
        low += step
        step *= 2
    high = min(low + step - 1, minus_rows.size)
    while low < high:
        middle = (low + high) // 2
        if value >= border_at(ends, minus_rows, end, middle):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, forceinline=True)
def _count_up_to(ends: Float64s, minus_rows: Places, end: int, first: int, value: float) -> int:
    """Return how many lower (or upper) borders are at or below ``value``, of which ``first`` are known to be."""
    place = first
    if minus_rows.size >= WINDOW:
        for k in range(WINDOW):
            place += value >= border_at(ends, minus_rows, end, first + k)
        if place < first + WINDOW:
            return place
    return _search_on(ends, minus_rows, end, place, value)


@njit(cache=True, forceinline=True)
def find_rs_node(ends: Float64s, minus_rows: Places, firsts: Places, rank: float, value: float) -> tuple[int, int]:
    """Return the RS node (p, q) that holds ``value``: p lower and q upper borders are at or below it.

    Parameters
    ----------
    ends, minus_rows, firsts
        Of `DeltaSets`, taken out of it by the caller: numba counts references with each look at an array of a
        tuple, and that costs more than the search.
    rank : float
        Of ``value``, which is finite.

    Notes
    -----
    Raises nothing. O(1) where borders lie evenly within each 64th of them, else a binary search of a bucket. All
    borders in the buckets before that of ``value`` are below it.
    """
    bucket = bucket_of(rank, firsts.size // 2)
    plus = _count_up_to(ends, minus_rows, LOWER, signed(firsts[2 * bucket]), value)
    minus = _count_up_to(ends, minus_rows, UPPER, signed(firsts[2 * bucket + 1]), value)
    return plus, minus


@njit(cache=True)
def find_rs_node_anew(sets: DeltaSets, value: float) -> tuple[int, int]:
    """Return the RS node that holds ``value``, as ``find_rs_node``, for one that has no rank yet."""
    return find_rs_node(sets.ends, sets.minus_rows, sets.firsts, rank_of(sets.ranks, value), value)
