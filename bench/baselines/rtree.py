"""An R-tree of an existing library, GEOS' STR-packed one through shapely, as a match index and as a border index.

Knows the tree and the final check that makes regions half-open.
"""

from itertools import pairwise
from math import ceil, sqrt

import numpy as np
import shapely
from numba import njit

from bench.baselines.standing import StandingQueries
from bmq.index.base import Moves, concat_moves
from bmq.kernels.border.cross_check import holds
from bmq.records import Float64s, Int8s, Int32s, Int64s

NODE_CAPACITY = 10  # shapely's default; 5, 20 and 40 were no faster over 32,000 boxes
NODE_BYTES = 48  # GEOS 3.14, TemplateSTRNode.h: a box of four float64, the item or the last child, the first child
# Infinite ends have no centre to sort by. All coordinates are cut here, those of values as well, so that a value
# is in a box if it is in the region, and the final check does the rest.
FAR = 1e300


class RTree:
    """A `MatchIndex`: an STR-packed R-tree of the regions' boxes, built anew when queries come or go.

    Parameters
    ----------
    n_dims : 1 or 2. An interval is a square on the diagonal, as the library's boxes are flat.

    Notes
    -----
    Source: Guttman, *R-trees* (1984), is what the papers compare with; theirs is built by insertion. Departure: packed
    in bulk (Leutenegger et al., *STR*, 1997), which the library does and which answers faster.
    """

    def __init__(self, n_dims: int = 2) -> None:
        if n_dims not in (1, 2):
            raise ValueError(f"the library's R-tree has 1 or 2 dimensions, not {n_dims}: take another index.")
        self.n_dims = n_dims
        self._standing = StandingQueries(n_dims)
        self._tree: shapely.STRtree | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the tree's nodes, as GEOS lays them out, and of the query table.

        The nodes are counted, not measured. The boxes as geometries are left out: shapely keeps them, a search does
        not need them.
        """
        n_nodes = count_nodes(self._standing.slots.size)
        return NODE_BYTES * n_nodes + self._standing.slots.nbytes + self._standing.regions.nbytes

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries, as `MatchIndex.register`; the next question builds the tree anew."""
        self._standing.register(slots, lo, hi)
        self._tree = None

    def deregister(self, slots: Int32s) -> None:
        """Forget queries, as `MatchIndex.deregister`; the next question builds the tree anew."""
        self._standing.deregister(slots)
        self._tree = None

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`: one bulk query."""
        rows, tree_rows = self.candidates(values)
        values = np.ascontiguousarray(values, dtype=np.float64)
        return Moves(*_held(rows, tree_rows, self._standing.regions, self._standing.slots, values), rows.size)

    def candidates(self, values: Float64s) -> tuple[Int64s, Int64s]:
        """Return each of ``values`` (float64[d, n]) with each row whose closed box holds it: what GEOS answers.

        Two int64[k]: positions in ``values``, ascending, and rows.
        """
        if self._tree is None:
            lo, hi = self._standing.regions.clip(-FAR, FAR).T
            self._tree = shapely.STRtree(shapely.box(lo[0], lo[-1], hi[0], hi[-1]), NODE_CAPACITY)
        values = values.clip(-FAR, FAR)
        rows, tree_rows = self._tree.query(shapely.points(values[0], values[-1]))
        return rows, tree_rows

    def _check(self) -> None:
        """State every invariant; for tests."""
        if self._tree is not None:
            assert len(self._tree) == self._standing.slots.size


class RTreeDifference(RTree):
    """A `BorderIndex`: the difference of an R-tree's answers for both ends of each move.

    A move costs two searches and O(k log k) for the k queries found at its ends.
    """

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        was, now = self.stab(previous), self.stab(current)
        found = concat_moves([_without(now, was, 1), _without(was, now, -1)])
        # As for DiffRMQ, the intermediate result is both matching sets.
        return Moves(found.rows, found.queries, found.signs, was.rows.size + now.rows.size)


@njit(cache=True)
def _held(
    rows: Int64s, tree_rows: Int64s, regions: Float64s, slots: Int32s, values: Float64s
) -> tuple[Int32s, Int32s, Int8s]:
    """Return those of the candidates whose half-open region holds the value, with signs +1. Raises nothing."""
    held = np.empty(rows.size, dtype=np.int32)
    queries = np.empty(rows.size, dtype=np.int32)
    n_held = 0
    for c in range(rows.size):
        held[n_held], queries[n_held] = rows[c], slots[tree_rows[c]]
        n_held += 1 if holds(regions, tree_rows[c], values, rows[c]) else 0
    return held[:n_held], queries[:n_held], np.ones(n_held, dtype=np.int8)


def _without(some: Moves, others: Moves, sign: int) -> Moves:
    """Return the (row, query) of ``some`` that are not in ``others``, ascending."""
    kept = np.setdiff1d(_keys(some), _keys(others), assume_unique=True)
    kept.sort()
    rows, queries = (kept >> 32).astype(np.int32), (kept & 0xFFFFFFFF).astype(np.int32)
    return Moves(rows, queries, np.full(rows.size, sign, dtype=np.int8), 0)


def _keys(moves: Moves) -> Int64s:
    keys: Int64s = moves.rows.astype(np.int64) << 32 | moves.queries
    return keys


def count_nodes(n_boxes: int) -> int:
    """Return how many nodes, leaves included, GEOS' tree has over ``n_boxes``; the rule of TemplateSTRtree.h."""
    n_nodes = below = n_boxes
    while below > 1:
        n_slices = ceil(sqrt(ceil(below / NODE_CAPACITY)))
        per_slice = ceil(below / n_slices)
        ends = [min(j * per_slice, below) for j in range(n_slices + 1)]
        below = sum(ceil((stop - first) / NODE_CAPACITY) for first, stop in pairwise(ends))
        n_nodes += below
    return n_nodes
