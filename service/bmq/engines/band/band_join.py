"""Band joins on the same values: find the pairs of streams that come within the band of a query or leave it.

The values of each side are sorted. The queries are in groups, and all queries of a group share a point of a smallest
stabbing set. So a change of a value costs the pairs that it changes, and a search for each group. The module knows
slots of queries and streams, and numbers.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bmq.engines.band.query_groups import BandQueries
from bmq.kernels.band.band_changes import Side, change_values, count_or_write_pairs
from bmq.kernels.band.sorted_values import BLOCK, Blocks, in_order
from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s
from bmq.records.column_records import concat

T = TypeVar("T", bound=np.generic)
Entries = tuple[Int64s, Float64s, Int32s]  # keys, values and streams of a side, in order

FIRST_BLOCKS = 4  # of a side; doubles as needed
FIRST_ROOM = 1024  # initial room for results; grows as needed
NO_END = 2**62


@dataclass(frozen=True, slots=True)
class PairChanges:
    """The effects of changes of values, one row for each pair that comes in band or leaves it.

    Attributes
    ----------
    rows : int32[k], the number of the change; ascending.
    queries : int32[k], slots.
    others : int32[k], the stream of the other side; -1 if queries are reported and not pairs.
    signs : int8[k], +1: the pair is in band now, -1: it is not any more; 0 if queries are reported and not pairs.
    visits : the number of tested entries.
    """

    rows: Int32s
    queries: Int32s
    others: Int32s
    signs: Int8s
    visits: int


@dataclass(frozen=True, slots=True)
class BandPairs:
    """Pairs in band: query slot, left and right stream, int32[k] each."""

    queries: Int32s
    left: Int32s
    right: Int32s


class BandJoin:
    """Queries ``lo <= left - right <= hi`` over the values of two sides.

    Notes
    -----
    Memory: 20 bytes an entry of a block, 16 more a stream, and `BandQueries`. Source: Agarwal, Xie, Yang and Yu,
    Monitoring Continuous Band-Join Queries over Dynamic Data, section 2.2. Departure: see docs/decisions/0010.
    """

    def __init__(self) -> None:
        self._queries = BandQueries()
        self._reports_queries = False
        self._next_mark = 0  # more than any in `Bands.reported`
        self._sides = (_new_side(), _new_side())
        self._ordered: tuple[Entries, Entries] | None = None

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        sides = sum(array.nbytes for side in self._sides for array in (*side.blocks, side.values, side.keys))
        return sides + self._queries.nbytes

    def put(self, slots: Int32s, lo: Float64s, hi: Float64s, reports_queries: bool = False) -> None:
        """Add queries in free slots.

        Parameters
        ----------
        slots : int32[m].
        lo, hi : float64[m], ``lo <= hi``, lo below inf and hi above -inf; an end of -inf or inf is unbounded.
        reports_queries : the same for all queries of one `BandJoin`.
        """
        self._reports_queries = reports_queries
        self._queries.put(slots, lo, hi)

    def remove(self, slots: Int32s) -> None:
        """Remove queries."""
        self._queries.remove(slots)

    def change(
        self, sides: Int8s, streams: Int32s, values: Float64s, keys: Int64s, is_reported: Bools | None = None
    ) -> PairChanges:
        """Apply changes of values in the given order, and return the pairs that come in band or leave it.

        Parameters
        ----------
        sides : int8[n], 0 left, 1 right.
        streams : int32[n], slots of that side.
        values : float64[n], finite; NaN: the stream has no value any more.
        keys : int64[n], both streams of a pair must have equal keys; -1: equal to nothing.
        is_reported : bool[n], whether to return the pairs of a change; None: return those of all changes.
        """
        self._ordered = None
        values = values + 0.0  # -0.0 is 0.0
        is_reported = np.ones(sides.size, dtype=np.bool_) if is_reported is None else is_reported
        for side in (0, 1):
            self._make_room(side, int(streams[sides == side].max(initial=-1)) + 1)
        bands = self._queries.bands(reports_pairs=not self._reports_queries)
        out = np.empty((4, max(FIRST_ROOM, 2 * sides.size)), dtype=np.int32)
        done, n_out, visits = 0, 0, 0
        while True:
            left, right = self._sides
            done, n_out, n = change_values(
                bands, left, right, sides, streams, values, keys, is_reported, done, self._next_mark, out, n_out
            )
            self._next_mark += sides.size
            visits += n
            if done == sides.size:
                break
            if self._sides[sides[done]].blocks.n[1] == 0:
                self._more_blocks(int(sides[done]))
            else:
                out = np.hstack([out[:, :n_out], np.empty((4, 2 * out.shape[1]), dtype=np.int32)])
        return PairChanges(out[0, :n_out], out[1, :n_out], out[2, :n_out], out[3, :n_out].astype(np.int8), visits)

    def pairs(self, slots: Int32s) -> BandPairs:
        """Return the pairs of queries that are in band now, in some order.

        Cost for each query: its pairs, and a search for each stream of the side with fewer streams.
        """
        if self._ordered is None:
            left, right = self._sides
            self._ordered = (in_order(left.blocks), in_order(right.blocks))
        none: Int32s = np.empty(0, dtype=np.int32)
        return concat([BandPairs(none, none, none), *(self._pairs_of(slot, *self._ordered) for slot in slots.tolist())])

    def _pairs_of(self, slot: int, left: Entries, right: Entries) -> BandPairs:
        lo, hi, is_turned = _turned(self._queries.lo[slot], self._queries.hi[slot], left, right)
        (keys, values, ids), (other_keys, others, other_ids) = (right, left) if is_turned else (left, right)
        room = FIRST_ROOM
        while True:
            out = np.empty((2, room), dtype=np.int32)
            n = count_or_write_pairs(lo, hi, keys, values, other_keys, others, out, NO_END)
            if n <= room:
                break
            room = n
        own, other = ids[out[0, :n]], other_ids[out[1, :n]]
        of_left, of_right = (other, own) if is_turned else (own, other)
        return BandPairs(np.full(n, slot, dtype=np.int32), of_left, of_right)

    def _make_room(self, side: int, n_streams: int) -> None:
        old = self._sides[side]
        n_more = n_streams - old.values.size
        if n_more <= 0:
            return
        n_more = max(n_more, old.values.size)
        values = np.append(old.values, np.full(n_more, np.nan))
        self._set_side(side, Side(old.blocks, values, np.append(old.keys, np.zeros(n_more, dtype=np.int64))))

    def _more_blocks(self, side: int) -> None:
        old = self._sides[side]
        blocks, n_blocks = old.blocks, old.blocks.counts.size
        larger = Blocks(
            _doubled(blocks.sequence),
            _doubled(blocks.counts),
            np.concatenate([np.arange(n_blocks, 2 * n_blocks, dtype=np.int32), blocks.free]),
            np.array([blocks.n[0], n_blocks]),
            _doubled(blocks.keys),
            _doubled(blocks.values),
            _doubled(blocks.ids),
        )
        self._set_side(side, Side(larger, old.values, old.keys))

    def _set_side(self, side: int, new: Side) -> None:
        self._sides = (new, self._sides[1]) if side == 0 else (self._sides[0], new)

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._queries._check()
        for side in self._sides:
            keys, values, ids = in_order(side.blocks)
            # The entries are in order, and each stream with a value has exactly one entry, with this value.
            assert np.array_equal(np.lexsort((ids, values, keys)), np.arange(keys.size))
            assert sorted(ids.tolist()) == np.flatnonzero(~np.isnan(side.values)).tolist()
            assert np.array_equal(side.values[ids], values)
            assert np.array_equal(side.keys[ids], keys)
            used = side.blocks.sequence[: side.blocks.n[0]]
            free = side.blocks.free[: side.blocks.n[1]]
            assert sorted([*used, *free]) == list(range(side.blocks.counts.size))
            assert (side.blocks.counts[used] > 0).all()


def count_in_band(lo: float, hi: float, left: Entries, right: Entries, most: int) -> int:
    """Return how many pairs are in a band; if more than ``most``, some number above it."""
    lo, hi, is_turned = _turned(lo, hi, left, right)
    (keys, values, _), (other_keys, others, _) = (right, left) if is_turned else (left, right)
    no_room: Int32s = np.empty((2, 0), dtype=np.int32)
    return count_or_write_pairs(lo, hi, keys, values, other_keys, others, no_room, most)


def _turned(lo: float, hi: float, left: Entries, right: Entries) -> tuple[float, float, bool]:
    """Return the band of the smaller side less the other, and whether the smaller side is the right one."""
    # right - left is left - right with the other sign, to the last bit, so the sides may be swapped.
    is_turned = left[0].size > right[0].size
    return (-hi, -lo, True) if is_turned else (lo, hi, False)


def _doubled(array: npt.NDArray[T]) -> npt.NDArray[T]:
    return np.concatenate([array, np.empty_like(array)])


def _new_side() -> Side:
    n = FIRST_BLOCKS
    blocks = Blocks(
        np.zeros(n, dtype=np.int32),
        np.zeros(n, dtype=np.int32),
        np.arange(n, dtype=np.int32),
        np.array([0, n]),
        np.zeros(n * BLOCK, dtype=np.int64),
        np.zeros(n * BLOCK),
        np.zeros(n * BLOCK, dtype=np.int32),
    )
    return Side(blocks, np.empty(0), np.empty(0, dtype=np.int64))
