"""A smallest stabbing set of intervals, and the groups that it makes of them.

    ├───────┤                 ├────┤
       ├────────┤          ├──────────┤          every interval of a group has the group's point,
    ────────●────────────────────●──────────     and the groups are as few as can be

Of a point beyond ``p`` a group's intervals with that point are those whose upper end is not below it, and of a point
before ``p`` those whose lower end is not above it: a beginning of one of two sorted sequences.
"""

from dataclasses import dataclass

import numpy as np

from bmq.records import Float64s, Int32s, Int64s


@dataclass(frozen=True, slots=True)
class Groups:
    """Intervals by group.

    Attributes
    ----------
    points : float64[tau], the stabbing set, ascending.
    cover_lo, cover_hi : float64[tau], the least lower and the largest upper end in each group: its covering interval.
    starts : int64[tau + 1], group i is ``starts[i]`` to ``starts[i + 1]`` of the sequences.
    by_lo, by_hi : int32[n], rows of intervals; of each group by lower end ascending, and by upper end descending.
    lo, hi : float64[n], these ends: ``lo[i]`` is that of ``by_lo[i]``, ``hi[i]`` that of ``by_hi[i]``.
    """

    points: Float64s
    cover_lo: Float64s
    cover_hi: Float64s
    starts: Int64s
    by_lo: Int32s
    by_hi: Int32s
    lo: Float64s
    hi: Float64s

    def __len__(self) -> int:
        return self.points.size

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.points, self.cover_lo, self.cover_hi, self.starts, self.by_lo, self.by_hi, self.lo, self.hi)
        return sum(array.nbytes for array in arrays)


def stabbing_groups(lo: Float64s, hi: Float64s) -> Groups:
    """Return the groups of closed intervals [lo, hi], float64[n], ``lo <= hi``; ends may be -inf and inf.

    Notes
    -----
    O(n log n). The number of groups is the size of the smallest stabbing set. Source: Agarwal, Xie, Yang and Yu,
    Monitoring Continuous Band-Join Queries over Dynamic Data, section 2.2. Departure: intervals are taken by their
    upper ends, and the first of them gives the point; by lower ends, as there, the groups are as many.
    """
    by_end = np.argsort(hi, kind="stable")
    groups = np.empty(lo.size, dtype=np.int64)
    points = []
    begin = 0
    ends, begins = hi[by_end], lo[by_end]
    # Whoever begins behind the last point begins a new group, with its own end as the point.
    latest = np.maximum.accumulate(begins) if lo.size else begins
    while begin < lo.size:
        point = ends[begin]
        points.append(point)
        after = begin + int(np.searchsorted(latest[begin:], point, side="right"))
        groups[by_end[begin:after]] = len(points) - 1
        # Some behind may have the point, too; they have the next one as well, since they end behind it.
        begin = after
    return _sorted_groups(lo, hi, np.array(points), groups)


def _sorted_groups(lo: Float64s, hi: Float64s, points: Float64s, groups: Int64s) -> Groups:
    by_lo = np.lexsort((lo, groups)).astype(np.int32)
    by_hi = np.lexsort((-hi, groups)).astype(np.int32)
    starts = np.searchsorted(groups[by_lo], np.arange(points.size + 1)).astype(np.int64)
    first = starts[:-1]
    return Groups(points, lo[by_lo][first], hi[by_hi][first], starts, by_lo, by_hi, lo[by_lo], hi[by_hi])
