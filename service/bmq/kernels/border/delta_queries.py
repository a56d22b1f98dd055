"""Copies the delta queries of a move along a line, and leaves out those that the move jumps over.

Pure: arrays in, numbers out. `kernels.border.delta_sets` defines the delta query sets, and
`kernels.border.line_moves` finds the ranges of delta queries that a move asks for. This module knows one such range.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.delta_sets import BLOCK, BLOCK_BITS, Places, signed
from bmq.records import Float64s, Int8s, Int32s

# Delta queries that are copied together without a branch. The copy may run past the end; the next one overwrites the
# surplus. With 16, most ranges of ten delta queries need only one round, and a wrong guess of the processor about
# another round costs as much as 40 copies.
CHUNK = 16


@njit(cache=True, forceinline=True)
def copy_plus(slots: Int32s, first: int, stop: int, queries: Int32s, n: int) -> None:
    """Write the slots of rows first..stop - 1 behind the ``n`` first queries, in chunks."""
    # Unsigned, here and below: numba then need not check whether an index counts from the end.
    start, target = np.uint64(first), np.uint64(n)
    for chunk in range(np.uint64(0), np.uint64(stop - first), np.uint64(CHUNK)):
        for k in range(CHUNK):
            queries[target + chunk + np.uint64(k)] = slots[start + chunk + np.uint64(k)]


@njit(cache=True, forceinline=True)
def copy_minus(minus_rows: Places, slots: Int32s, first: int, stop: int, queries: Int32s, n: int) -> None:
    """Write the slots of entries first..stop - 1 of -DQ behind the ``n`` first queries, in chunks."""
    start, target = np.uint64(first), np.uint64(n)
    for chunk in range(np.uint64(0), np.uint64(stop - first), np.uint64(CHUNK // 2)):
        for k in range(CHUNK // 2):
            row = np.uint64(minus_rows[start + chunk + np.uint64(k)])
            queries[target + chunk + np.uint64(k)] = slots[row]


@njit(cache=True, forceinline=True)
def keep_plus(ends: Float64s, slots: Int32s, first: int, stop: int, above: float, queries: Int32s, n: int) -> int:
    """Write the rows of first..stop - 1 that end above ``above`` behind ``n`` queries; return the new ``n``."""
    for row in range(first, stop):
        # Always written, and counted only if kept, here and below: so no branch has to wait for a border to be loaded.
        queries[np.uint64(n)] = slots[row]
        n += ends[2 * row + 1] > above
    return n


@njit(cache=True, forceinline=True)
def keep_minus(minus_rows: Places, slots: Int32s, first: int, stop: int, plus: int, queries: Int32s, n: int) -> int:
    """Write the entries first..stop - 1 of -DQ whose row is before ``plus``; else as `keep_plus`."""
    for place in range(first, stop):
        row = signed(minus_rows[place])
        queries[np.uint64(n)] = slots[row]
        n += row < plus
    return n


@njit(cache=True)
def skip_plus(
    ends: Float64s, highest: Float64s, slots: Int32s, first: int, stop: int, above: float, queries: Int32s, n: int
) -> tuple[int, int]:
    """Do the same as `keep_plus`, but skip blocks that end at or below ``above``; also return the visits."""
    visits = 0
    last_block = stop >> BLOCK_BITS  # the block in which the range stops; it is not skipped as a whole
    while first < stop:
        block = (first + BLOCK - 1) >> BLOCK_BITS
        if first & (BLOCK - 1) == 0:
            while block < last_block and highest[block] <= above:
                block += 1
            visits += block - (first >> BLOCK_BITS) + (block < last_block)
            first = block << BLOCK_BITS
            block += 1
        next_first = min(block << BLOCK_BITS, stop)
        visits += next_first - first
        n = keep_plus(ends, slots, first, next_first, above, queries, n)
        first = next_first
    return n, visits


@njit(cache=True)
def skip_minus(
    minus_rows: Places, lowest: Places, slots: Int32s, first: int, stop: int, plus: int, queries: Int32s, n: int
) -> tuple[int, int]:
    """Do the same as `keep_minus`, but skip blocks without a row before ``plus``; also return the visits."""
    visits = 0
    last_block = stop >> BLOCK_BITS
    while first < stop:
        block = (first + BLOCK - 1) >> BLOCK_BITS
        if first & (BLOCK - 1) == 0:
            while block < last_block and signed(lowest[block]) >= plus:
                block += 1
            visits += block - (first >> BLOCK_BITS) + (block < last_block)
            first = block << BLOCK_BITS
            block += 1
        next_first = min(block << BLOCK_BITS, stop)
        visits += next_first - first
        n = keep_minus(minus_rows, slots, first, next_first, plus, queries, n)
        first = next_first
    return n, visits


@njit(cache=True, forceinline=True)
def fill(array: Int32s | Int8s, start: int, stop: int, value: int) -> None:
    """Write ``value`` to ``array[start:stop]`` in chunks; the last chunk may run past ``stop``."""
    for chunk in range(np.uint64(start), np.uint64(stop), np.uint64(CHUNK)):
        for k in range(CHUNK):
            array[chunk + np.uint64(k)] = value


@njit(cache=True)
def drop_gone(rows: Int32s, queries: Int32s, signs: Int8s, first: int, n_found: int) -> int:
    """Drop the entries from ``first`` on with a negative slot, which few blocks have; return the new ``n_found``."""
    lowest = 0
    for e in range(first, n_found):
        lowest = min(lowest, queries[e])
    if lowest >= 0:
        return n_found
    n = first
    for e in range(first, n_found):
        rows[n], queries[n], signs[n] = rows[e], queries[e], signs[e]
        n += queries[e] >= 0
    return n
