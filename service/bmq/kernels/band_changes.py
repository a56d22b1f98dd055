"""What a change of one value does to the pairs of band joins. Pure: arrays in, arrays out.

A query is an interval of the difference left - right, and has the pairs whose difference it holds. Queries come in
groups that share a point (`index.stabbing`), so of a difference before and one after, the queries that hold only the
later one are a range of one of the group's two sequences, or nearly:

    by lower end   ──[──[──[───[──   point   ──]──]───]──]──   by upper end
                      ▲     ▲
                   before  after: entered are those that begin between the two
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.sorted_values import BLOCK, Blocks, add_value, first_from, remove_value
from bmq.records import Float64s, Int8s, Int32s, Int64s

NO_STREAM = -1
LEFT = 0
_DOUBT = 4e-16  # a sum's roundoff, as a part of its terms
_SMALLEST = 5e-324


class Bands(NamedTuple):
    """Queries by group: the arrays of `index.stabbing.Groups`, and what a channel says of its queries.

    row_lo, row_hi : float64[n], the ends of each query by row. slots : int32[n].
    told : int64[n], scratch; -1 at first. tells_pairs : else each query is told once a change.
    """

    points: Float64s
    cover_lo: Float64s
    cover_hi: Float64s
    starts: Int64s
    by_lo: Int32s
    by_hi: Int32s
    lo: Float64s
    hi: Float64s
    row_lo: Float64s
    row_hi: Float64s
    slots: Int32s
    told: Int64s
    tells_pairs: bool


class Side(NamedTuple):
    """The streams of one side: their values in order, and each one's own, by slot; NaN: it has none."""

    blocks: Blocks
    values: Float64s
    keys: Int64s


@njit(cache=True)
def _first_above(ends: Float64s, begin: int, end: int, limit: float) -> int:
    """Return the first place in an ascending range whose end is above ``limit``."""
    while begin < end:
        middle = (begin + end) // 2
        if ends[middle] > limit:
            end = middle
        else:
            begin = middle + 1
    return begin


@njit(cache=True)
def _first_below(ends: Float64s, begin: int, end: int, limit: float) -> int:
    """Return the first place in a descending range whose end is below ``limit``."""
    while begin < end:
        middle = (begin + end) // 2
        if ends[middle] < limit:
            end = middle
        else:
            begin = middle + 1
    return begin


@njit(cache=True, inline="always")
def _write(out: Int32s, n_out: int, row: int, slot: int, other: int, sign: int) -> int:
    """Write one change, or only count it where ``out`` is full; return how many there are now."""
    if n_out < out.shape[1]:
        out[0, n_out], out[1, n_out], out[2, n_out], out[3, n_out] = row, slot, other, sign
    return n_out + 1


@njit(cache=True)
def _tell_gains(
    bands: Bands,
    group: int,
    before: float,
    after: float,
    row: int,
    other: int,
    sign: int,
    mark: int,
    out: Int32s,
    n_out: int,
) -> tuple[int, int]:
    """Tell the queries of a group that hold the difference ``after`` and not ``before`` (NaN: there was none).

    Returns
    -------
    n_out, how many queries were looked at
    """
    point, begin, end = bands.points[group], bands.starts[group], bands.starts[group + 1]
    # By name outside the loops: to look into a tuple there counts references, at ten times the cost of the rest.
    slots, told, tells_pairs = bands.slots, bands.told, bands.tells_pairs
    is_begun = after <= point
    if is_begun:
        rows, ends, other_ends = bands.by_lo, bands.lo, bands.row_hi
        if before <= point:
            begin = _first_above(ends, begin, end, before)
    else:
        rows, ends, other_ends = bands.by_hi, bands.hi, bands.row_lo
        if before > point:
            begin = _first_below(ends, begin, end, before)
    visits = 0
    for i in range(begin, end):
        if ends[i] > after if is_begun else ends[i] < after:
            break
        visits += 1
        query = rows[i]
        # The other end decides where the difference comes from beyond the point.
        if is_begun and before > point and other_ends[query] >= before:
            continue
        if not is_begun and before <= point and other_ends[query] <= before:
            continue
        if tells_pairs:
            n_out = _write(out, n_out, row, slots[query], other, sign)
        elif told[query] != mark:
            told[query] = mark
            n_out = _write(out, n_out, row, slots[query], NO_STREAM, 0)
    return n_out, visits


@njit(cache=True)
def _tell_stream(
    bands: Bands,
    others: Blocks,
    is_left: bool,
    value: float,
    key: int,
    value_else: float,
    row: int,
    sign: int,
    mark: int,
    out: Int32s,
    n_out: int,
) -> tuple[int, int]:
    """Tell the pairs that a stream has at ``value`` and not at ``value_else`` (NaN: it has none there at all)."""
    visits = 0
    cover_los, cover_his = bands.cover_lo, bands.cover_hi
    sequence, counts, keys, values, ids = others.sequence, others.counts, others.keys, others.values, others.ids
    n_blocks = others.n[0]
    for group in range(cover_los.size):
        cover_lo, cover_hi = cover_los[group], cover_his[group]
        least = value - cover_hi if is_left else value + cover_lo
        most = value - cover_lo if is_left else value + cover_hi
        # What rounding would hide from the search is found by it, and left out by the exact test.
        if np.isfinite(least):
            least -= _DOUBT * (abs(value) + abs(least)) + _SMALLEST
        if np.isfinite(most):
            most += _DOUBT * (abs(value) + abs(most)) + _SMALLEST
        place, at = first_from(others, key, least, NO_STREAM)
        while place < n_blocks:
            block = sequence[place]
            if at == counts[block]:
                place, at = place + 1, 0
                continue
            i = block * BLOCK + at
            other = values[i]
            if keys[i] != key or other > most:
                break
            visits += 1
            after = value - other if is_left else other - value
            if cover_lo <= after <= cover_hi:
                before = value_else - other if is_left else other - value_else
                n_out, n = _tell_gains(bands, group, before, after, row, ids[i], sign, mark, out, n_out)
                visits += n
            at += 1
    return n_out, visits


@njit(cache=True)
def change_values(
    bands: Bands,
    left: Side,
    right: Side,
    sides: Int8s,
    streams: Int32s,
    values: Float64s,
    keys: Int64s,
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
    first_mark : more than any number in ``bands.told``.
    out : int32[4, room], receives (change, slot of the query, other stream, sign); ``n_out`` of them are there.

    Returns
    -------
    the first change not applied, n_out, entries looked at
        Stops before a change for which ``out`` has no room, or a side no free block.

    Notes
    -----
    Raises nothing. A change costs O(tau log m), the values in reach of some covering interval before or after, and what
    it tells.
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
        if own.blocks.n[1] == 0:
            return row, n_out, visits
        same_key = key == old_key
        mark = first_mark + row
        n_told = n_out
        if not np.isnan(old_value):
            value_else = value if same_key else np.nan
            n_told, n = _tell_stream(bands, others, is_left, old_value, old_key, value_else, row, -1, mark, out, n_told)
            visits += n
        if not np.isnan(value):
            value_else = old_value if same_key else np.nan
            n_told, n = _tell_stream(bands, others, is_left, value, key, value_else, row, 1, mark, out, n_told)
            visits += n
        if n_told > out.shape[1]:
            return row, n_out, visits
        n_out = n_told
        if not np.isnan(old_value):
            remove_value(own.blocks, old_key, old_value, stream)
        if not np.isnan(value):
            add_value(own.blocks, key, value, stream)
        own.values[stream], own.keys[stream] = value, key
    return sides.size, n_out, visits


@njit(cache=True)
def count_or_write_pairs(
    lo: float, hi: float, keys: Int64s, values: Float64s, other_keys: Int64s, others: Float64s, out: Int32s
) -> int:
    """Write the pairs (left entry, right entry) whose difference is in [lo, hi]; return how many there are.

    Parameters
    ----------
    keys, values : of the left side, int64[n] and float64[n], in order.
    other_keys, others : of the right side, alike.
    out : int32[2, room]; what has no room is only counted.
    """
    n = 0
    first = 0
    for i in range(keys.size):
        # The difference falls as the other grows, and for the next left entry no earlier other is in band again.
        while first < other_keys.size and (
            other_keys[first] < keys[i] or (other_keys[first] == keys[i] and values[i] - others[first] > hi)
        ):
            first += 1
        j = first
        while j < other_keys.size and other_keys[j] == keys[i] and values[i] - others[j] >= lo:
            if n < out.shape[1]:
                out[0, n], out[1, n] = i, j
            n += 1
            j += 1
    return n
