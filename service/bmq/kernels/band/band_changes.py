"""Applies changes of values one after the other, and writes which pairs of band joins they add or remove.

Pure: arrays in, arrays out. Knows both sides' values and the bands. It must not know stream ids or events.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.band.band_groups import Bands
from bmq.kernels.band.band_reach import report_stream
from bmq.kernels.band.sorted_values import Blocks, add_value, remove_value
from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s

LEFT = 0


class Side(NamedTuple):
    """The streams of one side of a join.

    Attributes
    ----------
    blocks : Blocks, the values of all streams in order.
    values : float64[n_streams], the value of each stream slot; NaN if it has none.
    keys : int64[n_streams], the key of each stream slot.
    """

    blocks: Blocks
    values: Float64s
    keys: Int64s


@njit(cache=True)
def change_values(
    bands: Bands,
    left: Side,
    right: Side,
    sides: Int8s,
    streams: Int32s,
    values: Float64s,
    keys: Int64s,
    is_reported: Bools,
    begin: int,
    first_mark: int,
    out: Int32s,
    n_out: int,
) -> tuple[int, int, int]:
    """Apply the changes from number ``begin`` on, one after the other, and write the pairs that they add or remove.

    Parameters
    ----------
    bands : Bands
    left, right : Side
        Written.
    sides, streams, values, keys : int8[n], int32[n], float64[n], int64[n]
        The side, stream slot, new value and new key of each change. A value of NaN: the stream has no value any more.
        A key of -1: it is equal to no other key, so the stream has no pairs.
    is_reported : bool[n]
        Whether to write the pairs of a change.
    begin : int
        The change to continue with after a call that ran out of room; 0 in the first call.
    first_mark : int
        Larger than every number in ``bands.reported``.
    out : int32[4, room]
        Written: the number of the change, the query slot, the other stream, the sign (+1 added, -1 removed). If each
        query is reported once a change, the other stream is ``NO_STREAM`` and the sign 0.
    n_out : int
        How many entries of ``out`` are used already.

    Returns
    -------
    tuple of int
        (the first change that was not applied, or n; the new ``n_out``; how many entries were looked at). The kernel
        stops before a change if ``out`` has too little room for it or if its side has no free block.

    Notes
    -----
    Raises nothing. A change costs: what it reports; O(log m) for each of the tau groups or, if there are fewer of
    those, for each value of the key; and for each group the number of its queries or of the values in its reach, if
    those are fewer.
    """
    visits = 0
    for row in range(begin, sides.size):
        is_left = sides[row] == LEFT
        own, others = (left, right.blocks) if is_left else (right, left.blocks)
        stream = streams[row]
        value, key = values[row], keys[row]
        if key < 0:
            value = np.nan
        old_value, old_key = own.values[stream], own.keys[stream]
        had, has = not np.isnan(old_value), not np.isnan(value)
        same_key = key == old_key
        if not (had or has) or (value == old_value and same_key):
            continue
        if own.blocks.n[1] == 0:
            return row, n_out, visits
        mark = first_mark + row
        n_reported = n_out
        if had and is_reported[row]:
            value_else = value if same_key else np.nan
            n_reported, n = report_stream(
                bands, others, is_left, old_value, old_key, value_else, row, -1, mark, out, n_reported
            )
            visits += n
        if has and is_reported[row]:
            value_else = old_value if same_key else np.nan
            n_reported, n = report_stream(bands, others, is_left, value, key, value_else, row, 1, mark, out, n_reported)
            visits += n
        if n_reported > out.shape[1]:
            return row, n_out, visits
        n_out = n_reported
        if had:
            remove_value(own.blocks, old_key, old_value, stream)
        if has:
            add_value(own.blocks, key, value, stream)
        own.values[stream], own.keys[stream] = value, key
    return sides.size, n_out, visits


@njit(cache=True)
def count_or_write_pairs(
    lo: float,
    hi: float,
    keys: Int64s,
    values: Float64s,
    other_keys: Int64s,
    others: Float64s,
    out: Int32s,
    most: int,
) -> int:
    """Write the pairs (entry, other entry) whose difference is in [lo, hi]; return how many there are.

    Parameters
    ----------
    lo, hi : float
        The band, both ends included.
    keys, values : int64[n], float64[n]
        The entries of the side with fewer of them, ascending by (key, value). The difference is their value less the
        other's.
    other_keys, others : int64[m], float64[m]
        The entries of the other side, in the same order.
    out : int32[2, room]
        Written. Pairs that have no room are only counted.
    most : int
        The count ends at the first pair above it.

    Notes
    -----
    Raises nothing. O(n log(m / n) + k) for k pairs.
    """
    n_found, first = 0, 0
    for i in range(keys.size):
        key, value = keys[i], values[i]
        # The difference falls as the other value grows. An other entry that is too low for this entry is too low for
        # the next one, too. So the search goes on from the last place, in steps that double, and then between the last
        # two steps.
        end, step = first, 1
        while end < others.size and (other_keys[end] < key or (other_keys[end] == key and value - others[end] > hi)):
            first = end + 1
            end += step
            step *= 2
        end = min(end, others.size)
        while first < end:
            middle = (first + end) // 2
            if other_keys[middle] < key or (other_keys[middle] == key and value - others[middle] > hi):
                first = middle + 1
            else:
                end = middle
        j = first
        while j < others.size and other_keys[j] == key and value - others[j] >= lo:
            if n_found < out.shape[1]:
                out[0, n_found], out[1, n_found] = i, j
            n_found += 1
            if n_found > most:
                return n_found
            j += 1
    return n_found
