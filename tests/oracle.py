"""The definition of the service, written to be obviously right.

Slow on purpose: every reading asks every query, and every moment looks at every timer. Knows dicts and numbers; shares
no code with `bmq`, so that an error has to be made twice, in two ways, to stay unseen. A definition is the JSON object
of the control topic. The rules are those of `docs/semantics.md`; what they say of order is the order of `events` here.

What a batch holds is given, so this says what comes of any input, out of order too. There are no shards: all timers of
a feed fire in one order, of which the order of one stream's events is what a rule says.

    oracle_regions  what a region holds        oracle_queries       what a definition of one feed says
    oracle_feeds    clocks, held readings      oracle_join_queries  what a definition of a join says
    oracle_tracking one query and one stream   oracle_joins         pairs of streams, pairs of readings
    here            commands, the readings and timers of one feed
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from tests.oracle_feeds import FeedState, Happening
from tests.oracle_join_queries import JOIN_KINDS, read_join
from tests.oracle_joins import Joins
from tests.oracle_joins import PairEvent as PairEvent
from tests.oracle_joins import broken_answers as broken_answers
from tests.oracle_queries import Definition as Definition
from tests.oracle_queries import Feed as Feed
from tests.oracle_queries import Query, read_query
from tests.oracle_queries import Reading as Reading
from tests.oracle_regions import Value as Value
from tests.oracle_regions import point_on, visits
from tests.oracle_tracking import Cause, Ledger, Standing, Turn, at_rest
from tests.oracle_tracking import Event as Event
from tests.oracle_tracking import broken_ledgers as broken_ledgers


@dataclass(frozen=True)
class Answer:
    """The reply to one command, or the news that its query expired; ``code`` where ``status`` is "rejected"."""

    offset: int
    query_id: str
    status: str
    code: str | None = None


class Timer(NamedTuple):
    """Something that is due at a time; ``query_id`` in UTF-8, empty if all queries of the feed are meant."""

    due: int
    turn: Turn
    query_id: bytes
    stream: str


class Oracle:
    """The service as dicts: it reads what the service reads; ``answers`` and ``events`` are what it must say.

    A batch is its commands (`put`, `delete`, `refuse`), then `advance` once for every feed, then `join`.

    Parameters
    ----------
    feeds : each feed, or only its dimensions in the order of the values.
    silent_tombstones_before : deletes of unknown queries below this control offset get no answer, since a
        compacted control topic is full of them when a new checkpoint reads it from the start.
    """

    def __init__(self, feeds: Mapping[str, Feed | Sequence[str]], silent_tombstones_before: int = 0) -> None:
        self.answers: list[Answer] = []
        self._ledger = Ledger()
        self._feeds = {name: feed if isinstance(feed, Feed) else Feed(tuple(feed)) for name, feed in feeds.items()}
        self._states = {name: FeedState(name, feed) for name, feed in self._feeds.items()}
        self._joins = Joins(self._states)
        self._silent_tombstones_before = silent_tombstones_before
        self._standing: dict[str, Standing] = {}

    @property
    def feeds(self) -> list[str]:
        """The names of the feeds."""
        return list(self._feeds)

    @property
    def events(self) -> list[Event]:
        """All events so far of queries of one feed, those of each stream in their order."""
        return self._ledger.events

    @property
    def pair_events(self) -> list[PairEvent]:
        """All events so far of joins, in order."""
        return self._joins.events

    @property
    def late(self) -> Counter[str]:
        """How many readings of each feed came too late to change anything."""
        return Counter({name: state.n_late for name, state in self._states.items()})

    # -- commands -----------------------------------------------------------------------------------------

    def put(self, offset: int, query_id: str, definition: Definition) -> None:
        """Register or replace a query; what this begins and ends is emitted at once."""
        if definition["kind"] in JOIN_KINDS:
            self._put_join(offset, query_id, definition)
            return
        old, query = self._standing.get(query_id), read_query(offset + 1, definition, self._feeds)
        state, as_put = self._states[query.feed], query
        if query.expires_at is not None and state.clock is not None and state.clock > query.expires_at:
            query = replace(query, enabled=False)  # it is over before it begins
        if old is not None and (old.query.same_as(as_put) or old.query.same_as(query)):
            self.answers.append(Answer(offset, query_id, "unchanged"))
            return
        self.answers.append(Answer(offset, query_id, "accepted"))
        new = Standing(query_id, query, *_due(query, state))
        if query.stream_ttl is not None:
            ends = {stream: last.event_time + query.stream_ttl for stream, last in state.known.items()}
            new.strangers = {stream for stream, due in ends.items() if state.has_passed_for(stream, due)}
        is_new = old is None and query_id not in self._joins
        reason = "query_registered" if is_new else "query_updated"
        if query_id in self._joins:
            self._joins.remove(query_id, reason, query.version)
        if old is not None and not old.query.can_go_on_as(query):
            self._end(old, reason, query.version)
            old = None
        self._standing[query_id] = new
        if not query.is_level:
            for last in state.known.values():
                self._ledger.replace(old, new, last, reason)
        if old is not None:
            for stream in old.trackings.keys() - state.known.keys():
                self._ledger.carry_over(old, new, stream)
        # What begins in the past may be due already. It comes before the next command, wherever batches end.
        self._fire_settled(query.feed)

    def _put_join(self, offset: int, query_id: str, definition: Definition) -> None:
        query = read_join(offset + 1, definition, self._feeds)
        if self._joins.has_in_force(query_id, query):
            self.answers.append(Answer(offset, query_id, "unchanged"))
            return
        self.answers.append(Answer(offset, query_id, "accepted"))
        old = self._standing.pop(query_id, None)
        is_new = old is None and query_id not in self._joins
        reason = "query_registered" if is_new else "query_updated"
        if old is not None:
            self._end(old, reason, query.version)
        self._answer_expired(self._joins.put(query_id, query, reason))

    def delete(self, offset: int, query_id: str) -> None:
        """Remove a query; its streams leave at once."""
        if query_id in self._joins:
            self.answers.append(Answer(offset, query_id, "deleted"))
            self._joins.remove(query_id, "query_deleted")
            return
        if query_id not in self._standing:
            if offset >= self._silent_tombstones_before:
                self.refuse(offset, query_id, "unknown_query")
            return
        self.answers.append(Answer(offset, query_id, "deleted"))
        self._end(self._standing.pop(query_id), "query_deleted")

    def _end(self, standing: Standing, reason: str, version: int | None = None) -> None:
        """End all memberships of a query; ``version``: of an edit that ends them."""
        for last in self._states[standing.query.feed].known.values():
            self._ledger.end(standing, at_rest(last, reason), version)

    def refuse(self, offset: int, query_id: str, code: str) -> None:
        """Answer a command that is no definition; what was in force stays in force."""
        self.answers.append(Answer(offset, query_id, "rejected", code))

    # -- readings -----------------------------------------------------------------------------------------

    def read(self, feed: str, readings: Iterable[Reading]) -> None:
        """Apply one batch of readings of one partition."""
        self.advance(feed, {0: list(readings)})
        self.join()

    def advance(self, feed: str, arrived: Mapping[int, Sequence[Reading]], mark: int | None = None) -> None:
        """End one batch of a feed: apply its readings, and let its clock go on.

        Parameters
        ----------
        arrived : partition -> its readings in the order of their offsets; none of them bad.
        mark : how far the clock has come without readings.
        """
        state = self._states[feed]
        released = state.take(arrived, mark)
        if state.start is not None:
            self._start_ttls(feed, state.start)
        for one in released:
            self._fire(feed, one.reading.event_time)
            self._apply(feed, one.reading, one.lag)
        self._fire_settled(feed)

    def join(self) -> None:
        """Let the joins take in what happened to all feeds; to be called once a batch, after `advance`."""
        self._answer_expired(self._joins.advance())

    def _answer_expired(self, expired: Iterable[tuple[str, int]]) -> None:
        self.answers += [Answer(version - 1, query_id, "expired") for query_id, version in expired]

    def inside(self) -> set[tuple[str, str, str]]:
        """Return every (query, feed, stream) whose membership has begun and not ended, silently or not."""
        return {
            (query_id, standing.query.feed, stream)
            for query_id, standing in self._standing.items()
            for stream, tracking in standing.trackings.items()
            if tracking.visit != "no"
        }

    def _apply(self, feed: str, reading: Reading, lag: int) -> None:
        """Apply one reading: passes, leaves, enters, transitions, then what fits, each by query id."""
        state, stream = self._states[feed], reading.stream
        if state.feed.lonlat and reading.value[0] == 180:
            reading = replace(reading, value=(-180.0, reading.value[1]))
        last = state.known.get(stream)
        if state.is_late(reading):
            state.n_late += 1
            return
        state.known[stream] = reading
        state.happenings.append(Happening(reading.event_time, False, feed, reading, lag))
        passes: list[tuple[Fraction, int, Standing, Cause]] = []
        left: list[tuple[Standing, Cause]] = []
        entered: list[tuple[Standing, Cause]] = []
        patterns: list[tuple[Standing, Cause]] = []
        levels: list[tuple[Standing, Cause]] = []
        for standing in self._on(feed):
            query = standing.query
            before = None if stream in standing.strangers else last
            standing.strangers.discard(stream)
            previous = None if before is None else (before.event_time, before.value)
            reason = "first_seen" if before is None else "moved"
            cause = Cause(stream, reading.event_time, reading.value, reason, previous)
            if query.is_level:
                levels += [(standing, cause)] if query.enters(reading) else []
                continue
            if before is not None and query.passes:
                passes += [(share, turn, standing, at) for share, turn, at in self._passes(query, before, reading)]
            tracking = standing.tracking(stream)
            inside = query.stays(reading) if tracking.inside else query.enters(reading)
            if inside != tracking.inside:
                crossed = patterns if query.pattern is not None else entered if inside else left
                crossed.append((standing, cause))
        for _, turn, standing, at in sorted(passes, key=lambda one: one[:2]):
            self._ledger.emit_pass("+" if turn == 1 else "-", standing, at)
        for standing, cause in [*left, *entered, *patterns]:
            self._ledger.cross(standing, cause)
        for standing, cause in levels:
            self._ledger.emit_level(standing, cause)

    def _passes(self, query: Query, before: Reading, now: Reading) -> Iterator[tuple[Fraction, int, Cause]]:
        """Yield (share of the way, turn, cause) for both ends of each visit between two readings.

        At one place the turn of a - is 0 and that of a + is 1; the - of a visit that both begins and ends there is 2.

        Both readings must be in scope and outside.
        """
        if not (query.in_scope(before) and query.in_scope(now)) or query.enters(before) or query.enters(now):
            return
        lonlat, previous = self._feeds[query.feed].lonlat, (before.event_time, before.value)
        for visit in visits(query.region, before.value, now.value, lonlat=lonlat):
            for turn, share in zip((1, 2 if visit[0] == visit[1] else 0), visit, strict=True):
                time = before.event_time + round((now.event_time - before.event_time) * share)
                value = tuple(map(float, point_on(before.value, now.value, share, lonlat=lonlat)))
                yield share, turn, Cause(now.stream, time, value, "moved", previous, is_pass=True)

    # -- time ---------------------------------------------------------------------------------------------

    def _fire_settled(self, feed: str) -> None:
        settled = self._states[feed].settled
        if settled is not None:
            self._fire(feed, settled)

    def _fire(self, feed: str, before: int) -> None:
        """Fire everything that is over and due before the readings of a time, by moment, turn and query.

        The timers of a stream go by its own time, the lives of queries by the settled time.
        """
        while timers := [timer for timer in self._timers(feed) if timer[:2] < (before, Turn.READING)]:
            timer = min(timers)
            query_id, stream = timer.query_id.decode(), timer.stream
            if timer.turn is Turn.PENDING:
                self._ledger.fire(self._standing[query_id], stream, timer.due)
            elif timer.turn is Turn.QUERY_EXPIRY:
                self._expire_query(feed, query_id, timer.due)
            elif query_id:
                self._forget_for(self._standing[query_id], stream, timer.due)
            else:
                for standing in self._on(feed):
                    self._forget_for(standing, stream, timer.due)
                last = self._states[feed].known.pop(stream)
                self._states[feed].happenings.append(Happening(timer.due, True, feed, last))

    def _timers(self, feed: str) -> Iterator[Timer]:
        """Yield everything that is over at the end of this batch."""
        state = self._states[feed]
        for timer in self._timers_of_streams(feed):
            if state.has_passed_for(timer.stream, timer.due):
                yield timer
        for standing in self._on(feed):
            if standing.due is not None and state.has_passed(standing.due):
                yield Timer(standing.due, Turn.QUERY_EXPIRY, standing.query_id.encode(), "")

    def _timers_of_streams(self, feed: str) -> Iterator[Timer]:
        """Yield everything that happens to a stream unless a reading prevents it."""
        state = self._states[feed]
        for stream, last in state.known.items():
            if state.feed.stream_ttl is not None:
                yield Timer(last.event_time + state.feed.stream_ttl, Turn.STREAM_EXPIRY, b"", stream)
        for standing in self._on(feed):
            query, query_id = standing.query, standing.query_id.encode()
            for stream, tracking in standing.trackings.items():
                due = tracking.due(query)
                if due is not None:
                    yield Timer(due, Turn.PENDING, query_id, stream)
            if query.stream_ttl is not None:
                for stream in state.known.keys() - standing.strangers:
                    yield Timer(state.known[stream].event_time + query.stream_ttl, Turn.STREAM_EXPIRY, query_id, stream)

    def _forget_for(self, standing: Standing, stream: str, due: int) -> None:
        """Let a stream be unknown to a query because it was silent."""
        if stream in standing.strangers:
            return
        standing.strangers.add(stream)
        value = self._states[standing.query.feed].known[stream].value
        self._ledger.expire(standing, Cause(stream, due, value, "stream_expired"))

    def _expire_query(self, feed: str, query_id: str, due: int) -> None:
        standing = self._standing.pop(query_id)
        for last in self._states[feed].known.values():
            self._ledger.end(standing, Cause(last.stream, due, last.value, "query_expired"))
        self.answers.append(Answer(standing.query.version - 1, query_id, "expired"))

    def _start_ttls(self, feed: str, time: int) -> None:
        for standing in self._on(feed):
            if standing.awaits_clock:
                standing.due, standing.awaits_clock = time + (standing.query.ttl or 0), False

    def _on(self, feed: str) -> list[Standing]:
        """Return the queries of a feed, by the bytes of their ids."""
        chosen = [standing for standing in self._standing.values() if standing.query.feed == feed]
        return sorted(chosen, key=lambda standing: standing.query_id.encode())


def _due(query: Query, state: FeedState) -> tuple[int | None, bool]:
    """Return when a query that is put now ends, and whether that is yet to be seen."""
    if query.expires_at is not None or query.ttl is None:
        return query.expires_at, False
    return (None, True) if state.clock is None else (state.clock + query.ttl, False)
