"""The region segment list, for one dimension: the BMQ papers' RS list, without the RS nodes.

This module knows the delta query sets and each stream's place among them. `kernels.border.line_moves` searches them,
`layered` makes changes.
"""

import numpy as np

from bmq.index.base import Moves
from bmq.index.packed import PackedQueries
from bmq.kernels.border import delta_sets as kernel
from bmq.kernels.border.delta_sets import BLOCK, LOWER, UPPER, WINDOW, Places, build_delta_sets
from bmq.kernels.border.line_moves import net_queries
from bmq.kernels.border.ranks import ranks_of
from bmq.records import Float64s, Int32s


class RegionSegments:
    """The delta query sets of a table of one dimension, and the RS node of each stream's last reading.

    A move costs O(1 + delta queries between its ends); of the delta queries that it jumps over, only a sixteenth
    counts. Memory: 9 bytes a query and 20 of query table, 16 bytes a stream.
    """

    def __init__(self, table: PackedQueries) -> None:
        self._sets = build_delta_sets(table.regions)
        self._hints: Places = np.zeros(0, dtype=np.uint32)
        self._hinted: Float64s = np.zeros(0)  # the value to which each hint belongs; NaN: there is no hint

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays, without the query table."""
        sets = self._sets
        own = (sets.minus_rows, sets.firsts, sets.highest, sets.lowest, self._hints, self._hinted)
        return sum(array.nbytes for array in own) + sets.ranks.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves."""
        self._make_room_for(streams)
        found = net_queries(
            self._sets, table.slots, table.any_gone, self._hints, self._hinted, streams, previous[0], current[0]
        )
        return Moves(*found)

    def _make_room_for(self, streams: Int32s) -> None:
        n_more = int(streams.max(initial=-1)) + 1 - self._hinted.size
        if n_more > 0:
            n_more = max(n_more, self._hinted.size)
            self._hints = np.append(self._hints, np.zeros(2 * n_more, dtype=np.uint32))
            self._hinted = np.append(self._hinted, np.full(n_more, np.nan))

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        sets, lower, upper = self._sets, table.regions[:, 0, LOWER], table.regions[:, 0, UPPER]
        m = len(table)
        assert np.shares_memory(sets.ends, table.regions)
        # The rows are the +DQ of the RS nodes from the lowest on, one set behind the other, and `minus_rows` the -DQ.
        assert (lower[1:] >= lower[:-1]).all()
        assert sorted(sets.minus_rows.tolist()) == list(range(m))
        assert (upper[sets.minus_rows][1:] >= upper[sets.minus_rows][:-1]).all()
        # A search begins behind all borders of the buckets before its own, and a whole window follows.
        n_buckets = sets.firsts.size // 2
        for end, borders in ((LOWER, lower), (UPPER, upper)):
            buckets = [kernel.bucket_of(rank, n_buckets) for rank in ranks_of(sets.ranks, np.sort(borders))]
            assert (np.diff(buckets) >= 0).all()
            before = np.searchsorted(buckets, np.arange(n_buckets))
            assert (sets.firsts[end::2] == np.minimum(before, max(0, m - WINDOW))).all()
        # Each summary describes its own block and nothing else.
        for block in range(-(-m // BLOCK)):
            entries = slice(block * BLOCK, (block + 1) * BLOCK)
            assert sets.highest[block] == upper[entries].max()
            assert sets.lowest[block] == sets.minus_rows[entries].min()
        assert sets.highest.size == sets.lowest.size == -(-m // BLOCK)
        with np.errstate(over="ignore"):
            assert sets.narrowest == (upper - lower).min()
        # A hint is the RS node of its value.
        assert self._hints.size == 2 * self._hinted.size
        known = ~np.isnan(self._hinted)
        for end, borders in ((LOWER, lower), (UPPER, np.sort(upper))):
            assert (self._hints[end::2] == np.searchsorted(borders, self._hinted, side="right"))[known].all()
