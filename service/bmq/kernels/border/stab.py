"""A packed R-tree: finds the regions that hold a value. Pure: arrays in, arrays out.

Rows of the query table that are neighbours in space are neighbours in the table, so a tree node is a range of rows:

    level 2                [                 box                 ]
    level 1      [     box      ]  [     box      ]  [     box      ]     1 box for 16 below
    level 0      [][][]...[]       [][][]...[]       [][][]...[]          1 box for 16 rows
    rows         0..15 16..31 ...

Knows regions and values. It must not know moves or streams.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.cross_check import holds
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s, Int64s

FANOUT = 16  # 16 boxes in the plane are 8 cache lines; over 100,000 squares 8 and 32 took a tenth longer
CLASS_BITS = 4  # 16 size classes, each 4 times the last: regions with sides of up to 4**15 times the mean stay apart
KEY_BITS = 62 - CLASS_BITS


@njit(cache=True)
def packing_keys(ranks: Float64s, mean_sides: Float64s) -> Int64s:
    """Return a key for each region such that regions with close keys are alike in size and place.

    Parameters
    ----------
    ranks : float64[2, d, m], 0..1
        The ranks of the lower ends in each dimension, then those of the upper ends.
    mean_sides : float64[d]
        The mean of the upper rank less the lower rank in each dimension.

    Returns
    -------
    int64[m]
        The size class in the high bits, then the bits of the centre's coordinates interleaved (Z-order). The size class
        comes first because one large region in a tree node makes the node's box useless for its small regions.

    Notes
    -----
    Raises nothing. O(m * bits). Any order gives right answers; a bad one makes the tree slow. Beyond 58 dimensions the
    highest bits are lost: those of the size class, then those of the first dimensions.
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
    """Return the boxes of a packed R-tree over the rows of ``regions``, in their present order.

    Parameters
    ----------
    regions : float64[m, d, 2]

    Returns
    -------
    boxes : float64[n_boxes, d, 2]
        Level by level from the lowest. Box j of a level encloses ``FANOUT`` entries of the level below, from number
        ``FANOUT * j`` on; the lowest level encloses rows.
    level_starts : int64[n_levels + 1]
        Where each level begins in ``boxes``. The top level has at most ``FANOUT`` boxes. If m = 0, there is no level.

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
        The query slot of each row; negative if the query was deregistered.
    boxes, level_starts : float64[n_boxes, d, 2], int64[n_levels + 1]
        From ``build_boxes``.
    values : float64[d, n]
        Finite.

    Returns
    -------
    rows, queries : int32[k]
        The number of the value, ascending, and the query slot.
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
    # The stack is deepest with all boxes of the top level, and FANOUT boxes more for each box that was taken off.
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
