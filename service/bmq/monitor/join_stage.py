"""The stage of the joins: commands, held readings and state of one shard.

    readings of all shards ─► held ─► JoinFeed (one for each feed) ─► FeedPair (one for each two feeds) ─► joined pairs

A joined pair belongs to the shard of its left stream, so that all events of a pair are emitted in order.
"""

from collections.abc import Iterator, Mapping, Sequence

from bmq.engines.feed_pair import FeedPair
from bmq.engines.joins.join_feed import JoinFeed
from bmq.engines.stage_result import StageResult
from bmq.monitor.clock import FeedClock
from bmq.monitor.held_readings import HeldReadings, with_lags
from bmq.monitor.lifetimes import Lifetimes
from bmq.monitor.stage import as_emitted
from bmq.records import NEVER, Delta, Installation, JoinQuery, JoinRows, Kind, Put, Query, Readings, Reason

Names = tuple[str, str]


class JoinStage:
    """Join queries and the feeds that they join.

    Parameters
    ----------
    installation : its feeds without ``join`` are left out.
    clocks : of all feeds; they have moved already when `advance` is called.
    shard, n_shards : which joined pairs are emitted here.
    """

    def __init__(self, installation: Installation, clocks: Mapping[str, FeedClock], shard: int, n_shards: int) -> None:
        self._most_pairs = installation.limits.pairs
        joining = {name: feed for name, feed in installation.feeds.items() if feed.join}
        self._feeds = {name: JoinFeed(feed, shard, n_shards) for name, feed in joining.items()}
        self._held = {
            name: HeldReadings(self._feeds[name].streams, feed.max_lateness_ms)
            for name, feed in joining.items()
            if feed.max_lateness_ms
        }
        self._clocks = clocks
        self._lifetimes = Lifetimes[JoinQuery](clocks)
        self._pairs: dict[Names, FeedPair] = {}
        self._names: dict[str, Names] = {}  # by query id

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
        """Return whether this definition is registered already, whatever its version is."""
        return query.query_id in self and self._lifetimes.is_in_force(query, self.query(query.query_id))

    def excess(self, query: JoinQuery) -> str | None:
        """Return why too many pairs would begin if a definition were put now; None: not so many would.

        All shards return the same, because each of them has the last reading of all streams. An edit that only narrows
        the band begins no pair; of another edit all pairs count, those that go on, too.
        """
        if query.kind is not Kind.BAND_JOIN or not query.enabled:
            return None
        if query.query_id in self and _begins_no_pair(self.query(query.query_id), query):
            return None
        n_pairs = self._pair(query.feeds).band.count_pairs(query, self._most_pairs)
        if n_pairs <= self._most_pairs:
            return None
        return (
            f"More than {self._most_pairs} pairs of streams are in the band now. Narrow 'where' or the band, use "
            "'equal', or raise limits.pairs in the configuration."
        )

    def put(self, command: Put[JoinQuery], reason: Reason) -> StageResult:
        """Register or replace a query; return the events that this causes at once, and the put for replicas."""
        query, due = self._lifetimes.unless_over(command.query), self._lifetimes.due(command.query)
        names, result = query.feeds, StageResult()
        old = self.query(query.query_id) if query.query_id in self else None
        if old is not None and (old.feeds, old.kind) != (names, query.kind):
            result.add(self.remove(query.query_id, Reason.QUERY_UPDATED, as_emitted(old, query)))
        pair = self._pair(names)
        begun = pair.put(query, reason, due)
        if begun is not None:
            result.pairs.append(begun)
        self._names[query.query_id] = names
        self._lifetimes.register(query, due)
        # A query whose due is in the past ends now, before the next command, so that the events do not depend on the
        # borders of batches.
        left, right = (self._feeds[name].nothing() for name in names)
        result.add(pair.advance(left, right, self._lifetimes.settled(names)))
        self._forget(result.expired)
        result.puts.append(Put(command.offset, query, due))
        return result

    def remove(self, query_id: str, reason: Reason, emitted_as: JoinQuery | None = None) -> StageResult:
        """Remove a registered query; return the ends of its pairs; ``emitted_as`` is the definition they carry."""
        names = self._names.pop(query_id)
        self._lifetimes.forget(query_id, names)
        ended = self._pairs[names].remove(query_id, reason, emitted_as)
        return StageResult(pairs=[] if ended is None else [ended])

    def drop(self, query_id: str) -> None:
        """Remove a query without events, if it is there."""
        names = self._names.pop(query_id, None)
        if names is not None:
            self._lifetimes.forget(query_id, names)
            self._pairs[names].drop(query_id)

    def _forget(self, expired: Sequence[Query]) -> None:
        for query in expired:
            del self._names[query.query_id]

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, readings: Mapping[str, Readings | None]) -> StageResult:
        """Apply the readings of all shards, ascending by (partition, offset) in each feed, and fire the timers due."""
        for pair in self._pairs.values():
            pair.band.prepare()
        arrivals, partners = {}, self._settled_of_partners()
        for name, feed in self._feeds.items():
            settled = self._clocks[name].settled
            arrivals[name] = feed.apply(self._released(name, readings.get(name), settled), settled, partners[name])
        started = self._lifetimes.start(self._pairs)
        for put in started:
            self._pairs[put.query.feeds].set_due(put.query.query_id, put.due)
        result = StageResult(puts=[*started])
        for names, pair in self._pairs.items():
            result.add(pair.advance(arrivals[names[0]], arrivals[names[1]], self._lifetimes.settled(names)))
        self._forget(result.expired)
        self._prune()
        return result

    def _released(self, name: str, readings: Readings | None, settled: int) -> Readings | None:
        before = self._feeds[name].settled
        if name in self._held:
            return self._held[name].advance(readings, before, settled)[0]
        return None if readings is None else with_lags(readings, before)

    def _settled_of_partners(self) -> dict[str, int]:
        """Return for each feed the latest settled time before this batch of the feeds that window joins join it with.

        NEVER: no such feed has a clock, or no window join joins the feed.
        """
        found = dict.fromkeys(self._feeds, NEVER)
        for (left, right), pair in self._pairs.items():
            if pair.windows.since:
                for name, partner in ((left, right), (right, left)):
                    found[name] = max(found[name], self._feeds[partner].settled)
        return found

    def _prune(self) -> None:
        """Drop the readings that no window needs any more."""
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

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self) -> Delta:
        """Return what changed in each feed since the last call, and forget that it changed."""
        found = {}
        for name, feed in self._feeds.items():
            rows = feed.take_touched(self._held[name].take_new() if name in self._held else None)
            if rows is not None:
                found[name] = rows
        return Delta(joins=found)

    def since(self, query_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return, for the window joins among the queries, the numbers of the first left and right reading that count.

        A window join finds no pair with a reading before these.
        """
        found = {}
        for query_id in query_ids:
            if query_id in self:
                own = self._pairs[self._names[query_id]].since_of(query_id)
                if own is not None:
                    found[query_id] = own
        return found

    def restore(self, put: Put[JoinQuery], delta: Delta) -> None:
        """Register or replace a query without events, by a put of ``delta``."""
        query = put.query
        if self._names.get(query.query_id, query.feeds) != query.feeds:
            self.drop(query.query_id)
        self._pair(query.feeds).restore(query, put.due, delta.since.get(query.query_id, (0, 0)))
        self._names[query.query_id] = query.feeds
        self._lifetimes.register(query, put.due)

    def restore_rows(self, delta: Delta) -> None:
        """Apply the rows that ``take_touched`` or ``pages`` of another stage returned; the clocks are set already."""
        for name, feed in self._feeds.items():
            settled = feed.settled = self._clocks[name].settled
            own = delta.joins.get(name)
            if own is not None:
                feed.restore(own)
            if name in self._held:
                self._held[name].restore(None if own is None else own.held, settled)
        if delta.joins:
            for pair in self._pairs.values():
                pair.band.streams_were_set()
        self._prune()

    def puts(self) -> list[Put[JoinQuery]]:
        """Return the puts that register the present queries."""
        return [
            Put(query.version - 1, query, pair.due(query.query_id))
            for pair in self._pairs.values()
            for query in pair.queries()
        ]

    def pages(self, size: int) -> Iterator[Delta]:
        """Yield everything that the feeds keep, ``size`` rows at a time."""
        for name, feed in self._feeds.items():
            for rows in feed.pages(size):
                yield Delta(joins={name: rows})
            if name in self._held:
                for held in self._held[name].pages(size):
                    yield Delta(joins={name: JoinRows(held=held)})

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
            assert self._lifetimes.pending(names) <= ids


def _begins_no_pair(old: JoinQuery, new: JoinQuery) -> bool:
    """Return whether every pair in the band of an edited query was in its band before."""
    if old.kind is not Kind.BAND_JOIN or not old.enabled:
        return False
    before, after = (query.alternatives[0].bands[0] for query in (old, new))
    same = (old.left, old.right, before.left, before.right) == (new.left, new.right, after.left, after.right)
    return same and old.reports_queries == new.reports_queries and before.lo <= after.lo and after.hi <= before.hi
