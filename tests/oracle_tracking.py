"""What one query keeps of one stream, and which events follow from crossings, edits and ends.

Part of `tests.oracle`; shares no code with `bmq`. It defines which events are emitted and when a crossing is confirmed.
`tests.oracle` finds the crossings and knows the time.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum

from tests.oracle_queries import Query, Reading
from tests.oracle_regions import Value


@dataclass(frozen=True)
class Event:
    """A stream entered ("+") or left ("-") a query's region, or went in and out of it in a pattern.

    ``previous`` is the reading before, (event time, value), if a reading moved a known stream and nothing was pending.
    An event of a transition query has ``pattern`` and ``began``, and neither sign nor reason. An event of a match or
    select query has its kind as ``level``, and neither sign nor reason.
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
    is_pass: bool = False
    confirmed_time: int | None = None
    pattern: str | None = None
    began: int | None = None
    level: str | None = None

    def __str__(self) -> str:
        """Return the text that scenarios have, with times in milliseconds."""
        name = f"{self.query_id} {self.stream}@"
        if self.pattern is not None:
            return f"{self.pattern} {name}{self.began}..{self.event_time}"
        if self.level is not None:
            return f"{self.level} {name}{self.event_time}"
        text = f"{self.sign}{name}{self.event_time} {self.reason}{' pass' if self.is_pass else ''}"
        return text if self.confirmed_time is None else f"{text} confirmed@{self.confirmed_time}"


@dataclass(frozen=True)
class Cause:
    """What began or ended a membership, and when; ``previous`` if a reading moved a known stream."""

    stream: str
    time: int
    value: Value
    reason: str
    previous: tuple[int, Value] | None = None
    is_pass: bool = False


class Turn(IntEnum):
    """What happens at one moment, in this order."""

    READING = 0
    PENDING = 1
    STREAM_EXPIRY = 2
    QUERY_EXPIRY = 3


@dataclass
class Tracking:
    """What is kept of one stream for one query.

    ``visit``: "no", "emitted" (the + was emitted) or "silent" (the membership began without an event).
    ``pending``: the crossing that is to be confirmed or completed, with its sign, "+" or "-".
    """

    inside: bool = False
    visit: str = "no"
    pending: tuple[str, Cause] | None = None
    last_entered: int | None = None
    n_events: int = 0

    def due(self, query: Query) -> int | None:
        """Return when the pending crossing is due; None: nothing is pending."""
        if self.pending is None:
            return None
        sign, cause = self.pending
        return cause.time + (query.within or (query.stay_for if sign == "+" else query.away_for))

    def is_suppressed(self, sign: str, time: int, query: Query) -> bool:
        """Return whether `cooldown` or `max_events` suppresses an event."""
        last = self.last_entered
        if sign == "+" and query.cooldown and last is not None and time <= last + query.cooldown:
            return True
        return query.max_events is not None and self.n_events >= query.max_events

    def count_on(self, old: Query, new: Query, last_time: int | None) -> None:
        """Carry the counts over to a new version of the query.

        Another cooldown counts from the last +, unless the old cooldown was over. A cooldown or a number of events that
        the old version did not have begins to count here.

        ``last_time``: of the last reading of the stream; None: the query does not know the stream.
        """
        was_over = self._is_cooldown_over(old, last_time)
        if not (old.cooldown and new.cooldown) or (old.cooldown != new.cooldown and was_over):
            self.last_entered = None
        if old.max_events is None or new.max_events is None:
            self.n_events = 0

    def forget_cooldown(self, query: Query, expiry: int) -> None:
        """Forget a cooldown that was over when the stream expired: readings that come later may be older."""
        if self._is_cooldown_over(query, expiry):
            self.last_entered = None

    def _is_cooldown_over(self, query: Query, time: int | None) -> bool:
        return self.last_entered is not None and time is not None and self.last_entered + query.cooldown < time


@dataclass
class Standing:
    """A query in force.

    ``due``: when it ends. ``awaits_clock``: its ttl runs from the earliest reading. ``strangers``: streams that
    expired by the query's own stream_ttl.
    """

    query_id: str
    query: Query
    due: int | None = None
    awaits_clock: bool = False
    strangers: set[str] = field(default_factory=set)
    trackings: dict[str, Tracking] = field(default_factory=dict)

    def tracking(self, stream: str) -> Tracking:
        return self.trackings.setdefault(stream, Tracking())


class Ledger:
    """The emitted events in their order, and how many of each feed were suppressed."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.suppressed: Counter[str] = Counter()

    # -- crossings ----------------------------------------------------------------------------------------

    def cross(self, standing: Standing, cause: Cause) -> None:
        """Apply a crossing: the stream enters if it was outside, and leaves if it was inside."""
        query, tracking = standing.query, standing.tracking(cause.stream)
        tracking.inside = not tracking.inside
        if query.pattern is not None:
            self._cross_pattern(standing, cause)
        elif tracking.pending is not None:
            tracking.pending = None  # the stream is back before its crossing was confirmed: neither emits an event
        elif tracking.inside:
            self._emit_or_confirm_later("+", query.stay_for, standing, cause)
        elif tracking.visit != "no":
            self._emit_or_confirm_later("-", query.away_for, standing, cause)

    def emit_pass(self, sign: str, standing: Standing, cause: Cause) -> None:
        """Emit one end of a visit between two readings."""
        self._emit(sign, standing, cause)

    def end(self, standing: Standing, cause: Cause, version: int | None = None) -> None:
        """End the membership of a stream and drop what is pending; ``version``: of an edit that ends it."""
        tracking = standing.tracking(cause.stream)
        tracking.inside, tracking.pending = False, None
        if tracking.visit != "no":
            self._emit("-", standing, cause, version=version)

    def expire(self, standing: Standing, cause: Cause) -> None:
        """End the membership of a stream that expires; ``cause.time`` is the expiry."""
        standing.tracking(cause.stream).forget_cooldown(standing.query, cause.time)
        self.end(standing, cause)

    def fire(self, standing: Standing, stream: str, due: int) -> None:
        """Fire the pending crossing: it is confirmed, or the second half of the pattern did not come."""
        query, tracking = standing.query, standing.tracking(stream)
        assert tracking.pending is not None
        (sign, cause), tracking.pending = tracking.pending, None
        if query.pattern is None:
            self._emit(sign, standing, cause, confirmed=due)
        elif query.pattern in ("in_not_out", "out_not_in"):
            self._emit_pattern(standing, replace(cause, previous=None), cause.time, due)

    def flush(self, standing: Standing, stream: str, version: int | None = None) -> None:
        """Confirm a pending crossing of a border query now, as of its own time; ``version``: of an edit that does."""
        tracking = standing.tracking(stream)
        if tracking.pending is not None:
            (sign, cause), tracking.pending = tracking.pending, None
            self._emit(sign, standing, cause, confirmed=cause.time, version=version)

    # -- edits --------------------------------------------------------------------------------------------

    def replace(self, old: Standing | None, new: Standing, last: Reading, reason: str) -> None:
        """Continue a known stream under a new version of its query: emit the difference."""
        if new.query.pattern is None:
            self._replace_border(old, new, last, at_rest(last, reason))
            return
        # An edit is not a crossing. It emits nothing, and the new version begins without a pending crossing.
        new.trackings[last.stream] = Tracking(inside=new.query.enters(last))

    def _replace_border(self, old: Standing | None, new: Standing, last: Reading, cause: Cause) -> None:
        query = new.query
        tracking = new.trackings[last.stream] = Tracking() if old is None else replace(old.tracking(last.stream))
        inside = last.stream not in new.strangers and (query.stays(last) if tracking.inside else query.enters(last))
        if old is None or not old.query.watches_as(query) or inside != tracking.inside:
            tracking.pending = None
        tracking.inside = inside
        if old is not None:
            # The options of the old version decide about the events that end it.
            before = replace(old, trackings=new.trackings)
            if not query.is_tracked:
                self.flush(before, last.stream, query.version)
            if tracking.visit != "no" and not inside and tracking.pending is None:
                self._emit("-", before, cause, version=query.version)
            tracking.count_on(old.query, query, last.event_time)
        if tracking.visit == "no" and inside and tracking.pending is None:
            if query.silent:
                tracking.visit = "silent"
            else:
                self._emit_or_confirm_later("+", query.stay_for, new, cause)

    def carry_over(self, old: Standing, new: Standing, stream: str) -> None:
        """Continue a stream that is unknown again: its counts stay."""
        tracking = new.trackings[stream] = replace(old.tracking(stream))
        tracking.count_on(old.query, new.query, None)

    # -- border queries -----------------------------------------------------------------------------------

    def _emit_or_confirm_later(self, sign: str, delay: int, standing: Standing, cause: Cause) -> None:
        if delay:
            standing.tracking(cause.stream).pending = sign, cause
        else:
            self._emit(sign, standing, cause)

    def _emit(
        self,
        sign: str,
        standing: Standing,
        cause: Cause,
        *,
        confirmed: int | None = None,
        version: int | None = None,
    ) -> None:
        """Emit that a membership began or ended, unless an option suppresses it."""
        query, tracking = standing.query, standing.tracking(cause.stream)
        if sign == "-" and tracking.visit != "emitted":
            tracking.visit = "no"
            return  # a - is emitted only after its +
        if tracking.is_suppressed(sign, cause.time, query):
            tracking.visit = "silent" if sign == "+" else "no"
            self.suppressed[query.feed] += 1
            return
        if sign == "+":
            tracking.visit, tracking.last_entered = "emitted", cause.time
        else:
            tracking.visit = "no"
        tracking.n_events += 1
        self.events.append(
            Event(
                sign=sign,
                query_id=standing.query_id,
                version=version or query.version,
                feed=query.feed,
                stream=cause.stream,
                event_time=cause.time,
                reason=cause.reason,
                value=cause.value,
                previous=cause.previous if confirmed is None else None,
                is_pass=cause.is_pass,
                confirmed_time=confirmed,
            )
        )

    # -- match and select queries -------------------------------------------------------------------------

    def emit_level(self, standing: Standing, cause: Cause) -> None:
        """Emit a reading that fits."""
        self.events.append(replace(_unsigned(standing, cause, cause.time), level=standing.query.kind))

    # -- transition queries -------------------------------------------------------------------------------

    def _cross_pattern(self, standing: Standing, cause: Cause) -> None:
        """Apply a crossing: the first half of the pattern is pending until the second, or until its time is over."""
        query, tracking = standing.query, standing.tracking(cause.stream)
        if tracking.inside == (query.pattern in ("in_then_out", "in_not_out")):
            tracking.pending = "+" if tracking.inside else "-", cause
            return
        if tracking.pending is not None and query.pattern in ("in_then_out", "out_then_in"):
            _, first = tracking.pending
            if cause.time - first.time <= query.within:
                self._emit_pattern(standing, cause, first.time, cause.time)
        tracking.pending = None

    def _emit_pattern(self, standing: Standing, cause: Cause, began: int, time: int) -> None:
        event = _unsigned(standing, cause, time)
        pattern = standing.query.pattern
        self.events.append(replace(event, previous=cause.previous, pattern=pattern, began=began))


def _unsigned(standing: Standing, cause: Cause, time: int) -> Event:
    """Return what events without a sign have in common."""
    query = standing.query
    return Event("", standing.query_id, query.version, query.feed, cause.stream, time, reason="", value=cause.value)


def at_rest(last: Reading, reason: str) -> Cause:
    """Return the cause of an event that no reading causes: it has the time and value of the stream's last reading."""
    return Cause(last.stream, last.event_time, last.value, reason)


def broken_ledgers(events: list[Event], but_for: frozenset[str] = frozenset()) -> list[str]:
    """Return what breaks the ledger: signs that do not alternate from +, or event times that go back.

    They may go back after an expiry. If the stream was outside then, only its next event, a first sight, shows it.
    ``but_for``: queries with max_events, which may suppress a last -: under another version, such a stream may begin
    with a + again.
    """
    broken = []
    latest: dict[tuple[str, str, str], Event] = {}
    for event in events:
        if not event.sign:
            continue
        key = (event.query_id, event.feed, event.stream)
        before = latest.get(key)
        may_begin = before is not None and event.query_id in but_for and before.version != event.version
        if event.sign == ("-" if before is None else before.sign) and not (event.sign == "+" and may_begin):
            broken.append(f"{event} repeats the sign of {before}")
        is_anew = event.reason == "first_seen" or (before is not None and before.reason.endswith("_expired"))
        if before is not None and event.event_time < before.event_time and not is_anew:
            broken.append(f"{event} is older than {before}")
        latest[key] = event
    return broken
