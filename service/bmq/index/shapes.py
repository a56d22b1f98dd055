"""The store of exact shapes, by query slot: what an index asks about the few queries that it could not decide.

Knows how edges lie in memory; the test itself is `kernels.shapes`.
"""

from collections.abc import Sequence

import numpy as np

from bmq.kernels import shapes as kernel
from bmq.kernels.shapes import Shapes
from bmq.records import Bools, Float64s, Int32s, Shape, ShapeKind

SMALLEST = 64  # slots and edges that there is always room for


class ShapeStore:
    """Shapes that come and go: 32 bytes an edge, 25 a slot, and at most as much again for those to come.

    Attributes
    ----------
    shapes : what kernels read; another one after a change.
    on_globe : whether they are on longitude and latitude; all are, or none.
    """

    def __init__(self) -> None:
        self.shapes = Shapes(
            np.zeros(SMALLEST, dtype=np.int8),
            np.zeros(SMALLEST, dtype=np.int64),
            np.zeros(SMALLEST, dtype=np.int64),
            np.full(SMALLEST, -np.inf),
            np.empty((4, SMALLEST)),
        )
        self.on_globe = False
        self._n_columns = 0  # of edges that are in use or were
        self._n_live = 0  # of edges that are in use

    def add(self, slots: Int32s, shapes: Sequence[Shape]) -> None:
        """Keep a shape for each of ``slots``, which have none. Amortised O(edges)."""
        self.on_globe = shapes[0].lonlat
        parts = [_edges(shape) for shape in shapes]
        self._make_room(int(slots.max()) + 1, sum(part.shape[1] for part in parts))
        kinds, starts, stops, easts, edges = self.shapes
        for slot, shape, part in zip(slots.tolist(), shapes, parts, strict=True):
            start, stop = self._n_columns, self._n_columns + part.shape[1]
            edges[:, start:stop] = part
            kinds[slot], starts[slot], stops[slot] = _kind(shape), start, stop
            easts[slot] = part[::2].max() if shape.lonlat and shape.kind is ShapeKind.POLYGON else -np.inf
            self._n_columns = stop
            self._n_live += part.shape[1]

    def remove(self, slots: Int32s) -> None:
        """Forget the shapes of ``slots``. O(1) each; their edges go when more are needed."""
        self._n_live -= int((self.shapes.stops[slots] - self.shapes.starts[slots]).sum())
        self.shapes.kinds[slots] = kernel.NOTHING

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the shape of ``slots[i]`` holds ``values[:, i]`` (float64[2, n], finite): bool[n]."""
        return kernel.held_pairs(self.shapes, slots, np.ascontiguousarray(values))

    def _make_room(self, n_slots: int, n_more: int) -> None:
        kinds, starts, stops, easts, edges = self.shapes
        if n_slots > kinds.size:
            n_new = max(n_slots, 2 * kinds.size) - kinds.size
            kinds = np.append(kinds, np.zeros(n_new, dtype=np.int8))
            starts, stops = (np.append(ends, np.zeros(n_new, dtype=np.int64)) for ends in (starts, stops))
            easts = np.append(easts, np.full(n_new, -np.inf))
        if self._n_columns + n_more > edges.shape[1]:
            # Without what was removed.
            live = np.flatnonzero(kinds)
            lengths = stops[live] - starts[live]
            new_stops = np.cumsum(lengths)
            kept = np.repeat(stops[live] - new_stops, lengths) + np.arange(self._n_live)
            longer = np.empty((4, max(SMALLEST, 2 * (self._n_live + n_more))))
            longer[:, : self._n_live] = edges[:, kept]
            edges, self._n_columns = longer, self._n_live
            starts[live], stops[live] = new_stops - lengths, new_stops
        self.shapes = Shapes(kinds, starts, stops, easts, edges)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(part.nbytes for part in self.shapes)

    def _check(self) -> None:
        """State every invariant; for tests."""
        kinds, starts, stops, _, edges = self.shapes
        live = np.flatnonzero(kinds)
        order = live[np.argsort(starts[live])]
        assert (starts[live] < stops[live]).all()
        assert (stops[order][:-1] <= starts[order][1:]).all()
        assert (stops[live] <= self._n_columns).all()
        assert (stops[live] - starts[live]).sum() == self._n_live <= self._n_columns <= edges.shape[1]
        for slot in live[kinds[live] == kernel.POLYGON]:
            assert (edges[1, starts[slot] : stops[slot]] <= edges[3, starts[slot] : stops[slot]]).all()


def _kind(shape: Shape) -> int:
    if shape.kind is ShapeKind.POLYGON:
        return kernel.POLYGON
    return kernel.CIRCLE_ON_GLOBE if shape.lonlat else kernel.CIRCLE


def _edges(shape: Shape) -> Float64s:
    """Return the columns that `Shapes.edges` has of ``shape``, float64[4, n]."""
    vertices = np.frombuffer(shape.vertices, dtype="<f8").reshape(-1, 2)
    if shape.kind is ShapeKind.CIRCLE:
        return np.array([[*vertices[0], shape.radius, 0.0]]).T
    # From each vertex to the next one, but from the last of a ring to none.
    is_begin = np.ones(len(vertices), dtype=np.bool_)
    is_begin[np.array(shape.ring_starts[1:]) - 1] = False
    begins = np.flatnonzero(is_begin)
    edges = np.concatenate((vertices[begins], vertices[begins + 1]), axis=1)
    is_down = edges[:, 1] > edges[:, 3]
    edges[is_down] = np.roll(edges[is_down], 2, axis=1)
    return edges.T
