"""ID lists at the nodes of perfect binary trees over a line of cells: what CEI, Dlist and the IS-list share.

Knows cells and row numbers, no values.

    tree 0, length 4                 tree 1
    [           1           ]        [           1           ]
    [     2     ][     3    ]        [     2     ][     3    ]
    [  4  ][  5 ][  6 ][  7 ]        [  4  ][  5 ][  6 ][  7 ]
    cell 0    1     2     3             4     5     6     7

A row that covers cells 1 to 6 is listed at nodes 5 and 3 of tree 0, and at nodes 2 and 6 of tree 1. So a cell
finds it in exactly one list: at its leaf, or at one of those above, whose numbers are right shifts of the leaf's.
"""

import numpy as np
from numba import njit

from bmq.records import Int32s, Int64s

_LARGEST_INT32 = np.iinfo(np.int32).max


def build_lists(first: Int64s, stop: Int64s, entries: Int32s, n_cells: int, length: int) -> tuple[Int32s, Int32s]:
    """Return the entries of every tree node, one list behind the other.

    Parameters
    ----------
    first, stop : int64[m]
        Row r covers the cells ``first[r] <= cell < stop[r]``, at least one.
    entries : int32[m]
        What is listed for each row.
    n_cells : int
    length : int
        Cells of a tree, a power of two.

    Returns
    -------
    starts, ids : int32[n_lists + 1], int32[]
        List of node x of tree t is ``ids[starts[y]:starts[y + 1]]`` with y = t * (2 * length - 1) + x - 1.

    Raises
    ------
    ValueError
        More than 2**31 - 1 entries.
    """
    n_trees = -(-n_cells // length)
    ends = np.zeros(n_trees * (2 * length - 1) + 1, dtype=np.int64)
    count_entries(first, stop, length, ends)
    np.cumsum(ends, out=ends)
    if ends[-1] > _LARGEST_INT32:
        raise ValueError(f"{ends[-1]} list entries are more than int32 can count: choose longer trees or larger cells.")
    ids: Int32s = np.empty(ends[-1], dtype=np.int32)
    starts = ends.astype(np.int32)
    _fill_entries(first, stop, entries, length, starts, ids)
    return starts, ids


@njit(cache=True, inline="always")
def copy_upward(starts: Int32s, ids: Int32s, tree: int, leaf: int, length: int, out: Int32s, n_out: int) -> int:
    """Copy the lists of a leaf and of the nodes above it behind ``out[:n_out]``; return how much is used then.

    Upward, since then no list waits for the one before: the CPU loads them side by side. Raises nothing.
    """
    first = tree * (2 * length - 1) - 1
    node = leaf
    while node > 0:
        start, stop = starts[first + node], starts[first + node + 1]
        # Unsigned: numba then need not ask whether an index counts from the end.
        target = np.uint64(n_out)
        for e in range(np.uint64(start), np.uint64(stop)):
            out[target] = ids[e]
            target += np.uint64(1)
        n_out += stop - start
        node >>= 1
    return n_out


@njit(cache=True)
def count_entries(first: Int64s, stop: Int64s, length: int, counts: Int64s) -> None:
    """Add to ``counts`` (int64[n_lists]) how many rows each list will hold. Raises nothing."""
    lists = np.empty(_most_nodes(first, stop, length), dtype=np.int64)
    for row in range(first.size):
        for e in range(_covering_lists(first[row], stop[row], length, lists)):
            counts[lists[e]] += 1


@njit(cache=True)
def _fill_entries(first: Int64s, stop: Int64s, entries: Int32s, length: int, ends: Int32s, ids: Int32s) -> None:
    """Write the lists; ``ends`` (where each ends) become where each begins. Raises nothing."""
    lists = np.empty(_most_nodes(first, stop, length), dtype=np.int64)
    # Backwards from each end, so that every list ascends by row.
    for row in range(first.size - 1, -1, -1):
        for e in range(_covering_lists(first[row], stop[row], length, lists)):
            ends[lists[e]] -= 1
            ids[ends[lists[e]]] = entries[row]


@njit(cache=True)
def _most_nodes(first: Int64s, stop: Int64s, length: int) -> int:
    """Return at least as many as any row covers: whole trees, and two nodes a level in two others."""
    most = 0
    for row in range(first.size):
        most = max(most, (stop[row] - first[row]) // length + 1)
    return most + 4 * 64


@njit(cache=True)
def _covering_lists(first: int, stop: int, length: int, lists: Int64s) -> int:
    """Write which lists hold a row that covers the cells first..stop - 1, and return how many.

    The largest nodes that lie inside: whole trees, and the binary decomposition of the remnants at both ends.
    """
    n = 0
    for tree in range(first // length, (stop - 1) // length + 1):
        base = tree * (2 * length - 1) - 1
        node = max(first - tree * length, 0) + length
        node_stop = min(stop - tree * length, length) + length
        while node < node_stop:
            # A right child at the left end, or a left child at the right end: its parent reaches outside.
            if node & 1:
                lists[n] = base + node
                n += 1
                node += 1
            if node_stop & 1:
                node_stop -= 1
                lists[n] = base + node_stop
                n += 1
            node >>= 1
            node_stop >>= 1
    return n
