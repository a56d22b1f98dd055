"""A smallest stabbing set of intervals, and the groups that it divides them into.

    ├───────┤                 ├────┤
       ├────────┤          ├──────────┤          every interval of a group holds the group's point,
    ────────●────────────────────●──────────     and the number of groups is the smallest possible

Let p be the point of a group. If x is above p, the intervals of the group that hold x are those whose upper end is not
below x. If x is below p, they are those whose lower end is not above x. Each group is sorted by lower end ascending and
by upper end descending, so the intervals that hold x are the first ones of one of the two sequences.
"""

from dataclasses import dataclass

import numpy as np

from bmq.kernels.band.band_groups import group_intervals
from bmq.records import Float64s, Int32s, Int64s


@dataclass(frozen=True, slots=True)
class Groups:
    """Intervals by group.

    Attributes
    ----------
    points : float64[tau], the stabbing set, ascending.
    cover_lo, cover_hi : float64[tau], the least lower and the largest upper end in each group: its covering interval.
    starts : int64[tau + 1], group i is ``starts[i]`` to ``starts[i + 1]`` of the sequences.
    by_lo, by_hi : int32[n], rows of intervals; within each group by lower end ascending, and by upper end descending.
    lo, hi : float64[n], ``lo[i]`` is the lower end of ``by_lo[i]``, and ``hi[i]`` is the upper end of ``by_hi[i]``.
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
    """Return the groups of closed intervals [lo, hi], float64[n], ``lo <= hi``; ends may be infinite.

    Groups are in the order of their points. Every interval of a group begins after the point of the group before.

    Notes
    -----
    O(n log n). The number of groups is the size of the smallest stabbing set. Source: Agarwal, Xie, Yang and Yu,
    Monitoring Continuous Band-Join Queries over Dynamic Data, section 2.2.
    """
    by_lo = np.argsort(lo, kind="stable").astype(np.int32)
    begins, ends = lo[by_lo], hi[by_lo]
    groups, points = group_intervals(begins, ends)
    # The order by group, and then by upper end; `by_lo` is in the order of the groups already.
    by_hi = by_lo[np.lexsort((-ends, groups))]
    starts = np.searchsorted(groups, np.arange(points.size + 1)).astype(np.int64)
    first = starts[:-1]
    return Groups(points, begins[first], hi[by_hi][first], starts, by_lo, by_hi, begins, hi[by_hi])
