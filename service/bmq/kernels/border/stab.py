"""A packed R-tree: which regions hold a value. Pure: arrays in, arrays out.

Rows of the query table that are neighbours in space lie beside each other, so a tree node is a range of rows:

    level 2                [                 box                 ]
    level 1      [     box      ]  [     box      ]  [     box      ]     1 box for 16 below
    level 0      [][][]...[]       [][][]...[]       [][][]...[]          1 box for 16 rows
    rows         0..15 16..31 ...
"""

import numpy as np
from numba import njit

from bmq.kernels.border.cross_check import holds
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s, Int64s

FANOUT = 16  # 16 boxes in the plane are 8 cache lines; over 100,000 squares 8 and 32 were slower by a tenth
CLASS_BITS = 4  # 16 classes of size, each 4 times the last: sides up to 4**15 times the mean stay apart
KEY_BITS = 62 - CLASS_BITS


@njit(cache=True)
def packing_keys(ranks: Float64s, mean_sides: Float64s) -> Int64s:
    """Return a key for each region such that regions with close keys are alike in size and place.

    Parameters
    ----------
    ranks : float64[2, d, m]
        Ranks (0..1) of the lower ends in each dimension, then of the upper ends.
    mean_sides : float64[d]
        Mean difference of the two.

    Returns
    -------
    int64[m]
        Size class, then the bits of the centre's coordinates interleaved (Z-order). The size class comes
        first because one large region in a node makes the node's box useless for the small ones.

    Notes
    -----
    Raises nothing. O(m * bits). Any order is right; a bad one makes the tree slow. Beyond 58
    dimensions a key has no room for the size class, nor for the first of them.
    """
    n_dims, n_rows = ranks.shape[1:]
    bits = max(1, min(KEY_BITS // n_dims, 24))
    keys = np.empty(n_rows, dtype=np.int64)
    cells = np.empty(n_dims, dtype=np.int64)
    for row in range(n_rows):
        relative_side = 0.0
        for k in range(n_dims):
            low, high = ranks[0, k, row], ranks[1, k, row]
            cells[k] = min(np.int64((low + high) * (1 << (bits - 1))), (1 << bits) - 1)
            if mean_sides[k] > 0:
                relative_side = max(relative_side, (high - low) / mean_sides[k])
        key = 0
        while relative_side > 4 and key < (1 << CLASS_BITS) - 1:
            relative_side /= 4
            key += 1
        for bit in range(bits - 1, -1, -1):
            for k in range(n_dims):
                key = (key << 1) | ((cells[k] >> bit) & 1)
        keys[row] = key
    return keys


@njit(cache=True)
def build_boxes(regions: Float64s) -> tuple[Float64s, Int64s]:
    """Return the boxes of a packed R-tree over the rows of ``regions``, in the order they are in.

    Parameters
    ----------
    regions : float64[m, d, 2]

    Returns
    -------
    boxes : float64[n_boxes, d, 2]
        Level by level from below; box j of a level bounds entries ``FANOUT * j`` and on of the one below.
    level_starts : int64[n_levels + 1]
        Where each level begins in ``boxes``. The top one has at most ``FANOUT`` boxes; m = 0 has no level.

    Notes
    -----
    Raises nothing. O(m * d).
    """
    n_dims = regions.shape[1]
    sizes = [0]
    n_entries = regions.shape[0]
    while n_entries > 0:
        n_entries = (n_entries + FANOUT - 1) // FANOUT
        sizes.append(n_entries)
        if n_entries <= FANOUT:
            break
    level_starts = np.cumsum(np.array(sizes))
    boxes = np.empty((level_starts[-1], n_dims, 2), dtype=np.float64)
    below = regions
    for level in range(level_starts.size - 1):
        first = level_starts[level]
        for j in range(level_starts[level + 1] - first):
            entries = below[FANOUT * j : FANOUT * (j + 1)]
            for k in range(n_dims):
                boxes[first + j, k, 0] = entries[:, k, 0].min()
                boxes[first + j, k, 1] = entries[:, k, 1].max()
        below = boxes[first : level_starts[level + 1]]
    return boxes, level_starts


@njit(cache=True)
def holding_queries(
    regions: Float64s, slots: Int32s, boxes: Float64s, level_starts: Int64s, values: Float64s
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries whose region holds each value.

    Parameters
    ----------
    regions : float64[m, d, 2]
        The query table.
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    boxes, level_starts : float64[n_boxes, d, 2], int64[n_levels + 1]
        From ``build_boxes``.
    values : float64[d, n]
        Finite.

    Returns
    -------
    rows, queries : int32[k]
        Which of the n values, ascending, and query slots.
    signs : int8[k]
        All +1.
    visits : int
        How many regions were looked at.

    Notes
    -----
    Raises nothing.
    """
    rows = np.empty(values.shape[1], dtype=np.int32)
    queries = np.empty(values.shape[1], dtype=np.int32)
    signs = np.empty(values.shape[1], dtype=np.int8)
    n_found, visits = 0, 0
    n_levels = level_starts.size - 1
    # The deepest stack: all boxes of the top level, then FANOUT for each box taken off.
    stack = np.empty(FANOUT * (n_levels + 1), dtype=np.int64)
    levels = np.empty(FANOUT * (n_levels + 1), dtype=np.int64)
    for i in range(values.shape[1] if n_levels else 0):
        depth = 0
        for box in range(level_starts[n_levels - 1], level_starts[n_levels]):
            if holds(boxes, box, values, i):
                stack[depth], levels[depth] = box - level_starts[n_levels - 1], n_levels - 1
                depth += 1
        while depth > 0:
            depth -= 1
            entry, level = stack[depth], levels[depth]
            first = FANOUT * entry
            if level > 0:
                start = level_starts[level - 1]
                stop = min(start + first + FANOUT, level_starts[level])
                for box in range(start + first, stop):
                    if holds(boxes, box, values, i):
                        stack[depth], levels[depth] = box - start, level - 1
                        depth += 1
                continue
            last = min(first + FANOUT, regions.shape[0])
            visits += last - first
            rows, queries, signs = make_room(rows, queries, signs, n_found, last - first)
            for row in range(first, last):
                if holds(regions, row, values, i) and slots[row] >= 0:
                    rows[n_found], queries[n_found], signs[n_found] = i, slots[row], 1
                    n_found += 1
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
