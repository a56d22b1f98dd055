"""IBS-JS: shared join conditions first, then the selections of the queries that share one, by IBS trees."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from bench.baselines.ibs import Ibs
from bmq.engines.window.window_join import Window, WindowPairs
from bmq.records import Band, Int32s, Int64s, JoinQuery


class IbsJoin:
    """Window joins with one counted window for all, as plan sharing and predicate indexing find their pairs.

    Parameters
    ----------
    queries : each with one conjunction of one band; slots are places.
    size : of all windows, in readings.

    Notes
    -----
    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
    section 7.1, Table 1: each distinct join condition is worked out once for a pair of readings, and its results are
    looked up in the trees of the queries that have it. Departures, all in its favour: conditions and trees are asked
    about many pairs at a time, compiled.
    """

    def __init__(self, queries: Sequence[JoinQuery], size: int) -> None:
        self._size = size
        by_band: dict[Band, list[int]] = defaultdict(list)
        for slot, query in enumerate(queries):
            by_band[query.alternatives[0].bands[0]].append(slot)
        self._indexes: list[tuple[Band, Ibs]] = []
        for band, slots in by_band.items():
            boxes = [queries[slot].alternatives[0] for slot in slots]
            lo, hi = (
                np.array([getattr(box.left, end) + getattr(box.right, end) for box in boxes]).T for end in ("lo", "hi")
            )
            index = Ibs(lo.shape[0])
            index.register(np.array(slots, dtype=np.int32), lo, hi)
            self._indexes.append((band, index))

    def find(self, left: Window, right: Window) -> WindowPairs:
        """Return the pairs whose later reading is new, as `WindowJoin.find`, but in no order."""
        left_rows, right_rows = joinable(left, right, self._size)
        values = np.vstack((left.columns[:, left_rows], right.columns[:, right_rows]))
        n_left = left.columns.shape[0]
        queries, rows = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
        visits = 0
        for band, index in self._indexes:
            differences = values[band.left] - values[n_left + band.right]
            joined = np.flatnonzero((band.lo <= differences) & (differences <= band.hi)).astype(np.int32)
            moves = index.stab(values[:, joined])
            queries.append(moves.queries)
            rows.append(joined[moves.rows])
            visits += moves.visits
        found = np.concatenate(rows)
        return WindowPairs(np.concatenate(queries), left_rows[found], right_rows[found], visits)


def joinable(left: Window, right: Window, size: int) -> tuple[Int32s, Int32s]:
    """Return the rows of all pairs of a new reading and one of the last ``size`` of the other feed that came before."""
    before_left = np.searchsorted(right.positions, left.positions)
    before_right = np.searchsorted(left.positions, right.positions)
    new_left, new_right = np.flatnonzero(left.positions >= 0), np.flatnonzero(right.positions >= 0)
    x, y = _ranges(new_left, before_left[new_left], size), _ranges(new_right, before_right[new_right], size)
    return np.concatenate((x[0], y[1])).astype(np.int32), np.concatenate((x[1], y[0])).astype(np.int32)


def _ranges(rows: Int64s, before: Int64s, size: int) -> tuple[Int64s, Int64s]:
    begins = np.maximum(before - size, 0)
    others = [np.arange(begin, end) for begin, end in zip(begins.tolist(), before.tolist(), strict=True)]
    return np.repeat(rows, before - begins), np.concatenate([np.empty(0, dtype=np.int64), *others])
