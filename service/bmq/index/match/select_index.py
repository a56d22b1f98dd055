"""The match index of selections: conjunctions over any number of dimensions, unbounded in many of them.

The values of a batch that lie close together are answered together (`kernels.match.cluster_search`). They are ordered
along a Hilbert curve and cut into data clusters. Each cluster is searched once in a tree over the corner points of the
queries (`kernels.match.select_tree`); in this tree, a region without an end is a point like any other. If there are
only a few values, they are answered one by one.

Knows how values and regions become places and clusters. It must not know what the dimensions of a selection mean.
"""

import numpy as np

from bmq.index.base import Moves, concat_moves, in_turn
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layers
from bmq.index.packed import PackedQueries
from bmq.kernels.match.cluster_search import MAX_CLUSTER, search_clusters, write_hits
from bmq.kernels.match.hilbert import MAX_BITS, bits_of_cells, hilbert_keys
from bmq.kernels.match.select_tree import build_tree, note_slots, stab_each
from bmq.records import Float64s, Int32s, Int64s

# Up to this many values are answered one by one. Over 100,000 queries of four conditions, a batch of 60 took a third
# longer together than one by one, and a batch of 200 a third less.
IMMEDIATE = 64
MOST_BITS = 2**31  # of the sets of a part of a batch: 256 MB if every query met every cluster; mostly a fifth of that


class SelectIndex(Layers["CornerPoints"]):
    """The `MatchIndex` of selections; values may be -inf, too.

    Parameters
    ----------
    n_dims : number of dimensions.
    cluster : the most values of a data cluster, 1..`MAX_CLUSTER`. The largest size is the best one: a region costs a
        cluster the same whatever the cluster's size. Values that lie so far apart that their cluster's box would meet
        too many regions become clusters of one.
    growth, smallest_layer : as for `Layers`.

    Notes
    -----
    A registration costs as much as in `Layers`: the query is pending until the next search, then in the smallest layer.

    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006,
    section 5. Departures: (1) The data index is a sorted array, not a search tree. (2) The query index is a packed tree
    in layers, not a multilevel grid file. (3) Places among the queries' ends are compared, not the values. (4) The
    refinement makes sets of values and does not test pairs.
    """

    def __init__(
        self,
        n_dims: int,
        *,
        cluster: int = MAX_CLUSTER,
        growth: int = GROWTH,
        smallest_layer: int = SMALLEST_LAYER,
    ) -> None:
        super().__init__(n_dims, growth=growth, smallest_layer=smallest_layer)
        if not 1 <= cluster <= MAX_CLUSTER:
            raise ValueError(f"a data cluster of {cluster} values is none: give 1 to {MAX_CLUSTER}.")
        self._cluster = cluster

    def __len__(self) -> int:
        return sum(layer.n_live for layer in self._layers) + sum(slots.size for slots, _ in self._pending)

    def _build(self, table: PackedQueries) -> "CornerPoints":
        return CornerPoints(table)

    def deregister(self, slots: Int32s) -> None:
        """Remove queries, as `MatchIndex.deregister`; the next search then costs O(m) once."""
        super().deregister(slots)
        for layer in self._layers:
            if layer.structure is not None:
                layer.structure.forget()

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values`` (float64[d, n], finite or -inf), as `MatchIndex.stab`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        layers = [points.noted(table) for points, table in self._settled()]
        if not layers:
            return Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), 0)
        if values.shape[1] <= IMMEDIATE:
            return concat_moves([Moves(*stab_each(points.tree, points.places_of(values))) for points in layers])
        n_at_once = max(MAX_CLUSTER, MOST_BITS // len(self))
        starts = range(0, values.shape[1], n_at_once)
        parts = [_stab_batch(layers, values[:, start : start + n_at_once], self._cluster) for start in starts]
        return in_turn(parts, starts)


def _stab_batch(layers: "list[CornerPoints]", values: Float64s, cluster: int) -> Moves:
    """Return all queries of the layers that hold each of ``values``, cluster by cluster."""
    n_values = values.shape[1]
    order = layers[0].hilbert_order(values)
    run = -(-n_values // -(-n_values // cluster))  # as few clusters as possible, of one size
    near = values[:, order]
    counts = np.zeros(n_values, dtype=np.int64)
    found = [search_clusters(points.tree, points.places_of(near), run, counts) for points in layers]
    n_queries = np.empty(n_values, dtype=np.int64)
    n_queries[order] = counts
    ends = np.cumsum(n_queries) - n_queries
    rows: Int32s = np.repeat(np.arange(n_values, dtype=np.int32), n_queries)
    queries: Int32s = np.empty(rows.size, dtype=np.int32)
    for part in found:
        write_hits(part, order, ends, queries)
    return Moves(rows, queries, np.ones(rows.size, dtype=np.int8), sum(part.visits for part in found))


class CornerPoints:
    """The regions of a table as corner points, in a packed tree."""

    def __init__(self, table: PackedQueries) -> None:
        regions = np.empty((len(table), table.regions.shape[1], 2), dtype=np.int32)
        self._ends: list[Float64s] = []
        for k in range(table.regions.shape[1]):
            ends, places = np.unique(table.regions[:, k], return_inverse=True)
            is_below, is_beyond = ends[0] == -np.inf, ends[-1] == np.inf
            regions[:, k] = places.reshape(-1, 2) + (not is_below)
            self._ends.append(ends[int(is_below) : ends.size - int(is_beyond)].copy())
        self._order = self._along_curve(regions.reshape(len(table), -1).T)
        self.tree = build_tree(regions, self._order)
        self._is_noted = False  # whether the tree's slots are those of the table now

    def noted(self, table: PackedQueries) -> "CornerPoints":
        """Return this object, after its tree has received the slots that the table has now."""
        if not self._is_noted:
            note_slots(self.tree, table.slots, self._order)
            self._is_noted = True
        return self

    def forget(self) -> None:
        """Note that queries of the table were deregistered, so that the tree's slots are out of date."""
        self._is_noted = False

    def places_of(self, values: Float64s) -> Int32s:
        """Return for each value how many distinct ends lie at or below it: int32[d, n] for float64[d, n]."""
        places = np.empty(values.shape, dtype=np.int32)
        for k, ends in enumerate(self._ends):
            places[k] = np.searchsorted(ends, values[k], side="right")
        return places

    def hilbert_order(self, values: Float64s) -> Int64s:
        """Return an order of the values in which neighbours are near each other, measured in ends between them."""
        return self._along_curve(self.places_of(values))

    def _along_curve(self, points: Int32s) -> Int64s:
        """Return an order of points (int32[c, n]) along a Hilbert curve through the axes on which the points differ."""
        n_ends = np.repeat([ends.size + 2 for ends in self._ends], points.shape[0] // len(self._ends))
        distinguishing = np.flatnonzero(points.min(axis=1) < points.max(axis=1))[:MAX_BITS]
        if not distinguishing.size:
            return np.arange(points.shape[1])
        bits = bits_of_cells(distinguishing.size, points.shape[1])
        cells = (points[distinguishing].astype(np.int64) << bits) // n_ends[distinguishing, None]
        return np.argsort(hilbert_keys(cells, bits), kind="stable")

    @property
    def nbytes(self) -> int:
        """Bytes of the tree, of the ends, and of the rows' order in the tree."""
        n_bytes = self._order.nbytes + sum(ends.nbytes for ends in self._ends)
        return n_bytes + sum(part.nbytes for part in self.tree)

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""
        tree = self.noted(table).tree
        assert sorted(self._order.tolist()) == list(range(len(table)))
        assert (tree.slots[: len(table)] == table.slots[self._order]).all()
        lanes = np.unpackbits(tree.live.view(np.uint8), bitorder="little").astype(np.bool_)
        assert (lanes[: len(table)] == (table.slots[self._order] >= 0)).all()
        assert not lanes[len(table) :].any()
        by_row = tree.ends.transpose(0, 3, 1, 2).reshape(-1, *table.regions.shape[1:])[: len(table)]
        for k, ends in enumerate(self._ends):
            around = np.concatenate(([-np.inf], ends, [np.inf]))
            assert (around[:-1] < around[1:]).all()
            assert (around[by_row[:, k]] == table.regions[self._order, k]).all()
