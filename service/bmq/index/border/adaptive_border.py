"""The border index that chooses a structure for each of its layers, and chooses again when the movement changes.

Knows when to look and when a change pays; `border_costs` predicts what a structure costs. Answers never
depend on the choice: every structure gives the same, so a wrong prediction costs time and nothing else.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from bmq.index.base import Moves, in_turn
from bmq.index.border.border_costs import NS_A_VISIT, REBUILD_NS, Workload, move_ns
from bmq.index.border.border_grid import ROOM
from bmq.index.border.stab_difference import two_shortest
from bmq.index.border.structures import STRUCTURES, OneKind
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import PackedQueries
from bmq.index.structure import BorderStructure
from bmq.records import Float64s, IndexKind, Int32s, Int64s

# A structure stays while the cheapest is predicted to be less than this factor cheaper: predictions are wrong by
# up to a third, and a lower factor would have a layer built anew for nothing.
SWITCH_FACTOR = 1.5
# Moves between two looks, of about 100 us a layer: a nanosecond a move. A wrong structure is noticed that late.
MOVES_BETWEEN_LOOKS = 100_000
# A new structure is looked at after so many: where queries lie as no model foresees (a thousand that are equal), a move
# can cost a thousand times what was predicted.
MOVES_ON_TRIAL = 2048
SMALLEST_ON_TRIAL = 4096  # queries; fewer cannot cost much, and come with every batch of registrations
SURPRISE = 2.0  # what was looked at must have cost this much more than predicted; less is what any model is wrong by
N_SAMPLED = 256  # moves that the movement is known by; their mean step is off by a tenth at most times
N_SAMPLED_A_CALL = 64  # so that the sample has moves of at least four calls, and forgets all others
# The grid's kernel is compiled for each number of dimensions, and `bmq.job.warmup` does so up to here. In five and more
# the stab difference is nearly always cheaper.
MOST_DIMS_OF_GRID = 4
# Where regions crowd is known by so many of them, and by 64 by 64 tiles: of 30 towns, each is in a few.
N_REGIONS, MOST_TILES = 4096, 64
# Before the first move: steps of a tenth of the mean side, at which each kind of structure does well.
UNKNOWN_STEP = 0.1


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """When `Adaptive` replaces a structure; tests set the numbers low, so that structures change all the time.

    Attributes
    ----------
    switch_factor, moves_between_looks, rebuild_ns : as the constants.
    predicted_ns : what a move costs in a kind of structure.
    """

    switch_factor: float = SWITCH_FACTOR
    moves_between_looks: int = MOVES_BETWEEN_LOOKS
    rebuild_ns: float = REBUILD_NS
    predicted_ns: Callable[[IndexKind, Workload], float] = move_ns


DEFAULT_RULE = ChangeRule()


def make_index(n_dims: int, kind: IndexKind = IndexKind.AUTO) -> Layered:
    """Return an empty border index for values of ``n_dims`` dimensions; ``kind`` has to fit them.

    Whatever the kind, the answers are the same: `auto` changes what they cost.
    """
    return Adaptive(n_dims) if kind is IndexKind.AUTO else OneKind(n_dims, kind)


class Adaptive(Layered):
    """The `BorderIndex` of any number of dimensions whose layers have the structure predicted to be cheapest.

    A structure is replaced when moves have cost more than with the best one by `SWITCH_FACTOR`, and the excess
    has added up to the price of a new structure. So all changes together cost no more than what they end, by
    the model, and movement that swings to and fro does not have a layer built at every turn. Where a structure looked
    at far more than predicted, so much is added to its predictions over this table, until the movement is another.

    Parameters
    ----------
    n_dims : number of dimensions of values and regions.
    growth, smallest_layer, room : as for `Layers`.
    rule : when a structure is replaced.
    """

    def __init__(
        self,
        n_dims: int,
        *,
        growth: int = GROWTH,
        smallest_layer: int = SMALLEST_LAYER,
        room: float = ROOM,
        rule: ChangeRule = DEFAULT_RULE,
    ) -> None:
        # Room is for the grid, which one dimension has not.
        super().__init__(n_dims, growth=growth, smallest_layer=smallest_layer, room=room if n_dims > 1 else 0.0)
        self._kinds = [
            kind
            for kind in STRUCTURES
            if kind.fits(n_dims) and (kind is not IndexKind.BORDER_GRID or n_dims <= MOST_DIMS_OF_GRID)
        ]
        self._movement = _Movement(n_dims)
        self._rule = rule
        self._n_moves = 0  # since the last look
        self._moves_to_look = rule.moves_between_looks
        self._on_trial = False
        self._visits: WeakKeyDictionary[BorderStructure, int] = WeakKeyDictionary()  # since the last look
        # By table and kind: a prediction that was too low, and how many times.
        self._surprises: WeakKeyDictionary[PackedQueries, dict[IndexKind, tuple[float, float]]] = WeakKeyDictionary()
        # What each structure is, and what it has cost more than another would have.
        self._kind_of: WeakKeyDictionary[BorderStructure, IndexKind] = WeakKeyDictionary()
        self._excess_ns: WeakKeyDictionary[BorderStructure, float] = WeakKeyDictionary()

    @property
    def kinds(self) -> list[IndexKind]:
        """The kind of each layer's structure, the largest layer first; of those that are built."""
        return [self._kind_of[layer.structure] for layer in self._layers if layer.structure is not None]

    def workloads(self) -> list[Workload]:
        """Return what the choice for each layer is made from, the largest layer first."""
        return [self._workload(layer.table) for layer in self._layers]

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        # Before the answer, so that the first moves already decide what is built for them.
        self._movement.see(previous, current)
        parts: list[Moves] = []
        starts = [0]
        while not parts or starts[-1] < streams.size:
            for _ in self._settled():  # builds what is not built, which says when to look
                pass
            # Cut for a trial only: to put answers together again costs as much as to find them.
            n_most = self._moves_to_look if self._on_trial else streams.size
            part = slice(starts[-1], min(starts[-1] + n_most, streams.size))
            parts.append(super().moves(streams[part], previous[:, part], current[:, part]))
            starts.append(part.stop)
            n_moves = part.stop - part.start
            self._n_moves, self._moves_to_look = self._n_moves + n_moves, self._moves_to_look - n_moves
            if self._moves_to_look <= 0:
                self._look_again()
        return in_turn(parts, starts)

    def _saw(self, structure: BorderStructure, visits: int) -> None:
        self._visits[structure] = self._visits.get(structure, 0) + visits

    def _build(self, table: PackedQueries) -> BorderStructure:
        costs = self._mended(table, self._predictions(table))
        return self._build_as(min(costs, key=costs.__getitem__), table)

    def _build_as(self, kind: IndexKind, table: PackedQueries) -> BorderStructure:
        structure = STRUCTURES[kind](table)
        self._kind_of[structure], self._excess_ns[structure] = kind, 0.0
        if len(table) >= SMALLEST_ON_TRIAL:
            self._moves_to_look, self._on_trial = min(self._moves_to_look, MOVES_ON_TRIAL), True
        return structure

    def _look_again(self) -> None:
        """Replace the structures that have been too dear for long enough."""
        self._moves_to_look, self._on_trial = self._rule.moves_between_looks, False
        for layer in self._layers:
            structure = layer.structure
            if structure is None:
                continue
            standing = self._kind_of[structure]
            predicted = self._predictions(layer.table)
            self._learn(layer.table, standing, predicted[standing], self._visits.pop(structure, 0) / self._n_moves)
            costs = self._mended(layer.table, predicted)
            best = min(costs, key=costs.__getitem__)
            if costs[standing] <= self._rule.switch_factor * costs[best]:
                self._excess_ns[structure] = 0.0
                continue
            self._excess_ns[structure] += (costs[standing] - costs[best]) * self._n_moves
            if self._excess_ns[structure] > self._rule.rebuild_ns * len(layer.table):
                layer.structure = self._build_as(best, layer.table)
        self._n_moves = 0

    def _predictions(self, table: PackedQueries) -> dict[IndexKind, float]:
        """Return what the model says of a move over ``table`` in each kind of structure, in nanoseconds."""
        workload = self._workload(table)
        return {kind: self._rule.predicted_ns(kind, workload) for kind in self._kinds}

    def _mended(self, table: PackedQueries, predicted: dict[IndexKind, float]) -> dict[IndexKind, float]:
        """Return the predictions, those multiplied that were too low over ``table`` before."""
        costs = dict(predicted)
        for kind, (was, times) in self._surprises.get(table, {}).items():
            if was / SURPRISE <= costs[kind] <= was * SURPRISE:
                costs[kind] *= times
        return costs

    def _learn(self, table: PackedQueries, kind: IndexKind, predicted: float, visits: float) -> None:
        """Remember it if ``visits`` a move cost far more than ``predicted`` nanoseconds."""
        seen = NS_A_VISIT[kind] * visits
        if seen > SURPRISE * predicted:
            self._surprises.setdefault(table, {})[kind] = predicted, seen / predicted

    def _workload(self, table: PackedQueries) -> Workload:
        steps, crowding = self._movement.mean_steps(table), self._movement.crowding(table)
        return Workload(len(table), table.mean_sides, steps, crowding)


class _Movement:
    """A sample of the last moves: a ring, so that what is old is written over."""

    def __init__(self, n_dims: int) -> None:
        # From where, to where.
        self._ends: Float64s = np.empty((2, n_dims, N_SAMPLED))
        self._n_seen = 0

    def see(self, previous: Float64s, current: Float64s) -> None:
        """Put moves evenly taken out of float64[d, n] into the sample."""
        stride = max(1, previous.shape[1] // N_SAMPLED_A_CALL)
        sample = np.stack((previous[:, ::stride], current[:, ::stride]))[:, :, -N_SAMPLED:]
        places = (self._n_seen + np.arange(sample.shape[2])) % N_SAMPLED
        self._ends[:, :, places] = sample
        self._n_seen += places.size

    def mean_steps(self, table: PackedQueries) -> Float64s:
        """Return the mean length of a move in each dimension, float64[d], in the table's ranks."""
        if not self._n_seen:
            return UNKNOWN_STEP * table.mean_sides
        before, after = (table.ranks_of(np.ascontiguousarray(ends[:, : self._n_seen])) for ends in self._ends)
        steps: Float64s = np.abs(after - before).mean(axis=1)
        return steps

    def crowding(self, table: PackedQueries) -> float:
        """Return how many times as many of the table's regions are where moves end as if they lay evenly.

        On the two axes where they are shortest, by tiles no smaller than a region.
        """
        a, b = two_shortest(table.mean_sides)
        if a == b or not self._n_seen:
            return 1.0
        sample = table.regions[:: 1 + len(table) // N_REGIONS]
        # A tile for each region at most: of fewer regions than tiles, chance would make crowds.
        most = min(math.isqrt(len(sample)), MOST_TILES)
        n_tiles = max(1, int(min(most, 1 / max(table.mean_sides[a], table.mean_sides[b], 1 / most))))
        tiles_of_regions: Int64s = np.zeros(1, dtype=np.int64)
        tiles_of_ends: Int64s = np.zeros(1, dtype=np.int64)
        for axis in (a, b):
            lo, hi = (table.ranks_on(axis, np.ascontiguousarray(end)) for end in sample[:, axis].T)
            ends = table.ranks_on(axis, np.ascontiguousarray(self._ends[1, axis, : self._n_seen]))
            tiles_of_regions = tiles_of_regions * n_tiles + _tiles((lo + hi) / 2, n_tiles)
            tiles_of_ends = tiles_of_ends * n_tiles + _tiles(ends, n_tiles)
        n_in_tile = np.bincount(tiles_of_regions, minlength=n_tiles**2)
        return float(n_in_tile[tiles_of_ends].mean() * n_tiles**2 / len(sample))


def _tiles(ranks: Float64s, n_tiles: int) -> Int64s:
    return np.minimum((ranks * n_tiles).astype(np.int64), n_tiles - 1)
