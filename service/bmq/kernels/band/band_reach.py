"""Finds the joined pairs that a move of one value adds or removes, in one of four ways. Pure: arrays in and out.

Each way is the cheapest in some cases:

    by values     looks at the other side's values in reach of a group's covering interval; each asks the group
    by queries    looks at a group's queries; each asks for the values that came into its band. Used if more values than
                  queries are in reach, as with bands that are wide or have only one end
    by point      looks only at the two values whose differences enclose a group's point. Used if each query is reported
                  once and the value is not compared with another one: a query that holds some difference of the value
                  holds one of these two (the paper's Definition 1)
    by groups     looks at all values of the key on the other side; each looks for its groups. Used if there are fewer
                  such values than groups

The difference of two values is rounded in one way, and the sum of a value and an end in another. So a search by sums
includes values that are in doubt, and the difference itself decides.

Knows the other side's values and the bands. It must not know which change comes next or whether `out` had room.
"""

import numpy as np
from numba import njit

from bmq.kernels.band.band_groups import GONE, NO_STREAM, Bands, first_from_point, report_gains, write
from bmq.kernels.band.sorted_values import BLOCK, Blocks, first_from
from bmq.records import Int32s

_DOUBT = 4e-16  # the rounding error of a sum, as a share of its terms
_SMALLEST = 5e-324


@njit(cache=True, inline="always")
def _reach(is_left: bool, value: float, lo: float, hi: float) -> tuple[float, float]:
    """Return between which values of the other side the difference is in [lo, hi], apart from rounding."""
    return (value - hi, value - lo) if is_left else (value + lo, value + hi)


@njit(cache=True, inline="always")
def _doubt(value: float, limit: float) -> float:
    """Return how far ``limit``, computed from ``value``, may be off by rounding."""
    return _DOUBT * (abs(value) + abs(limit)) + _SMALLEST if np.isfinite(limit) else 0.0


@njit(cache=True)
def _has_more(others: Blocks, place: int, at: int, key: int, most: float, n: int) -> bool:
    """Return whether more than ``n`` entries from (place, at) on have the key and a value of at most ``most``."""
    sequence, counts, keys, values = others.sequence, others.counts, others.keys, others.values
    while place < others.n[0]:
        block = sequence[place]
        start = block * BLOCK
        if at < counts[block]:
            if keys[start + at] != key or values[start + at] > most:
                return False
            if at + n < counts[block]:
                return bool(keys[start + at + n] == key and values[start + at + n] <= most)
        n -= counts[block] - at
        place, at = place + 1, 0
    return False


@njit(cache=True)
def _report_by_values(
    bands: Bands,
    group: int,
    others: Blocks,
    place: int,
    at: int,
    most: float,
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
    """Do what `report_stream` does, for one group, by the values from (place, at) on up to ``most``."""
    sequence, counts, keys, values, ids = others.sequence, others.counts, others.keys, others.values, others.ids
    n_blocks = others.n[0]
    cover_lo, cover_hi = bands.cover_lo[group], bands.cover_hi[group]
    visits = 0
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
            n_out, n = report_gains(bands, group, before, after, row, ids[i], sign, mark, out, n_out)
            visits += n
        at += 1
    return n_out, visits


@njit(cache=True)
def _report_by_queries(
    bands: Bands,
    group: int,
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
    """Do what `report_stream` does, for one group, by its queries."""
    sequence, counts, keys, values, ids = others.sequence, others.counts, others.keys, others.values, others.ids
    n_blocks = others.n[0]
    by_lo, los, his, reported, reports_pairs = bands.by_lo, bands.lo, bands.slot_hi, bands.reported, bands.reports_pairs
    visits = 0
    for k in range(bands.starts[group], bands.starts[group + 1]):
        query = by_lo[k]
        visits += 1
        if query == GONE or (not reports_pairs and reported[query] == mark):
            continue
        lo, hi = los[k], his[query]
        least, most = _reach(is_left, value, lo, hi)
        least, most = least - _doubt(value, least), most + _doubt(value, most)
        # Search only what the band does not reach from the other value; both reaches have the same length.
        if not np.isnan(value_else):
            else_least, else_most = _reach(is_left, value_else, lo, hi)
            if value > value_else:
                least = max(least, else_most - _doubt(value_else, else_most))
            else:
                most = min(most, else_least + _doubt(value_else, else_least))
        if least > most:
            continue
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
            at += 1
            after = value - other if is_left else other - value
            before = value_else - other if is_left else other - value_else
            if not lo <= after <= hi or lo <= before <= hi:
                continue
            if reports_pairs:
                n_out = write(out, n_out, row, query, ids[i], sign)
            else:
                reported[query] = mark
                n_out = write(out, n_out, row, query, NO_STREAM, 0)
                break
    return n_out, visits


@njit(cache=True)
def _report_by_point(
    bands: Bands,
    group: int,
    others: Blocks,
    is_left: bool,
    value: float,
    key: int,
    row: int,
    mark: int,
    out: Int32s,
    n_out: int,
) -> tuple[int, int]:
    """Do what `report_stream` does, for one group, by the two values around its point."""
    sequence, counts, keys, values = others.sequence, others.counts, others.keys, others.values
    point = bands.points[group]
    limit, _ = _reach(is_left, value, point, point)
    place, at = first_from(others, key, limit - _doubt(value, limit), NO_STREAM)
    if at > 0:
        at -= 1
    elif place > 0:
        place -= 1
        at = counts[sequence[place]] - 1
    visits, passed, reported_after = 0, False, np.nan
    while place < others.n[0] and not passed:
        block = sequence[place]
        if at == counts[block]:
            place, at = place + 1, 0
            continue
        i = block * BLOCK + at
        at += 1
        visits += 1
        if keys[i] > key:
            break
        if keys[i] == key:
            after = value - values[i] if is_left else values[i] - value
            # Stop behind one value on either side of the point, whichever of the values in doubt these are.
            passed = after <= point if is_left else after > point
            if after != reported_after and bands.cover_lo[group] <= after <= bands.cover_hi[group]:
                reported_after = after
                n_out, n = report_gains(bands, group, np.nan, after, row, NO_STREAM, 0, mark, out, n_out)
                visits += n
    return n_out, visits


@njit(cache=True)
def _report_by_groups(
    bands: Bands,
    others: Blocks,
    place: int,
    at: int,
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
    """Do what `report_stream` does, for all groups, by the values of the key from (place, at) on."""
    sequence, counts, keys, values, ids = others.sequence, others.counts, others.keys, others.values, others.ids
    n_blocks = others.n[0]
    points, cover_los, cover_his, most_his = bands.points, bands.cover_lo, bands.cover_hi, bands.most_hi
    visits = 0
    while place < n_blocks:
        block = sequence[place]
        if at == counts[block]:
            place, at = place + 1, 0
            continue
        i = block * BLOCK + at
        if keys[i] != key:
            break
        at += 1
        visits += 1
        after = value - values[i] if is_left else values[i] - value
        before = value_else - values[i] if is_left else values[i] - value_else
        for part in range(2):
            begin, end = (0, bands.n_main) if part == 0 else (bands.n_main, points.size)
            # All intervals of a group begin above the point of the group before it. So no group behind the first one
            # whose point is at least `after` holds `after`.
            group = first_from_point(points, begin, end, after)
            if group < end and cover_los[group] <= after:
                n_out, n = report_gains(bands, group, before, after, row, ids[i], sign, mark, out, n_out)
                visits += n
            group -= 1
            while group >= begin and most_his[group] >= after:
                visits += 1
                if cover_his[group] >= after:
                    n_out, n = report_gains(bands, group, before, after, row, ids[i], sign, mark, out, n_out)
                    visits += n
                group -= 1
    return n_out, visits


@njit(cache=True)
def report_stream(
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
    """Write the pairs that a stream has at ``value`` and does not have at ``value_else``.

    Parameters
    ----------
    bands : Bands
    others : Blocks
        The values of the other side.
    is_left : bool
        Whether the stream is on the left side.
    value, key : float, int
    value_else : float
        NaN: the stream has no pair of this key there.
    row, sign : int
        The change and the sign to write.
    mark : int
        As for ``report_gains``.
    out, n_out : int32[4, room], int
        Written, behind the first ``n_out`` entries; what has no room is only counted.

    Returns
    -------
    tuple of int
        (the new ``n_out``, how many entries were looked at).

    Notes
    -----
    Raises nothing.
    """
    # Here and below: a search takes the same time whether values search queries or queries search values, so the side
    # with fewer of them searches.
    n_groups = bands.points.size
    if n_groups > 1:
        place, at = first_from(others, key, -np.inf, NO_STREAM)
        if not _has_more(others, place, at, key, np.inf, n_groups):
            return _report_by_groups(
                bands, others, place, at, is_left, value, key, value_else, row, sign, mark, out, n_out
            )
    visits = 0
    by_point = not bands.reports_pairs and np.isnan(value_else)
    # Local names outside the loop, and no call for a group with nothing in reach: each access to a tuple counts
    # references.
    starts, cover_los, cover_his = bands.starts, bands.cover_lo, bands.cover_hi
    sequence, counts, keys, values = others.sequence, others.counts, others.keys, others.values
    n_blocks = others.n[0]
    for group in range(n_groups):
        if by_point:
            n_out, n = _report_by_point(bands, group, others, is_left, value, key, row, mark, out, n_out)
            visits += n
            continue
        least, most = _reach(is_left, value, cover_los[group], cover_his[group])
        least, most = least - _doubt(value, least), most + _doubt(value, most)
        place, at = first_from(others, key, least, NO_STREAM)
        if place == n_blocks:
            continue
        block = sequence[place]
        i = block * BLOCK + at
        if at < counts[block] and (keys[i] != key or values[i] > most):
            continue
        n_queries = starts[group + 1] - starts[group]
        if at + n_queries < counts[block]:
            are_many = keys[i + n_queries] == key and values[i + n_queries] <= most
        else:
            are_many = _has_more(others, place, at, key, most, n_queries)
        if are_many:
            n_out, n = _report_by_queries(
                bands, group, others, is_left, value, key, value_else, row, sign, mark, out, n_out
            )
        else:
            n_out, n = _report_by_values(
                bands, group, others, place, at, most, is_left, value, key, value_else, row, sign, mark, out, n_out
            )
        visits += n
    return n_out, visits
