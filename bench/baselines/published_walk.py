"""The BMQ-Index of one dimension as published: the rival of the one that leaps over jumped-over queries.

Knows the RS list and each stream's RS node. Lists that cannot change, in layers, as for `RegionSegmentList`, so
that nothing but the walk differs.
"""

import numpy as np
from numba import njit

from bmq.index.base import Moves
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.nd_bmq import check_hints, check_rs_list, hints_for
from bmq.index.packed import PackedQueries
from bmq.kernels.buffers import make_room
from bmq.kernels.rs_list import RsList, build_rs_list, is_entered
from bmq.records import Float64s, Int8s, Int32s


class PublishedWalk(Layered):
    """The `BorderIndex` of one dimension that visits RS node by RS node.

    A move costs O(RS nodes and delta queries between). Memory: 24 bytes a query and 20 of query table, and 4 a
    stream.
    """

    def __init__(self, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER) -> None:
        super().__init__(1, growth=growth, smallest_layer=smallest_layer)

    def _build(self, table: PackedQueries) -> "WalkedList":
        return WalkedList(table)


class WalkedList:
    """The RS list of a table's only dimension, and the RS node of each stream's last reading."""

    def __init__(self, table: PackedQueries) -> None:
        self._rs_list = build_rs_list(table.regions[:, 0])
        self._hints: Int32s = np.zeros(0, dtype=np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays, without the query table."""
        return sum(array.nbytes for array in self._rs_list) + self._hints.nbytes

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that each move enters or leaves."""
        self._hints = hints_for(streams, self._hints)
        found = walked_queries(self._rs_list, table.regions, table.slots, self._hints, streams, previous[0], current[0])
        return Moves(*found)

    def _check(self, table: PackedQueries) -> None:
        """State every invariant; for tests."""
        check_rs_list(self._rs_list, table.regions[:, 0])
        check_hints(self._hints, self._rs_list)


@njit(cache=True, inline="always")
def _walk(borders: Float64s, value: float, rs_node: int) -> int:
    """Return the RS node that holds ``value``, visiting one after another from ``rs_node``."""
    # >= and not >: a reading on a border belongs to the upper segment.
    while rs_node < borders.size and value >= borders[rs_node]:
        rs_node += 1
    while rs_node > 0 and value < borders[rs_node - 1]:
        rs_node -= 1
    return rs_node


@njit(cache=True)
def walked_queries(
    rs_list: RsList,
    regions: Float64s,
    slots: Int32s,
    hints: Int32s,
    streams: Int32s,
    previous: Float64s,
    current: Float64s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the queries that each move enters or leaves, and how many delta queries were looked at.

    As `bmq.kernels.leap.net_queries`, over an ``rs_list``, the query table ``regions`` (float64[m, 1, 2]) and one
    RS node a stream in ``hints`` (int32[n_streams]).

    Notes
    -----
    Raises nothing.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3. Tuned: one comparison with the query table in place of the
    set difference drops the queries that were jumped over.
    """
    rows = np.empty(2 * streams.size, dtype=np.int32)
    queries = np.empty(2 * streams.size, dtype=np.int32)
    signs = np.empty(2 * streams.size, dtype=np.int8)
    n_found, visits = 0, 0
    for i in range(streams.size):
        before, after = previous[i], current[i]
        rs_node_before = _walk(rs_list.borders, before, hints[streams[i]])
        rs_node = _walk(rs_list.borders, after, rs_node_before)
        hints[streams[i]] = rs_node
        first, stop = min(rs_node_before, rs_node), max(rs_node_before, rs_node)
        visits += stop - first
        rows, queries, signs = make_room(rows, queries, signs, n_found, stop - first)
        up = rs_node > rs_node_before
        above, below = max(before, after), min(before, after)
        for e in range(first, stop):
            row = rs_list.deltas[e] >> 1
            is_plus = (rs_list.deltas[e] & 1) == 0
            rows[n_found], queries[n_found] = i, slots[row]
            signs[n_found] = 1 if is_entered(rs_list.deltas[e], up) else -1
            stays = regions[row, 0, 1] > above if is_plus else regions[row, 0, 0] <= below
            n_found += 1 if stays and slots[row] >= 0 else 0
    return rows[:n_found], queries[:n_found], signs[:n_found], visits
