"""What one tenant may do: commands and records that cost as much as the rules allow, or more."""

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Record = tuple[str, bytes | None, bytes | None]  # topic ("control", or a feed), key, value
FEEDS: dict[str, dict[str, Any]] = {
    "line": {"dimensions": ["x"], "event_time_unit": "ms"},
    "plane": {"dimensions": ["x", "y"], "event_time_unit": "ms"},
    "left": {"dimensions": ["x"], "event_time_unit": "ms", "join": True},
    "right": {"dimensions": ["x"], "event_time_unit": "ms", "join": True},
}
N_PLANE_STREAMS = 20_000
N_JOINED_STREAMS = 1_500
N_PASSED = 9_000
N_MANY = 100_000
NOW = 1_700_000_000_000


@dataclass(frozen=True)
class Abuse:
    """One thing that a tenant does.

    Attributes
    ----------
    before : records that are sent before, and are no part of the abuse.
    records : that are sent at once.
    """

    name: str
    before: Callable[[], Iterator[Record]]
    records: Callable[[], Iterator[Record]]


def put(query_id: str, **definition: Any) -> Record:
    """Return the record that puts a query."""
    return "control", query_id.encode(), json.dumps(definition).encode()


def reading(feed: str, stream: str, time: int, **values: float) -> Record:
    """Return a reading."""
    return feed, stream.encode(), json.dumps({"id": stream, "ts": NOW + time, **values}).encode()


def abuses(*, is_short: bool) -> list[Abuse]:
    """Return all of them, in the order in which they are tried; ``is_short``: with fewer registrations."""
    n_many = N_MANY // 20 if is_short else N_MANY
    shapes = {
        "5,000 nested squares": {"geojson": {"type": "Polygon", "coordinates": [_square(1 + n) for n in range(5_000)]}},
        "500 nested squares": {"geojson": {"type": "Polygon", "coordinates": [_square(1 + n) for n in range(500)]}},
        "500 squares side by side": {
            "geojson": {"type": "MultiPolygon", "coordinates": [[_square(0.5, 3.0 * n)] for n in range(500)]}
        },
        "a ring of 10,000 vertices": {"polygon": _star(9_999)},
        "a line of 10,000 vertices that crosses itself": {"polygon": _scribble(9_999)},
    }
    names = [f"s{n}" for n in range(20_000)]
    everywhere = {"box": {"x": [None, None], "y": [None, None]}}
    some = {"box": {"x": [0, 10]}}
    return [
        *(_one(name, kind="border", feed="plane", region=shape) for name, shape in shapes.items()),
        _one("5,000 values in where", kind="border", feed="line", region=some, where={"group": names[:5_000]}),
        _one("20,000 streams", kind="border", feed="line", region=some, streams=names),
        _one(
            "1,000 conjunctions",
            kind="match",
            feed="line",
            any=[{"region": {"box": {"x": [n, n + 500]}}, "where": {"group": str(n)}} for n in range(1_000)],
        ),
        Abuse("900 KB of brackets as a command", _nothing, lambda: iter([("control", b"abuse", b"[" * 900_000)])),
        Abuse("900 KB of brackets as a reading", _nothing, lambda: iter([("plane", b"abuse", b"[" * 900_000)])),
        Abuse(
            "a number of 900,000 digits",
            _nothing,
            lambda: iter([("plane", b"abuse", b'{"id":"abuse","ts":1,"x":' + b"9" * 900_000 + b',"y":1}')]),
        ),
        # The id is in key and value, and the broker takes 1 MB.
        Abuse("an id of 450 KB", _nothing, lambda: iter([reading("plane", "a" * 450_000, 0, x=1, y=1)])),
        Abuse(
            f"a region that holds {N_PLANE_STREAMS:,} streams, with 1,000 characters of tags",
            _plane_streams,
            lambda: iter([put("abuse", kind="border", feed="plane", region=everywhere, tags={"tag": "a" * 1_000})]),
        ),
        Abuse("its end", _nothing, lambda: iter([("control", b"abuse", None)])),
        Abuse(
            "a jump through 9,000 regions", _passed_regions, lambda: iter([reading("plane", "jumps", 1, x=3e5, y=-5)])
        ),
        Abuse(
            "a jump through 18,000 regions",
            _more_passed_regions,
            lambda: iter([reading("plane", "jumps", 2, x=0, y=-5)]),
        ),
        Abuse("a join of 1,500 by 1,500 streams", _joined_streams, lambda: iter([_join([None, None])])),
        Abuse("a join with 100,000 pairs", _nothing, lambda: iter([_join([-33.2, 33.2])])),
        Abuse("its end again", _nothing, lambda: iter([("control", b"abuse", None)])),
        Abuse(f"{n_many:,} registrations", _nothing, lambda: _many(n_many)),
        Abuse(f"{n_many:,} deletes", _nothing, lambda: (("control", b"many-%d" % n, None) for n in range(n_many))),
    ]


def _one(name: str, **definition: Any) -> Abuse:
    return Abuse(name, _nothing, lambda: iter([put("abuse", **definition)]))


def _nothing() -> Iterator[Record]:
    return iter(())


def _plane_streams() -> Iterator[Record]:
    yield from (reading("plane", f"p{n}", 0, x=n, y=0) for n in range(N_PLANE_STREAMS))


def _joined_streams() -> Iterator[Record]:
    for feed in ("left", "right"):
        yield from (reading(feed, f"{feed}-{n}", 0, x=n) for n in range(N_JOINED_STREAMS))


def _join(band: list[float | None]) -> Record:
    return put("abuse", kind="band_join", left="left", right="right", on={"left": "x", "right": "x"}, band=band)


def _passed_regions() -> Iterator[Record]:
    yield reading("plane", "jumps", 0, x=-10, y=-5)
    yield from _regions_to_pass(0, N_PASSED)


def _more_passed_regions() -> Iterator[Record]:
    return _regions_to_pass(N_PASSED, 2 * N_PASSED)


def _regions_to_pass(first: int, end: int) -> Iterator[Record]:
    for n in range(first, end):
        yield put(
            f"passed-{n}",
            kind="border",
            feed="plane",
            region={"box": {"x": [10 * n, 10 * n + 5], "y": [-9, -1]}},
            passes=True,
        )


def _many(n_queries: int) -> Iterator[Record]:
    for n in range(n_queries):
        yield put(f"many-{n}", kind="border", feed="plane", region={"box": {"x": [n, n + 10], "y": [0, 10]}})


def _square(half: float, x: float = 0.0) -> list[list[float]]:
    corners = [[x - half, -half], [x + half, -half], [x + half, half], [x - half, half]]
    return [*corners, corners[0]]


def _star(n: int) -> list[list[float]]:
    """Return a ring whose vertices are near and far by turns."""
    points = [
        [
            (1 + n_point % 2) * math.cos(2 * math.pi * n_point / n),
            (1 + n_point % 2) * math.sin(2 * math.pi * n_point / n),
        ]
        for n_point in range(n)
    ]
    return [*points, points[0]]


def _scribble(n: int) -> list[list[float]]:
    rng = random.Random(1)
    points = [[rng.uniform(0, 100), rng.uniform(0, 100)] for _ in range(n)]
    return [*points, points[0]]
