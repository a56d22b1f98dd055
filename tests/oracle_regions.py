"""What a region holds, and where a straight line runs through it: exact arithmetic, one border after another.

Part of `tests.oracle`; shares no code with `bmq`. Only circles on the globe are floats; tests keep off their rims.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

Number = float | Fraction
Value = tuple[float, ...]
Point = Sequence[Number]

# A cut lies just before (0) or just after (1) a number, so that four kinds of bounds become one comparison.
Cut = tuple[float, int]
BEFORE, AFTER = 0, 1

EARTH_RADIUS_METRES = 6_371_008.8
TURNS = (-360, 0, 360)  # other names of a longitude
SAMPLES = 2_000  # on a line, to find where it meets a circle on the globe


class Region(Protocol):
    """A set of points."""

    def holds(self, point: Point) -> bool:
        """Return whether the point is inside."""

    def meetings(self, begin: Point, end: Point) -> Iterator[Fraction]:
        """Yield at least every fraction of the way from ``begin`` to ``end`` at which it enters or leaves."""


@dataclass(frozen=True)
class Box:
    """A pair of cuts for each dimension."""

    cuts: tuple[tuple[Cut, Cut], ...]

    def holds(self, point: Point) -> bool:
        return all(is_between(cuts, number) for cuts, number in zip(self.cuts, point, strict=True))

    def meetings(self, begin: Point, end: Point) -> Iterator[Fraction]:
        for cuts, a, b in zip(self.cuts, begin, end, strict=True):
            for border, _ in cuts:
                if math.isfinite(border) and a != b:
                    yield (Fraction(border) - Fraction(a)) / (Fraction(b) - Fraction(a))


@dataclass(frozen=True)
class BoxOnGlobe(Box):
    """A box of longitude and latitude; a western border above the eastern one: over the antimeridian."""

    def holds(self, point: Point) -> bool:
        (west, east), latitudes = self.cuts
        lon = (_turned_back(point[0]), BEFORE)
        in_longitude = west <= lon < east if west < east else west <= lon or lon < east
        return in_longitude and Box((latitudes,)).holds(point[1:])

    def meetings(self, begin: Point, end: Point) -> Iterator[Fraction]:
        yield from super().meetings(begin, end)
        yield from Box((((-180.0, BEFORE), (180.0, BEFORE)),)).meetings(begin[:1], end[:1])


@dataclass(frozen=True)
class Polygon:
    """What an odd number of edges is strictly to the right of, over all rings."""

    rings: tuple[tuple[Value, ...], ...]

    def holds(self, point: Point) -> bool:
        return sum(_is_left_of(point, a, b) for ring in self.rings for a, b in _edges(ring)) % 2 == 1

    def meetings(self, begin: Point, end: Point) -> Iterator[Fraction]:
        (px, py), way = _exact(begin), _minus(end, begin)
        for a, b in (edge for ring in self.rings for edge in _edges(ring)):
            (ax, ay), edge = _exact(a), _minus(b, a)
            across = _cross(way, edge)
            if across:
                yield _cross((ax - px, ay - py), edge) / across
            elif _cross((ax - px, ay - py), way) == 0:  # along the edge
                for vertex in (a, b):
                    yield _dot(_minus(vertex, begin), way) / _dot(way, way)


@dataclass(frozen=True)
class PolygonOnGlobe(Polygon):
    """The same on longitude and latitude, where 190 is another name of -170; longitudes of a ring do not jump."""

    def holds(self, point: Point) -> bool:
        lon, lat = _turned_back(point[0]), point[1]
        return sum(Polygon(self.rings).holds((lon + turn, lat)) for turn in TURNS) % 2 == 1


@dataclass(frozen=True)
class Circle:
    """A closed circle in the plane."""

    center: Value
    radius: float

    def holds(self, point: Point) -> bool:
        return _dot(_minus(point, self.center), _minus(point, self.center)) <= Fraction(self.radius) ** 2

    def meetings(self, begin: Point, end: Point) -> Iterator[Fraction]:
        start, way = _minus(begin, self.center), _minus(end, begin)
        a, b, c = _dot(way, way), _dot(start, way), _dot(start, start) - Fraction(self.radius) ** 2
        if a and b * b >= a * c:
            for sign in (-1, 1):
                yield Fraction((-float(b) + sign * math.sqrt(b * b - a * c)) / float(a))


@dataclass(frozen=True)
class CircleOnGlobe:
    """A closed circle on the globe, by the haversine formula."""

    center: Value
    metres: float

    def holds(self, point: Point) -> bool:
        (lon, lat), (to_lon, to_lat) = (map(math.radians, map(float, ends)) for ends in (self.center, point))
        half = math.sin((to_lat - lat) / 2) ** 2
        half += math.cos(lat) * math.cos(to_lat) * math.sin((to_lon - lon) / 2) ** 2
        return 2 * EARTH_RADIUS_METRES * math.asin(min(1.0, math.sqrt(half))) <= self.metres

    def meetings(self, begin: Point, end: Point) -> Iterator[Fraction]:
        def holds(share: float) -> bool:
            return self.holds([float(a) + (float(b) - float(a)) * share for a, b in zip(begin, end, strict=True)])

        for sample in range(SAMPLES):
            low, high = sample / SAMPLES, (sample + 1) / SAMPLES
            if holds(low) == holds(high):
                continue
            while (middle := (low + high) / 2) not in (low, high):
                low, high = (middle, high) if holds(middle) == holds(low) else (low, middle)
            # The same for each turn, where degrees are rounded otherwise: no visit lies between two names of one cut.
            yield Fraction(round(high, 12))


def visits(region: Region, begin: Value, end: Value, *, lonlat: bool) -> list[tuple[Fraction, Fraction]]:
    """Return the stretches of the straight way that are inside, as fractions of it, each longer than nothing.

    The way is cut wherever it could enter or leave; what the middle of a piece is, all of it is. What only touches
    the way, a corner outside or a hole inside, has no length and does not count; but on a line, one point does.
    """
    if lonlat and abs(end[0] - begin[0]) > 180:  # the short way round
        end = (end[0] - math.copysign(360, end[0] - begin[0]), end[1])
    if begin == end:
        return []
    cuts = {Fraction(0), Fraction(1)}
    for turn in TURNS if lonlat else (0,):
        turned = [(point[0] + turn, *point[1:]) for point in (begin, end)]
        cuts |= {cut for cut in region.meetings(*turned) if 0 < cut < 1}
    found: list[tuple[Fraction, Fraction]] = []
    for low, high in pairwise(sorted(cuts)):
        if region.holds(point_on(begin, end, (low + high) / 2)):
            joins = bool(found) and found[-1][1] == low
            found.append((found.pop()[0] if joins else low, high))
    if len(begin) == 1 and not found:
        found += [(cut, cut) for cut in cuts if region.holds(point_on(begin, end, cut))]
    return found


def point_on(begin: Value, end: Value, share: Fraction, *, lonlat: bool = False) -> tuple[Fraction, ...]:
    """Return the point at a fraction of the way; with ``lonlat`` of the short way round, in [-180, 180)."""
    if lonlat and abs(end[0] - begin[0]) > 180:
        end = (end[0] - math.copysign(360, end[0] - begin[0]), end[1])
    exact = [Fraction(a) + (Fraction(b) - Fraction(a)) * share for a, b in zip(begin, end, strict=True)]
    return (_turned_back(exact[0]), *exact[1:]) if lonlat else tuple(exact)


def read_region(region: dict[str, Any], dimensions: Sequence[str], bounds: str, *, lonlat: bool) -> Region:
    """Return the region of a definition, which is a right one."""
    ((kind, body),) = region.items()
    if kind == "box":
        cuts = tuple(read_cuts(body.get(name, (None, None)), bounds) for name in dimensions)
        return BoxOnGlobe(cuts) if lonlat else Box(cuts)
    if kind == "circle":
        center = _floats(body["center"])
        return CircleOnGlobe(center, float(body["radius"])) if lonlat else Circle(center, float(body["radius"]))
    rings = [body]
    if kind == "geojson":
        body = body["geometry"] if body["type"] == "Feature" else body
        polygons = [body["coordinates"]] if body["type"] == "Polygon" else body["coordinates"]
        rings = [ring for polygon in polygons for ring in polygon]
    vertices = [tuple(_floats(vertex[:2]) for vertex in ring) for ring in rings]
    if not lonlat:
        return Polygon(tuple(map(_opened, vertices)))
    return PolygonOnGlobe(tuple(_opened(tuple(_without_jumps(ring))) for ring in vertices))


def is_between(cuts: tuple[Cut, Cut], number: Any) -> Any:
    """Return whether a number is between two cuts; of an array of numbers, whether each is."""
    (lo, lo_side), (hi, hi_side) = cuts
    is_above = number >= lo if lo_side == BEFORE else number > lo
    is_below = number < hi if hi_side == BEFORE else number <= hi
    return is_above & is_below


def read_cuts(ends: Sequence[float | None], bounds: str = "[)") -> tuple[Cut, Cut]:
    """Return the two ends of an interval as cuts; None: unbounded."""
    lo, hi = ends
    lower = (-math.inf, BEFORE) if lo is None else (float(lo), BEFORE if bounds[0] == "[" else AFTER)
    upper = (math.inf, AFTER) if hi is None else (float(hi), AFTER if bounds[1] == "]" else BEFORE)
    return lower, upper


def _without_jumps(ring: Iterable[Value]) -> Iterator[Value]:
    before: float | None = None
    for lon, lat in ring:
        if before is not None and abs(lon - before) > 180:
            lon += 360 * round((before - lon) / 360)
        before = lon
        yield lon, lat


def _opened(ring: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the ring without a last vertex that repeats the first."""
    return ring[:-1] if ring[0] == ring[-1] else ring


def _edges(ring: tuple[Value, ...]) -> Iterator[tuple[Value, Value]]:
    return zip(ring, (*ring[1:], ring[0]), strict=True)


def _is_left_of(point: Point, a: Value, b: Value) -> bool:
    """Return whether a ray to the right meets the edge; its lower end counts, its upper end does not."""
    low, high = sorted((a, b), key=lambda end: end[1])
    return low[1] <= point[1] < high[1] and _cross(_minus(high, low), _minus(point, low)) > 0


def _turned_back(lon: Number) -> Any:
    """Return the longitude in [-180, 180)."""
    return (Fraction(lon) + 180) % 360 - 180


def _floats(numbers: Iterable[float]) -> Value:
    return tuple(map(float, numbers))


def _exact(point: Point) -> tuple[Fraction, ...]:
    return tuple(Fraction(number) for number in point)


def _minus(a: Point, b: Point) -> tuple[Fraction, ...]:
    return tuple(Fraction(x) - Fraction(y) for x, y in zip(a, b, strict=True))


def _cross(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return a[0] * b[1] - a[1] * b[0]


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
