"""Changes of values, one after the other, and what they do to the pairs of band joins. Pure: arrays in, arrays out."""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.band.band_groups import Bands
from bmq.kernels.band.band_reach import report_stream
from bmq.kernels.band.sorted_values import Blocks, add_value, remove_value
from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s

LEFT = 0


class Side(NamedTuple):
    """The streams of one side: their values in order, and each one's own, by slot; NaN: it has none."""

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
    """Apply changes from ``begin`` on, one after the other, and write what they do to pairs.

    Parameters
    ----------
    bands, left, right : the latter two changed.
    sides, streams, values, keys : int8[n], int32[n], float64[n] (NaN: no value any more), int64[n] (-1: equal to
        nothing).
    is_reported : bool[n]; of the other changes nothing is written.
    first_mark : more than any number in ``bands.reported``.
    out : int32[4, room], receives (change, slot of the query, other stream, sign); ``n_out`` of them are there.

    Returns
    -------
    the first change not applied, n_out, entries looked at
        Stops before a change for which ``out`` has no room, or a side no free block.

    Notes
    -----
    Raises nothing. A change costs what it tells, O(log m) for each of the tau groups or, where there are fewer, for
    each value of the key, and for each group the fewer of its queries and of the values in reach of it.
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
    lo: float, hi: float, keys: Int64s, values: Float64s, other_keys: Int64s, others: Float64s, out: Int32s
) -> int:
    """Write the pairs (entry, other entry) whose difference is in [lo, hi]; return how many there are.

    Parameters
    ----------
    keys, values : int64[n] and float64[n], in order; the side with fewer entries.
    other_keys, others : of the other side, alike.
    out : int32[2, room]; what has no room is only counted.

    Notes
    -----
    Raises nothing. O(n log(m / n) + k) for m others.
    """
    n_found, first = 0, 0
    for i in range(keys.size):
        key, value = keys[i], values[i]
        # The difference falls as the other grows, and for the next entry no earlier other is in band again: from the
        # last place on in steps that double, then between the last two of these.
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
            j += 1
    return n_found
