"""The RS list of one dimension without stored RS nodes: delta query sets in border order. Arrays in, numbers out.

    rows, ascending by lower border      q0 [10, 30)   q1 [20, 30)   q2 [25, 40)
    borders            10        20   25   30        40
              ----------|---------|----|----|---------|------
    RS node     (0, 0)    (1, 0) (2,0)(3,0) (3, 2)     (3, 3)
    +DQ           -         q0     q1   q2     -         -
    -DQ           -         -      -    -    q0 q1       q2

RS node (p, q) lies above p lower borders and q upper borders. So the +DQ of the RS nodes from (p, q) up to (p', q') are
rows p..p' - 1 of the query table, and their -DQ are entries q..q' - 1 of `minus_rows`. The lower border of each row
before p is at or below every value of RS node (p, q).

Knows borders and rows. It must not know moves, streams or query slots; those are `kernels.border.line_moves`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.kernels.border.ranks import Ranks, make_ranks, rank_of
from bmq.records import Float64s

# Unsigned, because numba then knows that no index counts from the end of the array. That check was a third of a search.
Places = npt.NDArray[np.uint32]

LOWER, UPPER = 0, 1  # which end of a region

# Mostly at most WINDOW = 4 lower and 4 upper borders lie between the beginning of a bucket and a value in it, and these
# are compared without a branch. With 25 % more queries in a bucket, a query takes 1 byte less and a search takes half
# as long again.
QUERIES_PER_BUCKET = 2
WINDOW = 4
# One summary for 16 delta queries takes 12 bytes, 0.75 a query. With 32, looking at the two blocks in which a long move
# begins and ends costs more than looking at the summaries between them.
BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS
_SAMPLE_SIZE = 4096  # borders in the sample that shows where borders crowd: 64 for each straight line of `ranks`


class DeltaSets(NamedTuple):
    """The RS list of the regions [lo, hi) of a query table of one dimension.

    Attributes
    ----------
    ends : float64[2 * m]
        The lower and the upper border of each row; rows are ascending by lower border. Shares the query table's memory.
    minus_rows : uint32[m]
        Rows, ascending by upper border. Rows without an upper border (inf) come last; no finite value lies above them.
    ranks : Ranks
        The ranks that the borders define.
    firsts : uint32[2 * n_buckets]
        How many lower borders and how many upper borders lie in the buckets before each bucket; buckets are equal steps
        of rank. At most m - WINDOW, so that a whole window of borders follows.
    highest : float64[ceil(m / BLOCK)]
        The highest upper border in each block of rows. A move whose upper value is at least this jumps over every query
        of +DQ in the block.
    lowest : uint32[ceil(m / BLOCK)]
        The lowest row, and so the one with the lowest lower border, in each block of ``minus_rows``.
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
    """Return the delta query sets of regions that are ascending by lower border; O(m log m).

    Parameters
    ----------
    regions : float64[m, 1, 2], C-contiguous, m >= 1
        Kept as ``DeltaSets.ends``, not copied.

    Notes
    -----
    Source: Lee et al., BMQ-Index, MDM 2006, section 3.1. Departure: an RS node is a pair of numbers and takes no
    memory. A query is stored once in +DQ, as its row of the query table, and once in -DQ.
    """
    m = len(regions)
    ends = regions.reshape(-1)
    lower, upper = ends[LOWER::2], ends[UPPER::2]
    # Stable, because numpy's stable sort merges runs, and upper borders in the order of the lower borders are nearly
    # sorted.
    minus_rows = np.argsort(upper, kind="stable").astype(np.uint32)
    sample = ends[:: 1 + 2 * (m // _SAMPLE_SIZE)]  # the step is odd, so that the sample has lower and upper borders
    ranks = make_ranks(np.sort(sample[np.isfinite(sample)]))
    firsts = np.full(2 * max(1, m // QUERIES_PER_BUCKET), m, dtype=np.uint32)
    _count_before(ends, minus_rows, ranks, firsts)
    np.minimum(firsts, max(0, m - WINDOW), out=firsts)
    blocks = np.arange(0, m, BLOCK)
    highest = np.maximum.reduceat(upper, blocks)
    lowest = np.minimum.reduceat(minus_rows, blocks)
    with np.errstate(over="ignore"):  # if the widest region is wider than the largest float, its width is infinite
        narrowest = float((upper - lower).min())
    return DeltaSets(ends, minus_rows, ranks, firsts, highest, lowest, narrowest)


@njit(cache=True, forceinline=True)
def signed(place: int) -> int:
    """Return an unsigned number as numba's usual signed kind; the compiler still knows that it is not negative."""
    return int(np.int64(place))


@njit(cache=True, forceinline=True)
def bucket_of(rank: float, n_buckets: int) -> int:
    """Return the number of the bucket that holds values of rank ``rank`` (0..1); it never falls as the rank rises."""
    return min(int(rank * n_buckets), n_buckets - 1)


@njit(cache=True, forceinline=True)
def border_at(ends: Float64s, minus_rows: Places, end: int, place: int) -> float:
    """Return border number ``place`` of the ascending lower or upper borders, as ``end`` says."""
    row = place if end == LOWER else signed(minus_rows[place])
    return float(ends[2 * row + end])


@njit(cache=True)
def _count_before(ends: Float64s, minus_rows: Places, ranks: Ranks, firsts: Places) -> None:
    """Write to ``firsts`` how many borders lie in the buckets before each bucket.

    The caller fills ``firsts`` with m. Buckets after the last border keep that number.
    """
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
    """Return how many lower (or upper) borders are at or below ``value``; at least ``first`` of them are."""
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
    """Return the same as `_search_on`, faster if the next borders after ``first`` decide it."""
    place = first
    if minus_rows.size >= WINDOW:
        for k in range(WINDOW):
            place += value >= border_at(ends, minus_rows, end, first + k)
        if place < first + WINDOW:
            return place
    return _search_on(ends, minus_rows, end, place, value)


@njit(cache=True, forceinline=True)
def find_rs_node(ends: Float64s, minus_rows: Places, firsts: Places, rank: float, value: float) -> tuple[int, int]:
    """Return the RS node (p, q) that holds ``value``: p lower borders and q upper borders are at or below it.

    Parameters
    ----------
    ends, minus_rows, firsts
        The arrays of `DeltaSets`. The caller takes them out of the tuple, because numba counts references at each
        access to an array in a tuple, and that costs more than the search.
    rank : float, 0..1
        The rank of ``value``.
    value : float
        Finite.

    Notes
    -----
    Raises nothing. O(1) if borders lie evenly within each 64th of them, else a binary search of a bucket. Invariant:
    all borders in the buckets before the bucket of ``value`` are below ``value``.
    """
    bucket = bucket_of(rank, firsts.size // 2)
    plus = _count_up_to(ends, minus_rows, LOWER, signed(firsts[2 * bucket]), value)
    minus = _count_up_to(ends, minus_rows, UPPER, signed(firsts[2 * bucket + 1]), value)
    return plus, minus


@njit(cache=True)
def find_rs_node_anew(sets: DeltaSets, value: float) -> tuple[int, int]:
    """Return the same as ``find_rs_node`` for a value whose rank the caller has not computed."""
    return find_rs_node(sets.ends, sets.minus_rows, sets.firsts, rank_of(sets.ranks, value), value)
