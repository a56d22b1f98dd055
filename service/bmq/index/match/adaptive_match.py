"""The match index that chooses its structure, and chooses again when its queries or values have changed enough.

Knows when to compare structures and when a change pays; `index.match.match_costs` predicts the cost of each. Answers
never depend on the choice. Here a *look* is one such comparison.
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

# The index changes its structure only if another is predicted to be cheaper by this factor. Predictions are wrong by up
# to a third, and with a lower factor all queries would be built into another structure for nothing.
SWITCH_FACTOR = 1.3
# The least number of values between two looks, absolute and for each query. A look compares structures for a sample and
# builds at most one, in 1 µs a query.
VALUES_BETWEEN_LOOKS = 100_000
VALUES_A_QUERY = 4
# A look also comes with a call that is so many times as large as the call of the last look, so that the first reading
# of a feed does not decide for its batches.
LARGER_CALL = 4
N_SAMPLED = 128  # values of a call in the sample; the mean of what they meet is mostly off by less than a tenth


def make_match(n_dims: int) -> "AdaptiveMatches":
    """Return an empty `MatchIndex` for values of ``n_dims`` dimensions."""
    return AdaptiveMatches(n_dims)


class AdaptiveMatches:
    """The `MatchIndex` of any number of dimensions that has the structure predicted to be cheapest.

    A look needs the values of a call, because they show which queries are met. So the index looks in `stab`, in three
    cases: there are at least twice or at most half as many queries as at the last look; the call has many more values
    than the call of the last look; or some 100,000 values have come since.

    Parameters
    ----------
    n_dims : number of dimensions of values and regions.
    switch_factor, values_between_looks : as the constants; tests set them low.
    predicted_ns : returns the predicted nanoseconds of a call in a kind of structure.
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
        self._n_values = self._n_calls = 0  # since the last look

    def __len__(self) -> int:
        return len(self._index)

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries with regions [lo, hi), as `MatchIndex.register`."""
        self._index.register(slots, lo, hi)

    def deregister(self, slots: Int32s) -> None:
        """Remove queries, as `MatchIndex.deregister`."""
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
        """Bytes of the arrays of which the index consists."""
        return self._index.nbytes

    def _check(self) -> None:
        """Assert every invariant; for tests."""
        self._index._check()
        assert self.kind.fits(self.n_dims)


def make_kind(n_dims: int, kind: MatchKind) -> Matches:
    """Return an empty `MatchIndex` with one kind of structure, which must fit ``n_dims``."""
    if kind is MatchKind.CONSTRUCTS:
        return _construct_index(n_dims)()
    return PackedMatches(n_dims) if kind is MatchKind.TREE else SelectIndex(n_dims)


def _construct_index(n_dims: int) -> type[SciIndex | VcrIndex]:
    return SciIndex if n_dims == 1 else VcrIndex
