"""The match index of selections: conjunctions over any number of dimensions, many of them without an end.

Values of a batch that lie close together are answered together, by the kernels of `select_join`.
"""

import numpy as np

from bmq.index.base import Moves, in_turn, joined
from bmq.index.layered import Layers
from bmq.index.packed import PackedQueries
from bmq.kernels.hilbert import MAX_BITS, bits_of_cells, hilbert_keys
from bmq.kernels.select_join import MAX_CLUSTER, Joined, join_clusters, write_joined
from bmq.kernels.select_tree import FANOUT, LEAF, CornerTree, build_tree, stab_each
from bmq.records import Float64s, Int32s, Int64s

IMMEDIATE = 16
MOST_BITS = 2**31  # of the sets of a part of a batch: 256 MB if every query met every cluster; mostly a fifth


class SelectIndex(Layers["CornerPoints"]):
    """The `MatchIndex` of selections.

    Notes
    -----
    Source: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, SIGMOD 2006.
    """

    def __len__(self) -> int:
        return sum(layer.n_live for layer in self._layers) + sum(slots.size for slots, _ in self._pending)

    def _build(self, table: PackedQueries) -> "CornerPoints":
        return CornerPoints(table)

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values`` (float64[d, n], finite or -inf), as `MatchIndex.stab`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        layers = list(self._settled())
        if values.shape[1] <= IMMEDIATE:
            return (
                joined([Moves(*stab_each(points.tree, table.slots, values)) for points, table in layers])
                if layers
                else _NOTHING
            )
        n_at_once = max(MAX_CLUSTER, MOST_BITS // max(1, len(self)))
        starts = range(0, values.shape[1], n_at_once)
        parts = [_stab_batch(layers, np.ascontiguousarray(values[:, start : start + n_at_once])) for start in starts]
        return in_turn(parts, starts)


_NOTHING = Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), 0)


def _stab_batch(layers: "list[tuple[CornerPoints, PackedQueries]]", values: Float64s) -> Moves:
    n_values = values.shape[1]
    order = _hilbert_order(values)
    n_clusters = -(-n_values // MAX_CLUSTER)
    starts = np.linspace(0, n_values, n_clusters + 1).astype(np.int64)
    near = np.ascontiguousarray(values[:, order])
    counts = np.zeros(n_values, dtype=np.int64)
    found: list[Joined] = [join_clusters(points.tree, table.slots, near, starts, counts) for points, table in layers]
    n_queries = np.empty(n_values, dtype=np.int64)
    n_queries[order] = counts
    ends = np.cumsum(n_queries) - n_queries
    rows: Int32s = np.repeat(np.arange(n_values, dtype=np.int32), n_queries)
    queries: Int32s = np.empty(rows.size, dtype=np.int32)
    for part in found:
        write_joined(part, starts, order, ends, queries)
    return Moves(rows, queries, np.ones(rows.size, dtype=np.int8), sum(part.visits for part in found))


def _hilbert_order(values: Float64s) -> Int64s:
    bits = bits_of_cells(values.shape[0], values.shape[1])
    return np.argsort(hilbert_keys(_cells(values[:MAX_BITS], bits), bits), kind="stable")


def _cells(coordinates: Float64s, bits: int) -> Int64s:
    """Return the cell of each coordinate, int64[d, n], such that each has about as many."""
    cells = np.empty(coordinates.shape, dtype=np.int64)
    for k, column in enumerate(coordinates):
        ordered = np.sort(column)
        cells[k] = (np.searchsorted(ordered, column) << bits) // column.size
    return cells


class CornerPoints:
    """A table's regions as corner points, in a packed tree."""

    def __init__(self, table: PackedQueries) -> None:
        corners = np.ascontiguousarray(table.regions.reshape(len(table), -1).T)
        informative = corners[(corners != corners[:, :1]).any(axis=1)][:MAX_BITS]
        if informative.size:
            bits = bits_of_cells(*informative.shape)
            order = np.argsort(hilbert_keys(_cells(informative, bits), bits), kind="stable")
        else:
            order = np.arange(len(table))
        self.tree: CornerTree = build_tree(table.regions, order)

    @property
    def nbytes(self) -> int:
        """Bytes of the tree."""
        return sum(part.nbytes for part in self.tree)

    def _check(self, table: PackedQueries) -> None:
        """State every invariant; for tests."""
        rows = self.tree.table_rows
        assert sorted(rows[rows >= 0].tolist()) == list(range(len(table)))
        assert (rows[len(table) :] == -1).all()
        assert FANOUT > 1
        assert LEAF * self.tree.ends.shape[0] == rows.size
