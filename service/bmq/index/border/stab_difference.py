"""Stab difference: the queries that hold the previous value or the current one, without those that hold both.

Knows how fine the cells must be and why. The look-up is `kernels.border.stab_difference`; changes are `layered`.
"""

import numpy as np

from bmq.index.base import Moves
from bmq.index.packed import PackedQueries
from bmq.kernels.border import stab_difference as kernel
from bmq.kernels.border.stab_difference import Cells, Entries, step_of
from bmq.records import Float64s, Int32s

# A cell is as wide as the mean side: a region reaches into 2 cells on each axis on average. Cells half as wide make 2.2
# times the entries in the plane and were not faster; twice as wide, a third slower on dense queries.
CELLS_PER_SIDE = 1.0
# The limit that large regions must not exceed on average: a region over everything is listed in every cell.
MOST_ENTRIES_PER_REGION = 6


class StabDifference:
    """The regions of a table by cell, on the two axes on which they are shortest.

    A move costs O(regions in the cells of its two ends), however far it goes and however many dimensions there are.
    Memory: at most 6 entries of 20 bytes a query, and as many cells of 4 bytes as queries.

    Notes
    -----
    A search of the packed R-tree for both ends at once was 3 to 20 times slower wherever this structure is the best
    one.
    """

    def __init__(self, table: PackedQueries) -> None:
        self._axes = two_shortest(table.mean_sides)
        self._cells = cells_for(len(table), table.mean_sides)
        ranks_a, ranks_b = self._ranks_of_ends(table)
        while _mean_entries(ranks_a, ranks_b, self._cells) > MOST_ENTRIES_PER_REGION:
            self._cells = Cells(-(-self._cells.n_a // 2), -(-self._cells.n_b // 2))
        self._starts: Int32s = np.zeros(self._cells.n_a * self._cells.n_b + 1, dtype=np.int32)
        kernel.count_regions(ranks_a, ranks_b, self._cells, self._starts)
        # The counts become ends, and listing moves each end to where its cell begins.
        np.cumsum(self._starts, out=self._starts)
        self._entries: Entries = np.empty(self._starts[-1], dtype=kernel.ENTRY)
        kernel.list_regions(ranks_a, ranks_b, self._cells, self._starts, self._entries)

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and their entries."""
        return self._starts.nbytes + self._entries.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves; ``streams`` is not used."""
        ranks_a, ranks_b = (
            np.stack([table.ranks_on(axis, values[axis]) for values in (previous, current)]) for axis in self._axes
        )
        found = kernel.differing_queries(
            self._cells,
            self._starts,
            self._entries,
            table.regions,
            table.slots,
            previous,
            current,
            ranks_a,
            ranks_b,
        )
        return Moves(*found)

    def _ranks_of_ends(self, table: PackedQueries) -> tuple[Float64s, Float64s]:
        ends = table.regions.transpose(1, 2, 0)
        a, b = (
            np.stack([table.ranks_on(axis, np.ascontiguousarray(end)) for end in ends[axis]]) for axis in self._axes
        )
        return a, b

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        ranks_a, ranks_b = self._ranks_of_ends(table)
        assert _mean_entries(ranks_a, ranks_b, self._cells) <= MOST_ENTRIES_PER_REGION
        cell_of_entry = np.repeat(np.arange(self._starts.size - 1), np.diff(self._starts))
        listed = sorted(zip(cell_of_entry.tolist(), self._entries["row"].tolist(), strict=True))
        # Each region is listed once in every cell between those of its ends, and nowhere else.
        assert listed == sorted(
            (step_a * self._cells.n_b + step_b, row)
            for row in range(len(table))
            for step_a in _steps(ranks_a[:, row], self._cells.n_a)
            for step_b in _steps(ranks_b[:, row], self._cells.n_b)
        )


def two_shortest(mean_sides: Float64s) -> tuple[int, int]:
    """Return the two axes on which the regions are shortest; twice the same axis if there is only one."""
    order = np.argsort(mean_sides, kind="stable")
    return int(order[0]), int(order[min(1, order.size - 1)])


def cells_for(n_regions: int, mean_sides: Float64s) -> Cells:
    """Return how many cells there should be on those axes; not more cells than regions."""
    a, b = two_shortest(mean_sides)
    n_a = _n_steps(mean_sides[a], n_regions)
    # As many steps as make one region a cell, if regions are so short that this limit is reached first.
    n_in_step = n_regions * (mean_sides[a] + 1 / n_a)
    return Cells(n_a, _n_steps(mean_sides[b], n_in_step) if b != a else 1)


def _n_steps(mean_side: float, most: float) -> int:
    """Return how many steps of the mean side fit on an axis, 1 to ``most``."""
    return max(1, int(min(CELLS_PER_SIDE / mean_side if mean_side > 0 else most, most)))


def _steps(ranks: Float64s, n_steps: int) -> range:
    """Return the steps from the one of the lower rank to the one of the upper rank."""
    return range(step_of(ranks[0], n_steps), step_of(ranks[1], n_steps) + 1)


def _mean_entries(ranks_a: Float64s, ranks_b: Float64s, cells: Cells) -> float:
    """Return how many cells a region reaches into on average."""
    spans = [
        np.diff(np.minimum((ranks * n_steps).astype(np.int64), n_steps - 1), axis=0) + 1
        for ranks, n_steps in ((ranks_a, cells.n_a), (ranks_b, cells.n_b))
    ]
    return float((spans[0] * spans[1]).mean())
