"""A border index that accepts changes at any time, although it consists of structures that cannot change.

Layers of falling size, newest last (the logarithmic method of Bentley and Saxe, 1980):

    layers   [ 1,000,000 queries ]  [ 60,000 ]  [ 3,000 ]     pending [17]
             each a packed query table and a border structure, built when first asked

New queries stay in `pending` and become the last layer at the next search. If a layer is not at least `GROWTH` times as
large as all layers behind it together, it is built into one layer with them. So a query is built into a layer O(log m)
times in all, and a thousand registrations over a million queries build a layer of a thousand. A deregistered query is
marked in its layer; a layer with more marks than queries is rebuilt without the marked ones.

Some structures can insert new queries in place. That is useful because each layer costs every reading some time. Then
there is mostly one layer, with room for later rows, and it is rebuilt when the room is used up:

    layers   [ 1,000,000 queries in order | 60,000 behind | room for 40,000 ]

Knows layers and when to build them. It must not know how a structure finds queries.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic

import numpy as np

from bmq.index.base import Moves, concat_moves
from bmq.index.packed import GONE, PackedQueries
from bmq.index.structure import AnyStructure, BorderStructure, Inserting, MatchStructure
from bmq.records import Bools, Float64s, Int32s

# A search asks every layer, so a higher factor makes readings faster. A query is built up to that many times in each
# layer, so a lower factor makes registrations faster. With 4, a million queries are 6 layers at most.
GROWTH = 4
SMALLEST_LAYER = 1024  # queries, built in about a millisecond; a smaller layer is always built into the next

_NOTHING = Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), 0)
_NOWHERE = -1  # replaces a layer's number: the slot is not registered
_PENDING = -2


class _Layer(Generic[AnyStructure]):
    def __init__(self, table: PackedQueries) -> None:
        self.table = table
        self.structure: AnyStructure | None = None
        self.n_live = len(table)


class Layers(ABC, Generic[AnyStructure]):
    """Queries that are added and removed, in layers that each have a structure of one kind.

    Parameters
    ----------
    n_dims : number of dimensions of values and regions.
    growth, smallest_layer : as the constants; tests set them low, so that layers merge often.
    room : how many queries a layer can insert after it was built, as a share of its own.
    """

    def __init__(
        self, n_dims: int, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER, room: float = 0.0
    ) -> None:
        self.n_dims = n_dims
        self._growth = growth
        self._smallest_layer = smallest_layer
        self._room = room
        self._layers: list[_Layer[AnyStructure]] = []
        self._pending: list[tuple[Int32s, Float64s]] = []
        # Where each query slot is: the number of its layer, and its row in the table of that layer.
        self._layer_by_slot: Int32s = np.empty(0, dtype=np.int32)
        self._row_by_slot: Int32s = np.empty(0, dtype=np.int32)

    @abstractmethod
    def _build(self, table: PackedQueries) -> AnyStructure:
        """Return a structure over ``table``."""

    # -- changes ------------------------------------------------------------------------------------------

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries with regions [lo, hi), as `BorderIndex.register`. Amortised O(log^2 m) a query."""
        if not slots.size:
            return
        self._make_room_for(slots)
        known = np.not_equal(self._layer_by_slot[slots], _NOWHERE)
        _refuse(slots, known, "is registered already: deregister it first")
        _refuse(slots, _repeated(slots), "comes twice in one call: keep the one that holds")
        # Written as a `<` that must be true, so that NaN is rejected, too.
        ordered = np.logical_and.reduce(lo < hi)
        _refuse(slots, ~ordered, "has a lower border that is not below the upper one: refuse it at the edge")
        self._layer_by_slot[slots] = _PENDING
        regions = np.stack((lo.T, hi.T), axis=-1, dtype=np.float64)
        self._pending.append((slots.astype(np.int32), regions))

    def deregister(self, slots: Int32s) -> None:
        """Remove queries, as `BorderIndex.deregister`. O(1) a query, and its share of a later build."""
        if not slots.size:
            return
        self._make_room_for(slots)
        unknown = np.equal(self._layer_by_slot[slots], _NOWHERE)
        _refuse(slots, unknown, "is not registered: register it first")
        _refuse(slots, _repeated(slots), "comes twice in one call: name it once")
        if np.any(np.equal(self._layer_by_slot[slots], _PENDING)):
            self._settle()
        numbers = self._layer_by_slot[slots]
        for number in np.unique(numbers):
            layer = self._layers[number]
            rows = self._row_by_slot[slots[numbers == number]]
            layer.table.forget(rows)
            layer.n_live -= rows.size
        self._layer_by_slot[slots] = _NOWHERE

    def _make_room_for(self, slots: Int32s) -> None:
        n_more = int(slots.max()) + 1 - self._layer_by_slot.size
        if n_more > 0:
            n_more = max(n_more, self._layer_by_slot.size)
            self._layer_by_slot = np.append(self._layer_by_slot, np.full(n_more, _NOWHERE, dtype=np.int32))
            self._row_by_slot = np.append(self._row_by_slot, np.zeros(n_more, dtype=np.int32))

    def _settle(self) -> None:
        """Bring the layers to the sizes that the docstring of the module promises, with nothing pending."""
        self._take_in()
        self._merge_from(self._first_to_rebuild())

    def _merge_from(self, first: int) -> None:
        """Replace the layers from number ``first`` on and the pending queries by one layer, built when asked."""
        parts = [(layer.table.slots, layer.table.regions) for layer in self._layers[first:]]
        parts += self._pending
        if not parts:
            return
        slots = np.concatenate([part[0] for part in parts])
        regions = np.concatenate([part[1] for part in parts])
        live = slots != GONE
        del self._layers[first:]
        self._pending = []
        if live.any():
            table = PackedQueries(slots[live], regions[live], self._room)
            self._layer_by_slot[table.slots] = first
            self._row_by_slot[table.slots] = np.arange(len(table), dtype=np.int32)
            self._layers.append(_Layer(table))

    def _take_in(self) -> None:
        """Insert pending queries into the layers, as far as that is possible without building one."""

    def _first_to_rebuild(self) -> int:
        """Return the number of the first layer to build into one with all behind it; if none, how many there are."""
        first = len(self._layers)
        n_behind = sum(slots.size for slots, _ in self._pending)
        for number in reversed(range(len(self._layers))):
            layer = self._layers[number]
            enough = max(self._growth * n_behind, self._smallest_layer) if n_behind else 0
            is_full = len(layer.table) > layer.table.n_packed and layer.table.room < n_behind
            if is_full or layer.n_live < max(enough, len(layer.table) / 2):
                first = number
            n_behind += layer.n_live
        return first

    # -- searches -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many queries are registered."""
        return sum(layer.n_live for layer in self._layers) + sum(slots.size for slots, _ in self._pending)

    def contents(self) -> tuple[Int32s, Float64s]:
        """Return the slots (int32[m]) and the regions (float64[m, d, 2]) of all queries, in any order. O(m)."""
        parts = [(slots, regions) for slots, regions in self._pending]
        for layer in self._layers:
            live = layer.table.slots != GONE
            parts.append((layer.table.slots[live], layer.table.regions[live]))
        nothing = np.empty(0, dtype=np.int32), np.empty((0, self.n_dims, 2))
        slots, regions = zip(*(parts or [nothing]), strict=True)
        return np.concatenate(slots), np.concatenate(regions)

    def stab_tables(self, values: Float64s) -> Moves:
        """Return the queries that the trees of the tables find for ``values``, as `MatchIndex.stab`.

        A tree does not have the rows that were inserted after its table was built.
        """
        self._settle()
        return concat_moves([_NOTHING, *(layer.table.stab(values) for layer in self._layers)])

    def _settled(self) -> Iterator[tuple[AnyStructure, PackedQueries]]:
        """Yield the structure of each layer, built if it was not yet, and its table."""
        self._settle()
        for layer in self._layers:
            if layer.structure is None:
                layer.structure = self._build(layer.table)
            yield layer.structure, layer.table

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the region of ``slots[i]``, which is registered, holds ``values[:, i]``: bool[n]."""
        self._settle()
        held: Bools = np.empty(slots.size, dtype=np.bool_)
        numbers = self._layer_by_slot[slots]
        for number, layer in enumerate(self._layers):
            asked = np.flatnonzero(numbers == number)
            regions = layer.table.regions[self._row_by_slot[slots[asked]]]
            points = values[:, asked].T
            held[asked] = ((regions[:, :, 0] <= points) & (points < regions[:, :, 1])).all(axis=1)
        return held

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that have been built, including those that say where each slot is."""
        n_bytes = self._layer_by_slot.nbytes + self._row_by_slot.nbytes
        for layer in self._layers:
            n_bytes += layer.table.nbytes + (layer.structure.nbytes if layer.structure is not None else 0)
        return n_bytes

    def _check(self) -> None:
        """Assert every invariant; for tests."""
        registered = np.flatnonzero(self._layer_by_slot != _NOWHERE)
        found: list[int] = [slot for slots, _ in self._pending for slot in slots.tolist()]
        assert (self._layer_by_slot[found] == _PENDING).all()
        for number, layer in enumerate(self._layers):
            layer.table._check()
            if layer.structure is not None:
                layer.structure._check(layer.table)
            rows = np.flatnonzero(layer.table.slots != GONE)
            slots = layer.table.slots[rows]
            assert rows.size == layer.n_live
            assert (self._layer_by_slot[slots] == number).all()
            assert (self._row_by_slot[slots] == rows).all()
            found += slots.tolist()
        # Each registered query is in exactly one place.
        assert sorted(found) == registered.tolist()


class LayeredMatches(Layers[MatchStructure]):
    """The `MatchIndex` whose layers have match structures of one kind; parameters as for `Layers`."""

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        return concat_moves([structure.stab(table, values) for structure, table in self._settled()])


class _Tree:
    """The tree that each table has, as a match structure."""

    nbytes = 0  # the table counts its bytes

    def stab(self, table: PackedQueries, values: Float64s) -> Moves:
        return table.stab(values)

    def _check(self, table: PackedQueries) -> None:
        """Assert nothing: the table checks its tree."""


class PackedMatches(LayeredMatches):
    """The `MatchIndex` of packed trees, which each table has anyway."""

    def _build(self, table: PackedQueries) -> _Tree:
        return _Tree()


class Layered(Layers[BorderStructure]):
    """The `BorderIndex` whose layers have border structures of one kind; parameters as for `Layers`."""

    def __init__(
        self, n_dims: int, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER, room: float = 0.0
    ) -> None:
        super().__init__(n_dims, growth=growth, smallest_layer=smallest_layer, room=room)
        # The rows that the first layer inserted and that its tree therefore lacks. Their slots here count from 0 behind
        # the rows in order.
        self._newcomers = self._no_newcomers()

    def _no_newcomers(self) -> PackedMatches:
        return PackedMatches(self.n_dims, growth=self._growth, smallest_layer=self._smallest_layer)

    def _take_in(self) -> None:
        if not self._pending or not self._layers:
            return
        layer = self._layers[0]
        structure = layer.structure
        n_pending = sum(slots.size for slots, _ in self._pending)
        if not isinstance(structure, Inserting) or n_pending > layer.table.room:
            return
        slots = np.concatenate([part[0] for part in self._pending])
        regions = np.concatenate([part[1] for part in self._pending])
        first_row = len(layer.table)
        layer.table.append(slots, regions)
        taken = structure.insert(layer.table, first_row)
        rows = first_row + np.flatnonzero(taken).astype(np.int32)
        layer.table.forget((first_row + np.flatnonzero(~taken)).astype(np.int32))
        layer.n_live += rows.size
        self._layer_by_slot[slots[taken]] = 0
        self._row_by_slot[slots[taken]] = rows
        if first_row == layer.table.n_packed:
            self._newcomers = self._no_newcomers()
        self._newcomers.register(rows - layer.table.n_packed, *regions[taken].T)
        self._pending = [] if taken.all() else [(slots[~taken], regions[~taken])]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that have been built, including those that say where each slot is."""
        return super().nbytes + self._newcomers.nbytes

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        # Always the same memory layout, so that numba compiles each kernel only once.
        streams = np.ascontiguousarray(streams, dtype=np.int32)
        previous = np.ascontiguousarray(previous, dtype=np.float64)
        current = np.ascontiguousarray(current, dtype=np.float64)
        parts = []
        for structure, table in self._settled():
            parts.append(structure.moves(table, streams, previous, current))
            self._saw(structure, parts[-1].visits)
        return concat_moves(parts)

    def _saw(self, structure: BorderStructure, visits: int) -> None:
        """Do nothing; an adaptive index notes here how many candidates ``structure`` looked at."""

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        self._settle()
        values = np.ascontiguousarray(values, dtype=np.float64)
        found = [layer.table.stab(values) for layer in self._layers]
        if self._layers and len(self._layers[0].table) > self._layers[0].table.n_packed:
            found.append(self._stab_newcomers(self._layers[0].table, values))
        return concat_moves(found)

    def _stab_newcomers(self, table: PackedQueries, values: Float64s) -> Moves:
        found = self._newcomers.stab(values)
        slots = table.slots[table.n_packed + found.queries]
        live = slots != GONE
        return Moves(found.rows[live], slots[live], found.signs[live], found.visits)

    def _check(self) -> None:
        super()._check()
        self._newcomers._check()


def _repeated(slots: Int32s) -> Bools:
    """Return for each slot whether it came before in ``slots``."""
    repeated = np.ones(slots.size, dtype=np.bool_)
    repeated[np.unique(slots, return_index=True)[1]] = False
    return repeated


def _refuse(slots: Int32s, wrong: Bools, rule: str) -> None:
    """Raise a ValueError with ``rule`` for the first slot that is ``wrong``, if there is one."""
    if wrong.any():
        raise ValueError(f"query slot {slots[wrong][0]} {rule}.")
