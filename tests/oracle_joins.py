"""Joins of two feeds: after each happening, every pair is tested.

Part of `tests.oracle`; shares no code with `bmq`. `FeedState.happenings` says what happened to the feeds. This module
defines in which order joins apply it, and which events they emit.

    band join     pairs of known streams, by their last readings; after each happening the answer is made anew, and
                  the difference is emitted
    window join   pairs of readings; each reading, when it is applied, is compared with each that was applied before it
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.oracle_feeds import FeedState, Happening
from tests.oracle_join_queries import JoinQuery
from tests.oracle_queries import Reading

Pairs = dict[tuple[str, str], tuple[Reading, Reading]]


@dataclass(frozen=True)
class PairEvent:
    """A joined pair came or went, or was found, or (one side None) the joined pairs of a query changed.

    A window join gives no reason.
    """

    kind: str
    sign: str
    query_id: str
    version: int
    feeds: tuple[str, str]
    left: Reading | None
    right: Reading | None
    event_time: int
    reason: str

    @property
    def pair(self) -> str:
        """The two streams."""
        return "~".join("" if reading is None else reading.stream for reading in (self.left, self.right))

    def __str__(self) -> str:
        """Return the text that scenarios have, with times in milliseconds."""
        return f"{self.sign or self.kind + ' '}{self.query_id} {self.pair}@{self.event_time}"


@dataclass
class StandingJoin:
    """A join in force.

    ``since``: how many readings of each side had been applied when it began to count. ``pairs``: its answer, of a band
    join.
    """

    query_id: str
    query: JoinQuery
    due: int | None
    awaits_clock: bool
    since: tuple[int, int]
    pairs: Pairs


class Joins:
    """All joins, and what they know of the feeds; ``events``: what they emit."""

    def __init__(self, states: Mapping[str, FeedState]) -> None:
        self.events: list[PairEvent] = []
        self._states = states
        self._standing: dict[str, StandingJoin] = {}
        self._known: dict[str, dict[str, Reading]] = defaultdict(dict)
        self._applied: dict[str, list[Reading]] = defaultdict(list)
        self._lags: dict[str, list[int]] = defaultdict(list)  # of each reading in `_applied`, in windows
        self._partners: dict[str, set[str]] = {}  # feed -> the feeds of its window joins at the begin of the batch
        self._n_gone: Counter[str] = Counter()  # how many of `_applied` are out of all windows

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._standing

    def pairs(self) -> set[tuple[str, str, str]]:
        """Return (query, left stream, right stream) of all joined pairs of band joins."""
        return {(name, *pair) for name, standing in self._standing.items() for pair in standing.pairs}

    # -- commands -----------------------------------------------------------------------------------------

    def has_in_force(self, query_id: str, query: JoinQuery) -> bool:
        """Return whether a definition is in force already."""
        old = self._standing.get(query_id)
        return old is not None and (old.query.same_as(query) or old.query.same_as(self._unless_over(query)))

    def put(self, query_id: str, query: JoinQuery, reason: str) -> list[tuple[str, int]]:
        """Register or replace a join; return (query, version) of what is over at once."""
        old = self._standing.get(query_id)
        if old is not None and not old.query.goes_on_as(query):
            self.remove(query_id, reason, query.version)
            old = None
        query = self._unless_over(query)
        counts_on = old is not None and old.query.windows == query.windows
        since = old.since if old is not None and counts_on else self._n_applied(query)
        clock = self._latest(state.clock for state in self._of(query))
        due = query.expires_at
        if due is None and query.ttl is not None and clock is not None:
            due = clock + query.ttl
        awaits_clock = due is None and query.ttl is not None
        new = self._standing[query_id] = StandingJoin(query_id, query, due, awaits_clock, since, {})
        new.pairs = self._answer(query)
        self.events += _difference(new, {} if old is None else old.pairs, reason)
        return self._expire_settled()

    def remove(self, query_id: str, reason: str, version: int | None = None) -> None:
        """Take a join away; ``version``: of an edit that ends its pairs."""
        standing = self._standing.pop(query_id)
        if version is not None:
            standing.query = replace(standing.query, version=version)
        self.events += _end(standing, reason)

    def _n_applied(self, query: JoinQuery) -> tuple[int, int]:
        left, right = query.feeds
        return len(self._applied[left]), len(self._applied[right])

    def _unless_over(self, query: JoinQuery) -> JoinQuery:
        clock = self._latest(state.clock for state in self._of(query))
        is_over = query.expires_at is not None and clock is not None and clock > query.expires_at
        return replace(query, enabled=False) if is_over else query

    # -- readings and time --------------------------------------------------------------------------------

    def advance(self) -> list[tuple[str, int]]:
        """Apply what happened to the feeds since the last call; return (query, version) of the joins that ended.

        By moment: readings, then streams that fell silent, then queries that end; then by the names of the feeds.
        """
        for standing in self._standing.values():
            starts = [state.start for state in self._of(standing.query) if state.start is not None]
            if standing.awaits_clock and starts and standing.query.ttl is not None:
                standing.due, standing.awaits_clock = min(starts) + standing.query.ttl, False
        self._partners = {
            feed: {other for one in self._of_windows(feed) for other in _partners_of(feed, one.query)}
            for feed in self._states
        }
        happened = [happening for state in self._states.values() for happening in state.happenings]
        expired: list[tuple[str, int]] = []
        for happening in sorted(happened, key=lambda one: one[:3]):
            expired += self._expire_settled(happening.moment)
            self._happen(happening)
        expired += self._expire_settled()
        for state in self._states.values():
            state.happenings.clear()
        self._forget_readings()
        return expired

    def _happen(self, happening: Happening) -> None:
        feed, last = happening.feed, happening.last
        if happening.is_expiry:
            del self._known[feed][last.stream]
            reason = "stream_expired"
        else:
            reason = "moved" if last.stream in self._known[feed] else "first_seen"
            self._known[feed][last.stream] = last
            self._applied[feed].append(last)
            self._lags[feed].append(max(happening.lag, self._behind_partners(feed, last)))
        emitted: list[PairEvent] = []
        for standing in self._in_order():
            if feed not in standing.query.feeds:
                continue
            if standing.query.kind == "band_join":
                emitted += self._change(standing, happening, reason)
            elif not happening.is_expiry:
                emitted += self._find(standing, feed, last, reason)
        self.events += sorted(emitted, key=lambda event: ("-", "+", "").index(event.sign))

    def _expire_settled(self, before: int | None = None) -> list[tuple[str, int]]:
        """End every join that is due, and due before a moment."""
        ended = []
        for standing in sorted(self._in_order(), key=lambda one: one.due or 0):
            due = standing.due
            if due is None or not any(state.has_passed(due) for state in self._of(standing.query)):
                continue
            if before is not None and due >= before:
                continue
            del self._standing[standing.query_id]
            self.events += _end(standing, "query_expired", due)
            ended.append((standing.query_id, standing.query.version))
        return ended

    def _behind_partners(self, feed: str, reading: Reading) -> int:
        """Return by how much the settled time of a partner was beyond a reading before the batch that applies it.

        Readings of the partner's streams that are as far behind as this reading may still come.
        """
        settled = [self._states[partner].settled_before for partner in self._partners[feed]]
        return max([0, *(time - reading.event_time for time in settled if time is not None)])

    # -- band joins ---------------------------------------------------------------------------------------

    def _answer(self, query: JoinQuery) -> Pairs:
        """Return the joined pairs of a band join, with their readings."""
        if query.kind != "band_join":
            return {}
        left, right = query.feeds
        return {
            (one.stream, other.stream): (one, other)
            for one in self._known[left].values()
            for other in self._known[right].values()
            if query.wants(one, other)
        }

    def _change(self, standing: StandingJoin, happening: Happening, reason: str) -> list[PairEvent]:
        """Make the answer anew; return the events of the difference."""
        query, before, last = standing.query, standing.pairs, happening.last
        standing.pairs = self._answer(query)
        if not query.reports_queries:
            moment = happening.moment if happening.is_expiry else None
            moved = {pair: _with(readings, query, happening) for pair, readings in before.items()}
            return _difference(standing, moved, reason, moment)
        if before.keys() == standing.pairs.keys():
            return []
        left, right = (last if side.feed == happening.feed else None for side in query.sides)
        return [_event(standing, "", left, right, happening.moment, reason)]

    # -- window joins -------------------------------------------------------------------------------------

    def _find(self, standing: StandingJoin, feed: str, later: Reading, reason: str) -> list[PairEvent]:
        """Return the joined pairs of a reading just applied with earlier ones of the other feed."""
        query = standing.query
        later_side = query.feeds.index(feed)
        other = query.feeds[1 - later_side]
        first = max(standing.since[1 - later_side], self._n_gone[other])
        found = []
        for number in find_earlier(query, later_side, later, self._applied[other], first):
            earlier = self._applied[other][number]
            left, right = (earlier, later) if later_side else (later, earlier)
            found.append(_event(standing, "", left, right, max(earlier.event_time, later.event_time), reason))
        return found

    def _forget_readings(self) -> None:
        """Let each feed forget its oldest readings, as long as no window join needs them.

        Only a reading that comes out of order shows a difference.
        """
        for feed in self._states:
            while self._n_gone[feed] < len(self._applied[feed]) and not self._is_needed(feed, self._n_gone[feed]):
                self._n_gone[feed] += 1

    def _is_needed(self, feed: str, number: int) -> bool:
        """Return whether a reading is not older than all windows of the joins of its feed with another one."""
        by_feeds: dict[tuple[str, str], list[StandingJoin]] = defaultdict(list)
        for standing in self._of_windows(feed):
            by_feeds[standing.query.feeds].append(standing)
        until = self._applied[feed][number].event_time + self._lags[feed][number]
        n_newer = len(self._applied[feed]) - number - 1
        for feeds, some in by_feeds.items():
            at = feeds.index(feed)
            sides = [standing.query.sides[at] for standing in some]
            settled = self._states[feeds[1 - at]].settled
            in_count = n_newer < max(side.window_count or 0 for side in sides)
            lengths = [side.window_ms for side in sides if side.window_ms is not None]
            in_time = bool(lengths) and (settled is None or until + max(lengths) >= settled)
            if number >= min(standing.since[at] for standing in some) and (in_count or in_time):
                return True
        return False

    # -- what there is ------------------------------------------------------------------------------------

    def _in_order(self) -> list[StandingJoin]:
        """Return the joins by the bytes of their ids."""
        return sorted(self._standing.values(), key=lambda standing: standing.query_id.encode())

    def _of_windows(self, feed: str) -> list[StandingJoin]:
        """Return the window joins of a feed."""
        of_feed = [standing for standing in self._standing.values() if feed in standing.query.feeds]
        return [standing for standing in of_feed if standing.query.kind == "window_join"]

    def _of(self, query: JoinQuery) -> Iterator[FeedState]:
        return (self._states[feed] for feed in query.feeds)

    @staticmethod
    def _latest(times: Iterator[int | None]) -> int | None:
        return max((time for time in times if time is not None), default=None)


def _partners_of(feed: str, query: JoinQuery) -> list[str]:
    """Return the feeds with which a join joins a feed."""
    return [other for own, other in (query.feeds, query.feeds[::-1]) if own == feed]


def find_earlier(
    query: JoinQuery, later_side: int, later: Reading, applied: Sequence[Reading], first: int
) -> list[int]:
    """Return which earlier readings of the other side make a joined pair with a reading just applied.

    ``applied``: all readings of the other side so far, in the order of application. ``first``: the number of the first
    one that counts.
    """
    found = []
    for number in range(first, len(applied)):
        earlier = applied[number]
        left, right = (earlier, later) if later_side else (later, earlier)
        n_between = len(applied) - 1 - number
        if query.in_windows(1 - later_side, earlier, later, n_between) and query.wants(left, right):
            found.append(number)
    return found


def _difference(standing: StandingJoin, before: Pairs, reason: str, moment: int | None = None) -> list[PairEvent]:
    """Return the events of the pairs that went, then of those that came; ``moment``: of an expiry."""
    after = standing.pairs
    emitted = []
    for sign, some, others in (("-", before, after), ("+", after, before)):
        if standing.query.reports_queries:
            continue
        for pair in sorted(some.keys() - others.keys(), key=lambda ids: [one.encode() for one in ids]):
            left, right = some[pair]
            time = max(left.event_time, right.event_time) if moment is None else moment
            emitted.append(_event(standing, sign, left, right, time, reason))
    return emitted


def _end(standing: StandingJoin, reason: str, moment: int | None = None) -> list[PairEvent]:
    """Return the events of a query that ends."""
    before, standing.pairs = standing.pairs, {}
    return _difference(standing, before, reason, moment)


def _with(pair: tuple[Reading, Reading], query: JoinQuery, happening: Happening) -> tuple[Reading, Reading]:
    """Return a pair with the reading that was just applied in place of the reading before."""
    left, right = (
        happening.last if (feed, happening.last.stream) == (happening.feed, one.stream) else one
        for feed, one in zip(query.feeds, pair, strict=True)
    )
    return left, right


def _event(
    standing: StandingJoin, sign: str, left: Reading | None, right: Reading | None, time: int, reason: str
) -> PairEvent:
    query = standing.query
    return PairEvent(
        kind=query.kind,
        sign=sign,
        query_id=standing.query_id,
        version=query.version,
        feeds=query.feeds,
        left=left,
        right=right,
        event_time=time,
        reason=reason if query.kind == "band_join" else "",
    )


def broken_answers(events: list[PairEvent]) -> list[str]:
    """Return what breaks the ledger of band joins: signs of a pair that do not alternate from +."""
    broken = []
    latest: dict[tuple[str, tuple[str, str], str], PairEvent] = {}
    for event in events:
        if event.sign:
            key = event.query_id, event.feeds, event.pair
            before = latest.get(key)
            if event.sign == ("-" if before is None else before.sign):
                broken.append(f"{event} repeats the sign of {before}")
            latest[key] = event
    return broken
