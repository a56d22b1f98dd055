"""Scenario files as records, renamed so that all scenarios of a file can share one service.

Scenario n of a file owns what begins with ``s<n>_``: its feeds, their topics and its query ids. The order of
query ids is kept, since all of one scenario begin alike. Knows JSON and the format of the file; knows neither
Kafka nor the monitor. What a definition says goes out as it is: refusing it is the service's part.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Json = dict[str, Any]

BASE_MS = 1_700_000_000_000  # event time of second 0 of every scenario
CLOCK_STREAM = "~clock"  # the "other stream" of a clock step; ids in scenarios are short words
FAR = 1e9  # where the clock stream is, unless some region reaches that far
# The feeds of a join have points of their own, so that their clock streams never pair.
FAR_TIMES = {"right": 3, "slow": 5, "brief": 7}

ATTRIBUTE = "group"  # of every feed
OUTPUT_PREFIX = "bmq."  # how a topic that a query names must begin, where the configuration says nothing else

FEEDS: dict[str, Json] = {
    "line": {"dimensions": ["x"]},
    "plane": {"dimensions": ["x", "y"]},
    "cube": {"dimensions": ["x", "y", "z"]},
    "globe": {"dimensions": ["lon", "lat"], "space": "lonlat"},
    "left": {"dimensions": ["price"], "join": True},
    "right": {"dimensions": ["price"], "join": True},
    "tardy": {"dimensions": ["x"], "max_lateness": "5s"},
    # Feeds of this project's own scenarios.
    "slow": {"dimensions": ["price"], "join": True, "max_lateness": "5s"},
    "brief": {"dimensions": ["price"], "join": True, "stream_ttl": "10s"},
}


class ScenarioError(Exception):
    """A step cannot be played as the scenario says it."""


@dataclass(frozen=True)
class Commands:
    """Records for the control topic, (query id, value or None), and the reply that each must get."""

    records: tuple[tuple[str, bytes | None], ...]
    reply: str


@dataclass(frozen=True)
class Publish:
    """Record values for one feed, as one record batch to one partition."""

    feed: str
    values: tuple[bytes, ...]


@dataclass(frozen=True)
class Restart:
    """The service ends by SIGKILL or SIGTERM and starts again on the same checkpoint."""

    how: Literal["kill", "stop"]


@dataclass(frozen=True)
class Dead:
    """The dead letters since the last such step, by code."""

    counts: dict[str, int]


@dataclass(frozen=True)
class Expect:
    """The events since the last such step, in this order for each stream or pair."""

    texts: tuple[str, ...]


Step = Commands | Publish | Restart | Dead | Expect


@dataclass(frozen=True)
class Scenario:
    """One scenario under its own names; ``feeds`` maps those to their options in the configuration.

    ``broken`` says why a line is no scenario of the format that the runner knows; it then has no steps.
    """

    name: str
    rule: str
    prefix: str
    feeds: dict[str, Json]
    steps: tuple[Step, ...]
    broken: str | None = None


def load(path: Path, letter: str = "s") -> list[Scenario]:
    """Return the scenarios of a file, one JSON object a line. Another line comes back as a broken one.

    ``letter`` begins the names of all of them; files that are played together need letters of their own.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    return [parse(line, f"{letter}{number}_") for number, line in enumerate(lines, start=1) if line.strip()]


def parse(line: str, prefix: str) -> Scenario:
    """Return the scenario of one line, its feeds and query ids renamed to begin with ``prefix``."""
    name = f"the scenario {prefix}"
    try:
        raw: Json = json.loads(line)
        name, rule = raw["name"], raw["rule"]
        reader = _Reader(raw, prefix)
        return Scenario(name, rule, prefix, reader.feeds(), tuple(map(reader.step, raw["steps"])))
    except (ScenarioError, AttributeError, LookupError, TypeError, ValueError) as error:
        return Scenario(name, "", prefix, {}, (), broken=f"not a scenario the runner can play: {error!r}")


def all_feeds(scenarios: Iterable[Scenario]) -> dict[str, Json]:
    """Return the feeds that one service needs for all scenarios, and their options.

    There is always one: a service without feeds does not start, and scenarios may have none it can serve.
    """
    feeds = {"spare": FEEDS["line"]}
    for scenario in scenarios:
        feeds |= scenario.feeds
    return feeds


class _Reader:
    """Reads the steps of one scenario; knows all its definitions, to keep the clock stream out of them."""

    def __init__(self, raw: Json, prefix: str) -> None:
        self._steps: list[Json] = raw["steps"]
        self._prefix = prefix
        self._definitions: list[Json] = [
            definition
            for step in self._steps
            if not step.get("reply", "").startswith("rejected")
            for definition in step.get("put", {}).values()
        ]

    def feeds(self) -> dict[str, Json]:
        """Return the feeds that the scenario mentions and the conformance set declares."""
        named = {step["feed"] for step in self._steps if "feed" in step}
        named |= {"line" for step in self._steps if "raw" in step}
        puts = [definition for step in self._steps for definition in step.get("put", {}).values()]
        named |= {feed for definition in puts for feed in _feeds_of(definition)}
        return {self._prefix + feed: FEEDS[feed] for feed in sorted(named & FEEDS.keys())}

    def step(self, raw: Json) -> Step:
        """Return one step, ready to be published or compared."""
        match raw:
            case {"put": definitions}:
                records = tuple((self._prefix + q, _dump(self._rename(d))) for q, d in definitions.items())
                return Commands(records, raw.get("reply", "accepted"))
            case {"delete": query_ids}:
                tombstones = tuple((self._prefix + q, None) for q in query_ids)
                return Commands(tombstones, raw.get("reply", "deleted"))
            case {"feed": feed, "read": readings}:
                return Publish(self._prefix + feed, tuple(_dump(reading(feed, *r)) for r in readings))
            case {"feed": feed, "clock": t}:
                away = _outside(feed, self._definitions)
                return Publish(self._prefix + feed, (_dump(reading(feed, CLOCK_STREAM, t, away)),))
            case {"raw": texts}:
                return Publish(self._prefix + "line", tuple(text.encode() for text in texts))
            case {"restart": "kill" | "stop" as how}:
                return Restart(how)
            case {"dead": counts}:
                return Dead(counts)
            case {"expect": texts}:
                return Expect(tuple(texts))
        raise ScenarioError(f"unknown step {raw!r}")

    def _rename(self, definition: Any) -> Any:
        """Return the definition with its feeds renamed; unknown ones too, so that they stay unknown."""
        if not isinstance(definition, dict):
            return definition
        renamed = dict(definition)
        for field in ("feed", "left", "right"):
            if isinstance(definition.get(field), str):
                renamed[field] = self._prefix + definition[field]
            elif isinstance(definition.get(field), dict):
                renamed[field] = self._rename(definition[field])
        return renamed


def with_topic(value: bytes | None, topic_of: Callable[[str], str | None]) -> bytes | None:
    """Return a definition with another output topic in place of a right one; None: with none."""
    try:
        definition = json.loads(value or b"")
        topic: object = definition["output_topic"]
    except (ValueError, LookupError, TypeError):
        return value
    if not isinstance(topic, str) or not topic.startswith(OUTPUT_PREFIX):
        return value
    return _dump(definition | {"output_topic": topic_of(topic)})


def reading(feed: str, stream: object, t: object, value: object, attributes: Json | None = None) -> Json:
    """Return the JSON object of one reading; what is no number goes out as it is.

    A list of values that is shorter than the feed's dimensions leaves the last ones out.
    """
    values = value if isinstance(value, list) else [value]
    event_time = BASE_MS + round(t * 1000) if isinstance(t, int | float) else t
    # Not strict: a shorter list is how a scenario leaves dimensions out.
    dimensions = dict(zip(FEEDS[feed]["dimensions"], values, strict=False))
    return {"id": stream, "ts": event_time, **dimensions, **(attributes or {})}


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _feeds_of(definition: object) -> Iterator[str]:
    if not isinstance(definition, dict):
        return
    for field in ("feed", "left", "right"):
        side = definition.get(field)
        if isinstance(side, dict):
            side = side.get("feed")
        if isinstance(side, str):
            yield side


# What a reading must fulfil to be inside: (dimension, lo, hi), None: unbounded.
Asked = list[tuple[str, float | None, float | None]]


def _outside(feed: str, definitions: Iterable[Json]) -> list[float]:
    """Return a point of the feed outside every region of the definitions, and out of every band with others.

    Shapes are bounded, so only boxes and bands, which may be unbounded, can hold a point as far away as these.

    Raises
    ------
    ScenarioError
        No candidate lies outside: together they cover all corners of the space.
    """
    dimensions: list[str] = FEEDS[feed]["dimensions"]
    far = FAR * FAR_TIMES.get(feed, 1)
    corners = [(far, -far)] * len(dimensions) if feed != "globe" else [(-150.5, 30.5), (-80.5, 80.5)]
    asked = [one for definition in definitions for one in _asked(definition, feed)]
    for corner in itertools.product(*corners):
        if not any(_holds(one, dict(zip(dimensions, corner, strict=True))) for one in asked):
            return list(corner)
    raise ScenarioError(f"a clock step on feed {feed!r}, but boxes of the scenario hold every far point of it")


def _asked(definition: Json, feed: str) -> Iterator[Asked]:
    """Yield what a definition asks of the feed's readings, each of which holds a point if all of it does."""
    for field in ("region", "exit_region"):
        if "box" in definition.get(field, {}):
            yield _intervals(definition[field]["box"])
    if definition.get("kind") == "select":
        yield from map(_intervals, definition["any"])
    if definition.get("kind") == "band_join":
        lo, hi = definition["band"]
        for side in _sides_of(definition, feed):
            yield [_beside_small(side, definition["on"][side], lo, hi)]
    if definition.get("kind") == "window_join":
        for side, conjunction in itertools.product(_sides_of(definition, feed), definition["any"]):
            named = {name: ends for name, ends in conjunction.items() if name.startswith(f"{side}.")}
            bands = [
                _beside_small(side, (left if side == "left" else right), lo, hi)
                for left, right, lo, hi, *_ in conjunction.get("band", [])
            ]
            yield [(name.removeprefix(f"{side}."), lo, hi) for name, lo, hi in _intervals(named) + bands]


def _sides_of(definition: Json, feed: str) -> list[str]:
    """Return the sides of a join that are the feed: one or none."""
    feeds = {side: definition[side] for side in ("left", "right")}
    return [side for side, one in feeds.items() if feed == (one["feed"] if isinstance(one, dict) else one)]


def _intervals(box: Json) -> Asked:
    return [(name, ends[0], ends[1]) for name, ends in box.items()]


def _beside_small(side: str, name: str, lo: float | None, hi: float | None) -> tuple[str, float | None, float | None]:
    """Return where a far number is in band with all numbers of readings, which are small."""
    if side == "left":
        return name, lo, hi
    return name, None if hi is None else -hi, None if lo is None else -lo


def _holds(asked: Asked, point: dict[str, float]) -> bool:
    """Return whether closed intervals hold the point; a longitude range from high to low wraps."""
    for name, lo, hi in asked:
        if name not in point:  # an attribute, and a clock reading has none
            return False
        above, below = lo is None or point[name] >= lo, hi is None or point[name] <= hi
        wraps = name == "lon" and lo is not None and hi is not None and lo > hi
        if not ((above or below) if wraps else (above and below)):
            return False
    return True
