"""Planes that fly between cities on great circles, and the areas that watch them.

Time is 60 times faster than on a clock, so that on a map of the world a plane is seen to move.
"""

from typing import Any, NamedTuple

import numpy as np

from bmq.demo.generated_streams import World
from bmq.records import Float64s, Int64s

AIRPORT_METRES = 220_000.0  # the radius of the area around a city: some seconds of flight
_EARTH_METRES = 6_371_008.8


class City(NamedTuple):
    """A city with an airport."""

    code: str
    name: str
    lon: float
    lat: float


CITIES = tuple(
    City(*row)
    for row in (
        ("LHR", "London", -0.45, 51.47),
        ("CDG", "Paris", 2.55, 49.01),
        ("FRA", "Frankfurt", 8.57, 50.03),
        ("MAD", "Madrid", -3.57, 40.47),
        ("FCO", "Rome", 12.25, 41.80),
        ("ARN", "Stockholm", 17.92, 59.65),
        ("IST", "Istanbul", 28.74, 41.28),
        ("CAI", "Cairo", 31.41, 30.12),
        ("DXB", "Dubai", 55.36, 25.25),
        ("NBO", "Nairobi", 36.93, -1.32),
        ("JNB", "Johannesburg", 28.24, -26.13),
        ("LOS", "Lagos", 3.32, 6.58),
        ("DKR", "Dakar", -17.07, 14.67),
        ("DEL", "Delhi", 77.10, 28.57),
        ("BOM", "Mumbai", 72.87, 19.09),
        ("BKK", "Bangkok", 100.75, 13.69),
        ("SIN", "Singapore", 103.99, 1.36),
        ("CGK", "Jakarta", 106.66, -6.13),
        ("HKG", "Hong Kong", 113.91, 22.31),
        ("PEK", "Beijing", 116.60, 40.08),
        ("ICN", "Seoul", 126.45, 37.46),
        ("HND", "Tokyo", 139.78, 35.55),
        ("SYD", "Sydney", 151.18, -33.95),
        ("PER", "Perth", 115.97, -31.94),
        ("AKL", "Auckland", 174.79, -37.01),
        ("NAN", "Nadi", 177.44, -17.76),
        ("HNL", "Honolulu", -157.92, 21.32),
        ("ANC", "Anchorage", -150.00, 61.17),
        ("SEA", "Seattle", -122.31, 47.45),
        ("SFO", "San Francisco", -122.38, 37.62),
        ("LAX", "Los Angeles", -118.41, 33.94),
        ("DEN", "Denver", -104.67, 39.86),
        ("ORD", "Chicago", -87.91, 41.98),
        ("JFK", "New York", -73.78, 40.64),
        ("YYZ", "Toronto", -79.63, 43.68),
        ("MIA", "Miami", -80.29, 25.79),
        ("MEX", "Mexico City", -99.07, 19.44),
        ("BOG", "Bogota", -74.15, 4.70),
        ("LIM", "Lima", -77.11, -12.02),
        ("GRU", "Sao Paulo", -46.47, -23.44),
        ("EZE", "Buenos Aires", -58.54, -34.82),
        ("SCL", "Santiago", -70.79, -33.39),
        ("KEF", "Reykjavik", -22.61, 63.99),
    )
)

# Areas as people draw them: polygons, one with a hole, and a box over the antimeridian.
_AREAS: dict[str, dict[str, Any]] = {
    "north-atlantic": {"polygon": [[-50, 40], [-48, 57], [-32, 62], [-15, 60], [-12, 46], [-25, 38]]},
    "sahara": {"polygon": [[-9, 19], [-5, 29], [10, 32], [27, 29], [32, 20], [15, 16]]},
    "bay-of-bengal": {"polygon": [[81, 8], [81, 15], [88, 21], [93, 18], [95, 8]]},
    "date-line": {"box": {"lon": [172, -165], "lat": [-28, 12]}},
    "alpine-ring": {
        "geojson": {
            "type": "Polygon",
            "coordinates": [
                [[3, 42], [17, 42], [19, 47], [15, 52.5], [5, 52.5], [1, 47], [3, 42]],
                [[8, 45.5], [7, 48], [10, 49], [13, 48], [12.5, 45.5], [8, 45.5]],
            ],
        }
    },
}


class Flights(World):
    """Planes, each on the great circle from one city to another; on arrival it flies on to a third one.

    Parameters
    ----------
    n_streams : number of planes.
    seed : of all random numbers.
    """

    feed = "flights"
    id_field = "flight"
    dimensions = ("lon", "lat")
    space = "lonlat"

    METRES_A_SECOND = 250.0 * 60  # an airliner, 60 times faster
    _SPREAD = 0.15  # the fastest plane is that much faster than the mean one

    def __init__(self, n_streams: int = 600, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self.ids = tuple(f"BM{100 + i}" for i in range(n_streams))
        lon, lat = np.radians([city.lon for city in CITIES]), np.radians([city.lat for city in CITIES])
        self._places = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
        self._from = self._random.integers(0, len(CITIES), n_streams)
        self._to = self._next_cities(self._from)
        self._speeds = self.METRES_A_SECOND * self._random.uniform(1 - self._SPREAD, 1 + self._SPREAD, n_streams)
        self._metres = self._random.uniform(0, self._lengths(np.arange(n_streams)))

    def move(self, rows: Int64s, seconds: float) -> Float64s:
        """Move the planes ``rows`` for ``seconds``; return their (lon, lat) in degrees, float64[2, rows.size]."""
        self._metres[rows] += self._speeds[rows] * seconds
        landed = rows[self._metres[rows] >= self._lengths(rows)]
        self._metres[landed] = 0.0
        self._from[landed] = self._to[landed]
        self._to[landed] = self._next_cities(self._from[landed])
        angles = self._metres[rows] / _EARTH_METRES
        whole = self._lengths(rows) / _EARTH_METRES
        a, b = self._places[self._from[rows]], self._places[self._to[rows]]
        weights = np.stack([np.sin(whole - angles), np.sin(angles)]) / np.sin(whole)
        x, y, z = (weights[0, :, np.newaxis] * a + weights[1, :, np.newaxis] * b).T
        degrees: Float64s = np.degrees(np.stack([np.arctan2(y, x), np.arcsin(np.clip(z, -1, 1))]))
        return degrees.round(4)  # ten metres

    def _lengths(self, rows: Int64s) -> Float64s:
        """Return the length of the flights in metres."""
        cosines = np.einsum("ij,ij->i", self._places[self._from[rows]], self._places[self._to[rows]])
        lengths: Float64s = np.arccos(np.clip(cosines, -1, 1)) * _EARTH_METRES
        return lengths

    def _next_cities(self, cities: Int64s) -> Int64s:
        """Return another city for each of these."""
        return (cities + self._random.integers(1, len(CITIES), cities.size)) % len(CITIES)


def flight_queries() -> dict[str, dict[str, Any]]:
    """Return a circle around each city, and the large areas."""
    airports = {
        f"airport-{city.code}": _border(
            {"circle": {"center": [city.lon, city.lat], "radius": AIRPORT_METRES}}, {"city": city.name}
        )
        for city in CITIES
    }
    return airports | {name: _border(region, {}) for name, region in _AREAS.items()}


def _border(region: dict[str, Any], tags: dict[str, str]) -> dict[str, Any]:
    return {"kind": "border", "feed": Flights.feed, "region": region, "tags": tags}
