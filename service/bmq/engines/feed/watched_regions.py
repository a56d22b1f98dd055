"""The watched regions of one feed: find the regions that a stream enters and leaves.

Each region is in exactly one of three structures. The scope of its query decides which:

    all streams        ──► areas         (the border index)
    `where`            ──► where index   (a border index, or a list, for each condition)
    named streams      ──► lists by stream, tested one by one

The module knows slots of regions (the region and the exit region of a query have one each), values and attribute codes.
It does not know what a crossing means.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bmq.engines.scope.conditions import Conditions
from bmq.engines.scope.where_index import WhereIndex
from bmq.index.base import Moves, concat_moves
from bmq.index.region_index import Areas, MakeBoxes
from bmq.index.shape.shape_store import region_holds
from bmq.records import Bools, Float64s, IndexKind, Int8s, Int32s, Int64s, Region, Where
from bmq.records.column_records import take


@dataclass(frozen=True, slots=True)
class Steps:
    """Readings of streams, each with the previous reading of its stream.

    Attributes
    ----------
    streams : int32[n], slots.
    known : bool[n]; False: there is no previous reading, so the stream was in no region.
    previous, values : float64[d, n]; a column of ``previous`` is valid if ``known`` is True.
    previous_codes, codes : int32[n], attribute codes; None if the feed has no attributes.
    """

    streams: Int32s
    known: Bools
    previous: Float64s
    values: Float64s
    previous_codes: Int32s | None = None
    codes: Int32s | None = None

    def at(self, rows: Int64s) -> "Steps":
        """Return the steps in ``rows``."""
        return take(self, rows)


@dataclass(frozen=True, slots=True)
class _Watched:
    region: Region
    streams: Int32s | None
    where: Where


class WatchedRegions:
    """Regions of one feed and shard by slot.

    Parameters
    ----------
    n_dims, kind, make : as for `Areas`; with a match index, only `inside` and `holds` may be called.
    conditions : the conditions and the known attribute texts of the feed.
    """

    def __init__(
        self, n_dims: int, conditions: Conditions, kind: IndexKind = IndexKind.AUTO, make: MakeBoxes | None = None
    ) -> None:
        self.attributes = WhereIndex(n_dims, kind, conditions, make)
        self._areas = Areas(n_dims, kind, make)
        self._named = Areas(n_dims, IndexKind.SCAN)
        self._watched: dict[int, _Watched] = {}
        # New regions are pending until the next readings, so that a thousand commands change the border index once.
        self._to_register: set[int] = set()
        self._n_named = 0
        self._named_starts: Int64s | None = None  # CSR: stream slot -> regions that name it
        self._named_slots: Int32s = np.empty(0, dtype=np.int32)

    def put(self, slot: int, region: Region, streams: Int32s | None, where: Where) -> None:
        """Watch a region; it replaces the region in ``slot`` if there is one.

        Parameters
        ----------
        streams : the slots of the streams to watch, ascending; None: all streams.
        """
        if slot in self._watched:
            self.remove(slot)
        self._watched[slot] = _Watched(region, streams, where)
        if streams is not None:
            self._named.register(np.array([slot], dtype=np.int32), [region])
            self._n_named += 1
            self._named_starts = None
        else:
            self._to_register.add(slot)

    def remove(self, slot: int) -> None:
        """Stop watching the region in ``slot``."""
        watched = self._watched.pop(slot)
        slots = np.array([slot], dtype=np.int32)
        if watched.streams is not None:
            self._named.deregister(slots)
            self._n_named -= 1
            self._named_starts = None
        elif slot in self._to_register:
            self._to_register.remove(slot)
        else:
            self._index_of(watched).deregister(slots)

    def __len__(self) -> int:
        return len(self._watched)

    def __contains__(self, slot: int) -> bool:
        return slot in self._watched

    def region(self, slot: int) -> Region:
        """Return the region in ``slot``."""
        return self._watched[slot].region

    def named(self, slot: int) -> Int32s | None:
        """Return the streams that the query of the region in ``slot`` names; None: it watches all streams."""
        return self._watched[slot].streams

    # -- questions ----------------------------------------------------------------------------------------

    def crossings(self, steps: Steps) -> Moves:
        """Return the regions that streams enter and leave, in rows of ``steps``, ascending.

        A stream is inside if it is in the region and in scope, so a change of its attributes can be a crossing.
        """
        self.settle()
        parts = []
        if len(self._areas):
            parts.append(self._move_in_areas(steps))
        if len(self.attributes):
            assert steps.codes is not None
            assert steps.previous_codes is not None
            parts.append(
                self.attributes.moves(
                    steps.streams, steps.known, steps.previous, steps.values, steps.previous_codes, steps.codes
                )
            )
        if self._n_named:
            parts.append(self._move_named(steps))
        return concat_moves(parts) if parts else _nothing()

    def inside(self, streams: Int32s, values: Float64s, codes: Int32s | None) -> Moves:
        """Return the regions that hold each stream at the given values and attributes, with sign +1."""
        nowhere = np.zeros(streams.size, dtype=np.bool_)
        return self.crossings(Steps(streams, nowhere, values, values, codes, codes))

    def holds(self, slot: int, values: Float64s, codes: Int32s | None) -> Bools:
        """Return which values and attributes fit the region in ``slot``, bool[n]; the named streams do not matter."""
        watched = self._watched[slot]
        # Not by the index: then each of a thousand puts would be a change of the index.
        held = region_holds(watched.region, values)
        if watched.where:
            assert codes is not None
            held &= self.attributes.fits_where(watched.where, codes)
        return held

    def settle(self) -> None:
        """Register the pending regions in the indexes."""
        if not self._to_register:
            return
        slots = sorted(self._to_register)
        self._to_register = set()
        plain = [slot for slot in slots if not self._watched[slot].where]
        if plain:
            self._areas.register(np.array(plain, dtype=np.int32), [self._watched[slot].region for slot in plain])
        limited = [slot for slot in slots if self._watched[slot].where]
        if limited:
            watched = [self._watched[slot] for slot in limited]
            self.attributes.register(
                np.array(limited, dtype=np.int32), [one.where for one in watched], [one.region for one in watched]
            )

    def _index_of(self, watched: _Watched) -> Areas | WhereIndex:
        return self.attributes if watched.where else self._areas

    def _move_in_areas(self, steps: Steps) -> Moves:
        if steps.known.all():
            return self._areas.moves(steps.streams, steps.previous, steps.values)
        parts: list[Moves] = []
        moved = np.flatnonzero(steps.known)
        if moved.size:
            found = steps.at(moved)
            parts.append(_in_rows(self._areas.moves(found.streams, found.previous, found.values), moved))
        first = np.flatnonzero(~steps.known)
        parts.append(_in_rows(self._areas.stab(np.ascontiguousarray(steps.values[:, first])), first))
        return concat_moves(parts)

    def _move_named(self, steps: Steps) -> Moves:
        starts, slots = self._named_arrays(int(steps.streams.max()) + 1 if steps.streams.size else 0)
        counts = starts[steps.streams + 1] - starts[steps.streams]
        n_pairs = int(counts.sum())
        if not n_pairs:
            return _nothing()
        rows = np.repeat(np.arange(steps.streams.size), counts)
        within = np.arange(n_pairs) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = slots[starts[steps.streams[rows]] + within]
        was = steps.known[rows] & self._named.holds(pairs, np.ascontiguousarray(steps.previous[:, rows]))
        now = self._named.holds(pairs, np.ascontiguousarray(steps.values[:, rows]))
        if steps.codes is not None and steps.previous_codes is not None:
            was &= self._pairs_fit(pairs, steps.previous_codes[rows])
            now &= self._pairs_fit(pairs, steps.codes[rows])
        crossed = was != now
        signs = np.where(now[crossed], 1, -1).astype(np.int8)
        return Moves(rows[crossed].astype(np.int32), pairs[crossed], signs, n_pairs)

    def _pairs_fit(self, slots: Int32s, codes: Int32s) -> Bools:
        fit = np.ones(slots.size, dtype=np.bool_)
        by_slot = np.argsort(slots, kind="stable")
        distinct, begins = np.unique(slots[by_slot], return_index=True)
        for slot, chosen in zip(distinct.tolist(), np.split(by_slot, begins[1:]), strict=True):
            where = self._watched[slot].where
            if where:
                fit[chosen] = self.attributes.fits_where(where, codes[chosen])
        return fit

    def _named_arrays(self, n_streams: int) -> tuple[Int64s, Int32s]:
        if self._named_starts is None or self._named_starts.size <= n_streams:
            named = [(slot, one.streams) for slot, one in self._watched.items() if one.streams is not None]
            streams = np.concatenate([streams for _, streams in named])
            slots = np.repeat([slot for slot, _ in named], [streams.size for _, streams in named])
            order = np.argsort(streams, kind="stable")
            self._named_slots = slots[order].astype(np.int32)
            # Room for more streams, so that not every new stream rebuilds the arrays.
            n_streams = max(2 * n_streams, int(streams.max()) + 1)
            self._named_starts = np.searchsorted(streams[order], np.arange(n_streams + 1)).astype(np.int64)
        return self._named_starts, self._named_slots

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._areas._check()
        self._named._check()
        self.attributes._check()
        named = [slot for slot, one in self._watched.items() if one.streams is not None]
        assert self._n_named == len(named) == len(self._named)
        assert self._to_register <= self._watched.keys() - set(named)
        assert len(self._watched) == len(self._areas) + len(self.attributes) + len(named) + len(self._to_register)


def _nothing() -> Moves:
    return Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), 0)


def _in_rows(moves: Moves, rows: Sequence[int] | Int64s) -> Moves:
    signs: Int8s = moves.signs
    return Moves(np.asarray(rows)[moves.rows].astype(np.int32), moves.queries, signs, moves.visits)
