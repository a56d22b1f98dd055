"""What a feed and a query of one feed are to the oracle: definitions of the control topic as records.

Part of `tests.oracle`; shares no code with `bmq`. Definitions are right ones: what must be refused is not read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracle_regions import Box, BoxOnGlobe, Cut, Region, Value, read_cuts, read_region

Definition = dict[str, Any]
Where = tuple[tuple[str, frozenset[Any]], ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class Feed:
    """One input topic; durations in milliseconds."""

    dimensions: tuple[str, ...]
    lonlat: bool = False
    max_lateness: int = 0
    stream_ttl: int | None = None
    attributes: tuple[str, ...] = ("group",)
    join: bool = False


@dataclass(frozen=True)
class Reading:
    """One value of one stream; ``event_time`` in epoch milliseconds. An attribute left out is null."""

    stream: str
    event_time: int
    value: Value
    attributes: tuple[tuple[str, Any], ...] = ()

    def attribute(self, name: str) -> Any:
        """Return the value of an attribute."""
        return dict(self.attributes).get(name)


@dataclass(frozen=True)
class Conjunction:
    """What must hold of one reading: a box of the dimensions, and an interval of each attribute named."""

    box: Region
    numbers: frozenset[tuple[str, tuple[Cut, Cut]]]

    def holds(self, reading: Reading) -> bool:
        return self.box.holds(reading.value) and all(
            is_number(number := reading.attribute(name)) and Box((cuts,)).holds((float(number),))
            for name, cuts in self.numbers
        )


@dataclass(frozen=True)
class Query:
    """One definition in force; durations in milliseconds, 0 or None: not asked for.

    ``alternatives``: of a select query, any of which is to hold; of others none.
    """

    version: int
    kind: str
    feed: str
    region: Region
    exit_region: Region
    has_exit_region: bool
    streams: frozenset[str] | None
    where: Where
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
    alternatives: frozenset[Conjunction]
    extras: str

    @property
    def is_level(self) -> bool:
        """Whether every reading inside is emitted, and not where it comes in and goes out."""
        return self.kind in ("match", "select")

    @property
    def is_tracked(self) -> bool:
        """Whether something is kept of its streams beyond their last readings."""
        options = self.has_exit_region, self.stay_for, self.away_for, self.cooldown, self.max_events, self.pattern
        return any(options)

    def in_scope(self, reading: Reading) -> bool:
        """Return whether the query looks at this reading at all."""
        named = self.streams is None or reading.stream in self.streams
        return self.enabled and named and fits(self.where, reading)

    def enters(self, reading: Reading) -> bool:
        """Return whether the reading is inside, wherever its stream was before."""
        holds_any = not self.alternatives or any(one.holds(reading) for one in self.alternatives)
        return self.in_scope(reading) and self.region.holds(reading.value) and holds_any

    def stays(self, reading: Reading) -> bool:
        """Return whether the reading is inside if its stream was inside before."""
        return self.in_scope(reading) and self.exit_region.holds(reading.value)

    def same_as(self, other: "Query") -> bool:
        """Return whether both say the same, whatever their versions."""
        return replace(self, version=0) == replace(other, version=0)

    def can_go_on_as(self, other: "Query") -> bool:
        """Return whether what is known of the streams means anything to the other version."""
        return self.feed == other.feed and self.kind == other.kind and not self.is_level

    def watches_as(self, other: "Query") -> bool:
        """Return whether both look at the same readings in the same way, so that what waits goes on waiting."""
        names = ("feed", "region", "exit_region", "has_exit_region", "streams", "where", "enabled")
        return all(getattr(self, name) == getattr(other, name) for name in names)


def read_query(version: int, definition: Definition, feeds: Mapping[str, Feed]) -> Query:
    """Return the query of a right definition."""
    rest = dict(definition)
    kind = rest.pop("kind")
    name, bounds = rest.pop("feed"), rest.pop("bounds", "[)")
    feed = feeds[name]
    region = read_region(rest.pop("region", {"box": {}}), feed.dimensions, bounds, lonlat=feed.lonlat)
    outer = rest.pop("exit_region", None)
    streams = rest.pop("streams", None)
    where = rest.pop("where", {})
    return Query(
        version=version,
        kind=kind,
        feed=name,
        region=region,
        exit_region=region if outer is None else read_region(outer, feed.dimensions, bounds, lonlat=feed.lonlat),
        has_exit_region=outer is not None,
        streams=None if streams is None else frozenset(streams),
        where=read_where(where),
        silent=rest.pop("initial", "emit") == "silent",
        enabled=rest.pop("enabled", True),
        passes=rest.pop("passes", False),
        ttl=read_duration(rest.pop("ttl", None)),
        expires_at=read_time(rest.pop("expires_at", None)),
        stream_ttl=read_duration(rest.pop("stream_ttl", None)),
        stay_for=read_duration(rest.pop("stay_for", None)) or 0,
        away_for=read_duration(rest.pop("away_for", None)) or 0,
        cooldown=read_duration(rest.pop("cooldown", None)) or 0,
        max_events=rest.pop("max_events", None),
        pattern=rest.pop("pattern", None),
        within=read_duration(rest.pop("within", None)) or 0,
        alternatives=frozenset(read_conjunction(intervals, feed) for intervals in rest.pop("any", ())),
        extras=json.dumps({"tags": {}} | rest, sort_keys=True),
    )


def read_duration(text: str | None) -> int | None:
    """Return milliseconds."""
    if text is None:
        return None
    number = text.rstrip("msdh")
    return int(number) * _MS[text.removeprefix(number)]


def read_time(time: int | str | None) -> int | None:
    """Return epoch milliseconds. Raises ValueError for a text that is no time with an offset."""
    if not isinstance(time, str):
        return time
    leap = time[16:19] == ":60"
    at = datetime.fromisoformat(f"{time[:17]}59{time[19:]}" if leap else time)
    if at.tzinfo is None:
        raise ValueError(time)
    return (at + timedelta(seconds=leap) - EPOCH) // timedelta(milliseconds=1)


def time_text(milliseconds: int) -> str:
    """Return epoch milliseconds as a text, as which a definition may have any of them."""
    return (EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")


def read_where(where: Mapping[str, Any]) -> Where:
    """Return what each attribute named must equal one of."""
    listed = {name: wanted if isinstance(wanted, list) else [wanted] for name, wanted in where.items()}
    return tuple((name, frozenset(map(comparable, listed[name]))) for name in sorted(listed))


def fits(where: Where, reading: Reading) -> bool:
    """Return whether the attributes of a reading are what they must be."""
    return all(comparable(reading.attribute(name)) in wanted for name, wanted in where)


def read_conjunction(intervals: Mapping[str, Sequence[Any]], feed: Feed) -> Conjunction:
    """Return a conjunction of intervals, [lo, hi] or [lo, hi, bounds], of dimensions and attributes."""
    cuts = {name: read_cuts(ends[:2], *ends[2:]) for name, ends in intervals.items()}
    everything = read_cuts((None, None))
    box = tuple(cuts.pop(name, everything) for name in feed.dimensions)
    return Conjunction(BoxOnGlobe(box) if feed.lonlat else Box(box), frozenset(cuts.items()))


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def comparable(value: Any) -> Any:
    """Return what equals another's if the two values are equal in JSON: 5 and 5.0, but neither "5" nor true."""
    if isinstance(value, list | dict):
        return object()  # equals nothing
    return ("number", float(value)) if is_number(value) else (value,)
