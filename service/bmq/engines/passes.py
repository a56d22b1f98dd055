"""Regions that a stream goes through between two readings, and where on the straight line between them.

    candidates   an R-tree of bounding boxes (GEOS', by shapely), asked with the lines
    stretches    box: the slab method · polygon: `kernels.passes` · circle: a quadratic equation;
                 circle on the globe: the distance along the line, by samples and bisection

On the globe a line is straight in degrees and goes the short way round. A shape over the antimeridian has longitudes
beyond 180, so lines are looked at one turn to the east and one to the west, too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import shapely

from bmq.index.areas import Areas
from bmq.kernels.passes import SHORTEST, polygon_stretches
from bmq.kernels.shapes import EARTH_RADIUS_METRES, haversine_metres
from bmq.records import Float64s, IndexKind, Int32s, Int64s, Region, Shape, ShapeKind

# What stands for "unbounded" in the R-tree, which adds coordinates up.
_FAR = 1e150
# Points of a line at which the distance to a circle on the globe is looked at. A way of some kilometres has one nearest
# point; one around half the globe may have two.
_SAMPLES = 65
_BISECTIONS = 50  # to the last bit of a fraction


@dataclass(frozen=True, slots=True)
class Visits:
    """Stretches of moves inside regions that hold neither end.

    Attributes
    ----------
    rows : int32[n], which move. queries : int32[n], slots.
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
    n_dims : 1 or 2; with more, nothing may be put.
    lonlat : dimensions are longitude and latitude.
    """

    def __init__(self, n_dims: int, lonlat: bool) -> None:
        self._n_dims = n_dims
        self._lonlat = lonlat
        self._regions: dict[int, Region] = {}
        self._exact = Areas(n_dims, IndexKind.SCAN)
        self._tree: shapely.STRtree | None = None  # made anew when regions have changed and a move comes
        self._slots: Int32s = np.empty(0, dtype=np.int32)
        self._boxes: Float64s = np.empty((0, 4))
        self._polygons: dict[int, int] = {}  # slot -> number in the arrays of edges
        self._edge_starts: Int64s = np.zeros(1, dtype=np.int64)
        self._edges: Float64s = np.empty((0, 4))

    def __bool__(self) -> bool:
        return bool(self._regions)

    def put(self, slot: int, region: Region) -> None:
        """Look out for a region; ``slot`` has none."""
        self._regions[slot] = region
        self._exact.register(np.array([slot], dtype=np.int32), [region])
        self._tree = None

    def remove(self, slot: int) -> None:
        """Look out for a region no more."""
        del self._regions[slot]
        self._exact.deregister(np.array([slot], dtype=np.int32))
        self._tree = None

    def find(self, previous: Float64s, current: Float64s) -> Visits:
        """Return the visits of moves, float64[d, n] each, to regions that hold neither end; by row.

        Cost: O(log m) a move, and the regions whose bounding box its line meets.
        """
        rows, places, lines = self._candidates(previous, current)
        slots = self._slots[places]
        outside = ~self._exact.holds(slots, np.ascontiguousarray(previous[:, rows]))
        outside &= ~self._exact.holds(slots, np.ascontiguousarray(current[:, rows]))
        rows, slots, lines = rows[outside], slots[outside], lines[outside]
        found = list(self._stretches(slots, lines))
        which = np.concatenate([part[0] for part in found])
        begins = np.concatenate([part[1] for part in found])
        ends = np.concatenate([part[2] for part in found])
        order = np.lexsort((begins, slots[which], rows[which]))
        rows, slots, begins, ends = rows[which[order]], slots[which[order]], begins[order], ends[order]
        return Visits(rows.astype(np.int32), slots, _numbers(rows, slots), begins, ends)

    def _candidates(self, previous: Float64s, current: Float64s) -> tuple[Int64s, Int64s, Float64s]:
        """Return (row, place among the slots, line) where a line meets a bounding box; lines as x, y, dx, dy."""
        self._build()
        assert self._tree is not None
        flat = np.zeros((4, previous.shape[1]))
        flat[: self._n_dims] = previous
        flat[2 : 2 + self._n_dims] = current - previous
        turns = [0.0]
        if self._lonlat:
            flat[2] = (flat[2] + 180.0) % 360.0 - 180.0
            turns = [0.0, -360.0, 360.0]
        parts = []
        for turn in turns:
            lines = flat.T + np.array([turn, 0.0, 0.0, 0.0])
            ends = lines[:, :2] + lines[:, 2:]
            segments = shapely.linestrings(np.stack([lines[:, :2], ends], axis=1))
            rows, places = self._tree.query(segments)
            if turn:
                # What holds all longitudes is met in the first turn already.
                bounded = np.isfinite([self._regions[int(slot)].lo[0] for slot in self._slots[places]])
                bounded |= np.array([self._regions[int(slot)].shape is not None for slot in self._slots[places]], bool)
                rows, places = rows[bounded], places[bounded]
            parts.append((rows, places, lines[rows]))
        rows, places, lines = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return rows, places, lines

    def _build(self) -> None:
        if self._tree is not None:
            return
        self._slots = np.array(sorted(self._regions), dtype=np.int32)
        regions = [self._regions[slot] for slot in self._slots.tolist()]
        self._boxes = np.array([_bounding_box(region) for region in regions])
        finite = np.clip(self._boxes, -_FAR, _FAR)
        self._tree = shapely.STRtree(shapely.box(*finite.T))
        edges = {
            slot: _edges(region.shape)
            for slot, region in zip(self._slots.tolist(), regions, strict=True)
            if region.shape is not None and region.shape.kind is ShapeKind.POLYGON
        }
        self._polygons = {slot: number for number, slot in enumerate(edges)}
        self._edge_starts = np.cumsum([0, *map(len, edges.values())], dtype=np.int64)
        self._edges = np.concatenate([np.empty((0, 4)), *edges.values()])

    def _stretches(self, slots: Int32s, lines: Float64s) -> Iterator[tuple[Int64s, Float64s, Float64s]]:
        """Yield (which pair, begin, end) of the stretches, one sort of region after the other."""
        shapes = [self._regions[slot].shape for slot in slots.tolist()]
        is_box = np.array([shape is None for shape in shapes], dtype=np.bool_)
        is_polygon = np.array([shape is not None and shape.kind is ShapeKind.POLYGON for shape in shapes], np.bool_)
        boxes = np.flatnonzero(is_box)
        begins, ends = _box_stretches(self._boxes[np.searchsorted(self._slots, slots[boxes])], lines[boxes])
        inside = ends - begins > SHORTEST
        yield boxes[inside], begins[inside], ends[inside]
        polygons = np.flatnonzero(is_polygon)
        numbers = np.array([self._polygons[slot] for slot in slots[polygons].tolist()], dtype=np.int32)
        which, begins, ends = polygon_stretches(
            self._edge_starts, self._edges, numbers, np.ascontiguousarray(lines[polygons])
        )
        yield polygons[which], begins, ends
        for pair in np.flatnonzero(~is_box & ~is_polygon):
            shape = shapes[pair]
            assert shape is not None
            found = np.array(list(_circle_stretches(shape, lines[pair]))).reshape(-1, 2)
            yield np.full(len(found), pair), found[:, 0], found[:, 1]


def _bounding_box(region: Region) -> tuple[float, float, float, float]:
    """Return the smallest and the largest x and y; of a shape over the antimeridian with longitudes beyond 180."""
    shape = region.shape
    if shape is not None and shape.lonlat:
        x, y = _vertices(shape).T
        if shape.kind is ShapeKind.POLYGON:
            return x.min(), y.min(), x.max(), y.max()
        half = np.degrees(shape.radius / EARTH_RADIUS_METRES)
        # By the sine rule: the farthest longitude of a circle on the sphere. A little more, for the rounding.
        width = np.degrees(np.arcsin(np.sin(np.radians(half)) / np.cos(np.radians(y[0])))) * 1.000001 + 1e-9
        return x[0] - width, y[0] - half - 1e-9, x[0] + width, y[0] + half + 1e-9
    (x_lo, y_lo), (x_hi, y_hi) = ((*region.lo, 0.0)[:2], (*region.hi, 0.0)[:2])
    return x_lo, y_lo, x_hi, (y_hi if len(region.hi) > 1 else 1.0)


def _vertices(shape: Shape) -> Float64s:
    return np.frombuffer(shape.vertices, dtype="<f8").reshape(-1, 2)


def _edges(shape: Shape) -> Float64s:
    vertices = _vertices(shape)
    edges = np.concatenate([vertices[:-1], vertices[1:]], axis=1)
    # From the last vertex of a ring to the first of the next there is no edge.
    return np.delete(edges, np.array(shape.ring_starts[1:-1], dtype=np.int64) - 1, axis=0)


def _box_stretches(boxes: Float64s, lines: Float64s) -> tuple[Float64s, Float64s]:
    """Return where each line is inside its box, [lo, hi) in both dimensions: begin and end, none if end <= begin."""
    begins, ends = np.zeros(len(lines)), np.ones(len(lines))
    for k in range(2):
        place, way = lines[:, k], lines[:, 2 + k]
        lo, hi = boxes[:, k], boxes[:, 2 + k]
        still = way == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            first, last = (lo - place) / way, (hi - place) / way
        inside = (lo <= place) & (place < hi)
        first, last = np.minimum(first, last), np.maximum(first, last)
        begins = np.maximum(begins, np.where(still, np.where(inside, 0.0, np.inf), first))
        ends = np.minimum(ends, np.where(still, np.where(inside, 1.0, -np.inf), last))
    return begins, ends


def _circle_stretches(shape: Shape, line: Float64s) -> Iterator[tuple[float, float]]:
    (x, y, dx, dy), (center_x, center_y) = line, _vertices(shape)[0]
    if shape.lonlat:
        yield from _globe_stretches(shape.radius, float(center_x), float(center_y), line)
        return
    a = dx * dx + dy * dy
    b = (x - center_x) * dx + (y - center_y) * dy
    c = (x - center_x) ** 2 + (y - center_y) ** 2 - shape.radius**2
    if a > 0.0 and b * b > a * c:
        root = np.sqrt(b * b - a * c)
        begin, end = max(0.0, (-b - root) / a), min(1.0, (-b + root) / a)
        if end - begin > SHORTEST:
            yield begin, end


def _globe_stretches(radius: float, lon: float, lat: float, line: Float64s) -> Iterator[tuple[float, float]]:
    def beyond(fraction: float) -> float:
        """Return how far the line is outside the circle there, in metres."""
        metres: float = haversine_metres(lon, lat, line[0] + fraction * line[2], line[1] + fraction * line[3])
        return metres - radius

    fractions = np.linspace(0.0, 1.0, _SAMPLES).tolist()
    nearest = min(fractions, key=beyond)
    low, high = max(0.0, nearest - 1.0 / (_SAMPLES - 1)), min(1.0, nearest + 1.0 / (_SAMPLES - 1))
    for _ in range(2 * _BISECTIONS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if beyond(left) < beyond(right) else (left, high)
    fractions = sorted({*fractions, (low + high) / 2})
    begin: float | None = None
    for before, after in pairwise(fractions):
        if beyond(before) > 0.0 >= beyond(after):
            begin = _bisect(beyond, after, before)
        elif beyond(before) <= 0.0 < beyond(after) and begin is not None:
            end = _bisect(beyond, before, after)
            if end - begin > SHORTEST:
                yield begin, end
            begin = None


def _bisect(beyond: Callable[[float], float], inside: float, outside: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if beyond(middle) <= 0.0 else (inside, middle)
    return inside


def _numbers(rows: Int64s, slots: Int32s) -> Int32s:
    """Return for each visit how many of the same row and slot there are up to it; equal ones stand together."""
    if not rows.size:
        return np.empty(0, dtype=np.int32)
    begins = np.ones(rows.size, dtype=np.bool_)
    begins[1:] = (rows[1:] != rows[:-1]) | (slots[1:] != slots[:-1])
    first = np.maximum.accumulate(np.where(begins, np.arange(rows.size), 0))
    return (np.arange(rows.size) - first + 1).astype(np.int32)
