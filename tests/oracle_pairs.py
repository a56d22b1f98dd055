"""What one query knows of one stream, and what crossings, edits and ends make of that.

Part of `tests.oracle`; shares no code with `bmq`. Says what is told and when it is to be confirmed; what time it is,
and which crossings there are, is `tests.oracle`'s part.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from tests.oracle_queries import Query, Reading
from tests.oracle_regions import Value


@dataclass(frozen=True)
class Event:
    """A stream entered ("+") or left ("-") a query's region, or went in and out of it in a pattern.

    ``previous`` is the reading before, (event time, value), where a reading moved a known stream and told at once.
    An event of a transition query has ``pattern`` and ``began``, and neither sign nor reason; one of a reading that
    fits has its kind as ``level``, and neither either.
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
    """What began or ended a membership, and when; ``previous`` where a reading moved a known stream."""

    stream: str
    time: int
    value: Value
    reason: str
    previous: tuple[int, Value] | None = None
    is_pass: bool = False


@dataclass
class Pair:
    """What is known of one stream to one query.

    ``told``: what the consumer knows, "no", "loud" (a + was told) or "silent" (inside, but no + was told).
    ``waits``: the crossing that waits to be confirmed or completed, with its sign, "+" or "-".
    """

    inside: bool = False
    told: str = "no"
    waits: tuple[str, Cause] | None = None
    last_entered: int | None = None
    n_events: int = 0

    def keeps_back(self, sign: str, time: int, query: Query) -> bool:
        """Return whether `cooldown` or `max_events` lets an event not be told."""
        last = self.last_entered
        if sign == "+" and query.cooldown and last is not None and time <= last + query.cooldown:
            return True
        return query.max_events is not None and self.n_events >= query.max_events


@dataclass
class Standing:
    """A query in force.

    ``due``: when it ends. ``awaits_clock``: its ttl runs from the earliest reading. ``strangers``: streams that its
    own stream_ttl has made unknown to it.
    """

    query_id: str
    query: Query
    due: int | None = None
    awaits_clock: bool = False
    strangers: set[str] = field(default_factory=set)
    pairs: dict[str, Pair] = field(default_factory=dict)

    def pair(self, stream: str) -> Pair:
        return self.pairs.setdefault(stream, Pair())


class Ledger:
    """What has been told: ``events`` in their order, and how many of each feed were kept back."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.suppressed: Counter[str] = Counter()

    # -- crossings ----------------------------------------------------------------------------------------

    def cross(self, standing: Standing, cause: Cause) -> None:
        """Take it that the stream came in if it was out, or went out if it was in."""
        query, pair = standing.query, standing.pair(cause.stream)
        pair.inside = not pair.inside
        if query.pattern is not None:
            self._cross_pattern(standing, cause)
        elif pair.waits is not None:
            pair.waits = None  # it is back too early: nobody has been told that it went, and nobody will be
        elif pair.inside:
            self._tell_or_wait("+", query.stay_for, standing, cause)
        elif pair.told != "no":
            self._tell_or_wait("-", query.away_for, standing, cause)

    def take_pass(self, sign: str, standing: Standing, cause: Cause) -> None:
        """Tell one end of a visit between two readings."""
        self._tell(sign, standing, cause)

    def end(self, standing: Standing, cause: Cause, version: int | None = None) -> None:
        """End what there is between a query and a stream, whatever waits; ``version``: of an edit that ends it."""
        pair = standing.pair(cause.stream)
        pair.inside, pair.waits = False, None
        if pair.told != "no":
            self._tell("-", standing, cause, version=version)

    def fire(self, standing: Standing, stream: str, due: int) -> None:
        """Let the crossing that waits be confirmed, or have waited in vain."""
        query, pair = standing.query, standing.pair(stream)
        assert pair.waits is not None
        (sign, cause), pair.waits = pair.waits, None
        if query.pattern is None:
            self._tell(sign, standing, cause, confirmed=due)
        elif query.pattern in ("in_not_out", "out_not_in"):
            self._tell_pattern(standing, replace(cause, previous=None), cause.time, due)

    # -- edits --------------------------------------------------------------------------------------------

    def replace(self, old: Standing | None, new: Standing, last: Reading, reason: str) -> None:
        """Go on with a known stream under a new version of its query: tell the difference."""
        if new.query.pattern is None:
            self._replace_border(old, new, last, at_rest(last, reason))
            return
        # No crossing comes of it, nothing is told, and what waited is dropped.
        new.pairs[last.stream] = Pair(inside=new.query.enters(last))

    def _replace_border(self, old: Standing | None, new: Standing, last: Reading, cause: Cause) -> None:
        query = new.query
        pair = new.pairs[last.stream] = Pair() if old is None else replace(old.pair(last.stream))
        inside = last.stream not in new.strangers and (query.stays(last) if pair.inside else query.enters(last))
        if old is None or not old.query.watches_as(query) or inside != pair.inside:
            pair.waits = None
        pair.inside = inside
        if old is not None:
            # What the old version leaves behind is told by its options.
            before = replace(old, pairs=new.pairs)
            if pair.waits is not None and not query.is_tracked:
                (sign, waiting), pair.waits = pair.waits, None
                self._tell(sign, before, waiting, confirmed=waiting.time, version=query.version)
            if pair.told != "no" and not inside and pair.waits is None:
                self._tell("-", before, cause, version=query.version)
            _count_on(pair, old.query, query, last)
        if pair.told == "no" and inside and pair.waits is None:
            if query.silent:
                pair.told = "silent"
            else:
                self._tell_or_wait("+", query.stay_for, new, cause)

    def carry_over(self, old: Standing, new: Standing, stream: str) -> None:
        """Go on with a stream that is unknown again: what is counted of it stays."""
        pair = new.pairs[stream] = replace(old.pair(stream))
        _count_on(pair, old.query, new.query, None)

    # -- border queries -----------------------------------------------------------------------------------

    def _tell_or_wait(self, sign: str, wait: int, standing: Standing, cause: Cause) -> None:
        if wait:
            standing.pair(cause.stream).waits = sign, cause
        else:
            self._tell(sign, standing, cause)

    def _tell(
        self,
        sign: str,
        standing: Standing,
        cause: Cause,
        *,
        confirmed: int | None = None,
        version: int | None = None,
    ) -> None:
        """Let the consumer know that a membership began or ended, unless an option keeps it back."""
        query, pair = standing.query, standing.pair(cause.stream)
        if sign == "-" and pair.told != "loud":
            pair.told = "no"
            return  # a consumer never sees a - without its +
        if pair.keeps_back(sign, cause.time, query):
            pair.told = "silent" if sign == "+" else "no"
            self.suppressed[query.feed] += 1
            return
        if sign == "+":
            pair.told, pair.last_entered = "loud", cause.time
        else:
            pair.told = "no"
        pair.n_events += 1
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

    def tell_level(self, standing: Standing, cause: Cause) -> None:
        """Tell a reading that fits."""
        query = standing.query
        self.events.append(
            Event(
                sign="",
                query_id=standing.query_id,
                version=query.version,
                feed=query.feed,
                stream=cause.stream,
                event_time=cause.time,
                reason="",
                value=cause.value,
                level=query.kind,
            )
        )

    # -- transition queries -------------------------------------------------------------------------------

    def _cross_pattern(self, standing: Standing, cause: Cause) -> None:
        """Take a crossing: the first of the pattern waits for the second, or for its not coming."""
        query, pair = standing.query, standing.pair(cause.stream)
        if pair.inside == (query.pattern in ("in_then_out", "in_not_out")):
            pair.waits = "+" if pair.inside else "-", cause
            return
        if pair.waits is not None and query.pattern in ("in_then_out", "out_then_in"):
            _, first = pair.waits
            if cause.time - first.time <= query.within:
                self._tell_pattern(standing, cause, first.time, cause.time)
        pair.waits = None

    def _tell_pattern(self, standing: Standing, cause: Cause, began: int, time: int) -> None:
        query = standing.query
        self.events.append(
            Event(
                sign="",
                query_id=standing.query_id,
                version=query.version,
                feed=query.feed,
                stream=cause.stream,
                event_time=time,
                reason="",
                value=cause.value,
                previous=cause.previous,
                pattern=query.pattern,
                began=began,
            )
        )


def _count_on(pair: Pair, old: Query, new: Query, last: Reading | None) -> None:
    """Let another pause count from the last +, unless the former was over, and a pause or number that is new from here.

    ``last``: the last reading of the stream, None where it is unknown.
    """
    was_over = pair.last_entered is not None and last is not None and pair.last_entered + old.cooldown < last.event_time
    if not (old.cooldown and new.cooldown) or (old.cooldown != new.cooldown and was_over):
        pair.last_entered = None
    if old.max_events is None or new.max_events is None:
        pair.n_events = 0


def at_rest(last: Reading, reason: str) -> Cause:
    """Return the cause of what no reading brings about: it has the time and value of the stream's last one."""
    return Cause(last.stream, last.event_time, last.value, reason)


def broken_ledgers(events: list[Event], but_for: frozenset[str] = frozenset()) -> list[str]:
    """Return what breaks the ledger: signs that do not alternate from +, or event times that go back.

    They may go back behind an expiry. ``but_for``: queries with max_events, which may keep back a last -: such a pair
    may begin with a + again under another version.
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
        if before is not None and event.event_time < before.event_time and not before.reason.endswith("_expired"):
            broken.append(f"{event} is older than {before}")
        latest[key] = event
    return broken
