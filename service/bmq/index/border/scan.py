"""Scan: a move is tested against every query. The fastest structure while there is only a handful of queries.

Knows a table's regions by column. The search is `kernels.border.scan`.
"""

import numpy as np

from bmq.index.base import Moves
from bmq.index.packed import PackedQueries
from bmq.kernels.border.scan import LANES, scanned_queries
from bmq.records import Float64s, Int32s


class Scan:
    """The regions of a table by column, so that one instruction compares several.

    A move costs O(m). Memory: 16 bytes a query for each dimension.
    """

    def __init__(self, table: PackedQueries) -> None:
        n_rows = -(-len(table) // LANES) * LANES
        # No value is below -inf, so the rows of the padding hold nothing.
        self._ends: Float64s = np.full((2, table.regions.shape[1], n_rows), -np.inf)
        self._ends[:, :, : len(table)] = table.regions.transpose(2, 1, 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return self._ends.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves; ``streams`` is not used."""
        return Moves(*scanned_queries(self._ends, table.slots, previous, current))

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        assert self._ends.shape[2] % LANES == 0
        assert (self._ends[:, :, : len(table)] == table.regions.transpose(2, 1, 0)).all()
        assert (self._ends[:, :, len(table) :] == -np.inf).all()
