"""Definitions of joins as records: which pairs of readings a join wants, and within which windows.

Part of `tests.oracle`; shares no code with `bmq`. Only valid definitions are read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.oracle_queries import (
    Conjunction,
    Definition,
    Feed,
    Reading,
    Where,
    comparable,
    fits,
    is_number,
    read_conjunction,
    read_duration,
    read_time,
    read_where,
)
from tests.oracle_regions import Cut, is_between, read_cuts

JOIN_KINDS = ("band_join", "window_join")


@dataclass(frozen=True)
class Side:
    """One input of a join.

    ``window_ms``, ``window_count``: of a window join, how long a reading is in the window, or among how many.
    """

    feed: str
    dimensions: tuple[str, ...]
    where: Where
    equal: str | None
    window_ms: int | None = None
    window_count: int | None = None

    def number(self, name: str, reading: Reading) -> float | None:
        """Return a dimension, or an attribute that is a number."""
        if name in self.dimensions:
            return reading.value[self.dimensions.index(name)]
        value = reading.attribute(name)
        return float(value) if is_number(value) else None

    def text(self, reading: Reading) -> Any:
        """Return what `equal` compares; None is equal to nothing."""
        if self.equal == "id":
            return comparable(reading.stream)
        if self.equal in self.dimensions:
            return comparable(self.number(self.equal, reading))
        value = reading.attribute(self.equal or "")
        return None if value is None or isinstance(value, list | dict) else comparable(value)


@dataclass(frozen=True)
class Band:
    """The left number less the right number is between two cuts."""

    left: str
    right: str
    cuts: tuple[Cut, Cut]

    def holds(self, left: Any, right: Any) -> Any:
        """Return whether two numbers are in the band; of arrays of numbers, whether each two are."""
        return is_between(self.cuts, left - right)


@dataclass(frozen=True)
class JoinConjunction:
    """What must hold of a joined pair: a conjunction of each side, and bands."""

    left: Conjunction
    right: Conjunction
    bands: frozenset[Band]


@dataclass(frozen=True)
class JoinQuery:
    """One definition in force; ``reports_queries``: it emits that its pairs changed, but not which pairs."""

    version: int
    kind: str
    left: Side
    right: Side
    alternatives: frozenset[JoinConjunction]
    reports_queries: bool
    enabled: bool
    ttl: int | None
    expires_at: int | None
    extras: str

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    @property
    def feeds(self) -> tuple[str, str]:
        return self.left.feed, self.right.feed

    def wants(self, left: Reading, right: Reading) -> bool:
        """Return whether two readings make a joined pair, if their windows allow it."""
        if not (self.enabled and fits(self.left.where, left) and fits(self.right.where, right)):
            return False
        if self.left.equal is not None and not are_equal(self.left.text(left), self.right.text(right)):
            return False
        return any(
            one.left.holds(left)
            and one.right.holds(right)
            and all(self._in_band(band, left, right) for band in one.bands)
            for one in self.alternatives
        )

    def in_windows(self, earlier_side: int, earlier: Reading, later: Reading, n_between: int) -> bool:
        """Return whether the windows hold a reading and one of the other side that was applied later.

        The time window of the reading with the smaller event time decides. ``n_between``: how many readings of the
        earlier one's side were applied between them; they count for its counted window.
        """
        window_count = self.sides[earlier_side].window_count
        if window_count is not None and n_between >= window_count:
            return False
        if earlier.event_time == later.event_time:
            return True
        is_older = earlier.event_time < later.event_time
        window_ms = self.sides[earlier_side if is_older else 1 - earlier_side].window_ms
        return window_ms is None or abs(later.event_time - earlier.event_time) <= window_ms

    def same_as(self, other: "JoinQuery") -> bool:
        """Return whether both are equal but for their versions."""
        return replace(self, version=0) == replace(other, version=0)

    def goes_on_as(self, other: "JoinQuery") -> bool:
        """Return whether joined pairs of this version can be joined pairs of the other."""
        return (self.kind, self.feeds, self.reports_queries) == (other.kind, other.feeds, other.reports_queries)

    @property
    def windows(self) -> tuple[tuple[int | None, int | None], ...]:
        """The windows of both sides."""
        return tuple((side.window_ms, side.window_count) for side in self.sides)

    def _in_band(self, band: Band, left: Reading, right: Reading) -> bool:
        a, b = self.left.number(band.left, left), self.right.number(band.right, right)
        return a is not None and b is not None and bool(band.holds(a, b))


def are_equal(left: Any, right: Any) -> bool:
    """Return whether the texts of a left and a right reading are equal; None is equal to nothing."""
    return left is not None and bool(left == right)


def read_join(version: int, definition: Definition, feeds: Mapping[str, Feed]) -> JoinQuery:
    """Return the join of a right definition."""
    rest = dict(definition)
    kind, equal, where = rest.pop("kind"), rest.pop("equal", None) or {}, rest.pop("where", {})
    sides = []
    for side in ("left", "right"):
        own = rest.pop(side) if kind == "window_join" else {"feed": rest.pop(side), "window": None}
        window = own["window"]
        sides.append(
            Side(
                feed=own["feed"],
                dimensions=feeds[own["feed"]].dimensions,
                where=read_where(_of_side(side, where)),
                equal=equal.get(side),
                window_ms=read_duration(window) if isinstance(window, str) else None,
                window_count=window if isinstance(window, int) else None,
            )
        )
    if kind == "band_join":
        on = rest.pop("on")
        asked = [{"band": [[f"left.{on['left']}", f"right.{on['right']}", *rest.pop("band")]]}]
    else:
        asked = rest.pop("any")
    return JoinQuery(
        version=version,
        kind=kind,
        left=sides[0],
        right=sides[1],
        alternatives=frozenset(_read_alternative(one, [feeds[side.feed] for side in sides]) for one in asked),
        reports_queries=rest.pop("report", "pairs") == "queries",
        enabled=rest.pop("enabled", True),
        ttl=read_duration(rest.pop("ttl", None)),
        expires_at=read_time(rest.pop("expires_at", None)),
        extras=json.dumps({"tags": {}} | rest, sort_keys=True),
    )


def _read_alternative(asked: Mapping[str, Any], feeds: list[Feed]) -> JoinConjunction:
    left, right = (
        read_conjunction(_of_side(side, asked), feed) for side, feed in zip(("left", "right"), feeds, strict=True)
    )
    bands = [_read_band(*band) for band in asked.get("band") or ()]
    return JoinConjunction(left, right, frozenset(bands))


def _read_band(left: str, right: str, lo: float | None, hi: float | None, bounds: str = "[]") -> Band:
    return Band(left.removeprefix("left."), right.removeprefix("right."), read_cuts((lo, hi), bounds))


def _of_side(side: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of one side, without its name."""
    return {name.removeprefix(f"{side}."): one for name, one in named.items() if name.startswith(f"{side}.")}
