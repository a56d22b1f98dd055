"""The definition of the service for border queries, written to be obviously right.

Slow on purpose: every reading asks every query. Knows dicts and numbers; shares no code with `bmq`, so that
an error has to be made twice, in two ways, to stay unseen. A definition is the JSON object of the control
topic. The rules are those of `docs/semantics.md`; what they say of order is the order of `events` here.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Definition = dict[str, Any]
Value = tuple[float, ...]

# A cut lies just before (0) or just after (1) a number, so that four kinds of bounds become one comparison.
Cut = tuple[float, int]
BEFORE, AFTER = 0, 1


@dataclass(frozen=True)
class Reading:
    """One value of one stream; ``event_time`` in epoch milliseconds."""

    stream: str
    event_time: int
    value: Value


@dataclass(frozen=True)
class Event:
    """A stream entered ("+") or left ("-") a query's region.

    ``previous`` is the reading before, (event time, value), where the reason is "moved".
    """

    sign: str
    query_id: str
    version: int
    feed: str
    stream: str
    event_time: int
    reason: str
    value: Value
    previous: tuple[int, Value] | None = None


@dataclass(frozen=True)
class Answer:
    """The reply to one command; ``code`` where ``status`` is "rejected"."""

    offset: int
    query_id: str
    status: str
    code: str | None = None


@dataclass(frozen=True)
class Query:
    """One standing query: a pair of cuts for each dimension of its feed."""

    version: int
    feed: str
    cuts: tuple[tuple[Cut, Cut], ...]
    streams: frozenset[str] | None
    silent: bool
    extras: str

    def watches(self, stream: str, value: Value) -> bool:
        """Return whether the stream is in scope and its value inside the region."""
        in_scope = self.streams is None or stream in self.streams
        return in_scope and all(lo <= (v, BEFORE) < hi for (lo, hi), v in zip(self.cuts, value, strict=True))

    def same_as(self, other: "Query") -> bool:
        """Return whether both say the same, whatever their versions."""
        return _without_version(self) == _without_version(other)


@dataclass(frozen=True)
class Cause:
    """What began or ended a membership; ``before`` where a reading moved a known stream."""

    feed: str
    reason: str
    now: Reading
    before: Reading | None = None


class Oracle:
    """The service as dicts: it reads what the service reads; ``answers`` and ``events`` are what it must say.

    Parameters
    ----------
    feeds : the dimensions of each feed, in the order of the values.
    silent_tombstones_before : deletes of unknown queries below this control offset get no answer, since a
        compacted control topic is full of them when a new checkpoint reads it from the start.
    """

    def __init__(self, feeds: Mapping[str, Sequence[str]], silent_tombstones_before: int = 0) -> None:
        self.answers: list[Answer] = []
        self.events: list[Event] = []
        self.late: Counter[str] = Counter()
        self._dimensions = {feed: tuple(dimensions) for feed, dimensions in feeds.items()}
        self._silent_tombstones_before = silent_tombstones_before
        self._queries: dict[str, Query] = {}
        self._last: dict[tuple[str, str], Reading] = {}  # the last one applied
        self._members: dict[tuple[str, str, str], str] = {}  # (query, feed, stream) -> "loud" | "silent"

    def put(self, offset: int, query_id: str, definition: Definition) -> None:
        """Register or replace a query; its streams enter and leave at once."""
        old, new = self._queries.get(query_id), self._parse(offset + 1, definition)
        if old is not None and old.same_as(new):
            self.answers.append(Answer(offset, query_id, "unchanged"))
            return
        self.answers.append(Answer(offset, query_id, "accepted"))
        self._queries[query_id] = new
        reason = "query_registered" if old is None else "query_updated"
        for (feed, stream), last in self._last.items():
            was = (query_id, feed, stream) in self._members
            inside = feed == new.feed and new.watches(stream, last.value)
            if was and not inside:
                self._leave(query_id, new, Cause(feed, reason, last))
            elif inside and not was:
                self._enter(query_id, new, Cause(feed, reason, last), silently=new.silent)

    def delete(self, offset: int, query_id: str) -> None:
        """Remove a query; its streams leave at once."""
        if query_id not in self._queries:
            if offset >= self._silent_tombstones_before:
                self.refuse(offset, query_id, "unknown_query")
            return
        self.answers.append(Answer(offset, query_id, "deleted"))
        query = self._queries.pop(query_id)
        for (feed, stream), last in self._last.items():
            if (query_id, feed, stream) in self._members:
                self._leave(query_id, query, Cause(feed, "query_deleted", last))

    def refuse(self, offset: int, query_id: str, code: str) -> None:
        """Answer a command that is no definition; what was in force stays in force."""
        self.answers.append(Answer(offset, query_id, "rejected", code))

    def read(self, feed: str, readings: Iterable[Reading]) -> None:
        """Apply one batch of readings, given in (partition, offset) order."""
        # A stable sort: equal event times keep their offset order.
        for reading in sorted(readings, key=lambda reading: reading.event_time):
            self._move(feed, reading)

    def inside(self) -> set[tuple[str, str, str]]:
        """Return every (query, feed, stream) that is inside now, silently or not."""
        return set(self._members)

    def _move(self, feed: str, reading: Reading) -> None:
        stream = reading.stream
        before = self._last.get((feed, stream))
        if before is not None and reading.event_time < before.event_time:
            self.late[feed] += 1
            return
        self._last[feed, stream] = reading

        left, entered = [], []
        for query_id in sorted(self._queries, key=str.encode):
            query = self._queries[query_id]
            was = (query_id, feed, stream) in self._members
            inside = query.feed == feed and query.watches(stream, reading.value)
            if was and not inside:
                left.append((query_id, query))
            elif inside and not was:
                entered.append((query_id, query))
        for query_id, query in left:
            self._leave(query_id, query, Cause(feed, "moved", reading, before))
        for query_id, query in entered:
            reason = "first_seen" if before is None else "moved"
            self._enter(query_id, query, Cause(feed, reason, reading, before))

    def _enter(self, query_id: str, query: Query, cause: Cause, silently: bool = False) -> None:
        self._members[query_id, cause.feed, cause.now.stream] = "silent" if silently else "loud"
        if not silently:
            self._say("+", query_id, query, cause)

    def _leave(self, query_id: str, query: Query, cause: Cause) -> None:
        # Whoever came in silently goes silently, whatever ends it: a consumer never sees a - without its +.
        if self._members.pop((query_id, cause.feed, cause.now.stream)) == "loud":
            self._say("-", query_id, query, cause)

    def _say(self, sign: str, query_id: str, query: Query, cause: Cause) -> None:
        now, before = cause.now, cause.before
        self.events.append(
            Event(
                sign=sign,
                query_id=query_id,
                version=query.version,
                feed=cause.feed,
                stream=cause.now.stream,
                event_time=now.event_time,
                reason=cause.reason,
                value=now.value,
                previous=None if before is None else (before.event_time, before.value),
            )
        )

    def _parse(self, version: int, definition: Definition) -> Query:
        rest: Definition = {"tags": {}} | definition
        feed, box = rest.pop("feed"), rest.pop("region")["box"]
        bounds, streams = rest.pop("bounds", "[)"), rest.pop("streams", None)
        silent = rest.pop("initial", "emit") == "silent"
        cuts = tuple(_cuts(box.get(name, (None, None)), bounds) for name in self._dimensions[feed])
        watched = None if streams is None else frozenset(streams)
        return Query(version, feed, cuts, watched, silent, json.dumps(rest, sort_keys=True))


def broken_ledgers(events: Iterable[Event]) -> list[str]:
    """Return what breaks the ledger: signs that do not alternate from +, or event times that go back."""
    broken = []
    latest: dict[tuple[str, str, str], Event] = {}
    for event in events:
        key = (event.query_id, event.feed, event.stream)
        before = latest.get(key)
        if event.sign == ("-" if before is None else before.sign):
            broken.append(f"{event} repeats the sign of {before}")
        if before is not None and event.event_time < before.event_time:
            broken.append(f"{event} is older than {before}")
        latest[key] = event
    return broken


def _cuts(ends: tuple[float | None, float | None], bounds: str) -> tuple[Cut, Cut]:
    lo, hi = ends
    lower = (-math.inf, BEFORE) if lo is None else (float(lo), BEFORE if bounds[0] == "[" else AFTER)
    upper = (math.inf, BEFORE) if hi is None else (float(hi), AFTER if bounds[1] == "]" else BEFORE)
    return lower, upper


def _without_version(query: Query) -> tuple[Any, ...]:
    return query.feed, query.cuts, query.streams, query.silent, query.extras
