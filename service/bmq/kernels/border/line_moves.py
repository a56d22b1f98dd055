"""Finds the queries that moves along a line enter or leave, and leaps over those that a move jumps over.

    move up           from ·------------------------------------------· to
    +DQ between            [  jumped over  |  jumped over  | b . . b b]     highest[block] <= to: leap
    -DQ between            [b b . b | jumped over  |  jumped over  |  ]     lowest row of block > from: leap

Pure: arrays in, numbers out. What the delta query sets are is `delta_sets`' to say.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.delta_sets import (
    BLOCK,
    BLOCK_BITS,
    DeltaSets,
    Places,
    find_rs_node,
    find_rs_node_anew,
    signed,
)
from bmq.kernels.border.ranks import ranks_of
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

# Moves that are looked up together, so that the processor need not wait for one RS node after another.
MOVES_TOGETHER = 64
# Delta queries that there is room for at once, 36 MB: of the longest moves, nearly all are jumped over.
MOST_TOGETHER = 1 << 22
# Up to here delta queries are looked at one by one; more are worth the two blocks in which a leap begins and ends.
LONG = 4 * BLOCK
# Copied together without a branch, so with some behind the end, which the next ones overwrite. Most ranges of ten
# delta queries then need no second round, and a wrong guess of the processor costs as much as 40 copies.
CHUNK = 16
_UNKNOWN = 2**32 - 1  # in place of an RS node
_RESERVE = MOVES_TOGETHER * LONG + 2 * CHUNK


@njit(cache=True)
def net_queries(
    sets: DeltaSets,
    slots: Int32s,
    any_gone: bool,
    hints: Places,
    hinted: Float64s,
    streams: Int32s,
    previous: Float64s,
    current: Float64s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that each move enters or leaves in one dimension.

    Three steps for a block of moves: (1) find the delta query sets between the two RS nodes, (2) keep the queries
    that were not jumped over, (3) drop those that were deregistered.

    Parameters
    ----------
    sets : DeltaSets
    slots : int32[m]
        Query slot of each row, negative where it was deregistered.
    any_gone : bool
        Whether any slot is negative.
    hints : uint32[2 * n_streams]
        RS node (p, q) of each stream's last reading; written.
    hinted : float64[n_streams]
        That reading's value, NaN where there is none; written. A move from elsewhere has no hint.
    streams : int32[n]
        Which stream moves.
    previous, current : float64[n]
        From where, to where; finite.

    Returns
    -------
    rows, queries : int32[k]
        Which of the n moves, ascending, and query slots.
    signs : int8[k]
    visits : int
        How many delta queries, and summaries of a block of them, were looked at.

    Notes
    -----
    Raises nothing.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3, and BMQ-Processor, lemma 1. Departures: the delta query
    sets between two RS nodes are one range each, so the RS nodes between need no visit. The papers subtract the
    union of -DQ from the union of +DQ to drop the queries that were jumped over; here one comparison says the same: a
    query of +DQ was jumped over exactly if it also ends at or below the upper value, one of -DQ exactly if it
    begins above the lower value. A move shorter than every region jumps over none, and a block of delta queries
    that were all jumped over is not looked at.
    """
    rows = np.empty(2 * streams.size + _RESERVE, dtype=np.int32)
    queries = np.empty(2 * streams.size + _RESERVE, dtype=np.int32)
    signs = np.empty(2 * streams.size + _RESERVE, dtype=np.int8)
    ranges = np.empty(4 * MOVES_TOGETHER, dtype=np.uint32)
    ranks = ranks_of(sets.ranks, current)
    # Taken out of the tuple once: numba counts references with each look at an array of a tuple.
    ends, minus_rows, firsts = sets.ends, sets.minus_rows, sets.firsts
    highest, lowest, narrowest = sets.highest, sets.lowest, sets.narrowest
    n_found, visits = 0, 0
    block = 0
    while block < streams.size:
        stop = min(block + MOVES_TOGETHER, streams.size)
        # 1.
        if _take_hints(hints, hinted, streams, previous, block, stop, ranges):
            _find_unhinted(sets, previous, block, stop, ranges)
        _find_delta_sets(ends, minus_rows, firsts, hints, hinted, streams, current, ranks, block, stop, ranges)
        # 2.
        n_before = n_found
        n_fitting, n_most = _fitting(ranges, stop - block)
        # The others come with the next block. Their hints are of later values then, so they are searched.
        stop = block + n_fitting
        n_most += _RESERVE
        if n_found + n_most > rows.size:
            # As many more as the moves so far let expect: copying twice and twice again would cost as much as finding.
            # Not many times what there is, though: the first moves may be unlike all others.
            n_expected = min(n_found * (streams.size - block) // max(block, 1), 4 * n_found)
            rows, queries, signs = make_room(rows, queries, signs, n_found, n_expected + n_most)
        n_found, n_visits = _keep(
            ends,
            minus_rows,
            highest,
            lowest,
            narrowest,
            slots,
            previous,
            current,
            block,
            stop,
            ranges,
            rows,
            queries,
            signs,
            n_found,
        )
        visits += n_visits
        # 3.
        if any_gone:
            n_found = _drop_gone(rows, queries, signs, n_before, n_found)
        block = stop
    return rows[:n_found], queries[:n_found], signs[:n_found], visits


@njit(cache=True)
def _take_hints(
    hints: Places, hinted: Float64s, streams: Int32s, previous: Float64s, block: int, stop: int, ranges: Places
) -> bool:
    """Write the RS nodes of the previous values, `_UNKNOWN` where there is no hint; return whether any is.

    Kept apart from the search for those few, which needs the tuple: its references are counted in every round. A value
    that is the same has the same RS node: to ask the borders around it would be three looks at far memory.
    """
    any_unknown = False
    for i in range(block, stop):
        b, stream = 4 * (i - block), signed(streams[i])
        fits = hinted[stream] == previous[i]
        ranges[b], ranges[b + 2] = hints[2 * stream] if fits else _UNKNOWN, hints[2 * stream + 1]
        any_unknown |= not fits
    return any_unknown


@njit(cache=True)
def _find_unhinted(sets: DeltaSets, previous: Float64s, block: int, stop: int, ranges: Places) -> None:
    """Write the RS nodes of the previous values that are `_UNKNOWN`."""
    for i in range(block, stop):
        b = 4 * (i - block)
        if signed(ranges[b]) == _UNKNOWN:
            ranges[b], ranges[b + 2] = find_rs_node_anew(sets, previous[i])


@njit(cache=True)
def _find_delta_sets(
    ends: Float64s,
    minus_rows: Places,
    firsts: Places,
    hints: Places,
    hinted: Float64s,
    streams: Int32s,
    current: Float64s,
    ranks: Float64s,
    block: int,
    stop: int,
    ranges: Places,
) -> None:
    """Write where +DQ and then -DQ of the RS nodes on each way begin and stop, uint32[4] a move; write the hints."""
    for i in range(block, stop):
        b, stream = 4 * (i - block), signed(streams[i])
        plus, minus = find_rs_node(ends, minus_rows, firsts, ranks[i], current[i])
        hints[2 * stream], hints[2 * stream + 1], hinted[stream] = plus, minus, current[i]
        plus_before, minus_before = signed(ranges[b]), signed(ranges[b + 2])
        ranges[b], ranges[b + 1] = min(plus_before, plus), max(plus_before, plus)
        ranges[b + 2], ranges[b + 3] = min(minus_before, minus), max(minus_before, minus)


@njit(cache=True)
def _fitting(ranges: Places, n_moves: int) -> tuple[int, int]:
    """Return how many of the ``n_moves`` of ``ranges`` to look at together, and how many delta queries they meet."""
    n_most = 0
    for i in range(n_moves):
        b = 4 * i
        n_delta = signed(ranges[b + 1]) - signed(ranges[b]) + signed(ranges[b + 3]) - signed(ranges[b + 2])
        if i > 0 and n_most + n_delta > MOST_TOGETHER:
            return i, n_most
        n_most += n_delta
    return n_moves, n_most


@njit(cache=True)
def _keep(
    ends: Float64s,
    minus_rows: Places,
    highest: Float64s,
    lowest: Places,
    narrowest: float,
    slots: Int32s,
    previous: Float64s,
    current: Float64s,
    block: int,
    stop: int,
    ranges: Places,
    rows: Int32s,
    queries: Int32s,
    signs: Int8s,
    n_found: int,
) -> tuple[int, int]:
    """Write the queries of ``ranges`` that were not jumped over behind ``n_found``; return how many, and visits.

    There is room for all. A kernel of its own, so that no array changes and numba counts no references in its loop.
    """
    visits = 0
    last_chunk = slots.size - CHUNK
    for i in range(block, stop):
        b = 4 * (i - block)
        plus, plus_stop = signed(ranges[b]), signed(ranges[b + 1])
        minus, minus_stop = signed(ranges[b + 2]), signed(ranges[b + 3])
        above, below = max(previous[i], current[i]), min(previous[i], current[i])
        n_delta = (plus_stop - plus) + (minus_stop - minus)
        # Rounding keeps the order: where hi <= above and lo > below, hi - lo is not more than above - below.
        if above - below < narrowest and max(plus_stop, minus_stop) <= last_chunk:
            middle = n_found + plus_stop - plus
            n_kept = n_found + n_delta
            _copy_plus(slots, plus, plus_stop, queries, n_found)
            _copy_minus(minus_rows, slots, minus, minus_stop, queries, middle)
            visits += n_delta
        elif n_delta <= LONG:
            middle = _keep_plus(ends, slots, plus, plus_stop, above, queries, n_found)
            n_kept = _keep_minus(minus_rows, slots, minus, minus_stop, plus, queries, middle)
            visits += n_delta
        else:
            middle, n_plus_visits = _leap_plus(ends, highest, slots, plus, plus_stop, above, queries, n_found)
            n_kept, n_minus_visits = _leap_minus(minus_rows, lowest, slots, minus, minus_stop, plus, queries, middle)
            visits += n_plus_visits + n_minus_visits
        # Moving down swaps +DQ and -DQ.
        sign = 1 if current[i] > previous[i] else -1
        _fill(rows, n_found, n_kept, i)
        _fill(signs, n_found, middle, sign)
        _fill(signs, middle, n_kept, -sign)
        n_found = n_kept
    return n_found, visits


@njit(cache=True, forceinline=True)
def _copy_plus(slots: Int32s, first: int, stop: int, queries: Int32s, n: int) -> None:
    # Unsigned, here and below: numba then need not ask whether an index counts from the end.
    start, target = np.uint64(first), np.uint64(n)
    for chunk in range(np.uint64(0), np.uint64(stop - first), np.uint64(CHUNK)):
        for k in range(CHUNK):
            queries[target + chunk + np.uint64(k)] = slots[start + chunk + np.uint64(k)]


@njit(cache=True, forceinline=True)
def _copy_minus(minus_rows: Places, slots: Int32s, first: int, stop: int, queries: Int32s, n: int) -> None:
    start, target = np.uint64(first), np.uint64(n)
    for chunk in range(np.uint64(0), np.uint64(stop - first), np.uint64(CHUNK // 2)):
        for k in range(CHUNK // 2):
            row = np.uint64(minus_rows[start + chunk + np.uint64(k)])
            queries[target + chunk + np.uint64(k)] = slots[row]


@njit(cache=True, forceinline=True)
def _keep_plus(ends: Float64s, slots: Int32s, first: int, stop: int, above: float, queries: Int32s, n: int) -> int:
    """Write the rows first..stop - 1 that end above ``above`` behind ``n``; return how many there are then."""
    for row in range(first, stop):
        # Written always and counted where kept, here and below: no branch waits for a border.
        queries[np.uint64(n)] = slots[row]
        n += ends[2 * row + 1] > above
    return n


@njit(cache=True, forceinline=True)
def _keep_minus(minus_rows: Places, slots: Int32s, first: int, stop: int, plus: int, queries: Int32s, n: int) -> int:
    """Write the delta queries first..stop - 1 of -DQ whose row is before ``plus`` behind ``n``; as `_keep_plus`."""
    for place in range(first, stop):
        row = signed(minus_rows[place])
        queries[np.uint64(n)] = slots[row]
        n += row < plus
    return n


@njit(cache=True)
def _leap_plus(
    ends: Float64s, highest: Float64s, slots: Int32s, first: int, stop: int, above: float, queries: Int32s, n: int
) -> tuple[int, int]:
    """As `_keep_plus`, but not looking at blocks that end at or below ``above``; also return the visits."""
    visits = 0
    last_block = stop >> BLOCK_BITS  # and not looked at whole
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
        n = _keep_plus(ends, slots, first, next_first, above, queries, n)
        first = next_first
    return n, visits


@njit(cache=True)
def _leap_minus(
    minus_rows: Places, lowest: Places, slots: Int32s, first: int, stop: int, plus: int, queries: Int32s, n: int
) -> tuple[int, int]:
    """As `_keep_minus`, but not looking at blocks without a row before ``plus``; also return the visits."""
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
        n = _keep_minus(minus_rows, slots, first, next_first, plus, queries, n)
        first = next_first
    return n, visits


@njit(cache=True, forceinline=True)
def _fill(array: Int32s | Int8s, start: int, stop: int, value: int) -> None:
    for chunk in range(np.uint64(start), np.uint64(stop), np.uint64(CHUNK)):
        for k in range(CHUNK):
            array[chunk + np.uint64(k)] = value


@njit(cache=True)
def _drop_gone(rows: Int32s, queries: Int32s, signs: Int8s, first: int, n_found: int) -> int:
    """Drop the negative slots from ``first`` on; return how many there are then. Few blocks of moves have one."""
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
