"""The store of exact shapes by query slot, which an index asks about the few queries that it could not decide.

Knows how edges lie in memory; the test itself is `kernels.shape.shape_tests`. It must not know cells or moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bmq.kernels.shape import shape_tests as kernel
from bmq.kernels.shape.shape_tests import RECORD, Shapes
from bmq.records import Bools, Float64s, Int32s, Int64s, Region, Shape, ShapeKind

SMALLEST = 64  # slots, slabs and edges for which there is always room
# A polygon has one slab for so many edges. A test looks at about twice as many edges, because slabs share edges.
EDGES_PER_SLAB = 4
MOST_COPIES = 3  # of an edge on average: each slab that an edge reaches into has a copy of it

Rows = TypeVar("Rows", Float64s, Int64s)


class ShapeStore:
    """Shapes that are added and removed.

    Memory: 48 to 96 bytes an edge and 40 a slot, and at most half as much again as room for later shapes.

    Attributes
    ----------
    shapes : the arrays that kernels read; another object after a change.
    on_globe : whether shapes are in longitude and latitude; either all of them are, or none.
    """

    def __init__(self) -> None:
        self.shapes = Shapes(np.zeros(SMALLEST, RECORD), np.empty(SMALLEST, np.int64), np.empty((SMALLEST, 4)))
        self.on_globe = False
        self._n_slabs = 0  # entries of `slabs` that are or were in use
        self._n_edges = 0
        self._n_live_slabs = 0  # entries of `slabs` that are in use
        self._n_live_edges = 0

    def add(self, slots: Int32s, shapes: Sequence[Shape]) -> None:
        """Keep a shape for each of ``slots``, which have none. Amortised O(edges)."""
        if not slots.size:
            return
        self.on_globe = shapes[0].lonlat
        parts = [_cut(shape) for shape in shapes]
        self._make_room(int(slots.max()) + 1, sum(p.starts.size for p in parts), sum(len(p.edges) for p in parts))
        records, slabs, edges = self.shapes
        for slot, part in zip(slots.tolist(), parts, strict=True):
            first, start = self._n_slabs, self._n_edges
            self._n_slabs, self._n_edges = first + part.starts.size, start + len(part.edges)
            slabs[first : self._n_slabs] = start + part.starts
            edges[start : self._n_edges] = part.edges
            records[slot] = part.kind, part.starts.size - 1, first, part.bottom, part.slabs_per_unit, part.east
            self._n_live_slabs += part.starts.size
            self._n_live_edges += len(part.edges)

    def remove(self, slots: Int32s) -> None:
        """Remove the shapes of ``slots``. O(1) each; their memory is freed when more is needed."""
        firsts, stops, begins, ends = self._extents(slots)
        self._n_live_slabs -= int((stops - firsts).sum())
        self._n_live_edges -= int((ends - begins).sum())
        self.shapes.records["kind"][slots] = kernel.NOTHING

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the shape of ``slots[i]`` holds ``values[:, i]`` (float64[2, n], finite): bool[n]."""
        return kernel.held_values(self.shapes, slots, np.ascontiguousarray(values))

    def corners(self, slot: int) -> Float64s:
        """Return the ends of all edges of a polygon, float64[2, n]; for tests."""
        _, _, (start,), (stop,) = self._extents(np.array([slot]))
        return np.ascontiguousarray(self.shapes.edges[start:stop].reshape(-1, 2).T)

    def _extents(self, slots: Int32s | Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Return (first slab, one past the last slab, first edge, one past the last edge) of each slot's shape."""
        records, slabs, _ = self.shapes
        firsts = records["first_slab"][slots]
        stops = firsts + records["n_slabs"][slots] + 1
        return firsts, stops, slabs[firsts], slabs[stops - 1]

    def _make_room(self, n_slots: int, n_slabs: int, n_edges: int) -> None:
        records, slabs, edges = self.shapes
        if n_slots > records.size:
            records = np.append(records, np.zeros(max(n_slots - records.size, records.size), RECORD))
        if self._n_slabs + n_slabs > slabs.size or self._n_edges + n_edges > len(edges):
            # Copy without the shapes that were removed.
            live: Int64s = np.flatnonzero(records["kind"]).astype(np.int64)
            firsts, stops, begins, ends = self._extents(live)
            edges = _longer(edges[_ranges(begins, ends)], n_edges)
            new_ends = np.cumsum(ends - begins)
            moved_by = np.repeat(new_ends - ends, stops - firsts)
            slabs = _longer(slabs[_ranges(firsts, stops)] + moved_by, n_slabs)
            records["first_slab"][live] = np.cumsum(stops - firsts) - (stops - firsts)
            self._n_slabs, self._n_edges = self._n_live_slabs, self._n_live_edges
        self.shapes = Shapes(records, slabs, edges)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(part.nbytes for part in self.shapes)

    def _check(self) -> None:
        """Assert every invariant; for tests."""
        records, slabs, edges = self.shapes
        live: Int64s = np.flatnonzero(records["kind"]).astype(np.int64)
        firsts, stops, begins, ends = self._extents(live)
        assert (firsts < stops).all()
        assert ((stops - firsts).sum(), (ends - begins).sum()) == (self._n_live_slabs, self._n_live_edges)
        # No two shapes share a slab or an edge.
        assert np.unique(_ranges(firsts, stops)).size == self._n_live_slabs <= self._n_slabs <= slabs.size
        assert np.unique(_ranges(begins, ends)).size == self._n_live_edges <= self._n_edges <= len(edges)
        for slot, first, stop in zip(live, firsts, stops, strict=True):
            assert (np.diff(slabs[first:stop]) >= 0).all()
            if records["kind"][slot] == kernel.POLYGON:
                of_slot = edges[slabs[first] : slabs[stop - 1]]
                assert (of_slot[:, 1] <= of_slot[:, 3]).all()


def region_holds(region: Region, values: Float64s) -> Bools:
    """Return whether one region holds each of ``values``, float64[d, n]: bool[n].

    The region need not be in any index; the rules are those of every index. O(n), and for a polygon O(n * edges of a
    slab) and the time to cut it.
    """
    if region.shape is None:
        lo, hi = np.array(region.lo)[:, np.newaxis], np.array(region.hi)[:, np.newaxis]
        held: Bools = np.logical_and.reduce((lo <= values) & (values < hi))
        return held
    store = ShapeStore()
    store.add(np.zeros(1, dtype=np.int32), [region.shape])
    return store.holds(np.zeros(values.shape[1], dtype=np.int32), values)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A shape as the store keeps it; the attributes are those of `kernels.shape.shape_tests.RECORD`."""

    kind: int
    bottom: float
    slabs_per_unit: float
    east: float
    starts: Int64s
    edges: Float64s


def _cut(shape: Shape) -> _Cut:
    """Return a shape as the store keeps it."""
    if shape.kind is ShapeKind.CIRCLE:
        kind = kernel.CIRCLE_ON_GLOBE if shape.lonlat else kernel.CIRCLE
        circle = np.array([[*np.frombuffer(shape.vertices, dtype="<f8"), shape.radius, 0.0]])
        return _Cut(kind, 0.0, 0.0, -np.inf, np.array([0, 1]), circle)
    vertices, ring_starts = np.frombuffer(shape.vertices, dtype="<f8").reshape(-1, 2), np.array(shape.ring_starts)
    bottom, slabs_per_unit, largest_x, starts, edges = kernel.cut_polygon(
        vertices, ring_starts, EDGES_PER_SLAB, MOST_COPIES
    )
    return _Cut(kernel.POLYGON, bottom, slabs_per_unit, largest_x if shape.lonlat else -np.inf, starts, edges)


def _longer(kept: Rows, n_more: int) -> Rows:
    """Return ``kept`` with room behind for ``n_more`` rows, and then for half as many rows again."""
    n_needed = len(kept) + n_more
    longer = np.empty((max(SMALLEST, n_needed + n_needed // 2), *kept.shape[1:]), dtype=kept.dtype)
    longer[: len(kept)] = kept
    return longer


def _ranges(firsts: Int64s, stops: Int64s) -> Int64s:
    """Return the numbers from each of ``firsts`` to before each of ``stops``, one range behind the other."""
    lengths = stops - firsts
    return np.repeat(stops - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
