"""Regions of queries with `where`, found by the attributes of a reading first and by its value then.

    "north" ␟ 5.0  ──► code 7 ──► conditions that it fits ──┬─► many queries: a border index of their own
     attributes        (once)     {region: [north, south]}  └─► few: their regions tested one by one

The attributes of a reading are one text, and a text one code; what a code fits is worked out once, when either of the
two is new. So a reading costs what the queries that fit its attributes cost, however many others there are. Knows texts
as `wire.attributes` writes them, and no streams.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bmq.index.areas import Areas
from bmq.index.base import Moves, joined
from bmq.records import Bools, Float64s, IndexKind, Int32s, Int64s, Region, Where

SEPARATOR = "\x1f"  # of the values in a text; it stands in none of them

# Queries of one condition that get an index of their own. To test a box costs some 10 ns, to ask an index some 50 µs a
# batch: with fewer, a batch of a thousand readings that fit is quicker to test; with more, an index is.
MANY = 64


@dataclass(slots=True)
class _Condition:
    where: Where
    slots: dict[int, None] = field(default_factory=dict)  # ordered, and quick to leave
    areas: Areas | None = None  # once there were MANY


class WhereIndex:
    """Regions with conditions, by slot.

    Parameters
    ----------
    n_dims, kind : as for `Areas`.
    attributes : names, in the order of a text's values.
    """

    def __init__(self, n_dims: int, kind: IndexKind, attributes: tuple[str, ...]) -> None:
        self._n_dims, self._kind = n_dims, kind
        self._places = {name: place for place, name in enumerate(attributes)}
        self._few = Areas(n_dims, IndexKind.SCAN)
        self._conditions: dict[Where, _Condition] = {}
        self._where_by_slot: dict[int, Where] = {}
        self._regions: dict[int, Region] = {}
        # (place of the attribute, value) -> conditions that list it for their first attribute; -> codes that have it.
        self._by_value: dict[tuple[int, str], list[_Condition]] = {}
        self._codes_by_value: dict[tuple[int, str], set[int]] = {}
        self._codes: dict[str, int] = {}
        self._texts: list[str | None] = []  # by code; None: free
        self._free: list[int] = []
        self._fitting: list[list[_Condition]] = []  # by code
        self._few_by_code: dict[int, Int32s] = {}  # slots to be tested one by one; made when asked

    def __len__(self) -> int:
        return len(self._where_by_slot)

    # -- attributes ---------------------------------------------------------------------------------------

    @property
    def n_codes(self) -> int:
        """How many texts have a code."""
        return len(self._codes)

    def learn(self, texts: Sequence[str]) -> Int32s:
        """Return the code of each text, int32[n]; the same text has the same code until it is forgotten."""
        return np.array([self._code(text) for text in texts], dtype=np.int32)

    def text(self, code: int) -> str:
        """Return the text of a code."""
        text = self._texts[code]
        assert text is not None, f"code {code} is free"
        return text

    def forget_all_but(self, codes: Int32s) -> None:
        """Forget the texts of all other codes, which may then stand for other texts. O(codes)."""
        for code in set(self._codes.values()).difference(codes.tolist()):
            text = self.text(code)
            for key in self._values(text):
                self._codes_by_value[key].discard(code)
                if not self._codes_by_value[key]:
                    del self._codes_by_value[key]
            del self._codes[text]
            self._texts[code] = None
            self._fitting[code] = []
            self._few_by_code.pop(code, None)
            self._free.append(code)

    def fits_where(self, where: Where, codes: Int32s) -> Bools:
        """Return which codes fit a condition, bool[n]; it need not be one of a registered query."""
        distinct, inverse = np.unique(codes, return_inverse=True)
        fits = np.array([self._fits(where, self.text(int(code))) for code in distinct], dtype=np.bool_)
        return fits[inverse]

    # -- queries ------------------------------------------------------------------------------------------

    def register(self, slots: Int32s, wheres: Sequence[Where], regions: Sequence[Region]) -> None:
        """Add queries: int32[m], the condition (not empty) and the region of each."""
        few, few_regions = [], []
        for slot, where, region in zip(slots.tolist(), wheres, regions, strict=True):
            condition = self._conditions.get(where) or self._new_condition(where)
            condition.slots[slot] = None
            self._where_by_slot[slot] = where
            self._regions[slot] = region
            if condition.areas is not None:
                condition.areas.register(np.array([slot], dtype=np.int32), [region])
            else:
                few.append(slot)
                few_regions.append(region)
        self._few.register(np.array(few, dtype=np.int32), few_regions)
        for condition in {id(one): one for one in map(self._condition_of, few)}.values():
            self._changed(condition)
            if len(condition.slots) >= MANY:
                self._move_out(condition)

    def deregister(self, slots: Int32s) -> None:
        """Forget queries: int32[m]."""
        for slot in slots.tolist():
            condition = self._condition_of(slot)
            one = np.array([slot], dtype=np.int32)
            (self._few if condition.areas is None else condition.areas).deregister(one)
            del condition.slots[slot]
            del self._where_by_slot[slot], self._regions[slot]
            self._changed(condition)
            if not condition.slots:
                self._remove_condition(condition)

    # -- questions ----------------------------------------------------------------------------------------

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the region of each slot holds the value beside it, as `Areas.holds`, whatever its condition."""
        held = np.zeros(slots.size, dtype=np.bool_)
        own = [self._condition_of(slot).areas for slot in slots.tolist()]
        for areas in {id(one): one for one in own}.values():
            rows = np.array([one is areas for one in own], dtype=np.bool_)
            held[rows] = (areas or self._few).holds(slots[rows], np.ascontiguousarray(values[:, rows]))
        return held

    def moves(
        self,
        streams: Int32s,
        known: Bools,
        previous: Float64s,
        values: Float64s,
        previous_codes: Int32s,
        codes: Int32s,
    ) -> Moves:
        """Return the queries entered and left, region and condition taken together.

        Parameters
        ----------
        streams : int32[n], slots.
        known : bool[n]; where false the stream was nowhere, and ``previous`` and ``previous_codes`` mean nothing.
        previous, values : float64[d, n].
        previous_codes, codes : int32[n].
        """
        before = np.where(known, previous_codes, codes)
        parts = [self._moves_of_few(known, previous, values, before, codes)]
        distinct = np.unique(np.concatenate([before, codes]))
        for condition in self._with_index(distinct):
            table = np.zeros(int(distinct[-1]) + 1, dtype=np.bool_)
            table[distinct] = self.fits_where(condition.where, distinct)
            was, now = known & table[before], table[codes]
            assert condition.areas is not None
            parts += _moves_in_scope(condition.areas, streams, previous, values, was, now)
        return joined(parts)

    def _moves_of_few(self, known: Bools, previous: Float64s, values: Float64s, before: Int32s, codes: Int32s) -> Moves:
        changed = np.flatnonzero(before != codes)
        rows, slots = self._listed(codes)
        if changed.size:
            # What fitted before only is left; what fits both times must not be tested twice.
            more_rows, more_slots = self._listed(before[changed])
            pairs = np.stack([np.concatenate([rows, changed[more_rows]]), np.concatenate([slots, more_slots])])
            rows, slots = np.unique(pairs, axis=1)
            slots = slots.astype(np.int32)
        if not rows.size:
            return Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), 0)
        was = known[rows] & self._few.holds(slots, np.ascontiguousarray(previous[:, rows]))
        now = self._few.holds(slots, np.ascontiguousarray(values[:, rows]))
        uneven = np.flatnonzero(before[rows] != codes[rows])
        for row in uneven:
            where = self._where_by_slot[int(slots[row])]
            was[row] &= self._fits(where, self.text(int(before[rows[row]])))
            now[row] &= self._fits(where, self.text(int(codes[rows[row]])))
        crossed = was != now
        signs = np.where(now[crossed], 1, -1).astype(np.int8)
        return Moves(rows[crossed].astype(np.int32), slots[crossed], signs, rows.size)

    def _listed(self, codes: Int32s) -> tuple[Int64s, Int32s]:
        """Return (row, slot) of every query without an index that fits a row's code."""
        distinct, inverse = np.unique(codes, return_inverse=True)
        lists = [self._few_of(int(code)) for code in distinct]
        counts = np.array([one.size for one in lists], dtype=np.int64)[inverse] if lists else np.empty(0, np.int64)
        if not counts.sum():
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        starts = np.cumsum([0, *(one.size for one in lists)])[:-1]
        rows = np.repeat(np.arange(codes.size), counts)
        within = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, np.concatenate(lists)[starts[inverse][rows] + within]

    def _few_of(self, code: int) -> Int32s:
        if code not in self._few_by_code:
            slots = [slot for one in self._fitting[code] if one.areas is None for slot in one.slots]
            self._few_by_code[code] = np.array(slots, dtype=np.int32)
        return self._few_by_code[code]

    def _with_index(self, codes: Int32s) -> Iterator[_Condition]:
        found = {id(one): one for code in codes.tolist() for one in self._fitting[code] if one.areas is not None}
        return iter(found.values())

    # -- what fits what -----------------------------------------------------------------------------------

    def _values(self, text: str) -> list[tuple[int, str]]:
        return list(enumerate(text.split(SEPARATOR)))

    def _fits(self, where: Where, text: str) -> bool:
        values = text.split(SEPARATOR)
        return all(values[self._places[name]] in allowed for name, allowed in where)

    def _code(self, text: str) -> int:
        code = self._codes.get(text)
        if code is not None:
            return code
        if self._free:
            code = self._free.pop()
        else:
            code = len(self._texts)
            self._texts.append(None)
            self._fitting.append([])
        self._codes[text] = code
        self._texts[code] = text
        for key in self._values(text):
            self._codes_by_value.setdefault(key, set()).add(code)
            self._fitting[code] += [one for one in self._by_value.get(key, ()) if self._fits(one.where, text)]
        return code

    def _new_condition(self, where: Where) -> _Condition:
        condition = self._conditions[where] = _Condition(where)
        for key in self._first_values(where):
            self._by_value.setdefault(key, []).append(condition)
            for code in self._codes_by_value.get(key, ()):
                if self._fits(where, self.text(code)):
                    self._fitting[code].append(condition)
        return condition

    def _remove_condition(self, condition: _Condition) -> None:
        del self._conditions[condition.where]
        for key in self._first_values(condition.where):
            self._by_value[key].remove(condition)
            if not self._by_value[key]:
                del self._by_value[key]
            for code in self._codes_by_value.get(key, ()):
                self._fitting[code] = [one for one in self._fitting[code] if one is not condition]

    def _first_values(self, where: Where) -> list[tuple[int, str]]:
        name, allowed = where[0]
        return [(self._places[name], value) for value in allowed]

    def _changed(self, condition: _Condition) -> None:
        for key in self._first_values(condition.where):
            for code in self._codes_by_value.get(key, ()):
                self._few_by_code.pop(code, None)

    def _move_out(self, condition: _Condition) -> None:
        slots = np.array(list(condition.slots), dtype=np.int32)
        self._few.deregister(slots)
        condition.areas = Areas(self._n_dims, self._kind)
        condition.areas.register(slots, [self._regions[slot] for slot in condition.slots])

    def _condition_of(self, slot: int) -> _Condition:
        return self._conditions[self._where_by_slot[slot]]

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._few._check()
        slots: list[int] = []
        for where, condition in self._conditions.items():
            assert condition.where == where
            assert condition.slots
            slots += condition.slots
            if condition.areas is not None:
                condition.areas._check()
                assert len(condition.areas) == len(condition.slots)
        # A query is in exactly one condition, and is told by it.
        assert sorted(slots) == sorted(self._where_by_slot) == sorted(self._regions)
        assert all(slot in self._condition_of(slot).slots for slot in slots)
        # What fits is what a test of each condition says, each once.
        for text, code in self._codes.items():
            fitting = {id(one) for one in self._conditions.values() if self._fits(one.where, text)}
            assert sorted(map(id, self._fitting[code])) == sorted(fitting)


def _moves_in_scope(
    areas: Areas, streams: Int32s, previous: Float64s, values: Float64s, was: Bools, now: Bools
) -> Iterator[Moves]:
    both = np.flatnonzero(was & now)
    if both.size:
        found = areas.moves(
            streams[both], np.ascontiguousarray(previous[:, both]), np.ascontiguousarray(values[:, both])
        )
        yield Moves(both[found.rows].astype(np.int32), found.queries, found.signs, found.visits)
    for rows, places, sign in ((np.flatnonzero(was & ~now), previous, -1), (np.flatnonzero(now & ~was), values, 1)):
        if rows.size:
            found = areas.stab(np.ascontiguousarray(places[:, rows]))
            signs = np.full(found.rows.size, sign, dtype=np.int8)
            yield Moves(rows[found.rows].astype(np.int32), found.queries, signs, found.visits)
