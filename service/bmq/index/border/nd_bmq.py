"""The n-D BMQ: one RS list for each dimension, and a cross-check against the query table.

Knows d RS lists and each stream's place in them. The walk and the check are `kernels.border.cross_check`; changes are
`layered`.
"""

import numpy as np

from bmq.index.base import Moves, concat_moves
from bmq.index.packed import PackedQueries
from bmq.kernels.border.cross_check import cross_checked_queries
from bmq.kernels.border.rs_list import RsList, build_rs_list
from bmq.records import Float64s, Int32s


class CrossCheckedLists:
    """The RS list of each dimension, and the RS node of each stream's last reading in each of them.

    A move costs O(delta queries between its ends in each dimension), wherever these queries lie in the other
    dimensions. Memory, for each dimension: 24 bytes a query, 16 in its table, and 4 a stream.
    """

    def __init__(self, table: PackedQueries) -> None:
        self._rs_lists = [build_rs_list(table.regions[:, k]) for k in range(table.regions.shape[1])]
        self._hints: list[Int32s] = [np.zeros(0, dtype=np.int32) for _ in self._rs_lists]

    @property
    def nbytes(self) -> int:
        """Bytes of the RS lists and of the streams' places in them."""
        lists = sum(part.nbytes for rs_list in self._rs_lists for part in rs_list)
        return lists + sum(hints.nbytes for hints in self._hints)

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves: the union over the dimensions."""
        self._hints = [hints_for(streams, hints) for hints in self._hints]
        parts = []
        for k, rs_list in enumerate(self._rs_lists):
            found = cross_checked_queries(
                rs_list, k, table.regions, table.slots, self._hints[k], streams, previous, current
            )
            parts.append(Moves(*found))
        return concat_moves(parts)

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        for k, rs_list in enumerate(self._rs_lists):
            check_rs_list(rs_list, table.regions[:, k])
            check_hints(self._hints[k], rs_list)


def hints_for(streams: Int32s, hints: Int32s) -> Int32s:
    """Return ``hints``, or a longer copy with a place for each of ``streams``; a new place has RS node 0."""
    n_needed = int(streams.max(initial=-1)) + 1
    if n_needed <= hints.size:
        return hints
    longer = np.zeros(max(n_needed, 2 * hints.size), dtype=np.int32)
    longer[: hints.size] = hints
    return longer


def check_hints(hints: Int32s, rs_list: RsList) -> None:
    """Assert the invariants of position hints; for tests."""
    assert ((hints >= 0) & (hints <= rs_list.borders.size)).all()


def check_rs_list(rs_list: RsList, intervals: Float64s) -> None:
    """Assert every invariant of the RS list of float64[m, 2] intervals; for tests."""
    ends = intervals.ravel()
    assert (rs_list.borders[1:] >= rs_list.borders[:-1]).all()
    # Each finite end is at its border, and every RS node above a border has a delta query.
    assert sorted(rs_list.deltas.tolist()) == np.flatnonzero(np.isfinite(ends)).tolist()
    assert (ends[rs_list.deltas] == rs_list.borders).all()
