"""The BMQ-Index of one dimension as published: the rival of the one that skips jumped-over queries.

Knows the RS list and each stream's RS node. Lists that cannot change, in layers, as for `RegionSegmentList`, so
that nothing but the walk differs.
"""

import numpy as np
from numba import njit

from bmq.index.base import Moves
from bmq.index.border.nd_bmq import check_hints, check_rs_list, hints_for
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import PackedQueries
from bmq.kernels.border.delta_sets import signed
from bmq.kernels.border.line_moves import MOVES_TOGETHER
from bmq.kernels.border.rs_list import RsList, build_rs_list
from bmq.kernels.tables.buffers import make_room
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

    As `bmq.kernels.border.line_moves.net_queries`, over an ``rs_list``, the query table ``regions`` (float64[m, 1, 2])
    and one RS node a stream in ``hints`` (int32[n_streams]).

    Notes
    -----
    Raises nothing.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3. Tuned: one comparison with the query table in place of the
    set difference drops the queries that were jumped over; and, as in `bmq.kernels.border.line_moves`, blocks of moves
    with room for all that they may find, arrays taken out of the tuple once, and unsigned places.
    """
    rows = np.empty(2 * streams.size, dtype=np.int32)
    queries = np.empty(2 * streams.size, dtype=np.int32)
    signs = np.empty(2 * streams.size, dtype=np.int8)
    nodes = np.empty(2 * MOVES_TOGETHER, dtype=np.int32)
    borders, deltas = rs_list.borders, rs_list.deltas
    ends = regions.ravel()
    n_found, visits = 0, 0
    for block in range(0, streams.size, MOVES_TOGETHER):
        stop = min(block + MOVES_TOGETHER, streams.size)
        n_delta = _find_rs_nodes(borders, hints, streams, previous, current, block, stop, nodes)
        visits += n_delta
        # One more, as each is written before it is known whether it is kept.
        rows, queries, signs = make_room(rows, queries, signs, n_found, n_delta + 1)
        n_found = _keep(deltas, ends, slots, previous, current, block, stop, nodes, rows, queries, signs, n_found)
    return rows[:n_found], queries[:n_found], signs[:n_found], visits


@njit(cache=True)
def _find_rs_nodes(
    borders: Float64s,
    hints: Int32s,
    streams: Int32s,
    previous: Float64s,
    current: Float64s,
    block: int,
    stop: int,
    nodes: Int32s,
) -> int:
    """Write the RS nodes of the moves' previous and current values, int32[2] a move, and the hints.

    Return how many delta queries lie between.
    """
    n_delta = 0
    for i in range(block, stop):
        b, stream = 2 * (i - block), signed(streams[i])
        before = _walk(borders, previous[i], signed(hints[stream]))
        after = _walk(borders, current[i], before)
        hints[stream], nodes[b], nodes[b + 1] = after, before, after
        n_delta += abs(after - before)
    return n_delta


@njit(cache=True, forceinline=True)
def _walk(borders: Float64s, value: float, rs_node: int) -> int:
    """Return the RS node that holds ``value``, visiting one after another from ``rs_node``."""
    # >= and not >: a reading on a border belongs to the upper segment.
    while rs_node < borders.size and value >= borders[np.uint64(rs_node)]:
        rs_node += 1
    while rs_node > 0 and value < borders[np.uint64(rs_node - 1)]:
        rs_node -= 1
    return rs_node


@njit(cache=True)
def _keep(
    deltas: Int32s,
    ends: Float64s,
    slots: Int32s,
    previous: Float64s,
    current: Float64s,
    block: int,
    stop: int,
    nodes: Int32s,
    rows: Int32s,
    queries: Int32s,
    signs: Int8s,
    n_found: int,
) -> int:
    """Write the queries between ``nodes`` that were not jumped over behind ``n_found``; return how many there are.

    A kernel of its own, so that no array changes and numba counts no references in its loop.
    """
    for i in range(block, stop):
        b = 2 * (i - block)
        before, after = signed(nodes[b]), signed(nodes[b + 1])
        above, below = max(previous[i], current[i]), min(previous[i], current[i])
        sign = 1 if after > before else -1
        for e in range(min(before, after), max(before, after)):
            delta = signed(deltas[np.uint64(e)])
            is_plus = (delta & 1) == 0
            slot = slots[np.uint64(delta >> 1)]
            n = np.uint64(n_found)
            # Moving down swaps +DQ and -DQ.
            rows[n], queries[n], signs[n] = i, slot, sign if is_plus else -sign
            # The query's other end: one of +DQ was not jumped over if it lies above both values, one of -DQ if not.
            stays = (ends[np.uint64(delta ^ 1)] > (above if is_plus else below)) == is_plus
            n_found += stays and slot >= 0
    return n_found
