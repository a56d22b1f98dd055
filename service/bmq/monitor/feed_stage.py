"""The stage of the queries over single feeds: commands, held readings and state of one shard.

    readings of this shard ─► held ─► FeedEngine (one for each feed) ─► crossings

The stage applies commands to the engine of their feed. It sends no replies and has no joins. The monitor moves the
clocks.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from bmq.engines.feed.feed_engine import FeedEngine
from bmq.engines.stage_result import StageResult
from bmq.monitor.clock import FeedClock
from bmq.monitor.held_readings import HeldReadings, with_lags
from bmq.monitor.lifetimes import Lifetimes
from bmq.records import Delta, Installation, Put, Query, Readings, Reason, RegionQuery


class FeedStage:
    """Queries of single feeds, and the streams of this shard.

    Parameters
    ----------
    clocks : of all feeds; they have moved already when `advance` is called.
    """

    def __init__(self, installation: Installation, clocks: Mapping[str, FeedClock]) -> None:
        feeds = installation.feeds
        self._engines = {name: FeedEngine(feed, installation) for name, feed in feeds.items()}
        self._held = {
            name: HeldReadings(self._engines[name].tables.streams, feed.max_lateness_ms)
            for name, feed in feeds.items()
            if feed.max_lateness_ms
        }
        self._clocks = clocks
        self._lifetimes = Lifetimes[RegionQuery](clocks)
        self._feed_by_query: dict[str, str] = {}
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
        """The engine of each feed; callers only count, they change nothing."""
        return self._engines

    # -- commands -----------------------------------------------------------------------------------------

    def is_unchanged(self, query: RegionQuery) -> bool:
        """Return whether this definition is registered already, whatever its version is."""
        return query.query_id in self and self._lifetimes.is_in_force(query, self.query(query.query_id))

    def put(self, command: Put[RegionQuery], reason: Reason) -> StageResult:
        """Register or replace a query; return the events that this causes at once, and the put for replicas."""
        query, due = self._lifetimes.unless_over(command.query), self._lifetimes.due(command.query)
        feed, result = query.feed, StageResult()
        if self._feed_by_query.get(query.query_id, feed) != feed:
            result.add(self.remove(query.query_id, Reason.QUERY_UPDATED, query))
        begun = self._engines[feed].put(query, reason, due)
        if begun is not None:
            result.crossings.append(begun)
        self._feed_by_query[query.query_id] = feed
        self._lifetimes.register(query, due)
        # A timer that starts in the past may be due already. It fires before the next command, so that the events do
        # not depend on the borders of batches.
        result.add(self._engines[feed].advance(None, self._clocks[feed].settled))
        if result.n_suppressed:
            self._n_suppressed[feed] = self._n_suppressed.get(feed, 0) + result.n_suppressed
            result.n_suppressed = 0
        self._forget(result.expired)
        result.puts.append(Put(command.offset, query, due))
        return result

    def remove(self, query_id: str, reason: Reason, emitted_as: RegionQuery | None = None) -> StageResult:
        """Remove a registered query; return the leaves of its members; ``emitted_as`` is the definition they carry."""
        feed = self._feed_by_query.pop(query_id)
        self._lifetimes.forget(query_id, (feed,))
        ended = self._engines[feed].remove(query_id, reason, emitted_as=emitted_as)
        return StageResult([] if ended is None else [ended])

    def drop(self, query_id: str) -> None:
        """Remove a query without events, if it is there."""
        feed = self._feed_by_query.pop(query_id, None)
        if feed is not None:
            self._lifetimes.forget(query_id, (feed,))
            self._engines[feed].drop(query_id)

    def _forget(self, expired: Sequence[Query]) -> None:
        for query in expired:
            self._feed_by_query.pop(query.query_id, None)

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, readings: Mapping[str, Readings | None]) -> StageResult:
        """Apply the readings of this shard to their feeds, and fire the timers due there; None: no readings."""
        result = StageResult()
        for feed, of_feed in readings.items():
            result.add(self._advance(feed, of_feed))
        return result

    def _advance(self, feed: str, readings: Readings | None) -> StageResult:
        engine, settled = self._engines[feed], self._clocks[feed].settled
        before, n_late = engine.tables.settled, 0
        if feed in self._held:
            readings, n_late = self._held[feed].advance(readings, before, settled)
        elif readings is not None:
            readings = with_lags(readings, before)
        started = self._lifetimes.start([(feed,)])
        for put in started:
            engine.set_due(put.query.query_id, put.due)
        result = engine.advance(readings, settled)
        result.puts.extend(started)
        result.n_late += n_late
        result.n_suppressed += self._n_suppressed.pop(feed, 0)
        self._forget(result.expired)
        return result

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self) -> Delta:
        """Return what changed in the feeds since the last call, and forget that it changed."""
        streams, pairs, held = {}, {}, {}
        silent: dict[tuple[str, str], bool] = {}
        for name, engine in self._engines.items():
            rows = engine.take_touched_streams()
            if len(rows.ids):
                streams[name] = rows
            touched = engine.take_touched_trackings()
            if len(touched.ids):
                pairs[name] = touched
            # If an edit moved a query to another feed, its silent members over the former feed ended. So their ends
            # count only in the query's present feed.
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

    def restore(self, put: Put[RegionQuery], delta: Delta) -> None:
        """Register or replace a query without events, by a put of ``delta``."""
        query = put.query
        if self._feed_by_query.get(query.query_id, query.feed) != query.feed:
            self.drop(query.query_id)
        self._engines[query.feed].restore(query, put.due)
        self._feed_by_query[query.query_id] = query.feed
        self._lifetimes.register(query, put.due)

    def restore_rows(self, delta: Delta) -> None:
        """Apply the rows that ``take_touched`` or ``pages`` of another stage returned; the clocks are set already."""
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

    def puts(self) -> list[Put[RegionQuery]]:
        """Return the puts that register the present queries."""
        return [
            Put(query.version - 1, query, engine.tables.dues.of(engine.tables.queries.slot(query.query_id)))
            for engine in self._engines.values()
            for query in engine.tables.queries.queries()
        ]

    def n_held(self) -> int:
        """Return how many readings are held back by `max_lateness`."""
        return sum(map(len, self._held.values()))

    def pages(self, size: int) -> Iterator[Delta]:
        """Yield everything that the feeds keep beside their queries, ``size`` rows at a time."""
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
            assert self._lifetimes.pending((name,)) <= ids
