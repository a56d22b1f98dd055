"""The region segment list: the border index of one dimension.

Knows the RS list and each stream's place in it. The walk is `kernels.walk`; changes are `layered`.
"""

import numpy as np

from bmq.index.base import Moves
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import PackedQueries
from bmq.kernels.rs_list import RsList, build_rs_list
from bmq.kernels.walk import net_queries
from bmq.records import Float64s, Int32s


class RegionSegmentList(Layered):
    """The `BorderIndex` of one dimension, by the BMQ papers.

    A move costs O(log of the RS nodes between + delta queries between). Memory: about 60 bytes a query and 4
    a stream.
    """

    def __init__(self, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER) -> None:
        super().__init__(1, growth=growth, smallest_layer=smallest_layer)

    def _build(self, table: PackedQueries) -> "RegionSegments":
        return RegionSegments(table)


class RegionSegments:
    """The RS list of a table's only dimension, and the RS node of each stream's last reading."""

    def __init__(self, table: PackedQueries) -> None:
        self._rs_list = build_rs_list(*table.regions[:, 0].T)
        self._hints: Int32s = np.zeros(0, dtype=np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of the RS list and of the streams' places in it."""
        return sum(part.nbytes for part in self._rs_list) + self._hints.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves."""
        self._hints = hints_for(streams, self._hints)
        return Moves(*net_queries(self._rs_list, table.regions, table.slots, self._hints, streams, previous, current))

    def _check(self, table: PackedQueries) -> None:
        """State every invariant; for tests."""
        check_rs_list(self._rs_list, table.regions[:, 0])
        check_hints(self._hints, self._rs_list)


def hints_for(streams: Int32s, hints: Int32s) -> Int32s:
    """Return ``hints``, or a longer copy with a place for each of ``streams``; a new one is RS node 0."""
    n_needed = int(streams.max(initial=-1)) + 1
    if n_needed <= hints.size:
        return hints
    longer = np.zeros(max(n_needed, 2 * hints.size), dtype=np.int32)
    longer[: hints.size] = hints
    return longer


def check_hints(hints: Int32s, rs_list: RsList) -> None:
    """State what holds of position hints; for tests."""
    assert ((hints >= 0) & (hints <= rs_list.borders.size)).all()


def check_rs_list(rs_list: RsList, intervals: Float64s) -> None:
    """State every invariant of the RS list of float64[m, 2] intervals; for tests."""
    borders = rs_list.borders
    assert (borders[1:] > borders[:-1]).all()
    assert np.isfinite(borders).all()
    for starts, rows, ends in (
        (rs_list.plus_starts, rs_list.plus_rows, intervals[:, 0]),
        (rs_list.minus_starts, rs_list.minus_rows, intervals[:, 1]),
    ):
        # Each finite end is in the delta query set of the RS node that begins there, and in no other.
        assert sorted(rows.tolist()) == np.flatnonzero(np.isfinite(ends)).tolist()
        assert starts.size == borders.size + 2
        assert (starts[0], starts[1], starts[-1]) == (0, 0, rows.size)
        assert (ends[rows] == np.repeat(borders, np.diff(starts[1:]))).all()
    # No RS node without a delta query: those were merged with the one below.
    assert (np.diff(rs_list.plus_starts[1:]) + np.diff(rs_list.minus_starts[1:]) > 0).all()
