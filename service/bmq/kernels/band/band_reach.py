"""Which pairs a value has that it has not elsewhere: four ways, each the cheapest somewhere. Pure: arrays in and out.

    by values     the other side's values in reach of a group's covering interval; each asks the group
    by queries    a group's queries; each asks for the values that came in its band: where more values than queries
                  are in reach, such as of bands that are wide or have one end
    by point      only the two values whose differences enclose a group's point, where queries are reported once: one
                  that holds some difference holds one of these (the paper's Definition 1)
    by groups     all the other side's values of a key, where they are fewer than groups; each looks for its groups

Differences round, sums of a value and an end round otherwise: searches by sums take in what is in doubt, and the
difference itself decides.
"""

import numpy as np
from numba import njit

from bmq.kernels.band.band_groups import GONE, NO_STREAM, Bands, first_above, report_gains, write
from bmq.kernels.band.sorted_values import BLOCK, Blocks, first_from
from bmq.records import Float64s, Int32s

_DOUBT = 4e-16  # a sum's roundoff, as a part of its terms
_SMALLEST = 5e-324


@njit(cache=True, inline="always")
def _reach(is_left: bool, value: float, lo: float, hi: float) -> tuple[float, float]:
    """Return between which others of the other side the difference is in [lo, hi], roundoff aside."""
    return (value - hi, value - lo) if is_left else (value + lo, value + hi)


@njit(cache=True, inline="always")
def _doubt(value: float, limit: float) -> float:
    return _DOUBT * (abs(value) + abs(limit)) + _SMALLEST if np.isfinite(limit) else 0.0


@njit(cache=True)
def _has_more(others: Blocks, place: int, at: int, key: int, most: float, n: int) -> bool:
    """Return whether more than ``n`` entries from (place, at) on are of a key and at most ``most``."""
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
        # Only what the band does not reach from the other value; both reaches are as long.
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
            # One on either side of the point, whichever they are of those in doubt.
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
            # A group begins behind the point before it: none behind the first point from `after` on has `after`.
            group = _first_from_point(points, begin, end, after)
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
def _first_from_point(points: Float64s, begin: int, end: int, limit: float) -> int:
    """Return the first place in an ascending range whose point is not below ``limit``."""
    return int(first_above(points, begin, end, np.nextafter(limit, -np.inf)))


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
    """Tell the pairs that a stream has at ``value`` and not at ``value_else`` (NaN: it has none there at all).

    Returns
    -------
    n_out, entries looked at
    """
    # Here and below a search takes as long whichever of the two does it: the fewer do.
    n_groups = bands.points.size
    if n_groups > 1:
        place, at = first_from(others, key, -np.inf, NO_STREAM)
        if not _has_more(others, place, at, key, np.inf, n_groups):
            return _report_by_groups(
                bands, others, place, at, is_left, value, key, value_else, row, sign, mark, out, n_out
            )
    visits = 0
    by_point = not bands.reports_pairs and np.isnan(value_else)
    # By name outside the loop, and no call for a group with nothing in reach: what a tuple holds is counted at each.
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
