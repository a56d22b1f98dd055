"""The match index that chooses its structure, and chooses again when queries or values have become others.

Knows when to look and when a change pays; what a structure costs is `match_costs`. Answers never depend on the choice.
"""

from collections.abc import Callable

import numpy as np

from bmq.index.base import Moves
from bmq.index.layered import LayeredMatches, PackedMatches
from bmq.index.match.construct_indexes import SciIndex, VcrIndex
from bmq.index.match.match_costs import MatchKind, MatchWorkload, call_ns
from bmq.index.match.select_index import SelectIndex
from bmq.records import Bools, Float64s, Int32s

Matches = LayeredMatches | SelectIndex

# Another structure is made when it is predicted to be this much cheaper: predictions are wrong by a third, and a lower
# factor would have all queries built into another one for nothing.
SWITCH_FACTOR = 1.3
# Values between two looks, at least, and for each query: a look counts for some and builds at most once, 1 µs a query.
VALUES_BETWEEN_LOOKS = 100_000
VALUES_A_QUERY = 4
# Or a call that is so many times as large as the one at the last look: a first reading does not decide for batches.
LARGER_CALL = 4
N_SAMPLED = 128  # values of a call that what values meet is known by; the mean is off by a tenth at most times


def make_match(n_dims: int) -> "AdaptiveMatches":
    """Return an empty `MatchIndex` for values of ``n_dims`` dimensions."""
    return AdaptiveMatches(n_dims)


class AdaptiveMatches:
    """The `MatchIndex` of any number of dimensions that has the structure predicted to be cheapest.

    A look comes with the values that a call asks for, since they show which queries are met: when there are twice or
    half as many queries as at the last one, or many more values, and after some 100,000 of these.

    Parameters
    ----------
    n_dims : number of dimensions of values and regions.
    switch_factor, values_between_looks : as the constants; tests set them low.
    predicted_ns : what a call costs in a kind of structure.
    """

    def __init__(
        self,
        n_dims: int,
        *,
        switch_factor: float = SWITCH_FACTOR,
        values_between_looks: int = VALUES_BETWEEN_LOOKS,
        predicted_ns: Callable[[MatchKind, MatchWorkload], float] = call_ns,
    ) -> None:
        self.n_dims = n_dims
        self._switch_factor = switch_factor
        self._values_between_looks = values_between_looks
        self._predicted_ns = predicted_ns
        self._kinds = [kind for kind in MatchKind if kind.fits(n_dims)]
        self.kind = MatchKind.TREE
        self._index: Matches = PackedMatches(n_dims)
        self._n_queries = self._call_size = 0  # at the last look
        self._n_values = self._n_calls = 0  # since

    def __len__(self) -> int:
        return len(self._index)

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries with regions [lo, hi), as `MatchIndex.register`."""
        self._index.register(slots, lo, hi)

    def deregister(self, slots: Int32s) -> None:
        """Forget queries, as `MatchIndex.deregister`."""
        self._index.deregister(slots)

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values`` (float64[d, n], finite), as `MatchIndex.stab`."""
        self._n_values += values.shape[1]
        self._n_calls += 1
        n_queries = len(self)
        is_another = not self._n_queries / 2 < n_queries < 2 * self._n_queries
        is_another |= values.shape[1] > LARGER_CALL * self._call_size
        if is_another or self._n_values >= max(self._values_between_looks, VALUES_A_QUERY * n_queries):
            self._look(values)
        return self._index.stab(values)

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the region of ``slots[i]``, which is registered, holds ``values[:, i]``: bool[n]."""
        return self._index.holds(slots, values)

    def _look(self, values: Float64s) -> None:
        if not len(self) or not values.shape[1]:
            return
        workload = self._workload(values)
        self._n_queries, self._call_size = workload.n_queries, values.shape[1]
        self._n_values = self._n_calls = 0
        predicted = {kind: self._predicted_ns(kind, workload) for kind in self._kinds}
        best = min(self._kinds, key=predicted.__getitem__)
        if predicted[best] * self._switch_factor < predicted[self.kind]:
            self._become(best)

    def _workload(self, values: Float64s) -> MatchWorkload:
        sample = np.ascontiguousarray(values[:, :: 1 + values.shape[1] // N_SAMPLED])
        found = self._index.stab_tables(sample)
        n_sampled = sample.shape[1]
        n_listed = 0.0
        if MatchKind.CONSTRUCTS in self._kinds:
            n_listed = _construct_index(self.n_dims).n_listed(self._index.contents()[1], sample)
        return MatchWorkload(
            n_dims=self.n_dims,
            n_queries=len(self),
            n_values=self._n_values / self._n_calls,
            n_matches=found.rows.size / n_sampled,
            n_visited=found.visits / n_sampled,
            n_listed=n_listed,
        )

    def _become(self, kind: MatchKind) -> None:
        slots, regions = self._index.contents()
        self.kind, self._index = kind, make_kind(self.n_dims, kind)
        lo, hi = regions.transpose(2, 1, 0)
        self._index.register(slots, lo, hi)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the index is made of."""
        return self._index.nbytes

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._index._check()
        assert self.kind.fits(self.n_dims)


def make_kind(n_dims: int, kind: MatchKind) -> Matches:
    """Return an empty `MatchIndex` of one kind of structure, which has to fit ``n_dims``."""
    if kind is MatchKind.CONSTRUCTS:
        return _construct_index(n_dims)()
    return PackedMatches(n_dims) if kind is MatchKind.TREE else SelectIndex(n_dims)


def _construct_index(n_dims: int) -> type[SciIndex | VcrIndex]:
    return SciIndex if n_dims == 1 else VcrIndex
