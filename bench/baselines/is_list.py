"""The IS-list: the interval skip list, a range query index of one dimension."""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench.baselines.rmq import nbytes_of
from bench.baselines.trees import build_lists, copy_upward
from bmq.records import Float64s, Int32s


class IsListArrays(NamedTuple):
    """An interval skip list of n nodes with perfect levels; its edges are the nodes of a tree, as in `trees`.

    Attributes
    ----------
    keys : float64[length], where the right half of tree node x begins, for x in 1..length - 1.
    starts, ids : markers of every edge.
    """

    keys: Float64s
    starts: Int32s
    ids: Int32s


class IsList:
    """An `RmqIndex` of one dimension: a search walks O(log m) edges; at most 2 log2(2 m) markers a query.

    Parameters
    ----------
    lo, hi : float64[1, m].

    Notes
    -----
    Source: Hanson and Johnson, Selection Predicate Indexing for Active Databases Using Interval Skip Lists, 1996.
    List nodes are the ends of intervals, between -inf (header) and inf. An interval marks the fewest edges that
    make it up: ascend while the edge stays inside, then descend. A search goes down from the highest level and
    takes the markers of the edge that spans the value on each. Departures:

    - Intervals and edges are half-open, so a value has one edge a level and list nodes need no markers.
    - Levels are perfect, not random: node i has as many as 2 divides i. That is what random levels come to
      on average and the best they can be, and possible as nothing is inserted later. On each level the search makes
      one comparison, with the node halfway: go right, or stay; so edges are the nodes of a binary tree, and the
      keys along a path lie near each other near the root.
    """

    def __init__(self, lo: Float64s, hi: Float64s) -> None:
        ends = np.unique(np.concatenate((lo[0], hi[0])))
        # Edge c of the lowest level is [borders[c - 1], borders[c]), open at the outer ends.
        borders = ends[np.isfinite(ends)]
        length = 1 << borders.size.bit_length()
        first = np.searchsorted(borders, lo[0], side="right")
        stop = np.searchsorted(borders, hi[0], side="right")
        stop[hi[0] == np.inf] = length
        starts, ids = build_lists(first, stop, np.arange(lo.shape[1], dtype=np.int32), length, length)
        self.arrays = IsListArrays(_halfway_keys(borders, length), starts, ids)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys, the markers and where they start."""
        return nbytes_of(self.arrays)


def _halfway_keys(borders: Float64s, length: int) -> Float64s:
    """Return the key halfway along each edge, float64[length], by tree node; inf beyond the last border."""
    padded = np.full(length, np.inf)
    padded[1 : borders.size + 1] = borders
    keys = np.full(length, np.inf)
    width = length
    while width > 1:
        # The edges of one level are tree nodes length // width and on.
        level = length // width
        keys[level : 2 * level] = padded[width // 2 :: width]
        width //= 2
    return keys


@njit(cache=True)
def collect(is_list: IsListArrays, values: Float64s, i: int, out: Int32s, n_out: int) -> int:
    """Find the rows that hold ``values[0, i]``, as `rmq.Collect`."""
    value = values[0, i]
    length = is_list.keys.size
    edge = 1
    while edge < length:
        edge = 2 * edge + (1 if value >= is_list.keys[edge] else 0)
    # Which edges were passed is known from the last one: those above it are its right shifts.
    return copy_upward(is_list.starts, is_list.ids, 0, edge, length, out, n_out)
