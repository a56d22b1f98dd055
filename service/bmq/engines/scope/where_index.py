"""Regions of queries with `where`: the search goes by the attributes of a reading first, and then by its value.

    "north" ␟ 5.0  ──► code 7 ──► conditions that it fits ──┬─► many queries: a border index of their own
     attributes        (once)     {region: [north, south]}  └─► few: their regions tested one by one

So the cost of a reading depends only on the queries that its attributes fit. The module knows slots of streams, and no
stream ids.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bmq.engines.scope.conditions import Condition, Conditions
from bmq.index.base import Moves, concat_moves
from bmq.index.region_index import Areas, MakeBoxes
from bmq.records import Bools, Float64s, IndexKind, Int32s, Int64s, Region, Where

# From this many queries on, a condition gets an index of its own. To test a box at both ends of a move costs some
# 100 ns. To search an index costs some 100 µs a batch and 0.5 µs a reading. So for this many queries the index is
# faster from 16 readings a batch that fit. Lower: indexes that few readings use. Higher: readings that are tested
# against hundreds of boxes.
MANY = 64
PAIRS_AT_ONCE = 1_000_000  # tested one by one: some 50 MB; more would fill the memory if a code fits thousands


@dataclass(slots=True, eq=False)
class _Group:
    """The queries of one condition."""

    condition: Condition
    slots: dict[int, None] = field(default_factory=dict)  # a dict is ordered, and fast to remove from
    areas: Areas | None = None  # made once there are MANY; it stays if queries are removed


@dataclass(frozen=True, slots=True)
class _Fitting:
    """The queries whose conditions one code fits."""

    few: Int32s  # slots of the queries to be tested one by one
    indexed: list[_Group]


class WhereIndex:
    """Regions with conditions, by slot.

    Parameters
    ----------
    n_dims, kind, make : as for `Areas`.
    conditions : of the feed; other indexes may share them.
    """

    def __init__(self, n_dims: int, kind: IndexKind, conditions: Conditions, make: MakeBoxes | None = None) -> None:
        self._n_dims, self._kind, self._make = n_dims, kind, make
        self._conditions = conditions
        self._conditions.on_forgotten(self._forget_codes)
        self._few = Areas(n_dims, IndexKind.SCAN)
        self._groups: dict[Condition, _Group] = {}
        self._group_by_slot: dict[int, _Group] = {}
        self._regions: dict[int, Region] = {}
        self._fitting: dict[int, _Fitting] = {}  # by code; computed at first use

    def __len__(self) -> int:
        return len(self._group_by_slot)

    # -- attributes ---------------------------------------------------------------------------------------

    @property
    def n_codes(self) -> int:
        """The number of texts that have a code."""
        return self._conditions.n_codes

    def learn(self, texts: Sequence[str]) -> Int32s:
        """Return the code of each text, int32[n]; the same text has the same code until it is forgotten."""
        return self._conditions.learn(texts)

    def text(self, code: int) -> str:
        """Return the text of a code."""
        return self._conditions.text(code)

    def forget_all_but(self, codes: Int32s) -> None:
        """Forget the texts of all other codes; these codes may then be reused for other texts. O(codes)."""
        self._conditions.forget_all_but(codes)

    def _forget_codes(self, codes: Sequence[int]) -> None:
        for code in codes:
            self._fitting.pop(code, None)

    def fits_where(self, where: Where, codes: Int32s) -> Bools:
        """Return which codes fit a condition, bool[n]; no registered query need have this condition."""
        return self._conditions.fits_where(where, codes)

    # -- queries ------------------------------------------------------------------------------------------

    def register(self, slots: Int32s, wheres: Sequence[Where], regions: Sequence[Region]) -> None:
        """Add queries.

        Parameters
        ----------
        slots : int32[m].
        wheres, regions : the condition (not empty) and the region of each query.
        """
        added: dict[_Group, list[int]] = defaultdict(list)
        for slot, where, region in zip(slots.tolist(), wheres, regions, strict=True):
            condition = self._conditions.add(where)
            group = self._group_by_slot[slot] = self._groups.setdefault(condition, _Group(condition))
            group.slots[slot] = None
            self._regions[slot] = region
            added[group].append(slot)
        few: list[int] = []
        for group, own in added.items():
            if group.areas is not None:
                self._register(group.areas, own)
                continue
            self._forget_fitting(group)
            if len(group.slots) < MANY:
                few += own
                continue
            self._few.deregister(_array(group.slots.keys() - own))
            group.areas = Areas(self._n_dims, self._kind, self._make)
            self._register(group.areas, group.slots)
        self._register(self._few, few)

    def deregister(self, slots: Int32s) -> None:
        """Remove the queries in ``slots``, int32[m]."""
        removed: dict[_Group, list[int]] = defaultdict(list)
        for slot in slots.tolist():
            group = self._group_by_slot.pop(slot)
            self._conditions.remove(group.condition)
            del group.slots[slot], self._regions[slot]
            removed[group].append(slot)
        for group, own in removed.items():
            self._areas_of(group).deregister(_array(own))
            if group.areas is None or not group.slots:
                self._forget_fitting(group)
            if not group.slots:
                del self._groups[group.condition]

    def _areas_of(self, group: _Group) -> Areas:
        return self._few if group.areas is None else group.areas

    def _register(self, areas: Areas, slots: Iterable[int]) -> None:
        areas.register(_array(slots), [self._regions[slot] for slot in slots])

    def _forget_fitting(self, group: _Group) -> None:
        for code in self._conditions.codes(group.condition):
            self._fitting.pop(code, None)

    # -- questions ----------------------------------------------------------------------------------------

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return, as `Areas.holds`, whether the region of each slot holds its value; conditions do not matter."""
        distinct, inverse = np.unique(slots, return_inverse=True)
        owners = [self._areas_of(self._group_by_slot[slot]) for slot in distinct.tolist()]
        held = np.zeros(slots.size, dtype=np.bool_)
        for areas in {id(one): one for one in owners}.values():
            rows = np.array([one is areas for one in owners], dtype=np.bool_)[inverse]
            held[rows] = areas.holds(slots[rows], np.ascontiguousarray(values[:, rows]))
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
        """Return the queries that streams enter and leave; inside means in the region and with attributes that fit.

        Parameters
        ----------
        streams : int32[n], slots.
        known : bool[n]; False: the stream was in no region, and ``previous`` and ``previous_codes`` are not valid.
        previous, values : float64[d, n].
        previous_codes, codes : int32[n].
        """
        before = np.where(known, previous_codes, codes)
        fitting = {code: self._fitting_of(code) for code in np.unique(np.concatenate([before, codes])).tolist()}
        parts = []
        for rows in _blocks(_sizes_of_few(fitting, before) + _sizes_of_few(fitting, codes)):
            is_same = before[rows] == codes[rows]
            parts.append(self._few_of_same(rows[is_same], known, previous, values, codes))
            if not is_same.all():
                parts.append(self._few_of_changed(rows[~is_same], previous, values, before, codes))
        was_rows, now_rows = _RowsByCode(before), _RowsByCode(codes)
        for group, own in _codes_by_group(fitting).items():
            assert group.areas is not None
            was, now = was_rows.of(own), now_rows.of(own)
            parts += _moves_in_scope(group.areas, streams, previous, values, was[known[was]], now)
        return concat_moves(parts)

    def _few_of_same(self, rows: Int64s, known: Bools, previous: Float64s, values: Float64s, codes: Int32s) -> Moves:
        at, slots = self._listed(rows, codes)
        was = known[at] & self._few.holds(slots, np.ascontiguousarray(previous[:, at]))
        now = self._few.holds(slots, np.ascontiguousarray(values[:, at]))
        crossed = was != now
        signs = np.where(now[crossed], 1, -1).astype(np.int8)
        return Moves(at[crossed].astype(np.int32), slots[crossed], signs, slots.size)

    def _few_of_changed(
        self, rows: Int64s, previous: Float64s, values: Float64s, before: Int32s, codes: Int32s
    ) -> Moves:
        """Return the moves of rows whose codes changed; all of these rows are known."""
        was, n_was = self._few_inside(rows, previous, before)
        now, n_now = self._few_inside(rows, values, codes)
        pairs = np.setxor1d(was, now, assume_unique=True)  # sorted
        signs = np.where(np.isin(pairs, now, assume_unique=True), 1, -1).astype(np.int8)
        at, slots = np.divmod(pairs, 2**32)
        return Moves(at.astype(np.int32), slots.astype(np.int32), signs, n_was + n_now)

    def _few_inside(self, rows: Int64s, values: Float64s, codes: Int32s) -> tuple[Int64s, int]:
        """Return 2^32 · row + slot of the queries without an index that hold each row, and how many were tested.

        A query holds a row if the row's code fits its condition and its region holds the row's value.
        """
        at, slots = self._listed(rows, codes)
        held = self._few.holds(slots, np.ascontiguousarray(values[:, at]))
        return at[held] * 2**32 + slots[held], slots.size

    def _listed(self, rows: Int64s, codes: Int32s) -> tuple[Int64s, Int32s]:
        """Return (row, slot) of the queries without an index that the code of each row fits, in the order of rows."""
        distinct, inverse = np.unique(codes[rows], return_inverse=True)
        lists = [self._fitting_of(code).few for code in distinct.tolist()]
        sizes = np.array([one.size for one in lists], dtype=np.int64)
        counts, starts = sizes[inverse], (np.cumsum(sizes) - sizes)[inverse]
        places = np.repeat(np.arange(rows.size), counts)
        within = np.arange(places.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows[places], np.concatenate([_array(()), *lists])[starts[places] + within]

    def _fitting_of(self, code: int) -> _Fitting:
        found = self._fitting.get(code)
        if found is None:
            fitting = self._conditions.fitting(code)
            groups = [self._groups[condition] for condition in fitting if condition in self._groups]
            few = [slot for group in groups if group.areas is None for slot in group.slots]
            found = self._fitting[code] = _Fitting(_array(few), [group for group in groups if group.areas is not None])
        return found

    def _check(self) -> None:
        """State every invariant; for tests."""
        self._conditions._check()
        self._few._check()
        for condition, group in self._groups.items():
            assert group.condition is condition
            assert group.slots
            if group.areas is not None:
                group.areas._check()
                assert len(group.areas) == len(group.slots)
        # A query is in exactly one group, and `_group_by_slot` leads to it.
        slots = [slot for group in self._groups.values() for slot in group.slots]
        assert sorted(slots) == sorted(self._group_by_slot) == sorted(self._regions)
        assert all(slot in self._group_by_slot[slot].slots for slot in slots)
        assert len(self._few) == sum(len(group.slots) for group in self._groups.values() if group.areas is None)


class _RowsByCode:
    def __init__(self, codes: Int32s) -> None:
        self._order = np.argsort(codes, kind="stable")
        self._codes = codes[self._order]

    def of(self, codes: Sequence[int]) -> Int64s:
        """Return the rows that have one of the codes, ascending."""
        begins, ends = (np.searchsorted(self._codes, codes, side) for side in ("left", "right"))
        found = [self._order[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        return found[0] if len(found) == 1 else np.sort(np.concatenate(found))


def _blocks(n_pairs: Int64s) -> Iterator[Int64s]:
    """Yield the rows that have pairs, in blocks of about PAIRS_AT_ONCE pairs."""
    rows = np.flatnonzero(n_pairs)
    if rows.size:
        block = np.cumsum(n_pairs[rows]) // PAIRS_AT_ONCE
        yield from np.split(rows, np.flatnonzero(np.diff(block)) + 1)


def _sizes_of_few(fitting: Mapping[int, _Fitting], codes: Int32s) -> Int64s:
    sizes = np.zeros(max(fitting, default=0) + 1, dtype=np.int64)
    sizes[list(fitting)] = [one.few.size for one in fitting.values()]
    return sizes[codes]


def _codes_by_group(fitting: Mapping[int, _Fitting]) -> dict[_Group, list[int]]:
    found: dict[_Group, list[int]] = defaultdict(list)
    for code, one in fitting.items():
        for group in one.indexed:
            found[group].append(code)
    return found


def _moves_in_scope(
    areas: Areas, streams: Int32s, previous: Float64s, values: Float64s, was: Int64s, now: Int64s
) -> Iterator[Moves]:
    """Yield the moves of rows whose attributes fitted before, fit now, or both; each with ascending rows."""
    both = np.intersect1d(was, now, assume_unique=True)
    if both.size:
        found = areas.moves(
            streams[both], np.ascontiguousarray(previous[:, both]), np.ascontiguousarray(values[:, both])
        )
        yield Moves(both[found.rows].astype(np.int32), found.queries, found.signs, found.visits)
    left, entered = np.setdiff1d(was, both, assume_unique=True), np.setdiff1d(now, both, assume_unique=True)
    for rows, places, sign in ((left, previous, -1), (entered, values, 1)):
        if rows.size:
            found = areas.stab(np.ascontiguousarray(places[:, rows]))
            signs = np.full(found.rows.size, sign, dtype=np.int8)
            yield Moves(rows[found.rows].astype(np.int32), found.queries, signs, found.visits)


def _array(slots: Iterable[int]) -> Int32s:
    return np.fromiter(slots, dtype=np.int32)
