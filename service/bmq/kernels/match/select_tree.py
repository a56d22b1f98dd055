"""A packed tree over the corner points of regions: finds the regions that meet a box of values, or hold all of it.

Ends and values are places: how many of the layer's distinct ends lie at or below them. So they are compared exactly and
take half the memory, and equal steps of place hold equally many ends wherever ends crowd.

The corner transformation makes a region [lo, hi) of d dimensions a point of 2d dimensions: (lo, hi). Rows whose points
are neighbours are in one leaf, whatever their extent, and a tree node knows the box of its points:

    hi |  partly . all held           A box of values [low, high] is met by the points with lo <= high and hi > low
       | . . . . +--------            (the spatial join window), and lies wholly within those with lo <= low, hi > high.
       |         |  partly            A node within the window's inner part is reported without looking at its rows.
       +--------------------- lo

A leaf has `LEAF` rows by column, so that one instruction compares several:

    ends[leaf, k, 0]   [ lo of 64 rows in dimension k ]
    ends[leaf, k, 1]   [ hi                           ]

Knows places of ends and query slots. It must not know values as floats, clusters or streams.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.tables.bit_sets import WORD, pack_bits, write_members
from bmq.kernels.tables.buffers import make_room
from bmq.records import Bytes, Int8s, Int32s, Int64s, UInt64s

LEAF = WORD  # rows; one word is a set of rows of a leaf
FANOUT = 8  # tree nodes below a tree node

_LEAST, _MOST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
OUTSIDE, PARTLY, WHOLLY = 0, 1, 2


class CornerTree(NamedTuple):
    """A packed tree over corner points.

    Attributes
    ----------
    ends : int32[n_leaves, d, 2, LEAF]
        Lower and upper ends by column; a lane is the place of a row in its leaf. A lane behind the last row holds
        nothing.
    boxes : int32[n_nodes, d, 4]
        Level by level from the leaves: the least and greatest lower end, the least and greatest upper end.
    level_starts : int64[n_levels + 1]
        Where each level begins in ``boxes``; the top level has one node.
    slots : int32[n_leaves * LEAF + 1]
        The query slot of each lane; any number behind the last row.
    live : uint64[n_leaves]
        The set of the lanes of each leaf whose query is registered.
    """

    ends: Int32s
    boxes: Int32s
    level_starts: Int64s
    slots: Int32s
    live: UInt64s


@njit(cache=True)
def build_tree(regions: Int32s, order: Int64s) -> CornerTree:
    """Return the tree over ``regions`` in the given order, without any live lane.

    Parameters
    ----------
    regions : int32[m, d, 2], m >= 1
        Places of the lower and upper ends.
    order : int64[m]
        The rows in the order of their lanes.

    Notes
    -----
    Raises nothing. O(m * d). Any order gives right answers; one that puts distant corner points into a leaf makes the
    tree slow.
    """
    n_rows, n_dims = regions.shape[:2]
    n_leaves = -(-n_rows // LEAF)
    sizes = [0, n_leaves]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FANOUT))
    level_starts = np.cumsum(np.array(sizes))
    ends = np.empty((n_leaves, n_dims, 2, LEAF), dtype=np.int32)
    ends[:, :, 0], ends[:, :, 1] = _MOST, _LEAST
    boxes = np.empty((level_starts[-1], n_dims, 4), dtype=np.int32)
    boxes[:, :, 0], boxes[:, :, 2] = _MOST, _MOST
    boxes[:, :, 1], boxes[:, :, 3] = _LEAST, _LEAST
    for place in range(n_rows):
        leaf, lane = place // LEAF, place % LEAF
        row = order[place]
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
    slots = np.full(n_leaves * LEAF + 1, -1, dtype=np.int32)
    return CornerTree(ends, boxes, level_starts, slots, np.zeros(n_leaves, dtype=np.uint64))


@njit(cache=True, inline="always")
def _widen(box: Int32s, least_lo: int, most_lo: int, least_hi: int, most_hi: int) -> None:
    """Extend a box of corner points in one dimension, so that it includes the given least and greatest ends."""
    box[0], box[1] = min(box[0], least_lo), max(box[1], most_lo)
    box[2], box[3] = min(box[2], least_hi), max(box[3], most_hi)


@njit(cache=True, inline="always")
def _relation(box: Int32s, low: Int32s, high: Int32s) -> int:
    """Return the relation of a tree node's rows to the box of values [low, high].

    ``OUTSIDE``: no row meets the box. ``PARTLY``: some rows may meet it. ``WHOLLY``: every row holds all of it.
    """
    relation = WHOLLY
    for k in range(low.size):
        if not (box[k, 0] <= high[k] and low[k] < box[k, 3]):
            return OUTSIDE
        if not (box[k, 1] <= low[k] and high[k] < box[k, 2]):
            relation = PARTLY
    return relation


@njit(cache=True)
def note_slots(tree: CornerTree, slots: Int32s, order: Int64s) -> None:
    """Write into the tree the query slot of each lane, and which lanes are live. O(m).

    Parameters
    ----------
    tree : CornerTree
        Written.
    slots : int32[m]
        The query slot of each row; negative if the query was deregistered.
    order : int64[m]
        As for ``build_tree``.
    """
    for leaf in range(tree.live.size):
        live = np.uint64(0)
        for lane in range(min(LEAF, order.size - leaf * LEAF)):
            slot = slots[order[leaf * LEAF + lane]]
            tree.slots[leaf * LEAF + lane] = slot
            live |= np.uint64(slot >= 0) << np.uint64(lane)
        tree.live[leaf] = live


@njit(cache=True)
def find_leaves(tree: CornerTree, low: Int32s, high: Int32s, leaves: Int32s) -> tuple[int, int]:
    """Write the leaves of which some rows may meet a box of values, and those of which all rows hold all of it.

    Parameters
    ----------
    tree : CornerTree
    low, high : int32[d]
        The box, both ends included.
    leaves : int32[2 * n_leaves], written
        The first half has the leaves of the first kind, the second half those of the second kind.

    Returns
    -------
    n_partly, n_wholly : int
        How many leaves of each kind there are.

    Notes
    -----
    Raises nothing. If all rows of a node hold the box, the nodes below it are not looked at.
    """
    partly, wholly = leaves[: tree.live.size], leaves[tree.live.size :]
    n_levels = tree.level_starts.size - 1
    stack = np.empty((FANOUT * (n_levels + 1), 2), dtype=np.int64)
    n_partly, n_wholly = 0, 0
    stack[0, 0], stack[0, 1] = 0, n_levels - 1
    depth = 1
    while depth > 0:
        depth -= 1
        node, level = stack[depth, 0], stack[depth, 1]
        relation = _relation(tree.boxes[tree.level_starts[level] + node], low, high)
        if relation == WHOLLY:
            first = node * FANOUT**level
            for leaf in range(first, min(first + FANOUT**level, tree.live.size)):
                wholly[n_wholly] = leaf
                n_wholly += 1
        elif relation == PARTLY and level == 0:
            partly[n_partly] = node
            n_partly += 1
        elif relation == PARTLY:
            first = node * FANOUT
            stop = min(first + FANOUT, tree.level_starts[level] - tree.level_starts[level - 1])
            # Pushed backwards, so that leaves are visited in the order in which they are in memory.
            for below in range(stop - 1, first - 1, -1):
                stack[depth, 0], stack[depth, 1] = below, level - 1
                depth += 1
    return n_partly, n_wholly


@njit(cache=True)
def find_meeting(
    tree: CornerTree, low: Int32s, high: Int32s, leaves: Int32s, places: Int32s, whole: Int32s
) -> tuple[int, int]:
    """Write the rows whose regions meet a box of values: the spatial join window of one data cluster.

    Parameters
    ----------
    tree : CornerTree
    low, high : int32[d]
        The box, both ends included.
    leaves : int32[2 * n_leaves], written
        Scratch.
    places : int32[n_leaves * LEAF], written
        The lane in the tree of each live region that meets the box and does not hold all of it, ascending.
    whole : int32[n_leaves * LEAF], written
        The query slots of the live regions that hold all of it.

    Returns
    -------
    n_places, n_whole : int
        How many were written.

    Notes
    -----
    Raises nothing.
    """
    met = np.empty(LEAF, dtype=np.uint8)
    held = np.empty(LEAF, dtype=np.uint8)
    lanes = np.arange(LEAF + 1).astype(np.int32)
    n_partly, n_wholly = find_leaves(tree, low, high, leaves)
    n_places, n_whole = 0, 0
    for at in range(n_wholly):
        leaf = leaves[tree.live.size + at]
        n_whole = write_members(tree.live[leaf], tree.slots, leaf * LEAF, whole, n_whole, whole.size)
    for at in range(n_partly):
        leaf = leaves[at]
        _compare(tree.boxes[leaf], tree.ends[leaf], low, high, met, held)
        is_held = pack_bits(held) & tree.live[leaf]
        is_met = pack_bits(met) & tree.live[leaf] & ~is_held
        n_whole = write_members(is_held, tree.slots, leaf * LEAF, whole, n_whole, whole.size)
        first = n_places
        n_places = write_members(is_met, lanes, 0, places, n_places, places.size)
        for i in range(first, n_places):
            places[i] += leaf * LEAF
    return n_places, n_whole


@njit(cache=True, inline="always")
def _compare(box: Int32s, ends: Int32s, low: Int32s, high: Int32s, met: Bytes, held: Bytes) -> None:
    """Write which rows of a leaf meet the box of values, and which hold all of it; uint8[LEAF] each, 0 or 1."""
    met[:] = 1
    held[:] = 1
    for k in range(low.size):
        low_k, high_k = low[k], high[k]
        if box[k, 1] <= low_k and high_k < box[k, 2]:
            continue  # all rows hold it in this dimension
        for lane in range(LEAF):
            lo, hi = ends[k, 0, lane], ends[k, 1, lane]
            met[lane] &= np.uint8((lo <= high_k) & (low_k < hi))
            held[lane] &= np.uint8((lo <= low_k) & (high_k < hi))


@njit(cache=True)
def stab_each(tree: CornerTree, values: Int32s) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries whose region holds each value: immediate processing, each value a cluster of one.

    Parameters
    ----------
    tree : CornerTree
    values : int32[d, n]
        Places.

    Returns
    -------
    rows, queries : int32[k]
        The number of the value, ascending, and the query slot.
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
    leaves = np.empty(2 * tree.live.size, dtype=np.int32)
    held = np.empty(LEAF, dtype=np.uint8)
    value = np.empty(n_dims, dtype=np.int32)
    n_found, visits = 0, 0
    for i in range(n_values):
        value[:] = values[:, i]
        n_partly, n_wholly = find_leaves(tree, value, value, leaves)
        n_lanes = LEAF * (n_partly + n_wholly)
        visits += n_lanes
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_lanes)
        first = n_found
        for at in range(n_wholly):
            leaf = leaves[tree.live.size + at]
            n_found = write_members(tree.live[leaf], tree.slots, leaf * LEAF, queries, n_found, queries.size)
        for at in range(n_partly):
            leaf = leaves[at]
            _hold(tree.boxes[leaf], tree.ends[leaf], value, held)
            is_held = pack_bits(held) & tree.live[leaf]
            n_found = write_members(is_held, tree.slots, leaf * LEAF, queries, n_found, queries.size)
        rows[first:n_found] = i
        signs[first:n_found] = 1
    return rows[:n_found], queries[:n_found], signs[:n_found], visits


@njit(cache=True, inline="always")
def _hold(box: Int32s, ends: Int32s, value: Int32s, held: Bytes) -> None:
    """Write which rows of a leaf hold a value; uint8[LEAF], 0 or 1."""
    held[:] = 1
    for k in range(value.size):
        value_k = value[k]
        if box[k, 1] <= value_k < box[k, 2]:
            continue  # all rows hold it in this dimension
        for lane in range(LEAF):
            held[lane] &= np.uint8((ends[k, 0, lane] <= value_k) & (value_k < ends[k, 1, lane]))
