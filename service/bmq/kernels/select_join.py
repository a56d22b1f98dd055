"""The spatial join of data clusters with a tree of queries. Pure: arrays in, numbers out.

A data cluster is a run of values that lie close together. For each one:

1. The tree is asked once for the regions that meet the cluster's box; those that hold all of it need no test.
2. Of each other region, a set of the values it holds: one bit a value. In each dimension the values are in order, so
   the values below an end are one of few sets, and the region's set is a few of these, combined:

       values by order     v3  v0  v2  v1          those < lo:  {v3}        those < hi:  {v3, v0, v2}
       region                 [------)             held:        {v0, v2}

3. The sets are turned around: for each value the set of the regions that hold it, which is how answers are given.

All sets are kept until the answers of all values have been counted, so that each is written where it belongs.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.select_bits import WORD, count_bits, transpose, write_members
from bmq.kernels.select_tree import LEAF, CornerTree, find_meeting
from bmq.records import Float64s, Int32s, Int64s, UInt64s

WORDS = 4
MAX_CLUSTER = WORD * WORDS  # values of a data cluster
N_BUCKETS = 8 * MAX_CLUSTER  # eight to a value: most ends lie in a bucket without values, and take no search

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)


class Joined(NamedTuple):
    """What each cluster's values and a tree's regions have in common.

    Attributes
    ----------
    whole, whole_starts : int32[], int64[n_clusters + 1]
        Query slots that hold all values of a cluster, cluster by cluster.
    partial, partial_starts : int32[], int64[n_clusters + 1]
        Query slots that may hold some, padded to whole words of 64, and one more at the very end.
    bits, bit_starts : uint64[], int64[n_clusters + 1]
        For each value of a cluster, in order, the set of those of ``partial`` that hold it.
    visits : int
    """

    whole: Int32s
    whole_starts: Int64s
    partial: Int32s
    partial_starts: Int64s
    bits: UInt64s
    bit_starts: Int64s
    visits: int


@njit(cache=True)
def join_clusters(tree: CornerTree, slots: Int32s, values: Float64s, starts: Int64s, counts: Int64s) -> Joined:
    """Return what clusters of values and a tree's regions have in common; add each value's number of queries to counts.

    Parameters
    ----------
    tree, slots : as for ``find_meeting``.
    values : float64[d, n]
        Cluster by cluster; never NaN nor inf.
    starts : int64[n_clusters + 1]
        Where each cluster begins; none has more than ``MAX_CLUSTER`` values, nor is one empty.
    counts : int64[n], written

    Notes
    -----
    Raises nothing.

    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
    sections 5.3 to 5.5. Departure: in the refinement, a candidate is not tested against value by value.
    """
    n_dims = values.shape[0]
    n_clusters = starts.size - 1
    n_places_at_most = tree.table_rows.size
    places = np.empty(n_places_at_most, dtype=np.int32)
    wholly_held = np.empty(n_places_at_most, dtype=np.int32)
    sets = np.empty((n_places_at_most, WORDS), dtype=np.uint64)
    below = np.empty((n_dims, MAX_CLUSTER + 1, WORDS), dtype=np.uint64)
    ordered = np.empty((n_dims, MAX_CLUSTER), dtype=np.float64)
    firsts = np.empty((n_dims, N_BUCKETS + 1), dtype=np.int32)
    buckets = np.empty((n_dims, 2), dtype=np.float64)
    low = np.empty(n_dims, dtype=np.float64)
    high = np.empty(n_dims, dtype=np.float64)
    square = np.empty(WORD, dtype=np.uint64)

    whole = np.empty(1024, dtype=np.int32)
    partial = np.empty(1024, dtype=np.int32)
    bits = np.empty(1024, dtype=np.uint64)
    whole_starts = np.zeros(n_clusters + 1, dtype=np.int64)
    partial_starts = np.zeros(n_clusters + 1, dtype=np.int64)
    bit_starts = np.zeros(n_clusters + 1, dtype=np.int64)
    visits = 0
    for cluster in range(n_clusters):
        start, stop = starts[cluster], starts[cluster + 1]
        n_values = stop - start
        for k in range(n_dims):
            low[k], high[k] = values[k, start:stop].min(), values[k, start:stop].max()
        n_places, n_whole, _ = find_meeting(tree, slots, low, high, places, wholly_held)
        visits += n_values * (n_places + n_whole)

        whole_starts[cluster + 1] = whole_starts[cluster] + n_whole
        whole = _with_room_int32(whole, whole_starts[cluster], n_whole)
        whole[whole_starts[cluster] : whole_starts[cluster + 1]] = wholly_held[:n_whole]

        for k in range(n_dims):
            _order_values(values[k, start:stop], ordered[k], below[k], firsts[k], buckets[k])
        n_words_at_most = n_places // WORD + 1
        partial = _with_room_int32(partial, partial_starts[cluster], n_words_at_most * WORD + 1)
        n_sets = _held_sets(
            tree,
            slots,
            places[:n_places],
            n_values,
            low,
            high,
            ordered,
            below,
            firsts,
            buckets,
            sets,
            partial,
            partial_starts[cluster],
        )
        n_words = -(-n_sets // WORD)
        partial_starts[cluster + 1] = partial_starts[cluster] + n_words * WORD
        partial[partial_starts[cluster] + n_sets : partial_starts[cluster + 1] + 1] = -1
        sets[n_sets : min(n_words * WORD, n_places_at_most)] = 0

        bit_starts[cluster + 1] = bit_starts[cluster] + n_values * n_words
        bits = _with_room_uint64(bits, bit_starts[cluster], n_values * n_words)
        _turn_around(sets, n_values, n_words, square, bits[bit_starts[cluster] : bit_starts[cluster + 1]])
        for j in range(n_values):
            first = bit_starts[cluster] + j * n_words
            n_held = np.uint64(n_whole)
            for word in range(n_words):
                n_held += count_bits(bits[first + word])
            counts[start + j] += np.int64(n_held)
    return Joined(whole, whole_starts, partial, partial_starts, bits, bit_starts, visits)


@njit(cache=True, inline="always")
def _bucket(value: float, origin: float, per_unit: float) -> int:
    """Return the bucket of a value; it never falls as the value rises."""
    position = (value - origin) * per_unit
    # NaN, which infinity times 0 or less infinity gives, becomes 0, as everything else is where per_unit is 0.
    position = position if position > 0.0 else 0.0
    return int(position if position < N_BUCKETS - 1.0 else N_BUCKETS - 1.0)


@njit(cache=True)
def _order_values(column: Float64s, ordered: Float64s, below: UInt64s, firsts: Int32s, buckets: Float64s) -> None:
    """Write a cluster's values of one dimension in order, the set of those below each place, and buckets over them.

    ``below[r]`` is the set of the r lowest, ``firsts[b]`` the number of values in the buckets before b.
    """
    n_values = column.size
    order = np.argsort(column)
    for r in range(n_values):
        ordered[r] = column[order[r]]
    for w in range(WORDS):
        below[0, w] = 0
    for r in range(n_values):
        for w in range(WORDS):
            below[r + 1, w] = below[r, w]
        below[r + 1, order[r] // WORD] |= _ONE << np.uint64(order[r] % WORD)
    first_finite = 0
    while first_finite < n_values - 1 and ordered[first_finite] == -np.inf:
        first_finite += 1
    origin = ordered[first_finite]
    width = ordered[n_values - 1] - origin
    per_unit = N_BUCKETS / width if 0.0 < width < np.inf else 0.0
    if per_unit == np.inf:
        per_unit = 0.0
    buckets[0], buckets[1] = origin, per_unit
    firsts[:] = 0
    for r in range(n_values):
        firsts[_bucket(ordered[r], origin, per_unit) + 1] += 1
    for b in range(N_BUCKETS):
        firsts[b + 1] += firsts[b]


@njit(cache=True, inline="always")
def _n_below(end: float, ordered: Float64s, firsts: Int32s, origin: float, per_unit: float) -> int:
    """Return how many of the cluster's values are less than ``end``."""
    bucket = _bucket(end, origin, per_unit)
    n, last = firsts[bucket], firsts[bucket + 1]
    while n < last:
        middle = (n + last) >> 1
        if ordered[middle] < end:
            n = middle + 1
        else:
            last = middle
    return int(n)


@njit(cache=True)
def _held_sets(
    tree: CornerTree,
    slots: Int32s,
    places: Int32s,
    n_values: int,
    low: Float64s,
    high: Float64s,
    ordered: Float64s,
    below: UInt64s,
    firsts: Int32s,
    buckets: Float64s,
    sets: UInt64s,
    partial: Int32s,
    first: int,
) -> int:
    """Write the set of values that each region at ``places`` holds, and its slot; without those that hold none."""
    n_sets = 0
    n_dims = low.size
    for i in range(places.size):
        leaf, lane = places[i] // LEAF, places[i] % LEAF
        for w in range(WORDS):
            sets[n_sets, w] = _ALL
        for k in range(n_dims):
            lo, hi = tree.ends[leaf, k, 0, lane], tree.ends[leaf, k, 1, lane]
            if lo > low[k]:
                r = _n_below(lo, ordered[k], firsts[k], buckets[k, 0], buckets[k, 1])
                for w in range(WORDS):
                    sets[n_sets, w] &= ~below[k, r, w]
            if hi <= high[k]:
                r = _n_below(hi, ordered[k], firsts[k], buckets[k, 0], buckets[k, 1])
                for w in range(WORDS):
                    sets[n_sets, w] &= below[k, r, w]
        partial[first + n_sets] = slots[tree.table_rows[places[i]]]
        some = np.uint64(0)
        for w in range(WORDS):
            some |= sets[n_sets, w]
        n_sets += some != 0
    return n_sets


@njit(cache=True)
def _turn_around(sets: UInt64s, n_values: int, n_words: int, square: UInt64s, bits: UInt64s) -> None:
    """Write for each of the values its set of regions (uint64[n_values * n_words]) from the regions' sets of values."""
    for word in range(n_words):
        for w in range((n_values + WORD - 1) // WORD):
            for i in range(WORD):
                square[i] = sets[word * WORD + i, w] if word * WORD + i < sets.shape[0] else np.uint64(0)
            transpose(square)
            for j in range(min(WORD, n_values - w * WORD)):
                bits[(w * WORD + j) * n_words + word] = square[j]


@njit(cache=True)
def write_joined(joined: Joined, starts: Int64s, order: Int64s, ends: Int64s, queries: Int32s) -> None:
    """Write the queries of each value behind those that are there.

    Parameters
    ----------
    joined : Joined
    starts : int64[n_clusters + 1]
        As for ``join_clusters``.
    order : int64[n]
        Which value of the call each one of the clusters is.
    ends : int64[n], written
        Where the next query of each value of the call belongs in ``queries``; moved on.
    queries : int32[], written

    Notes
    -----
    Raises nothing. O(answers).
    """
    for cluster in range(starts.size - 1):
        n_words = (joined.partial_starts[cluster + 1] - joined.partial_starts[cluster]) // WORD
        whole = joined.whole[joined.whole_starts[cluster] : joined.whole_starts[cluster + 1]]
        members = joined.partial[joined.partial_starts[cluster] :]
        bits = joined.bits[joined.bit_starts[cluster] :]
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
def _with_room_int32(array: Int32s, n_used: int, n_more: int) -> Int32s:
    if n_used + n_more <= array.size:
        return array
    longer = np.empty(max(n_used + n_more, 2 * array.size), dtype=np.int32)
    longer[:n_used] = array[:n_used]
    return longer


@njit(cache=True)
def _with_room_uint64(array: UInt64s, n_used: int, n_more: int) -> UInt64s:
    if n_used + n_more <= array.size:
        return array
    longer = np.empty(max(n_used + n_more, 2 * array.size), dtype=np.uint64)
    longer[:n_used] = array[:n_used]
    return longer
