"""Queries of band joins in groups that share a point; finds the queries of a group that hold a new difference.

A query is an interval of the difference left - right, and its joined pairs are those whose difference it holds. Given
the difference before and after a change, the queries of a group that hold only the later one are, apart from a few, one
range of one of the group's two sequences:

    by lower end   ──[──[──[───[──   point   ──]──]───]──]──   by upper end
                      ▲     ▲
                   before  after: entered are those that begin between the two

Pure: arrays in, arrays out. Knows intervals and differences. It must not know keys, values or streams.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s, Int64s

NO_STREAM = -1
GONE = -1


class Bands(NamedTuple):
    """Queries by group: first the groups of most queries, by their points, then those of recent queries, by theirs.

    Attributes
    ----------
    points : float64[tau], a point that all queries of the group hold.
    starts : int64[tau + 1], group i is ``starts[i]`` to ``starts[i + 1]`` of the sequences.
    cover_lo, cover_hi : float64[tau], the least lower and the largest upper end in each group.
    most_hi : float64[tau], the largest upper end in the group and the groups before it, of the same part.
    by_lo, by_hi : int32[n]
        Query slots; within each group ascending by lower end, and descending by upper end. ``GONE``: the query was
        removed.
    lo, hi : float64[n], the ends by which ``by_lo`` and ``by_hi`` are sorted.
    slot_lo, slot_hi : float64[s], the ends of each query by its slot.
    reported : int64[s], scratch: the mark of the last change for which a query was reported.
    n_main : how many groups are not of recent queries.
    reports_pairs : whether each pair is reported; else each query is reported once a change.
    """

    points: Float64s
    starts: Int64s
    cover_lo: Float64s
    cover_hi: Float64s
    most_hi: Float64s
    by_lo: Int32s
    by_hi: Int32s
    lo: Float64s
    hi: Float64s
    slot_lo: Float64s
    slot_hi: Float64s
    reported: Int64s
    n_main: int
    reports_pairs: bool


@njit(cache=True)
def group_intervals(lo: Float64s, hi: Float64s) -> tuple[Int64s, Float64s]:
    """Return the group of each interval (int64[n]) and the point of each group (float64[tau]). O(n).

    A group takes further intervals as long as the next one begins at or before the least upper end in the group, which
    is the group's point.

    Parameters
    ----------
    lo, hi : float64[n]
        Closed intervals, ascending by lower end.
    """
    groups = np.empty(lo.size, dtype=np.int64)
    points = np.empty(lo.size, dtype=np.float64)
    n_groups = 0
    for i in range(lo.size):
        if n_groups == 0 or lo[i] > points[n_groups - 1]:
            points[n_groups] = hi[i]
            n_groups += 1
        points[n_groups - 1] = min(points[n_groups - 1], hi[i])
        groups[i] = n_groups - 1
    return groups, points[:n_groups].copy()


@njit(cache=True)
def first_above(ends: Float64s, begin: int, end: int, limit: float) -> int:
    """Return the first place in ``ends[begin:end]``, which ascends, whose end is above ``limit``; else ``end``."""
    while begin < end:
        middle = (begin + end) // 2
        if ends[middle] > limit:
            end = middle
        else:
            begin = middle + 1
    return begin


@njit(cache=True)
def first_below(ends: Float64s, begin: int, end: int, limit: float) -> int:
    """Return the first place in ``ends[begin:end]``, which descends, whose end is below ``limit``; else ``end``."""
    while begin < end:
        middle = (begin + end) // 2
        if ends[middle] < limit:
            end = middle
        else:
            begin = middle + 1
    return begin


@njit(cache=True, inline="always")
def write(out: Int32s, n_out: int, row: int, slot: int, other: int, sign: int) -> int:
    """Write one entry to ``out`` (int32[4, room]), or only count it if ``out`` is full; return the new count."""
    if n_out < out.shape[1]:
        out[0, n_out], out[1, n_out], out[2, n_out], out[3, n_out] = row, slot, other, sign
    return n_out + 1


@njit(cache=True)
def report_gains(
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
    """Write the queries of a group that hold the difference ``after`` and do not hold ``before``.

    Parameters
    ----------
    bands : Bands
    group : int
    before, after : float
        ``before`` is NaN if there was no difference.
    row, other, sign : int
        The change, the other stream and the sign to write.
    mark : int
        A number of the change: a query whose ``reported`` is this number is not reported again.
    out, n_out : int32[4, room], int
        Written, behind the first ``n_out`` entries.

    Returns
    -------
    tuple of int
        (the new ``n_out``, how many queries were looked at).
    """
    point, begin, end = bands.points[group], bands.starts[group], bands.starts[group + 1]
    # Local names outside the loops: access to a tuple within them counts references, at ten times the cost of the rest.
    reported, reports_pairs = bands.reported, bands.reports_pairs
    is_begun = after <= point
    if is_begun:
        queries, ends, other_ends = bands.by_lo, bands.lo, bands.slot_hi
        if before <= point:
            begin = first_above(ends, begin, end, before)
    else:
        queries, ends, other_ends = bands.by_hi, bands.hi, bands.slot_lo
        if before > point:
            begin = first_below(ends, begin, end, before)
    visits = 0
    for i in range(begin, end):
        if ends[i] > after if is_begun else ends[i] < after:
            break
        visits += 1
        query = queries[i]
        if query == GONE:
            continue
        # If the difference comes from beyond the point, the other end decides whether the query held it before.
        if is_begun and before > point and other_ends[query] >= before:
            continue
        if not is_begun and before <= point and other_ends[query] <= before:
            continue
        if reports_pairs:
            n_out = write(out, n_out, row, query, other, sign)
        elif reported[query] != mark:
            reported[query] = mark
            n_out = write(out, n_out, row, query, NO_STREAM, 0)
    return n_out, visits


@njit(cache=True)
def first_from_point(points: Float64s, begin: int, end: int, limit: float) -> int:
    """Return the first place in ascending ``points[begin:end]`` whose point is not below ``limit``; else ``end``."""
    return int(first_above(points, begin, end, np.nextafter(limit, -np.inf)))
