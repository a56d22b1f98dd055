"""DiffRMQ: border monitoring by a range query index, the papers' rival of the BMQ-Index.

Knows each stream's matching set and how to subtract two of them; which queries match is the RMQ index's
business (`rmq`).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bench.baselines.rmq import Collect, MakeRmq, RmqIndex
from bench.baselines.standing import StandingQueries
from bmq.index.base import Moves
from bmq.index.packed import PackedQueries
from bmq.kernels.tables.buffers import make_room
from bmq.records import Float64s, Int8s, Int32s

_UNKNOWN = -1  # in place of a matching set's size
_LAST_MARK = np.iinfo(np.int32).max


class DiffRmq:
    """A `BorderIndex` that searches an RMQ index for every reading and subtracts the stream's previous answer.

    Parameters
    ----------
    make_rmq : builds the RMQ index over float64[d, m] ``lo`` and ``hi``, e.g. ``partial(Cei, length=64)``.
    collect : the function that searches it.
    n_dims : number of dimensions.

    Notes
    -----
    A move costs a search and O(both matching sets): about 2 W N queries. Registration rebuilds everything at
    the next question: the papers' experiments have a fixed query set.

    Source: Lee et al., BMQ-Processor, sections 7.1 and 7.1.4: the matching set of each stream's previous value
    is kept, the one of its current value is retrieved, and those holding both values are dropped. Tuned beyond the
    papers: all in numpy arrays and one compiled loop without allocation; rows in the order of
    `bmq.index.packed`, as in our indexes, so that the queries of one matching set are close in memory.
    """

    def __init__(self, make_rmq: MakeRmq, collect: Collect, n_dims: int) -> None:
        self.n_dims = n_dims
        self._make_rmq = make_rmq
        self._collect = collect
        self._standing = StandingQueries(n_dims)
        self._rmq: RmqIndex | None = None
        self._slots: Int32s = np.empty(0, dtype=np.int32)
        # In which matching set a row was seen last: two marks a move, so that none need be wiped before they run out.
        self._marks: Int32s = np.empty(0, dtype=np.int32)
        self._last_mark = 0
        self._n_expected = 0  # how many queries the next stab may find, by the last one
        # Each stream's matching set, and the value it was retrieved for.
        self._members: Int32s = np.empty((0, 16), dtype=np.int32)
        self._n_members: Int32s = np.empty(0, dtype=np.int32)
        self._members_at: Float64s = np.empty((n_dims, 0))

    @property
    def nbytes_of_index(self) -> int:
        """Bytes of the RMQ index alone."""
        return 0 if self._rmq is None else self._rmq.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of the RMQ index, of 8 a query, and of matching sets as if each had just the room it needs."""
        n_kept = int(self._n_members.clip(0).sum())
        kept = 4 * n_kept + self._n_members.nbytes + self._members_at.nbytes
        return self.nbytes_of_index + self._slots.nbytes + self._marks.nbytes + kept

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries, as `BorderIndex.register`; the next question builds everything anew."""
        self._standing.register(slots, lo, hi)
        self._forget()

    def deregister(self, slots: Int32s) -> None:
        """Forget queries, as `BorderIndex.deregister`; the next question builds everything anew."""
        self._standing.deregister(slots)
        self._forget()

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`.

        A stream whose stored value is not ``previous`` has its previous matching set retrieved, too.
        """
        rmq = self._built()
        if rmq is None:
            return _nothing()
        self._make_room_for(streams)
        if self._last_mark + 2 * streams.size > _LAST_MARK:
            self._wipe_marks()
        *found, self._members = _kernels(self._collect).differences(
            rmq.arrays,
            self._slots,
            self._marks,
            self._last_mark,
            self._members,
            self._n_members,
            self._members_at,
            np.ascontiguousarray(streams, dtype=np.int32),
            np.ascontiguousarray(previous, dtype=np.float64),
            np.ascontiguousarray(current, dtype=np.float64),
        )
        self._last_mark += 2 * streams.size
        return Moves(*found)

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `BorderIndex.stab`: the bare RMQ search."""
        rmq = self._built()
        if rmq is None:
            return _nothing()
        values = np.ascontiguousarray(values, dtype=np.float64)
        matches = _kernels(self._collect).matches
        # Arrays that grow in the loop, and an answer copied from a buffer, made this a third as fast on long answers.
        rows, queries = np.empty((2, self._n_expected + self._slots.size), dtype=np.int32)
        n_done, n_found = matches(rmq.arrays, self._slots, values, 0, 0, rows, queries)
        while n_done < values.shape[1]:
            longer = np.empty((2, 2 * rows.size + self._slots.size), dtype=np.int32)
            longer[:, :n_found] = rows[:n_found], queries[:n_found]
            rows, queries = longer
            n_done, n_found = matches(rmq.arrays, self._slots, values, n_done, n_found, rows, queries)
        self._n_expected = n_found + n_found // 8
        return Moves(rows[:n_found], queries[:n_found], np.ones(n_found, dtype=np.int8), n_found)

    def _forget(self) -> None:
        self._rmq = None
        self._n_members[:] = _UNKNOWN

    def _built(self) -> RmqIndex | None:
        if self._rmq is None and self._standing.slots.size:
            table = PackedQueries(self._standing.slots, self._standing.regions)
            lo, hi = (np.ascontiguousarray(table.regions[:, :, end].T) for end in range(2))
            self._rmq = self._make_rmq(lo, hi)
            self._slots = table.slots
            self._wipe_marks()
        return self._rmq

    def _wipe_marks(self) -> None:
        self._marks = np.zeros(self._slots.size, dtype=np.int32)
        self._last_mark = 0

    def _make_room_for(self, streams: Int32s) -> None:
        n_needed = int(streams.max(initial=-1)) + 1
        if n_needed <= self._n_members.size:
            return
        n_more = max(n_needed, 2 * self._n_members.size) - self._n_members.size
        self._members = np.pad(self._members, ((0, n_more), (0, 0)))
        self._n_members = np.pad(self._n_members, (0, n_more), constant_values=_UNKNOWN)
        self._members_at = np.pad(self._members_at, ((0, 0), (0, n_more)))

    def _check(self) -> None:
        """State every invariant; for tests."""
        by_slot = dict(zip(self._standing.slots.tolist(), self._standing.regions, strict=True))
        if self._rmq is not None:
            assert sorted(self._slots.tolist()) == sorted(by_slot)
        for stream in np.flatnonzero(self._n_members != _UNKNOWN):
            members = self._slots[self._members[stream, : self._n_members[stream]]]
            at = self._members_at[:, stream]
            held = [slot for slot, ends in by_slot.items() if (ends[:, 0] <= at).all() and (at < ends[:, 1]).all()]
            assert sorted(members.tolist()) == sorted(held)


def _nothing() -> Moves:
    return Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), 0)


class _Kernels(NamedTuple):
    differences: Callable[..., Any]
    matches: Callable[..., Any]


@cache
def _kernels(collect: Collect) -> _Kernels:
    """Return the loops over moves and over values, compiled around ``collect``: once a process for each."""

    @njit
    def differences(
        arrays: Any,
        slots: Int32s,
        marks: Int32s,
        last_mark: int,
        members: Int32s,
        n_members: Int32s,
        members_at: Float64s,
        streams: Int32s,
        previous: Float64s,
        current: Float64s,
    ) -> tuple[Int32s, Int32s, Int8s, int, Int32s]:
        rows = np.empty(2 * streams.size, dtype=np.int32)
        queries = np.empty(2 * streams.size, dtype=np.int32)
        signs = np.empty(2 * streams.size, dtype=np.int8)
        matching = np.empty(slots.size, dtype=np.int32)
        n_found, visits = 0, 0
        for i in range(streams.size):
            stream = streams[i]
            n_was = n_members[stream]
            if n_was < 0 or not _same(members_at, stream, previous, i):
                n_was = collect(arrays, previous, i, matching, 0)
                members = _kept(members, stream, matching, n_was)
            n_now = collect(arrays, current, i, matching, 0)
            visits += n_was + n_now
            rows, queries, signs = make_room(rows, queries, signs, n_found, n_was + n_now)
            only_was = last_mark + 2 * i + 1
            now = only_was + 1
            was_members = members[stream]
            # Unsigned: numba then need not ask whether an index counts from the end.
            end = np.uint64(n_found)
            for e in range(np.uint64(n_was)):
                marks[_unsigned(was_members[e])] = only_was
            for e in range(np.uint64(n_now)):
                queries[end] = matching[e]
                row = _unsigned(matching[e])
                end += np.uint64(marks[row] != only_was)
                marks[row] = now
            first_left = end
            for e in range(np.uint64(n_was)):
                queries[end] = was_members[e]
                end += np.uint64(marks[_unsigned(was_members[e])] == only_was)
            for e in range(np.uint64(n_found), end):
                rows[e], queries[e], signs[e] = i, slots[queries[e]], 1 if e < first_left else -1
            n_found = int(np.int64(end))
            members = _kept(members, stream, matching, n_now)
            n_members[stream] = n_now
            members_at[:, stream] = current[:, i]
        return rows[:n_found], queries[:n_found], signs[:n_found], visits, members

    @njit
    def matches(
        arrays: Any, slots: Int32s, values: Float64s, n_done: int, n_found: int, rows: Int32s, queries: Int32s
    ) -> tuple[int, int]:
        # Goes on from value n_done while there is room for any answer.
        stop = np.int64(n_found)
        while n_done < values.shape[1] and stop + slots.size <= queries.size:
            first, stop = stop, np.int64(collect(arrays, values, n_done, queries, int(stop)))
            for e in range(np.uint64(first), np.uint64(stop)):
                queries[e] = slots[np.uint32(queries[e])]
            rows[first:stop] = n_done
            n_done += 1
        return n_done, int(stop)

    return _Kernels(differences, matches)


@njit(cache=True, inline="always")
def _unsigned(row: int) -> np.uint64:
    return np.uint64(np.uint32(row))


@njit(cache=True, inline="always")
def _same(members_at: Float64s, stream: int, values: Float64s, i: int) -> bool:
    for k in range(values.shape[0]):  # noqa: SIM110 - numba has no generators here
        if members_at[k, stream] != values[k, i]:
            return False
    return True


@njit(cache=True)
def _kept(members: Int32s, stream: int, matching: Int32s, n_matching: int) -> Int32s:
    """Return ``members``, or a wider copy, with the first ``n_matching`` rows of ``matching`` at ``stream``."""
    if n_matching > members.shape[1]:
        wider = np.empty((members.shape[0], max(n_matching, 2 * members.shape[1])), dtype=np.int32)
        wider[:, : members.shape[1]] = members
        members = wider
    members[stream, :n_matching] = matching[:n_matching]
    return members
