"""Finds the queries that moves along a line enter or leave, and skips those that a move jumps over.

    move up           from ·------------------------------------------· to
    +DQ between            [  jumped over  |  jumped over  | b . . b b]     highest[block] <= to: skip
    -DQ between            [b b . b | jumped over  |  jumped over  |  ]     lowest row of block > from: skip

Pure: arrays in, numbers out. `kernels.border.delta_sets` defines the delta query sets. This module knows how a move
uses them; it must not know how they are built.
"""

import numpy as np
from numba import njit

from bmq.kernels.border.delta_queries import (
    CHUNK,
    copy_minus,
    copy_plus,
    drop_gone,
    fill,
    keep_minus,
    keep_plus,
    skip_minus,
    skip_plus,
)
from bmq.kernels.border.delta_sets import (
    BLOCK,
    DeltaSets,
    Places,
    find_rs_node,
    find_rs_node_anew,
    signed,
)
from bmq.kernels.border.ranks import ranks_of
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

# The number of moves that are looked up together, so that the processor can search one RS node while it waits for
# others.
MOVES_TOGETHER = 64
# The most delta queries of one block of moves for which the output arrays get room: 9 bytes each, so 36 MB. More would
# mostly stay unused, because the longest moves jump over nearly all of their delta queries.
MOST_TOGETHER = 1 << 22
# A move with at most so many delta queries looks at them one by one. With more, it pays to skip whole blocks, although
# the first and the last block of a range must still be looked at one by one.
LONG = 4 * BLOCK
_UNKNOWN = 2**32 - 1  # stands for an RS node that is not known
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

    The moves are handled in blocks, and each block in three steps: (1) find the delta query sets between the two RS
    nodes, (2) keep the queries that were not jumped over, (3) drop those that were deregistered.

    Parameters
    ----------
    sets : DeltaSets
    slots : int32[m]
        The query slot of each row; negative if the query was deregistered.
    any_gone : bool
        Whether any slot is negative.
    hints : uint32[2 * n_streams]
        The RS node (p, q) of each stream's last reading; written.
    hinted : float64[n_streams]
        The value of that reading, NaN if there was none; written. A hint is used only for a move that begins at its
        value.
    streams : int32[n]
        The stream slot of each move.
    previous, current : float64[n]
        Where each move begins and ends; finite.

    Returns
    -------
    rows, queries : int32[k]
        The number of the move, ascending, and the query slot.
    signs : int8[k]
        +1 if the move enters the query's region, -1 if it leaves it.
    visits : int
        How many delta queries, and summaries of a block of them, were looked at.

    Notes
    -----
    Raises nothing.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3, and BMQ-Processor, lemma 1. Departures: (1) The delta query
    sets between two RS nodes are one range each, so the RS nodes between are not visited. (2) To drop the queries that
    were jumped over, the papers subtract the union of -DQ from the union of +DQ. Here one comparison decides the same:
    a move jumps over a query of +DQ exactly if the query's upper border is at or below the upper value of the move, and
    over a query of -DQ exactly if its lower border is above the lower value. (3) A move shorter than every region jumps
    over none of them, so the comparison is omitted. (4) A block of delta queries that were all jumped over is not
    looked at.
    """
    rows = np.empty(2 * streams.size + _RESERVE, dtype=np.int32)
    queries = np.empty(2 * streams.size + _RESERVE, dtype=np.int32)
    signs = np.empty(2 * streams.size + _RESERVE, dtype=np.int8)
    ranges = np.empty(4 * MOVES_TOGETHER, dtype=np.uint32)
    ranks = ranks_of(sets.ranks, current)
    # Taken out of the tuple once, because numba counts references at each access to an array in a tuple.
    ends, minus_rows, firsts = sets.ends, sets.minus_rows, sets.firsts
    highest, lowest, narrowest = sets.highest, sets.lowest, sets.narrowest
    n_found, visits = 0, 0
    block = 0
    while block < streams.size:
        stop = min(block + MOVES_TOGETHER, streams.size)
        # 1. Find the delta query sets.
        if _take_hints(hints, hinted, streams, previous, block, stop, ranges):
            _find_unhinted(sets, previous, block, stop, ranges)
        _find_delta_sets(ends, minus_rows, firsts, hints, hinted, streams, current, ranks, block, stop, ranges)
        # 2. Keep the queries that were not jumped over.
        n_before = n_found
        n_fitting, n_most = _fitting(ranges, stop - block)
        # The moves that do not fit come with the next block. By then their streams' hints may be of later values, so
        # their RS nodes are searched.
        stop = block + n_fitting
        n_most += _RESERVE
        if n_found + n_most > rows.size:
            # The arrays grow by what the moves so far let expect: doubling them again and again would cost as much as
            # the search. They grow by at most four times what they hold, because the first moves may be unlike all
            # others.
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
        # 3. Drop the queries that were deregistered.
        if any_gone:
            n_found = drop_gone(rows, queries, signs, n_before, n_found)
        block = stop
    return rows[:n_found], queries[:n_found], signs[:n_found], visits


@njit(cache=True)
def _take_hints(
    hints: Places, hinted: Float64s, streams: Int32s, previous: Float64s, block: int, stop: int, ranges: Places
) -> bool:
    """Write the RS nodes of the previous values, or `_UNKNOWN` if there is no hint; return whether any is unknown.

    This is apart from `_find_unhinted`, which few moves need and which takes the tuple: numba would count the tuple's
    references in every round. A hint is checked by its value, because an equal value has the same RS node; comparing
    the borders around the RS node instead would take three loads from far memory.
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
    """Search and write the RS nodes of those previous values that are `_UNKNOWN`."""
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
    """Write which +DQ and which -DQ lie between the RS nodes of each move; write the hints of the current values.

    ``ranges`` has four numbers for each move: first and stop of the rows of +DQ, first and stop of the entries of -DQ.
    """
    for i in range(block, stop):
        b, stream = 4 * (i - block), signed(streams[i])
        plus, minus = find_rs_node(ends, minus_rows, firsts, ranks[i], current[i])
        hints[2 * stream], hints[2 * stream + 1], hinted[stream] = plus, minus, current[i]
        plus_before, minus_before = signed(ranges[b]), signed(ranges[b + 2])
        ranges[b], ranges[b + 1] = min(plus_before, plus), max(plus_before, plus)
        ranges[b + 2], ranges[b + 3] = min(minus_before, minus), max(minus_before, minus)


@njit(cache=True)
def _fitting(ranges: Places, n_moves: int) -> tuple[int, int]:
    """Return how many of the ``n_moves`` of ``ranges`` fit into one block, and how many delta queries those meet."""
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
    """Write the queries of ``ranges`` that were not jumped over behind ``n_found`` others; return (n_found, visits).

    The caller has made room for all of them. This is a kernel of its own, so that no array is replaced within it and
    numba counts no references in its loop.
    """
    visits = 0
    last_chunk = slots.size - CHUNK
    for i in range(block, stop):
        b = 4 * (i - block)
        plus, plus_stop = signed(ranges[b]), signed(ranges[b + 1])
        minus, minus_stop = signed(ranges[b + 2]), signed(ranges[b + 3])
        above, below = max(previous[i], current[i]), min(previous[i], current[i])
        n_delta = (plus_stop - plus) + (minus_stop - minus)
        # Rounding keeps the order: if hi <= above and lo > below, then hi - lo is at most above - below, also when
        # rounded.
        if above - below < narrowest and max(plus_stop, minus_stop) <= last_chunk:
            middle = n_found + plus_stop - plus
            n_kept = n_found + n_delta
            copy_plus(slots, plus, plus_stop, queries, n_found)
            copy_minus(minus_rows, slots, minus, minus_stop, queries, middle)
            visits += n_delta
        elif n_delta <= LONG:
            middle = keep_plus(ends, slots, plus, plus_stop, above, queries, n_found)
            n_kept = keep_minus(minus_rows, slots, minus, minus_stop, plus, queries, middle)
            visits += n_delta
        else:
            middle, n_plus_visits = skip_plus(ends, highest, slots, plus, plus_stop, above, queries, n_found)
            n_kept, n_minus_visits = skip_minus(minus_rows, lowest, slots, minus, minus_stop, plus, queries, middle)
            visits += n_plus_visits + n_minus_visits
        # A move downward swaps +DQ and -DQ.
        sign = 1 if current[i] > previous[i] else -1
        fill(rows, n_found, n_kept, i)
        fill(signs, n_found, middle, sign)
        fill(signs, middle, n_kept, -sign)
        n_found = n_kept
    return n_found, visits
