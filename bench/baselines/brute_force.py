"""Brute force: every move is compared with every region, as fast as that goes."""

import numpy as np
from numba import njit

from bench.baselines.standing import StandingQueries
from bmq.index.base import Moves
from bmq.kernels.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

# Regions compared before the result is looked at. What is known of a tile stays in the innermost cache; 256 were a
# quarter slower, 4096 no faster. A multiple of 8: the result is looked at by words of 8 bytes.
TILE = 1024


class BruteForce:
    """A `BorderIndex` of any number of dimensions without any structure.

    A move costs O(d m): 0.3 to 0.4 ns for each region and dimension. Memory: 16 d + 4
    bytes a query.

    Notes
    -----
    Tuned: one array for each dimension and end, so that the compiler compares several regions in one instruction;
    tiles; and 8 regions that the move does not change are passed over in one step. Twice as fast as the same in
    numpy, ten times as fast as one loop with everything in it.
    """

    def __init__(self, n_dims: int) -> None:
        self.n_dims = n_dims
        self._standing = StandingQueries(n_dims)
        self._lo: Float64s | None = None
        self._hi: Float64s = np.empty((n_dims, 0))

    @property
    def nbytes(self) -> int:
        """Bytes of the regions and the query slots."""
        return self._standing.regions.nbytes + self._standing.slots.nbytes

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries, as `BorderIndex.register`."""
        self._standing.register(slots, lo, hi)
        self._lo = None

    def deregister(self, slots: Int32s) -> None:
        """Forget queries, as `BorderIndex.deregister`."""
        self._standing.deregister(slots)
        self._lo = None

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        return self._changes(previous, current)

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `BorderIndex.stab`."""
        # No region holds NaN: a move from nowhere.
        return self._changes(np.full(values.shape, np.nan), values)

    def _changes(self, previous: Float64s, current: Float64s) -> Moves:
        lo, hi = self._tiles()
        previous = np.ascontiguousarray(previous, dtype=np.float64)
        current = np.ascontiguousarray(current, dtype=np.float64)
        rows, queries, signs = _changed_queries(lo, hi, self._standing.slots, previous, current)
        return Moves(rows, queries, signs, self._standing.slots.size * current.shape[1])

    def _tiles(self) -> tuple[Float64s, Float64s]:
        """Return lower and upper ends, float64[d, whole tiles]; what fills the last tile holds nothing."""
        if self._lo is None:
            regions = self._standing.regions
            fill = ((0, 0), (0, -len(regions) % TILE))
            self._lo, self._hi = (np.pad(regions[:, :, end].T, fill, constant_values=np.inf) for end in range(2))
        return self._lo, self._hi

    def _check(self) -> None:
        """State every invariant; for tests."""
        lo, hi = self._tiles()
        n = self._standing.slots.size
        assert lo.shape == hi.shape
        assert 0 <= lo.shape[1] - n < TILE
        assert np.array_equal(np.stack((lo, hi), axis=-1)[:, :n].swapaxes(0, 1), self._standing.regions)
        assert np.isinf(lo[:, n:]).all()


@njit(cache=True)
def _changed_queries(
    lo: Float64s, hi: Float64s, slots: Int32s, previous: Float64s, current: Float64s
) -> tuple[Int32s, Int32s, Int8s]:
    """Return which queries each move enters or leaves, as rows, query slots and signs; raises nothing."""
    rows = np.empty(TILE, dtype=np.int32)
    queries = np.empty(TILE, dtype=np.int32)
    signs = np.empty(TILE, dtype=np.int8)
    was = np.empty(TILE, dtype=np.int8)
    now = np.empty(TILE, dtype=np.int8)
    change = np.empty(TILE, dtype=np.int8)
    words = change.view(np.int64)
    n_found = 0
    for i in range(current.shape[1]):
        for first in range(0, lo.shape[1], TILE):
            _hold(lo, hi, first, previous, i, was)
            _hold(lo, hi, first, current, i, now)
            for e in range(TILE):
                change[e] = now[e] - was[e]
            rows, queries, signs = make_room(rows, queries, signs, n_found, TILE)
            for w in range(words.size):
                if words[w] != 0:
                    for e in range(8 * w, 8 * w + 8):
                        if change[e] != 0:
                            rows[n_found], queries[n_found], signs[n_found] = i, slots[first + e], change[e]
                            n_found += 1
    return rows[:n_found], queries[:n_found], signs[:n_found]


@njit(cache=True, inline="always")
def _hold(lo: Float64s, hi: Float64s, first: int, values: Float64s, i: int, held: Int8s) -> None:
    """Set which regions of the tile that begins at ``first`` hold ``values[:, i]``."""
    held[:] = 1
    for k in range(values.shape[0]):
        lower, upper, value = lo[k, first : first + TILE], hi[k, first : first + TILE], values[k, i]
        for e in range(TILE):
            held[e] &= (lower[e] <= value) & (value < upper[e])
