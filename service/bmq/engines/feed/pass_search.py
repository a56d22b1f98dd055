"""Find the regions that a stream passes through between two readings, and the stretches of the line inside them.

    candidates   the packed R-tree of `index.packed` finds the regions whose bounding box meets the line's
    stretches    box: the slab method · circle: a quadratic equation
                 polygon, and circle on the globe: `kernels.shape.line_stretches`

On the globe a line is straight in degrees and goes the short way round. A shape or a line that crosses the antimeridian
continues at longitudes beyond 180. So each line is tested three times: as it is, one turn further east and one turn
further west.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmq.index.packed import PackedQueries
from bmq.index.region_index import Areas
from bmq.kernels.shape.line_stretches import DOUBT, SHORTEST, globe_stretches, polygon_stretches
from bmq.kernels.shape.shape_tests import EARTH_RADIUS_METRES
from bmq.records import Bools, Float64s, IndexKind, Int32s, Int64s, Region, Shape, ShapeKind
from bmq.records.plane import HALF_TURN, TURN

_BOX, _POLYGON, _CIRCLE, _CIRCLE_ON_GLOBE = 0, 1, 2, 3
# Of the region in a query slot: its form, the number of its shape, and its bounding box.
_LOOKS = np.dtype([("form", np.int8), ("number", np.int32), ("box", np.float64, 4)])


@dataclass(frozen=True, slots=True)
class Visits:
    """Stretches of moves inside regions that hold neither end of the move.

    Attributes
    ----------
    rows : int32[n], the position of the move.
    queries : int32[n], slots.
    numbers : int32[n], 1 for the first visit of that move to that region, 2 for the next.
    begins, ends : float64[n], fractions of the way, ascending for each move and region.
    """

    rows: Int32s
    queries: Int32s
    numbers: Int32s
    begins: Float64s
    ends: Float64s


class Passes:
    """Regions of queries with `passes`, in one or two dimensions, by slot.

    Parameters
    ----------
    n_dims : 1 or 2; if the feed has more, `put` must not be called.
    lonlat : whether the dimensions are longitude and latitude.

    Notes
    -----
    `find` first applies the changes made after its last call. This costs about 10 microseconds for each changed region,
    and one microsecond for each region of all, because it packs the tree anew.
    """

    def __init__(self, n_dims: int, lonlat: bool) -> None:
        self._n_dims = n_dims
        self._lonlat = lonlat
        # In the plane all coordinates are halved, so that the way from the least float to the largest is finite.
        self._scaled = np.asarray if lonlat else _halved
        self._regions: dict[int, Region] = {}
        self._changed: set[int] = set()  # slots put or removed since the last `find`
        # The attributes below are as of the last `find`.
        self._exact = Areas(n_dims, IndexKind.SCAN)
        self._slots: Int32s = np.empty(0, dtype=np.int32)  # of all regions
        self._tree: PackedQueries | None = None  # None: there are no regions
        self._looks: npt.NDArray[np.void] = np.empty(0, dtype=_LOOKS)  # by slot
        self._edges_by_slot: dict[int, Float64s] = {}  # of shapes
        self._edge_starts: Int64s = np.zeros(1, dtype=np.int64)  # by number of the shape
        self._edges: Float64s = np.empty((0, 4))

    def __bool__(self) -> bool:
        return bool(self._regions)

    def put(self, slot: int, region: Region) -> None:
        """Add a region; ``slot`` is free."""
        self._regions[slot] = region
        self._changed.add(slot)

    def remove(self, slot: int) -> None:
        """Remove the region in ``slot``."""
        del self._regions[slot]
        self._changed.add(slot)

    def find(self, previous: Float64s, current: Float64s) -> Visits:
        """Return the visits of moves to regions that hold neither end, by (row, slot, begin).

        Cost: O(log m) a move for m regions, plus the regions whose bounding box meets the bounding box of the move.

        Parameters
        ----------
        previous, current : float64[d, n], where each move begins and ends.
        """
        self._take_up_changes()
        rows, slots, lines = self._candidates(previous, current)
        outside = ~self._exact.holds(slots, np.ascontiguousarray(previous[:, rows]))
        outside &= ~self._exact.holds(slots, np.ascontiguousarray(current[:, rows]))
        rows, slots, lines = rows[outside], slots[outside], lines[outside]
        found = list(self._stretches(slots, lines))
        which, begins, ends = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.lexsort((begins, slots[which], rows[which]))
        rows, slots, begins, ends = rows[which[order]], slots[which[order]], begins[order], ends[order]
        return Visits(rows, slots, _numbers(rows, slots), begins, ends)

    def _take_up_changes(self) -> None:
        if not self._changed:
            return
        changed = np.array(sorted(self._changed), dtype=np.int32)
        self._exact.deregister(changed[np.isin(changed, self._slots)])
        added = [slot for slot in changed.tolist() if slot in self._regions]
        self._exact.register(np.array(added, dtype=np.int32), [self._regions[slot] for slot in added])
        n_more = int(changed[-1]) + 1 - self._looks.size
        if n_more > 0:
            self._looks = np.append(self._looks, np.zeros(max(n_more, self._looks.size), dtype=_LOOKS))
        for slot in self._changed:
            self._edges_by_slot.pop(slot, None)
        for slot in added:
            region = self._regions[slot]
            self._looks[slot]["form"] = _form(region.shape)
            self._looks[slot]["box"] = self._scaled(np.array(_bounding_box(region)))
            if region.shape is not None:
                self._edges_by_slot[slot] = self._scaled(_edges(region.shape))
        self._edges = np.concatenate([np.empty((0, 4)), *self._edges_by_slot.values()])
        self._edge_starts = np.cumsum([0, *map(len, self._edges_by_slot.values())], dtype=np.int64)
        self._looks["number"][list(self._edges_by_slot)] = np.arange(len(self._edges_by_slot))
        self._slots = np.array(sorted(self._regions), dtype=np.int32)
        self._tree = None
        if self._slots.size:
            # Two intervals meet if each begins before the other ends. So the box of a line meets a region's box if, in
            # each dimension, the line begins in (-inf, hi) and ends in [lo, inf). The tree finds these boxes by one
            # stab in twice as many dimensions.
            boxes = self._looks["box"][self._slots].reshape(-1, 2, 2)[:, :, : self._n_dims]
            begins_before = np.stack([np.full_like(boxes[:, 1], -np.inf), boxes[:, 1]], axis=2)
            ends_behind = np.stack([boxes[:, 0], np.full_like(boxes[:, 0], np.inf)], axis=2)
            self._tree = PackedQueries(self._slots, np.concatenate([begins_before, ends_behind], axis=1))
        self._changed.clear()

    def _candidates(self, previous: Float64s, current: Float64s) -> tuple[Int32s, Int32s, Float64s]:
        """Return (row, slot, line) of each line and region whose bounding boxes meet; lines as x, y, dx, dy."""
        previous, current = self._scaled(previous), self._scaled(current)
        lines = np.zeros((previous.shape[1], 4))
        lines[:, : self._n_dims] = previous.T
        lines[:, 2 : 2 + self._n_dims] = (current - previous).T
        if not self._lonlat:
            return self._near(lines)
        lines[:, 2] = short_way(lines[:, 2])
        rows, slots, found = self._near(lines)
        parts = [(rows, slots, found)]
        for turn in (-TURN, TURN):
            rows, slots, found = self._near(lines + np.array([turn, 0.0, 0.0, 0.0]))
            # A region of all longitudes was found for the line as it is.
            bounded = np.isfinite(self._looks["box"][slots, 0])
            parts.append((rows[bounded], slots[bounded], found[bounded]))
        rows, slots, found = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return rows, slots, found

    def _near(self, lines: Float64s) -> tuple[Int32s, Int32s, Float64s]:
        if self._tree is None:
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32), np.empty((0, 4))
        begins, ends = lines[:, : self._n_dims].T, (lines[:, :2] + lines[:, 2:])[:, : self._n_dims].T
        met = self._tree.stab(np.concatenate([np.minimum(begins, ends), np.maximum(begins, ends)]))
        return met.rows, met.queries, lines[met.rows]

    def _stretches(self, slots: Int32s, lines: Float64s) -> Iterator[tuple[Int64s, Float64s, Float64s]]:
        """Yield (position in ``slots``, begin, end) of the stretches, one form after another."""
        looks = self._looks[slots]
        for form, stretches in ((_BOX, _box_stretches), (_CIRCLE, _circle_stretches)):
            pairs = np.flatnonzero(looks["form"] == form)
            shown = looks["box"][pairs] if form == _BOX else self._edges[self._edge_starts[looks["number"][pairs]]]
            begins, ends, doubts = stretches(shown, lines[pairs])
            inside = _are_between(shown, lines[pairs]) if self._n_dims == 1 else ends - begins > SHORTEST + doubts
            yield pairs[inside], begins[inside], ends[inside]
        pairs = np.flatnonzero(looks["form"] == _POLYGON)
        which, begins, ends = polygon_stretches(self._edge_starts, self._edges, looks["number"][pairs], lines[pairs])
        yield pairs[which], begins, ends
        pairs = np.flatnonzero(looks["form"] == _CIRCLE_ON_GLOBE)
        which, begins, ends = globe_stretches(self._edges[self._edge_starts[looks["number"][pairs]]], lines[pairs])
        yield pairs[which], begins, ends


def _halved(numbers: Float64s) -> Float64s:
    """Return half of each number, and the least float itself.

    Half of the least float is 0. If a region begins just above 0, it would then hold 0.
    """
    half = 0.5 * numbers
    behind_zero: Float64s = np.where((half == 0.0) & (numbers != 0.0), numbers, half)
    return behind_zero


def short_way(degrees: Float64s) -> Float64s:
    """Return differences of longitudes the short way round, in [-180, 180]; a difference of half a turn stays."""
    # Not by a remainder, which would round the differences that are short already.
    shorter: Float64s = np.where(np.abs(degrees) > HALF_TURN, degrees - np.copysign(TURN, degrees), degrees)
    return shorter


def _form(shape: Shape | None) -> int:
    if shape is None:
        return _BOX
    if shape.kind is ShapeKind.POLYGON:
        return _POLYGON
    return _CIRCLE_ON_GLOBE if shape.lonlat else _CIRCLE


def _bounding_box(region: Region) -> Sequence[float]:
    """Return (x_min, y_min, x_max, y_max); a shape that crosses the antimeridian has longitudes beyond 180."""
    shape = region.shape
    if shape is not None and shape.lonlat:
        x, y = _vertices(shape).T
        if shape.kind is ShapeKind.POLYGON:
            return x.min(), y.min(), x.max(), y.max()
        half = np.degrees(shape.radius / EARTH_RADIUS_METRES)
        # The sine rule gives the farthest longitude of a circle on the sphere. The rest is a margin for rounding.
        width = np.degrees(np.arcsin(np.sin(np.radians(half)) / np.cos(np.radians(y[0])))) * 1.000001 + 1e-9
        return x[0] - width, y[0] - half - 1e-9, x[0] + width, y[0] + half + 1e-9
    # One dimension is a plane in which all moves are at y = 0.
    (x_lo, y_lo), (x_hi, y_hi) = (*region.lo, 0.0)[:2], (*region.hi, 1.0)[:2]
    return x_lo, y_lo, x_hi, y_hi


def _vertices(shape: Shape) -> Float64s:
    return np.frombuffer(shape.vertices, dtype="<f8").reshape(-1, 2)


def _edges(shape: Shape) -> Float64s:
    """Return the edges as (x, y, x, y) of both ends, float64[n, 4]; a circle as one row (x, y, radius, 0)."""
    vertices = _vertices(shape)
    if shape.kind is ShapeKind.CIRCLE:
        return np.array([[*vertices[0], shape.radius, 0.0]])
    edges = np.concatenate([vertices[:-1], vertices[1:]], axis=1)
    # No edge leads from the last vertex of a ring to the first vertex of the next ring.
    return np.delete(edges, np.array(shape.ring_starts[1:-1], dtype=np.int64) - 1, axis=0)


def _box_stretches(boxes: Float64s, lines: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Return where each line is inside its box: begin, end, and the largest error of end - begin.

    The box is [lo, hi) in both dimensions. Begin and end are fractions of the line. If end <= begin, no stretch of the
    line is inside.
    """
    begins, ends = np.zeros(len(lines)), np.ones(len(lines))
    begin_doubts, end_doubts = np.zeros(len(lines)), np.zeros(len(lines))
    for k in range(2):
        place, way = lines[:, k], lines[:, 2 + k]
        lo, hi = boxes[:, k], boxes[:, 2 + k]
        still = way == 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            first, last = (lo - place) / way, (hi - place) / way
            doubts = np.where(still, 0.0, DOUBT * np.maximum(np.abs(place), np.abs(place + way)) / np.abs(way))
        inside = (lo <= place) & (place < hi)
        first, last = np.minimum(first, last), np.maximum(first, last)
        first, last = np.where(still, np.where(inside, 0.0, np.inf), first), np.where(still, 1.0, last)
        begin_doubts = np.where(first > begins, doubts, begin_doubts)
        end_doubts = np.where(last < ends, doubts, end_doubts)
        begins, ends = np.maximum(begins, first), np.minimum(ends, last)
    return begins, ends, begin_doubts + end_doubts


def _are_between(boxes: Float64s, lines: Float64s) -> Bools:
    """Return which intervals lie between the ends of their lines, bool[n].

    One dimension needs no least length: a line has no corner that it could only touch.
    """
    begins, ends = lines[:, 0], lines[:, 0] + lines[:, 2]
    between: Bools = (np.minimum(begins, ends) < boxes[:, 0]) & (boxes[:, 2] <= np.maximum(begins, ends))
    return between


def _circle_stretches(circles: Float64s, lines: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Return where each line is inside its circle (x, y, radius, 0), as `_box_stretches` does; beyond 1e150 nowhere."""
    x, y, dx, dy = lines.T
    doubt = DOUBT * np.abs(np.stack([x, x + dx, y, y + dy, *circles.T])).max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        x, y, radius = x - circles[:, 0], y - circles[:, 1], circles[:, 2]
        length = np.hypot(dx, dy)
        moves = length > 0.0
        length = np.where(moves, length, 1.0)
        distance = np.abs(x * dy - y * dx) / length
        # A chord just below the rim is long already, so the error is compared with the depth and not the length.
        meets = moves & (radius - distance > doubt)
        half = np.sqrt(np.where(meets, (radius - distance) * (radius + distance), 0.0)) / length
        nearest = -(x * dx + y * dy) / length / length
        begins, ends = np.maximum(0.0, nearest - half), np.where(meets, np.minimum(1.0, nearest + half), -np.inf)
    return begins, ends, np.zeros(len(lines))


def _numbers(rows: Int32s, slots: Int32s) -> Int32s:
    """Return the number of each visit among those of the same row and slot, from 1; visits are sorted by both."""
    if not rows.size:
        return np.empty(0, dtype=np.int32)
    begins = np.ones(rows.size, dtype=np.bool_)
    begins[1:] = (rows[1:] != rows[:-1]) | (slots[1:] != slots[:-1])
    first = np.maximum.accumulate(np.where(begins, np.arange(rows.size), 0))
    return (np.arange(rows.size) - first + 1).astype(np.int32)
