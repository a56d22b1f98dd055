"""The definition of what a shape holds: exact arithmetic, one edge after another. Shares no code with `bmq`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Point = tuple[float, float]


@dataclass(frozen=True)
class Rings:
    """A polygon: inside is what an odd number of edges is to the right of, over all rings."""

    rings: tuple[tuple[Point, ...], ...]

    def holds(self, x: float, y: float) -> bool:
        return sum(_is_crossed(a, b, x, y) for ring in self.rings for a, b in _edges(ring)) % 2 == 1


@dataclass(frozen=True)
class RingsOnGlobe(Rings):
    """The same on longitude and latitude, where 190 is another name of -170."""

    def holds(self, x: float, y: float) -> bool:
        return super().holds(x, y) or super().holds(x + 360, y)


@dataclass(frozen=True)
class Circle:
    """A closed circle in the plane."""

    x: float
    y: float
    radius: float

    def holds(self, x: float, y: float) -> bool:
        dx, dy = Fraction(x) - Fraction(self.x), Fraction(y) - Fraction(self.y)
        return dx * dx + dy * dy <= Fraction(self.radius) ** 2


@dataclass(frozen=True)
class CircleOnGlobe:
    """A closed circle on the globe: the angle between two unit vectors."""

    lon: float
    lat: float
    metres: float

    def distance(self, lon: float, lat: float) -> float:
        a, b = _unit_vector(self.lon, self.lat), _unit_vector(lon, lat)
        # Twice the arc sine of half the chord, which is exact for near places, too.
        return 2 * 6_371_008.8 * math.asin(min(1.0, math.dist(a, b) / 2))

    def holds(self, lon: float, lat: float) -> bool:
        return self.distance(lon, lat) <= self.metres


def _edges(ring: Sequence[Point]) -> list[tuple[Point, Point]]:
    return list(zip(ring, (*ring[1:], ring[0]), strict=True))


def _is_crossed(a: Point, b: Point, x: float, y: float) -> bool:
    """Return whether the edge from a to b is to the right of (x, y); its lower end counts, its upper one does not."""
    (low_x, low_y), (high_x, high_y) = sorted((a, b), key=lambda end: end[1])
    if not low_y <= y < high_y:
        return False
    share = (Fraction(y) - Fraction(low_y)) / (Fraction(high_y) - Fraction(low_y))
    return Fraction(x) < Fraction(low_x) + share * (Fraction(high_x) - Fraction(low_x))


def _unit_vector(lon: float, lat: float) -> tuple[float, float, float]:
    lon, lat = math.radians(lon), math.radians(lat)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)
