"""Queries that report every reading inside, of one feed and shard: kinds `match` and `select`.

These queries have no members, so they watch no region in `feed_tables`. `Levels.find` looks at the value and the
attributes of a reading, and not at the previous reading of the stream.

    match     a region, over the feed's dimensions         ──► match index ───────────────────┐
    select    alternatives over dimensions alone           ──► match index ──────► owners ────┤
              alternatives over attributes, too            ──► select index ─────► owners ────┴─► (reading, query), once
"""

from collections.abc import Sequence

import numpy as np

from bmq.engines.feed.watched_regions import WatchedRegions
from bmq.engines.scope.conditions import Conditions, number_of
from bmq.index.base import Moves, concat_moves
from bmq.index.match.adaptive_match import make_match
from bmq.index.match.select_index import SelectIndex
from bmq.kernels.match.distinct_queries import find_owners
from bmq.records import Feed, Float64s, Int32s, Kind, Region, RegionQuery
from bmq.records.attribute_texts import SEPARATOR

FEW = 64  # initial room, in slots and in codes; doubles as needed


class Levels:
    """Match and select queries by query slot.

    Parameters
    ----------
    conditions : of the feed; it calls `Levels` back when it forgets attribute codes.
    """

    def __init__(self, feed: Feed, conditions: Conditions) -> None:
        self._n_dims, n_attributes = len(feed.dimensions), len(feed.attributes)
        self._matches = WatchedRegions(self._n_dims, conditions, make=make_match)
        # Alternatives have slots of their own, so they need an index apart from match regions.
        self._places = WatchedRegions(self._n_dims, conditions, make=make_match)
        self._selects = WatchedRegions(self._n_dims + n_attributes, conditions, make=SelectIndex)
        self._watched: dict[int, list[int]] = {}  # query slot -> slots of its alternatives; a match query: []
        self._owners: Int32s = np.empty(FEW, dtype=np.int32)  # slot of an alternative -> query slot
        self._n_slots = 0
        self._free: list[int] = []
        self._n_several = 0  # queries with several alternatives
        self._conditions = conditions
        # By code: each attribute as a number; -inf: the attribute is not a number; NaN: not converted yet.
        self._numbers: Float64s = np.full((n_attributes, FEW), np.nan)
        conditions.on_forgotten(self._forget_codes)

    def __len__(self) -> int:
        return len(self._watched)

    def __contains__(self, slot: int) -> bool:
        return slot in self._watched

    def put(self, slot: int, query: RegionQuery, streams: Int32s | None) -> None:
        """Register a query in a free slot; ``streams``: a match query watches only these, ascending; None: all."""
        if query.kind is Kind.MATCH:
            self._watched[slot] = []
            self._matches.put(slot, query.region, streams, query.where)
            return
        self._watched[slot] = [self._take(slot) for _ in query.alternatives]
        self._n_several += len(query.alternatives) > 1
        for own, region in zip(self._watched[slot], query.alternatives, strict=True):
            if all(map(np.isinf, region.lo[self._n_dims :] + region.hi[self._n_dims :])):
                place = Region(region.lo[: self._n_dims], region.hi[: self._n_dims])
                self._places.put(own, place, None, query.where)
            else:
                self._selects.put(own, region, None, query.where)

    def remove(self, slot: int, query: RegionQuery) -> None:
        """Forget a query."""
        alternatives = self._watched.pop(slot)
        if query.kind is Kind.MATCH:
            self._matches.remove(slot)
        for own in alternatives:
            (self._places if own in self._places else self._selects).remove(own)
        self._n_several -= len(alternatives) > 1
        self._free += alternatives

    def find(self, streams: Int32s, values: Float64s, codes: Int32s | None) -> Moves:
        """Return the queries that hold each reading: rows ascending, no (row, query) twice, signs 0.

        Parameters
        ----------
        streams : int32[n], slots; n >= 1.
        values : float64[d, n].
        codes : int32[n], of the attributes; None if the feed has no attributes.
        """
        found = []
        if len(self._matches):
            found.append(self._matches.inside(streams, values, codes))
        alternatives = []
        if len(self._places):
            alternatives.append(self._places.inside(streams, values, codes))
        if len(self._selects):
            with_numbers = values if codes is None else np.vstack([values, self._numbers_of(codes)])
            alternatives.append(self._selects.inside(streams, with_numbers, codes))
        if alternatives:
            found.append(self._owned(concat_moves(alternatives)))
        moves = concat_moves(found)
        return Moves(moves.rows, moves.queries, np.zeros_like(moves.signs), moves.visits)

    def _owned(self, inside: Moves) -> Moves:
        """Return the queries that own the alternatives in ``inside``, each once for a row."""
        if self._n_several:
            owners = self._owners[: self._n_slots]
            rows, queries = find_owners(inside.rows, inside.queries, owners, int(owners.max()) + 1)
        else:
            rows, queries = inside.rows, self._owners[inside.queries]
        return Moves(rows, queries, np.ones(rows.size, dtype=np.int8), inside.visits)

    def _numbers_of(self, codes: Int32s) -> Float64s:
        """Return the attributes of readings as numbers, float64[a, n]."""
        n_more = int(codes.max()) + 1 - self._numbers.shape[1]
        if n_more > 0:
            room = np.full((self._numbers.shape[0], max(n_more, self._numbers.shape[1])), np.nan)
            self._numbers = np.hstack([self._numbers, room])
        for code in np.unique(codes[np.isnan(self._numbers[0, codes])]).tolist():
            self._numbers[:, code] = [number_of(text) for text in self._conditions.text(code).split(SEPARATOR)]
        return self._numbers[:, codes]

    def _forget_codes(self, codes: Sequence[int]) -> None:
        self._numbers[:, [code for code in codes if code < self._numbers.shape[1]]] = np.nan

    def _take(self, query_slot: int) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._n_slots = self._n_slots, self._n_slots + 1
            if slot == self._owners.size:
                self._owners = np.append(self._owners, np.empty_like(self._owners))
        self._owners[slot] = query_slot
        return slot

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._matches._check()
        self._places._check()
        self._selects._check()
        taken = [own for alternatives in self._watched.values() for own in alternatives]
        assert sorted([*taken, *self._free]) == list(range(self._n_slots))
        assert all(self._owners[own] == slot for slot, owned in self._watched.items() for own in owned)
        assert self._n_several == sum(len(owned) > 1 for owned in self._watched.values())
