"""The values of streams in order while each of them changes: blocks of a sorted sequence. Pure: arrays in, arrays out.

    sequence   [ 3 ]──►[ 0 ]──►[ 7 ]      which block comes next
    block 3    (key, value, stream) ascending, at most BLOCK of them

A change moves entries of at most one block and, now and then, the sequence. The order is by (key, value, stream).

Knows keys, values and stream slots. It must not know queries.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s, Int64s

BLOCK = 256  # entries; moving a block takes some 50 ns, and a sequence of 100,000 values has 400 to 800 blocks


class Blocks(NamedTuple):
    """Entries in blocks.

    Attributes
    ----------
    sequence : int32[b], the blocks in use, in order.
    counts : int32[b], how many entries each block has.
    free : int32[b], the blocks that are not in use.
    n : int64[2], how many blocks are in use, and how many are free.
    keys, values, ids : int64, float64 and int32 [b * BLOCK], entry ``BLOCK * block + row``; an id is a stream slot.
    """

    sequence: Int32s
    counts: Int32s
    free: Int32s
    n: Int64s
    keys: Int64s
    values: Float64s
    ids: Int32s


@njit(cache=True, inline="always")
def _is_before(keys: Int64s, values: Float64s, ids: Int32s, at: int, key: int, value: float, stream: int) -> bool:
    """Return whether entry ``at`` is before (key, value, stream)."""
    if keys[at] != key:
        return bool(keys[at] < key)
    if values[at] != value:
        return bool(values[at] < value)
    return bool(ids[at] < stream)


@njit(cache=True)
def first_from(blocks: Blocks, key: int, value: float, stream: int) -> tuple[int, int]:
    """Return (place in the sequence, row in its block) of the first entry from (key, value, stream) on; O(log n).

    If that entry is the first one of the next block, the row is the count of this block.
    """
    # Local names outside the loops: access to a tuple within them counts references, at ten times the cost of the rest.
    sequence, keys, values, ids = blocks.sequence, blocks.keys, blocks.values, blocks.ids
    low, high = 0, blocks.n[0]
    while high - low > 1:
        middle = (low + high) // 2
        if _is_before(keys, values, ids, sequence[middle] * BLOCK, key, value, stream):
            low = middle
        else:
            high = middle
    if blocks.n[0] == 0:
        return 0, 0
    start = sequence[low] * BLOCK
    first, last = 0, blocks.counts[sequence[low]]
    while first < last:
        middle = (first + last) // 2
        if _is_before(keys, values, ids, start + middle, key, value, stream):
            first = middle + 1
        else:
            last = middle
    return low, first


@njit(cache=True)
def remove_value(blocks: Blocks, key: int, value: float, stream: int) -> None:
    """Remove an entry; it must be there."""
    place, row = first_from(blocks, key, value, stream)
    if row == blocks.counts[blocks.sequence[place]]:
        place, row = place + 1, 0
    block = blocks.sequence[place]
    start = block * BLOCK
    keys, values, ids = blocks.keys, blocks.values, blocks.ids
    for i in range(start + row, start + blocks.counts[block] - 1):
        keys[i], values[i], ids[i] = keys[i + 1], values[i + 1], ids[i + 1]
    blocks.counts[block] -= 1
    if blocks.counts[block] == 0:
        blocks.n[0] -= 1
        sequence = blocks.sequence
        for i in range(place, blocks.n[0]):
            sequence[i] = sequence[i + 1]
        blocks.free[blocks.n[1]] = block
        blocks.n[1] += 1


@njit(cache=True)
def _take_free(blocks: Blocks, place: int) -> int:
    """Take a free block, empty it, insert it at ``place`` of the sequence, and return it."""
    sequence = blocks.sequence
    blocks.n[1] -= 1
    block = blocks.free[blocks.n[1]]
    for i in range(blocks.n[0], place, -1):
        sequence[i] = sequence[i - 1]
    sequence[place] = block
    blocks.counts[block] = 0
    blocks.n[0] += 1
    return int(block)


@njit(cache=True)
def add_value(blocks: Blocks, key: int, value: float, stream: int) -> None:
    """Add an entry; it must not be there, and at least one block must be free."""
    if blocks.n[0] == 0:
        _take_free(blocks, 0)
    place, row = first_from(blocks, key, value, stream)
    block = blocks.sequence[place]
    keys, values, ids = blocks.keys, blocks.values, blocks.ids
    if blocks.counts[block] == BLOCK:
        half = BLOCK // 2
        new = _take_free(blocks, place + 1)
        source, target = block * BLOCK + half, new * BLOCK
        for i in range(half):
            keys[target + i], values[target + i], ids[target + i] = (
                keys[source + i],
                values[source + i],
                ids[source + i],
            )
        blocks.counts[block], blocks.counts[new] = half, half
        if row > half:
            block, row = new, row - half
    start = block * BLOCK
    for i in range(start + blocks.counts[block], start + row, -1):
        keys[i], values[i], ids[i] = keys[i - 1], values[i - 1], ids[i - 1]
    keys[start + row], values[start + row], ids[start + row] = key, value, stream
    blocks.counts[block] += 1


@njit(cache=True)
def in_order(blocks: Blocks) -> tuple[Int64s, Float64s, Int32s]:
    """Return all entries in order: keys int64[n], values float64[n], streams int32[n]."""
    n = 0
    for place in range(blocks.n[0]):
        n += blocks.counts[blocks.sequence[place]]
    all_keys, all_values, all_ids = np.empty(n, np.int64), np.empty(n, np.float64), np.empty(n, np.int32)
    n = 0
    for place in range(blocks.n[0]):
        start = blocks.sequence[place] * BLOCK
        for i in range(start, start + blocks.counts[blocks.sequence[place]]):
            all_keys[n], all_values[n], all_ids[n] = blocks.keys[i], blocks.values[i], blocks.ids[i]
            n += 1
    return all_keys, all_values, all_ids
