"""Dlist: for every unit of the attribute range, the IDs of all queries that cover it."""

from typing import NamedTuple

from numba import njit

from bench.baselines.grid_line import cell_of, cover, drop_others, line_around
from bench.baselines.rmq import nbytes_of
from bench.baselines.trees import build_lists, copy_upward
from bmq.kernels.match.virtual_constructs import Axis
from bmq.records import Float64s, Int32s


class DlistArrays(NamedTuple):
    """Cell c lists ``ids[starts[c]:starts[c + 1]]``; ``lo`` and ``hi`` as `Cover`."""

    line: Axis
    starts: Int32s
    ids: Int32s
    lo: Float64s
    hi: Float64s


class Dlist:
    """An `RmqIndex` of one dimension: one list a search, and W entries for a query of W units.

    Parameters
    ----------
    lo, hi : float64[1, m].
    line : how the attribute range is cut; None: units of 1 around all finite ends.

    Notes
    -----
    Source: Wu, Chen and Yu, Indexing Continual Range Queries for Efficient Stream Processing, section 2.5 (direct
    listing). Departures as in `cei`.
    """

    def __init__(self, lo: Float64s, hi: Float64s, line: Axis | None = None) -> None:
        line = line or line_around(lo, hi)
        rows = cover(line, lo[0], hi[0])
        # Trees of one cell are bare lists.
        starts, ids = build_lists(rows.first, rows.stop, rows.entries, line.n_cells, 1)
        self.arrays = DlistArrays(line, starts, ids, rows.lo, rows.hi)

    @property
    def nbytes(self) -> int:
        """Bytes of the ID lists and of where they start."""
        return nbytes_of(self.arrays)


@njit(cache=True)
def collect(dlist: DlistArrays, values: Float64s, i: int, out: Int32s, n_out: int) -> int:
    """Find the rows that hold ``values[0, i]``, as `rmq.Collect`."""
    value = values[0, i]
    cell = cell_of(dlist.line, value)
    stop = copy_upward(dlist.starts, dlist.ids, cell, 1, 1, out, n_out)
    if dlist.lo.size == 0:
        return stop
    return drop_others(out, n_out, stop, dlist.lo, dlist.hi, value)
