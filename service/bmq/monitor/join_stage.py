"""The joins of one shard: commands, clocks, held readings and state of the feeds that take part in them.

    readings of all shards ─► held ─► JoinFeed (one a feed) ─► FeedPair (one for each left and right feed) ─► pairs

A pair of streams belongs to the shard of its left stream, so that all that is told of a pair is told in order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bmq.engines.feed_pair import FeedPair
from bmq.engines.joins.join_feed import JoinFeed
from bmq.monitor.clock import FeedClock
from bmq.monitor.held_readings import HeldReadings
from bmq.records import (
    NEVER,
    Feed,
    JoinedPairs,
    JoinQuery,
    JoinRows,
    PutJoin,
    Readings,
    Reason,
    RegionQuery,
)

Names = tuple[str, str]
Query = TypeVar("Query", RegionQuery, JoinQuery)


def as_emitted(old: Query, new: RegionQuery | JoinQuery) -> Query:
    """Return a query as the events carry it that its replacement by one of another kind or other feeds causes."""
    return replace(old, version=new.version, tags=new.tags, output_topic=new.output_topic)


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch or a command did to the joins.

    pairs : events. expired : queries that ended. started : queries whose ttl runs from now on, with their dues.
    visits : candidates looked at.
    """

    pairs: list[JoinedPairs]
    expired: list[JoinQuery]
    started: list[PutJoin] = field(default_factory=list)
    visits: int = 0


class JoinStage:
    """Join queries and the feeds that they join.

    Parameters
    ----------
    feeds : feed name -> Feed; those without ``join`` are left out.
    clocks : of all feeds; they have moved already when `advance` is called.
    shard, n_shards : which pairs are told here.
    """

    def __init__(self, feeds: Mapping[str, Feed], clocks: Mapping[str, FeedClock], shard: int, n_shards: int) -> None:
        joining = {name: feed for name, feed in feeds.items() if feed.join}
        self._feeds = {name: JoinFeed(feed, shard, n_shards) for name, feed in joining.items()}
        self._held = {name: HeldReadings() for name, feed in joining.items() if feed.max_lateness_ms}
        self._clocks = clocks
        self._pairs: dict[Names, FeedPair] = {}
        self._names: dict[str, Names] = {}  # by query id
        self._pending: set[str] = set()  # queries whose ttl has no clock yet

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._names

    def query(self, query_id: str) -> JoinQuery:
        """Return a registered query."""
        return self._pairs[self._names[query_id]].query(query_id)

    def queries(self) -> list[JoinQuery]:
        """Return the registered queries, in no order."""
        return [query for pair in self._pairs.values() for query in pair.queries()]

    # -- commands -----------------------------------------------------------------------------------------

    def is_unchanged(self, query: JoinQuery) -> bool:
        """Return whether a definition is in force already."""
        if query.query_id not in self:
            return False
        in_force = replace(self.query(query.query_id), version=query.version)
        return in_force in (query, self._unless_over(query))

    def put(self, command: PutJoin, reason: Reason) -> tuple[Told, PutJoin]:
        """Register or replace a query; return what that does at once, and the command as replicas need it."""
        query = self._unless_over(command.query)
        names = (query.left.feed, query.right.feed)
        told: list[JoinedPairs | None] = []
        old = self.query(query.query_id) if query.query_id in self else None
        if old is not None and (self._names[query.query_id], old.kind) != (names, query.kind):
            told.append(self._remove(query.query_id, Reason.QUERY_UPDATED, as_emitted(old, query)))
        due = self._due(query)
        pair = self._pair(names)
        told.append(pair.put(query, reason, due))
        self._names[query.query_id] = names
        self._set_pending(query, due)
        # What ends in the past ends now, before the next command, wherever batches end.
        at_once = pair.advance(
            self._feeds[names[0]].nothing(), self._feeds[names[1]].nothing(), self._settled_of(names)
        )
        told.append(at_once.pairs)
        self._forget(at_once.expired)
        return Told([one for one in told if one is not None], at_once.expired), replace(command, query=query, due=due)

    def remove(self, query_id: str, reason: Reason, emitted_as: JoinQuery | None = None) -> list[JoinedPairs]:
        """Remove a query; return the pairs that end; ``emitted_as`` is the definition they carry, if another one."""
        told = self._remove(query_id, reason, emitted_as)
        return [] if told is None else [told]

    def drop(self, query_id: str) -> None:
        """Remove a query without a word, if it is there."""
        names = self._names.pop(query_id, None)
        self._pending.discard(query_id)
        if names is not None:
            self._pairs[names].drop(query_id)

    def _remove(self, query_id: str, reason: Reason, emitted_as: JoinQuery | None) -> JoinedPairs | None:
        self._pending.discard(query_id)
        return self._pairs[self._names.pop(query_id)].remove(query_id, reason, emitted_as)

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, readings: Mapping[str, Readings]) -> Told:
        """Apply what a batch brought to the feeds, over all shards, ascending by (partition, offset) in each feed."""
        for pair in self._pairs.values():
            pair.band.refresh()
        arrivals = {}
        for name, feed in self._feeds.items():
            settled = self._clocks[name].settled
            arrivals[name] = feed.apply(self._released(name, readings.get(name), settled), settled)
        told = Told([], [], self._start_pending())
        visits = 0
        for names, pair in self._pairs.items():
            done = pair.advance(arrivals[names[0]], arrivals[names[1]], self._settled_of(names))
            if done.pairs is not None:
                told.pairs.append(done.pairs)
            told.expired.extend(done.expired)
            visits += done.visits
        self._forget(told.expired)
        self._prune()
        return replace(told, visits=visits)

    def _released(self, name: str, readings: Readings | None, settled: int) -> Readings | None:
        held = self._held.get(name)
        if held is None:
            return readings
        if readings is not None:
            held.add(readings, self._feeds[name].settled)
        return held.release(settled)

    def _prune(self) -> None:
        """Forget readings that no window needs any more."""
        for name, feed in self._feeds.items():
            if not feed.n_windows:
                continue
            needed = [
                pair.windows.needed(side, self._clocks[names[1 - side]].settled)
                for names, pair in self._pairs.items()
                for side in (0, 1)
                if names[side] == name
            ]
            feed.drop_first(min(needed))

    # -- life times ---------------------------------------------------------------------------------------

    def _settled_of(self, names: Names) -> int:
        return max(self._clocks[name].settled for name in names)

    def _time_of(self, names: Names) -> int:
        return max(self._clocks[name].now.time for name in names)

    def _unless_over(self, query: JoinQuery) -> JoinQuery:
        """Return the query, without effect where it is over before it begins."""
        names = (query.left.feed, query.right.feed)
        is_over = query.expires_at is not None and self._time_of(names) > query.expires_at
        return replace(query, enabled=False) if is_over else query

    def _due(self, query: JoinQuery) -> int:
        if query.expires_at is not None:
            return query.expires_at
        time = self._time_of((query.left.feed, query.right.feed))
        return NEVER if query.ttl_ms is None or time == NEVER else time + query.ttl_ms

    def _set_pending(self, query: JoinQuery, due: int) -> None:
        if due == NEVER and query.ttl_ms is not None:
            self._pending.add(query.query_id)
        else:
            self._pending.discard(query.query_id)

    def _start_pending(self) -> list[PutJoin]:
        """Let the `ttl` of queries that were put before any reading run from the earliest one of their feeds."""
        started: list[PutJoin] = []
        for query_id in sorted(self._pending):
            query = self.query(query_id)
            starts = [self._clocks[side.feed].start for side in (query.left, query.right)]
            known = [start for start in starts if start != NEVER]
            if known and query.ttl_ms is not None:
                due = min(known) + query.ttl_ms
                self._pairs[self._names[query_id]].set_due(query_id, due)
                started.append(PutJoin(query.version - 1, query, due))
                self._pending.discard(query_id)
        return started

    def _forget(self, expired: Sequence[JoinQuery]) -> None:
        for query in expired:
            del self._names[query.query_id]
            self._pending.discard(query.query_id)

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self) -> dict[str, JoinRows]:
        """Return what changed in each feed since the last call."""
        found = {}
        for name, feed in self._feeds.items():
            rows = feed.take_touched(self._held[name].take_new() if name in self._held else None)
            if rows is not None:
                found[name] = rows
        return found

    def since(self, query_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return the readings from which window joins count, of those of the queries that are such."""
        found = {}
        for query_id in query_ids:
            if query_id in self:
                own = self._pairs[self._names[query_id]].since_of(query_id)
                if own is not None:
                    found[query_id] = own
        return found

    def restore(self, put: PutJoin, since: tuple[int, int]) -> None:
        """Register or replace a query without a word."""
        query = put.query
        names = (query.left.feed, query.right.feed)
        if self._names.get(query.query_id, names) != names:
            self.drop(query.query_id)
        self._pair(names).restore(query, put.due, since)
        self._names[query.query_id] = names
        self._set_pending(query, put.due)

    def restore_rows(self, rows: Mapping[str, JoinRows]) -> None:
        """Follow what another shard's ``take_touched`` or ``pages`` gave; the clocks have been set already."""
        for name, feed in self._feeds.items():
            settled = feed.settled = self._clocks[name].settled
            own = rows.get(name)
            if own is not None:
                feed.restore(own)
            if name in self._held:
                self._held[name].restore(None if own is None else own.held, settled)
        if rows:
            for pair in self._pairs.values():
                pair.band.streams_were_set()
        self._prune()

    def puts(self) -> list[PutJoin]:
        """Return the commands that make the registered queries."""
        return [
            PutJoin(query.version - 1, query, pair.due(query.query_id))
            for pair in self._pairs.values()
            for query in pair.queries()
        ]

    def pages(self, size: int) -> Iterator[dict[str, JoinRows]]:
        """Yield all that the feeds keep, ``size`` rows at a time."""
        for name, feed in self._feeds.items():
            for rows in feed.pages(size):
                yield {name: rows}
            if name in self._held:
                for held in self._held[name].pages(size):
                    yield {name: JoinRows(held=held)}

    def _pair(self, names: Names) -> FeedPair:
        pair = self._pairs.get(names)
        if pair is None:
            pair = self._pairs[names] = FeedPair(self._feeds[names[0]], self._feeds[names[1]])
        return pair

    def _check(self) -> None:
        """State every invariant; for tests."""
        for feed in self._feeds.values():
            feed._check()
        for names, pair in self._pairs.items():
            pair._check()
            ids = {query.query_id for query in pair.queries()}
            assert ids == {query_id for query_id, own in self._names.items() if own == names}
        assert self._pending <= self._names.keys()
