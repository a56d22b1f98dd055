"""What a feed and a query are to the oracle: definitions of the control topic as records.

Part of `tests.oracle`; shares no code with `bmq`. Definitions are right ones: what must be refused is not read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tests.oracle_regions import Region, Value, read_region

Definition = dict[str, Any]

_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class Feed:
    """One input topic; durations in milliseconds."""

    dimensions: tuple[str, ...]
    lonlat: bool = False
    max_lateness: int = 0
    stream_ttl: int | None = None


@dataclass(frozen=True)
class Reading:
    """One value of one stream; ``event_time`` in epoch milliseconds. An attribute left out is null."""

    stream: str
    event_time: int
    value: Value
    attributes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Query:
    """One definition in force; durations in milliseconds, 0 or None: not asked for."""

    version: int
    feed: str
    region: Region
    exit_region: Region
    has_exit_region: bool
    streams: frozenset[str] | None
    where: tuple[tuple[str, frozenset[Any]], ...]
    silent: bool
    enabled: bool
    passes: bool
    ttl: int | None
    expires_at: int | None
    stream_ttl: int | None
    stay_for: int
    away_for: int
    cooldown: int
    max_events: int | None
    pattern: str | None
    within: int
    extras: str

    @property
    def is_tracked(self) -> bool:
        """Whether something is kept of its streams beyond their last readings."""
        options = self.has_exit_region, self.stay_for, self.away_for, self.cooldown, self.max_events, self.pattern
        return any(options)

    def in_scope(self, reading: Reading) -> bool:
        """Return whether the query looks at this reading at all."""
        attributes = dict(reading.attributes)
        named = self.streams is None or reading.stream in self.streams
        fits = all(_comparable(attributes.get(name)) in wanted for name, wanted in self.where)
        return self.enabled and named and fits

    def enters(self, reading: Reading) -> bool:
        """Return whether the reading is inside, wherever its stream was before."""
        return self.in_scope(reading) and self.region.holds(reading.value)

    def stays(self, reading: Reading) -> bool:
        """Return whether the reading is inside if its stream was inside before."""
        return self.in_scope(reading) and self.exit_region.holds(reading.value)

    def same_as(self, other: "Query") -> bool:
        """Return whether both say the same, whatever their versions."""
        return replace(self, version=0) == replace(other, version=0)

    def can_go_on_as(self, other: "Query") -> bool:
        """Return whether what is known of the streams means anything to the other version."""
        return self.feed == other.feed and (self.pattern is None) == (other.pattern is None)

    def watches_as(self, other: "Query") -> bool:
        """Return whether both look at the same readings in the same way, so that what waits goes on waiting."""
        names = ("feed", "region", "exit_region", "has_exit_region", "streams", "where", "enabled", "pattern")
        return all(getattr(self, name) == getattr(other, name) for name in names)


def read_query(version: int, definition: Definition, feeds: Mapping[str, Feed]) -> Query:
    """Return the query of a right definition."""
    rest = dict(definition)
    rest.pop("kind")
    name, bounds = rest.pop("feed"), rest.pop("bounds", "[)")
    feed = feeds[name]
    region = read_region(rest.pop("region"), feed.dimensions, bounds, lonlat=feed.lonlat)
    outer = rest.pop("exit_region", None)
    streams = rest.pop("streams", None)
    where = rest.pop("where", {})
    return Query(
        version=version,
        feed=name,
        region=region,
        exit_region=region if outer is None else read_region(outer, feed.dimensions, bounds, lonlat=feed.lonlat),
        has_exit_region=outer is not None,
        streams=None if streams is None else frozenset(streams),
        where=tuple((name, _wanted(where[name])) for name in sorted(where)),
        silent=rest.pop("initial", "emit") == "silent",
        enabled=rest.pop("enabled", True),
        passes=rest.pop("passes", False),
        ttl=_duration(rest.pop("ttl", None)),
        expires_at=_time(rest.pop("expires_at", None)),
        stream_ttl=_duration(rest.pop("stream_ttl", None)),
        stay_for=_duration(rest.pop("stay_for", None)) or 0,
        away_for=_duration(rest.pop("away_for", None)) or 0,
        cooldown=_duration(rest.pop("cooldown", None)) or 0,
        max_events=rest.pop("max_events", None),
        pattern=rest.pop("pattern", None),
        within=_duration(rest.pop("within", None)) or 0,
        extras=json.dumps({"tags": {}} | rest, sort_keys=True),
    )


def _duration(text: str | None) -> int | None:
    if text is None:
        return None
    number = text.rstrip("msdh")
    return int(number) * _MS[text.removeprefix(number)]


def _time(time: int | str | None) -> int | None:
    if not isinstance(time, str):
        return time
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def _wanted(values: Any) -> frozenset[Any]:
    return frozenset(map(_comparable, values if isinstance(values, list) else [values]))


def _comparable(value: Any) -> Any:
    """Return what equals another value's if the two are equal in JSON: 5 and 5.0, but neither "5" nor true."""
    if isinstance(value, list | dict):
        return object()  # equals nothing
    return ("number", float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else (value,)
