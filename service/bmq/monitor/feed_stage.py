"""The queries over single feeds of one shard: commands, clocks, held readings and state.

    readings of this shard ─► held ─► FeedEngine (one a feed) ─► crossings

Says what a command does and lets the clocks move; whom to answer, and what is a join, is the monitor's business.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from bmq.engines.feed.feed_engine import FeedEngine
from bmq.monitor.clock import FeedClock
from bmq.monitor.held_readings import HeldReadings
from bmq.records import NEVER, Clock, Crossings, Delta, Feed, Put, Readings, Reason, RegionQuery


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch or a command did to a feed.

    crossings : in order. expired : queries that ended. started : queries whose ttl runs from now on, with their dues.
    """

    crossings: list[Crossings]
    expired: Sequence[RegionQuery]
    started: list[Put] = field(default_factory=list)
    n_late: int = 0
    visits: int = 0
    level_visits: int = 0
    n_suppressed: int = 0


class FeedStage:
    """Queries of single feeds, and the streams of this shard.

    Parameters
    ----------
    feeds : feed name -> Feed.
    clocks : of all feeds; `advance` moves them.
    """

    def __init__(self, feeds: Mapping[str, Feed], clocks: Mapping[str, FeedClock]) -> None:
        self._engines = {name: FeedEngine(feed) for name, feed in feeds.items()}
        self._held = {name: HeldReadings() for name, feed in feeds.items() if feed.max_lateness_ms}
        self._clocks = clocks
        self._feed_by_query: dict[str, str] = {}
        self._pending: dict[str, set[str]] = {name: set() for name in feeds}  # queries whose ttl has no clock yet
        self._recounts_stored: dict[str, int] = {}
        self._n_suppressed: dict[str, int] = {}  # by commands, since the feeds advanced

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._feed_by_query

    def query(self, query_id: str) -> RegionQuery:
        """Return a registered query."""
        engine = self._engines[self._feed_by_query[query_id]]
        return engine.tables.queries.query(engine.tables.queries.slot(query_id))

    @property
    def engines(self) -> Mapping[str, FeedEngine]:
        """The engine of each feed, to be counted and not changed."""
        return self._engines

    # -- commands -----------------------------------------------------------------------------------------

    def is_unchanged(self, query: RegionQuery) -> bool:
        """Return whether a definition is in force already."""
        if query.query_id not in self:
            return False
        # Between the settled time and the clock one may be over and still be there: without effect, as it was put.
        in_force = replace(self.query(query.query_id), version=query.version)
        return in_force in (query, self._unless_over(query))

    def put(self, command: Put, reason: Reason) -> tuple[Told, Put]:
        """Register or replace a query; return what that does at once, and the command as replicas need it."""
        query, due = self._unless_over(command.query), self._due(command.query)
        told: list[Crossings | None] = []
        if self._feed_by_query.get(query.query_id, query.feed) != query.feed:
            told.append(self._remove(query.query_id, Reason.QUERY_UPDATED, query))
        told.append(self._engines[query.feed].put(query, reason, due))
        self._feed_by_query[query.query_id] = query.feed
        self._set_pending(query, due)
        # What begins in the past may be due already; it comes before the next command, wherever batches end.
        at_once = self._engines[query.feed].advance(None, self._clocks[query.feed].settled)
        told.append(at_once.crossings)
        if at_once.n_suppressed:
            self._n_suppressed[query.feed] = self._n_suppressed.get(query.feed, 0) + at_once.n_suppressed
        self._forget(at_once.expired)
        return Told(_those(told), at_once.expired), Put(command.offset, query, due)

    def remove(self, query_id: str, reason: Reason, emitted_as: RegionQuery | None = None) -> list[Crossings]:
        """Remove a query; return what ends; ``emitted_as`` is the definition that it carries, if another one."""
        return _those([self._remove(query_id, reason, emitted_as)])

    def drop(self, query_id: str) -> None:
        """Remove a query without a word, if it is there."""
        feed = self._feed_by_query.pop(query_id, None)
        if feed is not None:
            self._pending[feed].discard(query_id)
            self._engines[feed].drop(query_id)

    def _remove(self, query_id: str, reason: Reason, emitted_as: RegionQuery | None) -> Crossings | None:
        feed = self._feed_by_query.pop(query_id)
        self._pending[feed].discard(query_id)
        return self._engines[feed].remove(query_id, reason, emitted_as=emitted_as)

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, feed: str, readings: Readings | None, marks: Clock) -> Told:
        """Move a feed's clock by the ``marks`` of all shards, and apply the readings of this one."""
        clock = self._clocks[feed]
        before = clock.settled
        clock.move(marks)
        n_late = 0
        held = self._held.get(feed)
        if held is not None:
            if readings is not None:
                n_late = held.add(readings, before)
            readings = held.release(clock.settled)
        started = self._start_pending(feed)
        done = self._engines[feed].advance(readings, clock.settled)
        self._forget(done.expired)
        return Told(
            _those([done.crossings]),
            done.expired,
            started,
            n_late + done.n_late,
            done.visits,
            done.level_visits,
            done.n_suppressed + self._n_suppressed.pop(feed, 0),
        )

    # -- life times ---------------------------------------------------------------------------------------

    def _unless_over(self, query: RegionQuery) -> RegionQuery:
        """Return the query, without effect where it is over before it begins: what it replaces ends, nothing enters."""
        is_over = query.expires_at is not None and self._clocks[query.feed].now.time > query.expires_at
        return replace(query, enabled=False) if is_over else query

    def _due(self, query: RegionQuery) -> int:
        """Return when a query that is put now ends; NEVER: not at all, or its feed has no clock yet."""
        if query.expires_at is not None:
            return query.expires_at
        time = self._clocks[query.feed].now.time
        return NEVER if query.ttl_ms is None or time == NEVER else time + query.ttl_ms

    def _set_pending(self, query: RegionQuery, due: int) -> None:
        if due == NEVER and query.ttl_ms is not None:
            self._pending[query.feed].add(query.query_id)
        else:
            self._pending[query.feed].discard(query.query_id)

    def _start_pending(self, feed: str) -> list[Put]:
        """Let the `ttl` of queries that were put before any reading run from the earliest one."""
        start = self._clocks[feed].start
        if start == NEVER:
            return []
        started = []
        for query_id in sorted(self._pending[feed]):
            query = self.query(query_id)
            assert query.ttl_ms is not None
            due = start + query.ttl_ms
            self._engines[feed].set_due(query_id, due)
            started.append(Put(query.version - 1, query, due))
        self._pending[feed].clear()
        return started

    def _forget(self, expired: Sequence[RegionQuery]) -> None:
        for query in expired:
            self._feed_by_query.pop(query.query_id, None)

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self) -> Delta:
        """Return what changed in the feeds since the last call; commands and clocks are the monitor's."""
        streams, pairs, held = {}, {}, {}
        silent: dict[tuple[str, str], bool] = {}
        for name, engine in self._engines.items():
            rows = engine.take_touched_streams()
            if len(rows.ids):
                streams[name] = rows
            touched = engine.take_touched_trackings()
            if len(touched.ids):
                pairs[name] = touched
            # A pair that a query had over its former feed ended there; what the feed in force says wins.
            silent.update(
                (pair, now)
                for pair, now in engine.tables.silent.take_changes().items()
                if now or self._feed_by_query.get(pair[0], name) == name
            )
        for name, buffer in self._held.items():
            new = buffer.take_new()
            if new is not None:
                held[name] = new
        recounts = {name: n for name, n in self._recounts().items() if n != self._recounts_stored.get(name)}
        self._recounts_stored.update(recounts)
        return Delta(streams=streams, silent=silent, held=held, pairs=pairs, recounts=recounts)

    def restore(self, put: Put) -> None:
        """Register or replace a query without a word."""
        query = put.query
        if self._feed_by_query.get(query.query_id, query.feed) != query.feed:
            self.drop(query.query_id)
        self._engines[query.feed].restore(query, put.due)
        self._feed_by_query[query.query_id] = query.feed
        self._set_pending(query, put.due)

    def restore_rows(self, delta: Delta) -> None:
        """Follow what another shard's ``take_touched`` or ``pages`` gave; the clocks have been set already."""
        for name in delta.clocks:
            self._engines[name].tables.settled = self._clocks[name].settled
        for name, n_recounted in delta.recounts.items():
            self._engines[name].tables.streams.n_recounted = self._recounts_stored[name] = n_recounted
        for name, rows in delta.streams.items():
            self._engines[name].restore_streams(rows)
        for name, pairs in delta.pairs.items():
            self._engines[name].restore_trackings(pairs)
        for name, buffer in self._held.items():
            buffer.restore(delta.held.get(name), self._clocks[name].settled)
        for (query_id, stream), is_silent in delta.silent.items():
            if query_id in self:
                self._engines[self._feed_by_query[query_id]].tables.silent.set(query_id, stream, is_silent=is_silent)

    def puts(self) -> list[Put]:
        """Return the commands that make the registered queries."""
        return [
            Put(query.version - 1, query, engine.tables.dues.of(engine.tables.queries.slot(query.query_id)))
            for engine in self._engines.values()
            for query in engine.tables.queries.queries()
        ]

    def pages(self, size: int) -> Iterator[Delta]:
        """Yield all that the feeds keep beside their queries, ``size`` rows at a time."""
        if recounts := self._recounts():
            yield Delta(recounts=recounts)
        for name, engine in self._engines.items():
            for rows in engine.stream_pages(size):
                yield Delta(streams={name: rows})
            for tracked in engine.tracking_pages(size):
                yield Delta(pairs={name: tracked})
            pairs = engine.tables.silent.pairs()
            while page := dict.fromkeys(islice(pairs, size), True):
                yield Delta(silent=page)
        for name, buffer in self._held.items():
            for readings in buffer.pages(size):
                yield Delta(held={name: readings})

    def _recounts(self) -> dict[str, int]:
        return {
            name: engine.tables.streams.n_recounted
            for name, engine in self._engines.items()
            if engine.tables.streams.n_recounted
        }

    def _check(self) -> None:
        """State every invariant; for tests."""
        for name, engine in self._engines.items():
            engine._check()
            # A query is registered at the engine of its feed and nowhere else.
            ids = {query.query_id for query in engine.tables.queries.queries()}
            assert ids == {query_id for query_id, feed in self._feed_by_query.items() if feed == name}
            assert self._pending[name] <= ids


def _those(crossings: Sequence[Crossings | None]) -> list[Crossings]:
    return [found for found in crossings if found is not None]
