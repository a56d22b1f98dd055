"""Window joins by object decomposition: a band is cut into boxes over the two columns that it compares."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from bench.baselines.ibs_join import joinable
from bmq.engines.window.window_join import Window, WindowPairs
from bmq.index.base import MatchIndex
from bmq.records import Float64s, JoinQuery

N_PIECES = 4  # the paper's, section 7.4


class DecomposedJoin:
    """Window joins with one counted window for all: columns in [0, 1) are the axes, and each query is some boxes.

    Parameters
    ----------
    queries : each with one conjunction of one band; slots are places.
    size : of all windows, in readings.
    make : makes an index of so many dimensions; the same that ours is measured with.

    Notes
    -----
    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
    section 6.2, Fig. 14: a query is split along the left column into four, each the smallest box around its part of the
    band; what a box holds is tested against the band. Departure, in its favour: boxes that are empty are left out.
    """

    def __init__(self, queries: Sequence[JoinQuery], size: int, make: Callable[[int], MatchIndex]) -> None:
        self._size = size
        conjunctions = [query.alternatives[0] for query in queries]
        bands = [conjunction.bands[0] for conjunction in conjunctions]
        self._columns = np.array([(band.left, band.right) for band in bands], dtype=np.int64).T
        self._ends = np.array([(band.lo, band.hi) for band in bands]).T
        n_left = len(conjunctions[0].left.lo)
        ends = np.array([(c.left.lo + c.right.lo, c.left.hi + c.right.hi) for c in conjunctions]).transpose(1, 2, 0)
        cuts = np.concatenate(([-np.inf], np.arange(1, N_PIECES) / N_PIECES, [np.inf]))
        slots = np.arange(len(queries))
        pieces = []
        for least, most in pairwise(cuts.tolist()):
            lo, hi = ends.copy()
            column = self._columns[0], slots
            lo[column], hi[column] = np.maximum(lo[column], least), np.minimum(hi[column], most)
            # The smallest box around the part of the band: its right column is what the left one leaves.
            opposite = n_left + self._columns[1], slots
            lo[opposite] = np.maximum(lo[opposite], _before(lo[column] - self._ends[1]))
            hi[opposite] = np.minimum(hi[opposite], _behind(hi[column] - self._ends[0]))
            kept = (lo < hi).all(axis=0)
            pieces.append((slots[kept].astype(np.int32), lo[:, kept], hi[:, kept]))
        self._query_by_box = np.concatenate([slots for slots, _, _ in pieces])
        self._index = make(ends.shape[1])
        numbers = np.arange(self._query_by_box.size, dtype=np.int32)
        self._index.register(
            numbers, np.concatenate([lo for _, lo, _ in pieces], 1), np.concatenate([hi for _, _, hi in pieces], 1)
        )

    def find(self, left: Window, right: Window) -> WindowPairs:
        """Return the pairs whose later reading is new, as `WindowJoin.find`, but in no order."""
        left_rows, right_rows = joinable(left, right, self._size)
        values = np.vstack((left.columns[:, left_rows], right.columns[:, right_rows]))
        moves = self._index.stab(values)
        queries = self._query_by_box[moves.queries]
        columns = self._columns[:, queries]
        rows = left_rows[moves.rows], right_rows[moves.rows]
        differences = left.columns[columns[0], rows[0]] - right.columns[columns[1], rows[1]]
        holds = (self._ends[0][queries] <= differences) & (differences <= self._ends[1][queries])
        return WindowPairs(queries[holds], rows[0][holds], rows[1][holds], moves.visits)


def _before(values: Float64s) -> Float64s:
    """Return a number that is certainly less, however ``values`` were rounded."""
    return np.nextafter(np.nextafter(values, -np.inf), -np.inf)


def _behind(values: Float64s) -> Float64s:
    return np.nextafter(np.nextafter(values, np.inf), np.inf)
