"""The spatial join of data clusters with a tree of queries. Pure: arrays in, numbers out.

A data cluster is a run of values that lie close together. Each cluster is handled in three steps:

1. The tree is searched once for the regions that meet the cluster's box. Regions that hold the whole box need no test.
2. For each other region, the set of the values that it holds is made, with one bit for each value. In each dimension
   the values are sorted, so the values below an end are one of few prepared sets, and the region's set is a combination
   of some of these:

       values by order     v3  v0  v2  v1          those < lo:  {v3}        those < hi:  {v3, v0, v2}
       region                 [------)             held:        {v0, v2}

3. The sets are transposed: for each value the set of the regions that hold it, as answers are given by value.

All sets are kept until the answers of all values have been counted, so that each answer is written to its final place.

Knows values as places, and the tree. It must not know how values were ordered or which streams they belong to.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bmq.kernels.match.select_tree import LEAF, CornerTree, find_leaves, find_meeting
from bmq.kernels.tables.bit_sets import WORD, count_bits, transpose, write_members
from bmq.records import Int32s, Int64s, UInt64s

Ints = npt.NDArray[Any]  # int32 or uint64
UInt16s = npt.NDArray[np.uint16]

WORDS = 4
MAX_CLUSTER = WORD * WORDS  # values of a data cluster
N_BUCKETS = 16 * MAX_CLUSTER  # 8 a value: a fifth slower, as the search in a bucket is guessed wrong; 64: no faster
# Costs in lanes; a lane is the time to compare one row with one value. The cost of making the set of one region, and
# the cost of beginning a cluster.
LANES_A_SET = 25
LANES_A_CLUSTER = 16_000

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)


class ClusterHits(NamedTuple):
    """The regions of a tree that hold the values of each cluster.

    Attributes
    ----------
    starts : int64[n_clusters + 1], where each cluster begins among the values.
    whole, whole_starts : int32[], int64[n_clusters + 1]
        Query slots that hold all values of a cluster, cluster by cluster.
    partial, partial_starts : int32[], int64[n_clusters + 1]
        Query slots that hold some values of a cluster, padded to whole words of 64, and one more at the very end.
    bits, bit_starts : uint64[], int64[n_clusters + 1]
        For each value of a cluster, in order, the set of those of ``partial`` that hold it.
    visits : int
        The number of pairs of a value and a region that meets its cluster.
    """

    starts: Int64s
    whole: Int32s
    whole_starts: Int64s
    partial: Int32s
    partial_starts: Int64s
    bits: UInt64s
    bit_starts: Int64s
    visits: int


@njit(cache=True)
def search_clusters(tree: CornerTree, values: Int32s, run: int, counts: Int64s) -> ClusterHits:
    """Return the regions of a tree that hold each value; add to ``counts`` how many there are.

    Parameters
    ----------
    tree : CornerTree
    values : int32[d, n]
        Places among the tree's ends, in an order in which neighbours are near each other.
    run : int
        How many values make a cluster, 1..``MAX_CLUSTER``. Where the kernel predicts that separate answers are faster,
        the values of a run are clusters of one.
    counts : int64[n], written

    Notes
    -----
    Raises nothing.

    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
    sections 5.3 to 5.5. Departure: in the refinement, the paper tests a region with each value; here a region makes a
    set of the values.
    """
    n_dims, n_values = values.shape
    n_lanes = LEAF * tree.live.size
    leaves = np.empty(2 * tree.live.size, dtype=np.int32)
    places = np.empty(n_lanes, dtype=np.int32)
    holding = np.empty(n_lanes, dtype=np.int32)
    sets = np.empty((n_lanes + 1, WORDS), dtype=np.uint64)
    below = np.empty((n_dims, MAX_CLUSTER + 1, WORDS), dtype=np.uint64)
    ordered = np.empty((n_dims, MAX_CLUSTER), dtype=np.int32)
    firsts = np.empty((n_dims, N_BUCKETS + 1), dtype=np.uint16)
    shifts = np.empty(n_dims, dtype=np.int64)
    low, high = np.empty(n_dims, dtype=np.int32), np.empty(n_dims, dtype=np.int32)
    square = np.empty(WORD, dtype=np.uint64)

    starts = np.zeros(n_values + 1, dtype=np.int64)
    whole, whole_starts = np.empty(LEAF, dtype=np.int32), np.zeros(n_values + 1, dtype=np.int64)
    partial, partial_starts = np.empty(LEAF, dtype=np.int32), np.zeros(n_values + 1, dtype=np.int64)
    bits, bit_starts = np.empty(LEAF, dtype=np.uint64), np.zeros(n_values + 1, dtype=np.int64)
    cluster, visits, alone_until = 0, 0, 0
    while starts[cluster] < n_values:
        start = starts[cluster]
        size = 1 if start < alone_until else min(run, n_values - start)
        for k in range(n_dims):
            low[k], high[k] = values[k, start : start + size].min(), values[k, start : start + size].max()
        n_places, n_whole = find_meeting(tree, low, high, leaves, places, holding)
        if size > 1 and _is_faster_alone(tree, values[:, start + size // 2], size, n_places, leaves):
            alone_until = start + size
            continue
        visits += size * (n_places + n_whole)
        # The values still to come probably need as much room for each value as those before.
        growth = n_values / (start + size)

        first = whole_starts[cluster]
        whole = _with_room(whole, first, n_whole, growth)
        whole[first : first + n_whole] = holding[:n_whole]

        first = partial_starts[cluster]
        partial = _with_room(partial, first, n_places + WORD + 1, growth)
        n_sets = 0
        if n_places > 0:
            for k in range(n_dims):
                shifts[k] = _order_values(values[k, start : start + size], ordered[k], below[k], firsts[k])
            n_sets = _held_sets(tree, places[:n_places], ordered, below, firsts, shifts, sets, partial[first:])
        n_words = -(-n_sets // WORD)
        partial[first + n_sets : first + n_words * WORD + 1] = -1
        sets[n_sets : n_words * WORD] = 0

        first = bit_starts[cluster]
        bits = _with_room(bits, first, size * n_words, growth)
        _turn_around(sets, size, n_words, square, bits[first : first + size * n_words])
        for j in range(size):
            n_held = np.uint64(n_whole)
            for word in range(first + j * n_words, first + (j + 1) * n_words):
                n_held += count_bits(bits[word])
            counts[start + j] += np.int64(n_held)

        whole_starts[cluster + 1] = whole_starts[cluster] + n_whole
        partial_starts[cluster + 1] = partial_starts[cluster] + n_words * WORD
        bit_starts[cluster + 1] = bit_starts[cluster] + size * n_words
        starts[cluster + 1] = start + size
        cluster += 1
    return ClusterHits(starts[: cluster + 1], whole, whole_starts, partial, partial_starts, bits, bit_starts, visits)


@njit(cache=True)
def _is_faster_alone(tree: CornerTree, value: Int32s, size: int, n_places: int, leaves: Int32s) -> bool:
    """Return whether ``size`` values like this one are faster answered alone than by sets of ``n_places`` regions."""
    value = value.copy()
    n_partly, n_wholly = find_leaves(tree, value, value, leaves)
    return size * LEAF * (n_partly + n_wholly + 1) < LANES_A_SET * n_places + LANES_A_CLUSTER


@njit(cache=True)
def _order_values(column: Int32s, ordered: Int32s, below: UInt64s, firsts: UInt16s) -> int:
    """Write a cluster's values of one dimension in order, the set of those below each rank, and buckets over them.

    Parameters
    ----------
    column : int32[n]
        The places of the cluster's values in this dimension.
    ordered : int32[MAX_CLUSTER]
        Written: the places, ascending.
    below : uint64[MAX_CLUSTER + 1, WORDS]
        Written: ``below[r]`` is the set of the r lowest values.
    firsts : uint16[N_BUCKETS + 1]
        Written: how many values are in the buckets before each bucket, and in all buckets.

    Returns
    -------
    int
        How many low bits of a place are dropped to get its bucket.
    """
    n_values = column.size
    order = np.argsort(column)
    for w in range(WORDS):
        below[0, w] = 0
    for r in range(n_values):
        ordered[r] = column[order[r]]
        for w in range(WORDS):
            below[r + 1, w] = below[r, w]
        below[r + 1, order[r] // WORD] |= _ONE << np.uint64(order[r] % WORD)
    shift = 0
    while (ordered[n_values - 1] - ordered[0]) >> shift >= N_BUCKETS - 2:
        shift += 1
    firsts[:] = 0
    for r in range(n_values):
        firsts[_bucket(ordered[r], ordered[0], shift) + _ONE] += 1
    for b in range(N_BUCKETS):
        firsts[b + 1] += firsts[b]
    return shift


@njit(cache=True, inline="always")
def _bucket(place: int, lowest: int, shift: int) -> np.uint64:
    """Return the bucket of a place. Places outside the cluster, as most ends are, have the first or the last bucket."""
    bucket = int(((np.int64(place) - lowest) >> shift) + 1)
    return np.uint64(min(max(bucket, 0), N_BUCKETS - 1))


@njit(cache=True, inline="always")
def _n_below(end: int, ordered: Int32s, firsts: UInt16s, shift: int, k: int) -> np.uint64:
    """Return how many of the cluster's values in dimension ``k`` are less than ``end``."""
    bucket = _bucket(end, ordered[k, 0], shift)
    n, last = np.uint64(firsts[k, bucket]), np.uint64(firsts[k, bucket + _ONE])
    while n < last:
        middle = (n + last) >> _ONE
        if ordered[k, middle] < end:
            n = middle + _ONE
        else:
            last = middle
    return n


@njit(cache=True)
def _held_sets(
    tree: CornerTree,
    places: Int32s,
    ordered: Int32s,
    below: UInt64s,
    firsts: UInt16s,
    shifts: Int64s,
    sets: UInt64s,
    partial: Int32s,
) -> int:
    """Write the set of values that each region at ``places`` holds, and its slot; skip regions that hold none.

    Returns how many sets were written.
    """
    n_sets = 0
    for i in range(places.size):
        place = np.uint64(places[i])
        leaf, lane = place >> np.uint64(6), place & np.uint64(63)
        # Four variables and not an array, so that the compiler keeps them in one register of 256 bits.
        word_0 = word_1 = word_2 = word_3 = _ALL
        for k in range(np.uint64(shifts.size)):
            # Done also for ends outside the cluster, which exclude nothing: a branch for them would be guessed wrong
            # too often.
            n_lo = _n_below(tree.ends[leaf, k, 0, lane], ordered, firsts, shifts[k], k)
            n_hi = _n_below(tree.ends[leaf, k, 1, lane], ordered, firsts, shifts[k], k)
            word_0 &= below[k, n_hi, 0] & ~below[k, n_lo, 0]
            word_1 &= below[k, n_hi, 1] & ~below[k, n_lo, 1]
            word_2 &= below[k, n_hi, 2] & ~below[k, n_lo, 2]
            word_3 &= below[k, n_hi, 3] & ~below[k, n_lo, 3]
        sets[n_sets, 0], sets[n_sets, 1], sets[n_sets, 2], sets[n_sets, 3] = word_0, word_1, word_2, word_3
        partial[n_sets] = tree.slots[place]
        n_sets += (word_0 | word_1 | word_2 | word_3) != 0
    return n_sets


@njit(cache=True)
def _turn_around(sets: UInt64s, n_values: int, n_words: int, square: UInt64s, bits: UInt64s) -> None:
    """Write each value's set of regions (``bits``: uint64[n_values * n_words]) from the regions' sets of values."""
    for word in range(n_words):
        for w in range((n_values + WORD - 1) // WORD):
            for i in range(WORD):
                square[i] = sets[word * WORD + i, w]
            transpose(square)
            for j in range(min(WORD, n_values - w * WORD)):
                bits[(w * WORD + j) * n_words + word] = square[j]


@njit(cache=True)
def write_hits(hits: ClusterHits, order: Int64s, ends: Int64s, queries: Int32s) -> None:
    """Write the queries that hold each value, behind those of the value that ``queries`` has already.

    Parameters
    ----------
    hits : ClusterHits
    order : int64[n]
        The number in the call of each value of the clusters.
    ends : int64[n], written
        For each value of the call, where in ``queries`` its next query belongs; moved on.
    queries : int32[], written

    Notes
    -----
    Raises nothing. O(answers).
    """
    starts = hits.starts
    for cluster in range(starts.size - 1):
        n_words = (hits.partial_starts[cluster + 1] - hits.partial_starts[cluster]) // WORD
        whole = hits.whole[hits.whole_starts[cluster] : hits.whole_starts[cluster + 1]]
        members = hits.partial[hits.partial_starts[cluster] :]
        bits = hits.bits[hits.bit_starts[cluster] :]
        for j in range(starts[cluster + 1] - starts[cluster]):
            i = order[starts[cluster] + j]
            n = ends[i]
            queries[n : n + whole.size] = whole
            n += whole.size
            stop = n
            for word in range(n_words):
                stop += np.int64(count_bits(bits[j * n_words + word]))
            for word in range(n_words):
                n = write_members(bits[j * n_words + word], members, word * WORD, queries, n, stop)
            ends[i] = n


@njit(cache=True)
def _with_room(array: Ints, n_used: int, n_more: int, growth: float) -> Ints:
    """Return the array, or a copy with room for 1.1 * ``growth`` times (``n_used`` + ``n_more``) if it is full."""
    if n_used + n_more <= array.size:
        return array
    longer = np.empty(np.int64(1.1 * growth * (n_used + n_more)) + 1, dtype=array.dtype)
    longer[:n_used] = array[:n_used]
    return longer
