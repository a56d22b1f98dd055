"""Queries that report every reading inside, of one feed and shard: kinds `match` and `select`.

They have no members, so about memberships they are like queries that are not enabled. A reading finds them here, where
its value and attributes fit; what it was before does not matter.

    match     a region, over the feed's dimensions                 ──► match regions ──┐
    select    alternatives, over dimensions and then attributes    ──► alternatives ───┴─► (reading, query), each once
"""

from collections.abc import Callable

import numpy as np

from bmq.engines.conditions import SEPARATOR
from bmq.engines.regions import WatchedRegions
from bmq.index.base import Moves, joined
from bmq.index.match import make_match
from bmq.index.select import SelectIndex
from bmq.records import Feed, Float64s, Int32s, Kind, RegionQuery

CODES_MIN = 4096  # attribute texts that are kept in any case, as in `feed`


class Levels:
    """Match and select queries by query slot."""

    def __init__(self, feed: Feed) -> None:
        n_dims, attributes = len(feed.dimensions), feed.attributes
        self._attributes = attributes
        self._matches = WatchedRegions(n_dims, attributes, make=make_match)
        self._selects = WatchedRegions(n_dims + len(attributes), attributes, make=SelectIndex)
        self._watched: dict[int, list[int]] = {}  # query slot -> slots of its alternatives; none of a match query
        self._owners: Int32s = np.empty(64, dtype=np.int32)  # slot of an alternative -> query slot
        self._n_slots = 0
        self._free: list[int] = []
        self._numbers: dict[str, tuple[float, ...]] = {}  # text of attributes -> each as a number; -inf: none
        self._n_with_where = 0

    def __len__(self) -> int:
        return len(self._watched)

    def __contains__(self, slot: int) -> bool:
        return slot in self._watched

    def put(self, slot: int, query: RegionQuery, streams: Int32s | None) -> None:
        """Register a query whose slot has none; ``streams``: the only ones, ascending."""
        self._n_with_where += bool(query.where)
        if query.kind is Kind.MATCH:
            self._watched[slot] = []
            self._matches.put(slot, query.region, streams, query.where)
            return
        self._watched[slot] = [self._take(slot) for _ in query.alternatives]
        for own, region in zip(self._watched[slot], query.alternatives, strict=True):
            self._selects.put(own, region, None, query.where)

    def remove(self, slot: int, query: RegionQuery) -> None:
        """Forget a query."""
        self._n_with_where -= bool(query.where)
        alternatives = self._watched.pop(slot)
        if query.kind is Kind.MATCH:
            self._matches.remove(slot)
        for own in alternatives:
            self._selects.remove(own)
        self._free += alternatives

    def find(self, streams: Int32s, values: Float64s, codes: Int32s | None, text_of: Callable[[int], str]) -> Moves:
        """Return the queries that each reading is inside of: rows ascending, no (row, query) twice, signs 0.

        Parameters
        ----------
        streams : int32[n], slots.
        values : float64[d, n].
        codes : int32[n], of the attributes; None where the feed has none.
        text_of : the text of a code.
        """
        found = []
        texts, places = self._texts(codes, text_of)
        if len(self._matches):
            found.append(self._matches.inside(streams, values, _codes(self._matches, texts, places)))
        if len(self._selects):
            numbers = self._numbers_of(texts)[:, places] if texts else np.empty((0, streams.size))
            places_of = np.ascontiguousarray(np.vstack([values, numbers]))
            inside = self._selects.inside(streams, places_of, _codes(self._selects, texts, places))
            # Several alternatives of one query may hold.
            pairs = np.unique(inside.rows.astype(np.int64) << 32 | self._owners[inside.queries])
            rows, queries = (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
            found.append(Moves(rows, queries, np.ones(rows.size, np.int8), inside.visits))
        moves = joined(found)
        return Moves(moves.rows, moves.queries, np.zeros_like(moves.signs), moves.visits)

    def _texts(self, codes: Int32s | None, text_of: Callable[[int], str]) -> tuple[list[str], Int32s]:
        """Return the distinct texts of the readings, and the place of each reading's among them."""
        if codes is None or not (self._n_with_where or len(self._selects)):
            return [], np.empty(0, dtype=np.int32)
        distinct, places = np.unique(codes, return_inverse=True)
        return [text_of(code) for code in distinct.tolist()], places.astype(np.int32)

    def _numbers_of(self, texts: list[str]) -> Float64s:
        if len(self._numbers) > CODES_MIN + len(texts):
            self._numbers.clear()
        for text in texts:
            if text not in self._numbers:
                self._numbers[text] = tuple(_number(one) for one in text.split(SEPARATOR))
        return np.array([self._numbers[text] for text in texts]).T

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
        self._selects._check()
        taken = [own for alternatives in self._watched.values() for own in alternatives]
        assert sorted([*taken, *self._free]) == list(range(self._n_slots))
        assert all(self._owners[own] == slot for slot, owned in self._watched.items() for own in owned)


def _codes(regions: WatchedRegions, texts: list[str], places: Int32s) -> Int32s | None:
    """Return the attribute codes of readings as ``regions`` knows them."""
    if not texts:
        return None
    index = regions.attributes
    codes = index.learn(texts)
    if index.n_codes > CODES_MIN + len(texts):
        index.forget_all_but(np.unique(codes))
    return codes[places]


def _number(text: str) -> float:
    """Return the number that an attribute's text stands for; -inf: none. A string's text begins with a quote."""
    try:
        return float(text)
    except ValueError:
        return -np.inf
