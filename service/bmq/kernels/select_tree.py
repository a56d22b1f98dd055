"""A packed tree over the corner points of regions: which regions meet a box of values, and which hold all of it.

Corner transformation makes a region [lo, hi) of d dimensions a point of 2d: (lo, hi). Rows whose points are neighbours
lie in one leaf, whatever their extent, and a node knows the box of its points:

    hi |  partly . all held           A box of values [low, high] is met by the points with lo <= high and hi > low
       | . . . . +--------            (the spatial join window), and lies wholly within those with lo <= low, hi > high.
       |         |  partly            A node within the window's inner part is emitted without looking at its rows.
       +--------------------- lo

A leaf has `LEAF` rows by column, so that one instruction compares several:

    ends[leaf, k, 0]   [ lo of 64 rows in dimension k ]
    ends[leaf, k, 1]   [ hi                           ]
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.buffers import make_room
from bmq.records import Bytes, Float64s, Int8s, Int32s, Int64s

LEAF = 64  # rows
FANOUT = 8  # nodes below a node

OUTSIDE, PARTLY, WHOLLY = 0, 1, 2


class CornerTree(NamedTuple):
    """A packed tree over corner points.

    Attributes
    ----------
    ends : float64[n_leaves, d, 2, LEAF]
        Lower and upper ends by column; a lane behind the last row holds nothing.
    table_rows : int32[n_leaves * LEAF]
        The row of the query table of each lane, -1 behind the last.
    boxes : float64[n_nodes, d, 4]
        Level by level from the leaves: least and greatest lower end, least and greatest upper end.
    level_starts : int64[n_levels + 1]
        Where each level begins in ``boxes``; the top one has one node.
    """

    ends: Float64s
    table_rows: Int32s
    boxes: Float64s
    level_starts: Int64s


@njit(cache=True)
def build_tree(regions: Float64s, order: Int64s) -> CornerTree:
    """Return the tree over ``regions`` (float64[m, d, 2], m >= 1) with its rows in ``order`` (int64[m]).

    Raises nothing. O(m * d). Any order is right; one that keeps corner points apart makes the tree slow.
    """
    n_rows, n_dims = regions.shape[:2]
    n_leaves = -(-n_rows // LEAF)
    sizes = [0, n_leaves]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FANOUT))
    level_starts = np.cumsum(np.array(sizes))
    ends = np.empty((n_leaves, n_dims, 2, LEAF), dtype=np.float64)
    ends[:, :, 0] = np.inf
    ends[:, :, 1] = -np.inf
    table_rows = np.full(n_leaves * LEAF, -1, dtype=np.int32)
    boxes = np.empty((level_starts[-1], n_dims, 4), dtype=np.float64)
    boxes[:, :, 0] = boxes[:, :, 2] = np.inf
    boxes[:, :, 1] = boxes[:, :, 3] = -np.inf
    for place in range(n_rows):
        leaf, lane = place // LEAF, place % LEAF
        row = order[place]
        table_rows[place] = row
        for k in range(n_dims):
            lo, hi = regions[row, k, 0], regions[row, k, 1]
            ends[leaf, k, 0, lane], ends[leaf, k, 1, lane] = lo, hi
            _widen(boxes[leaf, k], lo, lo, hi, hi)
    for level in range(1, level_starts.size - 1):
        first, first_below = level_starts[level], level_starts[level - 1]
        for below in range(first_below, first):
            node = first + (below - first_below) // FANOUT
            for k in range(n_dims):
                box = boxes[below, k]
                _widen(boxes[node, k], box[0], box[1], box[2], box[3])
    return CornerTree(ends, table_rows, boxes, level_starts)


@njit(cache=True, inline="always")
def _widen(box: Float64s, least_lo: float, most_lo: float, least_hi: float, most_hi: float) -> None:
    box[0], box[1] = min(box[0], least_lo), max(box[1], most_lo)
    box[2], box[3] = min(box[2], least_hi), max(box[3], most_hi)


@njit(cache=True, inline="always")
def _relation(box: Float64s, low: Float64s, high: Float64s) -> int:
    """Return whether the rows of a node hold nothing, perhaps some, or all of the box of values [low, high]."""
    relation = WHOLLY
    for k in range(low.size):
        if not (box[k, 0] <= high[k] and low[k] < box[k, 3]):
            return OUTSIDE
        if not (box[k, 1] <= low[k] and high[k] < box[k, 2]):
            relation = PARTLY
    return relation


@njit(cache=True, inline="always")
def _compare_leaf(box: Float64s, ends: Float64s, low: Float64s, high: Float64s, met: Bytes, held: Bytes) -> None:
    """Write which rows of a leaf meet the box of values, and which hold all of it; uint8[LEAF] each, 0 or 1."""
    met[:] = 1
    held[:] = 1
    for k in range(low.size):
        low_k, high_k = low[k], high[k]
        if box[k, 1] <= low_k and high_k < box[k, 2]:
            continue  # all of them hold it in this dimension
        for lane in range(LEAF):
            lo, hi = ends[k, 0, lane], ends[k, 1, lane]
            met[lane] &= np.uint8((lo <= high_k) & (low_k < hi))
            held[lane] &= np.uint8((lo <= low_k) & (high_k < hi))


@njit(cache=True)
def find_meeting(
    tree: CornerTree, slots: Int32s, low: Float64s, high: Float64s, places: Int32s, whole: Int32s
) -> tuple[int, int, int]:
    """Write the rows whose regions meet a box of values: the spatial join window of one data cluster.

    Parameters
    ----------
    tree : CornerTree
    slots : int32[m]
        Query slot of each row of the table, negative where it was deregistered: such are left out.
    low, high : float64[d]
        The box, both ends included.
    places : int32[n_leaves * LEAF], written
        Where in the tree each region lies that meets the box and does not hold all of it; ascending within a leaf.
    whole : int32[n_leaves * LEAF], written
        Query slots of the regions that hold all of it.

    Returns
    -------
    n_places, n_whole : int
        How many were written.
    visits : int
        How many rows were looked at, or emitted without a look.

    Notes
    -----
    Raises nothing.
    """
    n_levels = tree.level_starts.size - 1
    stack = np.empty((FANOUT * (n_levels + 1), 2), dtype=np.int64)
    met = np.empty(LEAF, dtype=np.uint8)
    held = np.empty(LEAF, dtype=np.uint8)
    n_places, n_whole, visits = 0, 0, 0
    stack[0, 0], stack[0, 1] = 0, n_levels - 1
    depth = 1
    while depth > 0:
        depth -= 1
        node, level = stack[depth, 0], stack[depth, 1]
        box = tree.boxes[tree.level_starts[level] + node]
        relation = _relation(box, low, high)
        if relation == OUTSIDE:
            continue
        if relation == WHOLLY:
            n_leaves_below = FANOUT**level
            first = node * n_leaves_below * LEAF
            stop = min(first + n_leaves_below * LEAF, tree.table_rows.size)
            for place in range(first, stop):
                row = tree.table_rows[place]
                if row >= 0 and slots[row] >= 0:
                    whole[n_whole] = slots[row]
                    n_whole += 1
            visits += stop - first
            continue
        if level > 0:
            first = node * FANOUT
            stop = min(first + FANOUT, tree.level_starts[level] - tree.level_starts[level - 1])
            # Pushed backwards, so that leaves are met as they lie in memory.
            for below in range(stop - 1, first - 1, -1):
                stack[depth, 0], stack[depth, 1] = below, level - 1
                depth += 1
            continue
        _compare_leaf(box, tree.ends[node], low, high, met, held)
        visits += LEAF
        for lane in range(LEAF):
            place = node * LEAF + lane
            places[n_places] = place
            n_places += met[lane] & (held[lane] ^ 1)
        for lane in range(LEAF):
            if held[lane]:
                slot = slots[tree.table_rows[node * LEAF + lane]]
                whole[n_whole] = slot
                n_whole += slot >= 0
    n_live = 0
    for i in range(n_places):
        places[n_live] = places[i]
        n_live += slots[tree.table_rows[places[i]]] >= 0
    return n_live, n_whole, visits


@njit(cache=True)
def stab_each(tree: CornerTree, slots: Int32s, values: Float64s) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries whose region holds each value: immediate processing, each a data cluster of one.

    Parameters
    ----------
    tree, slots : as for ``find_meeting``.
    values : float64[d, n]

    Returns
    -------
    rows, queries : int32[k]
        Which of the n values, ascending, and query slots.
    signs : int8[k]
        All +1.
    visits : int
        How many rows were looked at.

    Notes
    -----
    Raises nothing.
    """
    n_dims, n_values = values.shape
    rows = np.empty(0, dtype=np.int32)
    queries = np.empty(0, dtype=np.int32)
    signs = np.empty(0, dtype=np.int8)
    places = np.empty(tree.table_rows.size, dtype=np.int32)
    whole = np.empty(tree.table_rows.size, dtype=np.int32)
    value = np.empty(n_dims, dtype=np.float64)
    n_found, visits = 0, 0
    for i in range(n_values):
        value[:] = values[:, i]
        # A region that meets a point holds all of it.
        _, n_whole, n_visits = find_meeting(tree, slots, value, value, places, whole)
        visits += n_visits
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_whole)
        rows[n_found : n_found + n_whole] = i
        queries[n_found : n_found + n_whole] = whole[:n_whole]
        signs[n_found : n_found + n_whole] = 1
        n_found += n_whole
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
