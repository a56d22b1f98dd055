"""One shard: its queries, its streams, its ledger. The operator without the engine.

Knows commands and readings, and what each means for the ledger (docs/semantics.md). No Spark, no Kafka, no wall
clock: whoever calls decides what a batch is. State goes out as deltas, and a monitor that applies the deltas of
another is its replica:

    commands ─► apply ───► replies, crossings ─┐
    readings ─► advance ─► crossings           ├─► take_delta ─► (state store) ─► apply_delta
                                               ┘
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from bmq.engines.feed import FeedEngine
from bmq.errors import ControlCode
from bmq.monitor.clock import FeedClock
from bmq.monitor.held import HeldReadings
from bmq.monitor.joined import join_crossings, join_pairs
from bmq.monitor.joins import JoinStage, as_told
from bmq.records import (
    NEVER,
    Clock,
    Command,
    Crossings,
    Delete,
    Delta,
    Feed,
    JoinedPairs,
    JoinQuery,
    Kind,
    Put,
    PutJoin,
    Readings,
    Reason,
    Refused,
    RegionQuery,
    Reply,
    Status,
)

SNAPSHOT_ROWS = 50_000  # streams, queries or pairs a page of a snapshot; a page of 4 MB is quick to write and to read


@dataclass(frozen=True, slots=True)
class Applied:
    """What commands did: a reply for each that is to be answered, and the crossings and pairs they caused."""

    replies: list[Reply]
    crossings: list[Crossings]
    pairs: list[JoinedPairs]


@dataclass(frozen=True, slots=True)
class Advanced:
    """What readings and time did to one feed: crossings (None: none), a reply for each query that ended, and counts."""

    crossings: Crossings | None
    replies: list[Reply]
    n_late: int
    visits: int
    n_suppressed: int
    level_visits: int = 0


@dataclass(frozen=True, slots=True)
class Joined:
    """What a batch did to the joins: their events, a reply for each query that ended, candidates looked at."""

    pairs: list[JoinedPairs]
    replies: list[Reply]
    visits: int


class Monitor:
    """The queries and streams of one shard, over all feeds.

    Parameters
    ----------
    feeds : feed name -> Feed.
    silent_tombstones_before : control offset
        A delete of an unknown query below it is not answered: it was in the compacted topic before this state
        began, so the query it deleted was never known here.
    shard, n_shards : which shard this is; joins divide their pairs by it.
    """

    def __init__(
        self, feeds: Mapping[str, Feed], silent_tombstones_before: int = 0, shard: int = 0, n_shards: int = 1
    ) -> None:
        self._engines = {name: FeedEngine(feed) for name, feed in feeds.items()}
        self._clocks = {name: FeedClock(feed.max_lateness_ms) for name, feed in feeds.items()}
        self._held = {name: HeldReadings() for name, feed in feeds.items() if feed.max_lateness_ms}
        self._joins = JoinStage(feeds, self._clocks, shard, n_shards)
        self._feed_by_query: dict[str, str] = {}
        self._waiting: dict[str, set[str]] = {name: set() for name in feeds}  # queries whose ttl has no clock yet
        self._silent_tombstones_before = silent_tombstones_before
        self._accepted: list[Put | PutJoin | Delete] = []
        self._clocks_told: dict[str, Clock] = {}
        self._recounts_told: dict[str, int] = {}
        self._n_suppressed: dict[str, int] = {}  # by commands, since the feeds advanced

    # -- the ledger ---------------------------------------------------------------------------------------

    def apply(self, commands: Sequence[Command]) -> Applied:
        """Apply commands in offset order; return replies and what the ledger says at once."""
        applied = Applied([], [], [])
        by_feed: dict[str, list[Crossings]] = {}
        by_feeds: dict[tuple[str, str], list[JoinedPairs]] = {}
        for command in commands:
            one = self._apply_one(command)
            applied.replies.extend(one.replies)
            for found in one.crossings:
                by_feed.setdefault(found.feed, []).append(found)
            for pairs in one.pairs:
                by_feeds.setdefault((pairs.left.feed, pairs.right.feed), []).append(pairs)
        applied.crossings.extend(join_crossings(parts) for parts in by_feed.values())
        applied.pairs.extend(join_pairs(parts) for parts in by_feeds.values())
        return applied

    def advance(self, feed: str, readings: Readings | None, marks: Clock) -> Advanced:
        """Apply what a batch brought to one feed; to be called for every feed in every batch, after `apply`.

        Parameters
        ----------
        readings : those of this shard, ascending by (partition, offset); None: none.
        marks : the earliest and latest event time of the feed's batch over all shards; NEVER: none.
        """
        clock = self._clocks[feed]
        before = clock.settled
        clock.move(marks)
        n_late = 0
        held = self._held.get(feed)
        if held is not None:
            if readings is not None:
                n_late = held.add(readings, before)
            readings = held.release(clock.settled)
        self._start_waiting(feed)
        advanced = self._engines[feed].advance(readings, clock.settled)
        return Advanced(
            advanced.crossings,
            self._ended(advanced.expired),
            n_late + advanced.n_late,
            advanced.visits,
            advanced.n_suppressed + self._n_suppressed.pop(feed, 0),
            advanced.level_visits,
        )

    def join(self, readings: Mapping[str, Readings]) -> Joined:
        """Apply what a batch brought to the feeds that take part in joins; to be called after `advance` of every feed.

        Parameters
        ----------
        readings : feed -> its readings of all shards, ascending by (partition, offset).
        """
        joined = self._joins.advance(readings)
        self._accepted += joined.started
        return Joined(joined.pairs, self._ended(joined.expired), joined.visits)

    def _ended(self, queries: Sequence[RegionQuery | JoinQuery]) -> list[Reply]:
        """Forget queries that have ended, and return the replies that say so."""
        for query in queries:
            self._feed_by_query.pop(query.query_id, None)
            self._accepted.append(Delete(query.version - 1, query.query_id))
        return [Reply(query.query_id, Status.EXPIRED, query.version - 1) for query in queries]

    # -- counts -------------------------------------------------------------------------------------------

    def n_queries(self) -> dict[str, int]:
        """Return kind -> how many queries of it are registered."""
        counts = dict.fromkeys(Kind, 0)
        for engine in self._engines.values():
            for kind, n in engine.queries.n_of_kind.items():
                counts[kind] += n
        for query in self._joins.queries():
            counts[query.kind] += 1
        return {kind.value: n for kind, n in counts.items()}

    def n_pending(self) -> int:
        """Return how many crossings wait for a confirmation, or for the second half of a pattern."""
        return sum(engine.pairs.n_pending for engine in self._engines.values())

    def n_streams(self) -> dict[str, int]:
        """Return feed name -> how many streams are known in this shard."""
        return {name: engine.streams.n_seen for name, engine in self._engines.items()}

    def clocks(self) -> dict[str, int]:
        """Return feed name -> its clock, epoch ms, for the feeds that have one."""
        return {name: clock.now.time for name, clock in self._clocks.items() if clock.now.time != NEVER}

    # -- state --------------------------------------------------------------------------------------------

    def take_delta(self) -> Delta:
        """Return what changed since the last call, and forget that it changed."""
        commands, self._accepted = tuple(self._accepted), []
        streams, pairs, held = {}, {}, {}
        silent: dict[tuple[str, str], bool] = {}
        for name, engine in self._engines.items():
            rows = engine.take_touched_streams()
            if len(rows.ids):
                streams[name] = rows
            touched = engine.take_touched_pairs()
            if len(touched.ids):
                pairs[name] = touched
            # A pair that a query had over its former feed ended there; what the feed in force says wins.
            silent.update(
                (pair, now)
                for pair, now in engine.silent.take_changes().items()
                if now or self._feed_by_query.get(pair[0], name) == name
            )
        for name, buffer in self._held.items():
            new = buffer.take_new()
            if new is not None:
                held[name] = new
        clocks = {
            name: clock.now for name, clock in self._clocks.items() if clock.now != self._clocks_told.get(name, Clock())
        }
        self._clocks_told.update(clocks)
        recounts = {name: n for name, n in self._recounts().items() if n != self._recounts_told.get(name)}
        self._recounts_told.update(recounts)
        joins = self._joins.take_touched()
        since = self._joins.since([command.query.query_id for command in commands if isinstance(command, PutJoin)])
        return Delta(commands, streams, silent, clocks, held, pairs, joins, since, recounts)

    def apply_delta(self, delta: Delta) -> None:
        """Apply what ``take_delta`` or ``snapshot`` of another monitor returned, without a word."""
        for command in delta.commands:
            match command:
                case Put():
                    self._joins.drop(command.query.query_id)
                    self._restore(command)
                case PutJoin():
                    self._drop(command.query.query_id)
                    self._joins.restore(command, delta.since.get(command.query.query_id, (0, 0)))
                case Delete():
                    self._joins.drop(command.query_id)
                    self._drop(command.query_id)
        for name, clock in delta.clocks.items():
            self._clocks[name].set(clock)
            self._clocks_told[name] = clock
            self._engines[name].settled = self._clocks[name].settled
        for name, n_recounted in delta.recounts.items():
            self._engines[name].streams.n_recounted = self._recounts_told[name] = n_recounted
        for name, rows in delta.streams.items():
            self._engines[name].restore_streams(rows)
        for name, pairs in delta.pairs.items():
            self._engines[name].restore_pairs(pairs)
        for name, buffer in self._held.items():
            buffer.restore(delta.held.get(name), self._clocks[name].settled)
        for (query_id, stream), is_silent in delta.silent.items():
            if query_id in self._feed_by_query:
                self._engines[self._feed_by_query[query_id]].silent.set(query_id, stream, is_silent=is_silent)
        self._joins.restore_rows(delta.joins)

    def snapshot(self) -> Iterator[Delta]:
        """Yield the whole state as pages; an empty monitor that applies them is a replica of this one."""
        clocks = {name: clock.now for name, clock in self._clocks.items() if clock.now != Clock()}
        yield Delta(clocks=clocks, recounts=self._recounts())
        puts: list[Put | PutJoin] = [
            Put(query.version - 1, query, engine.dues.of(engine.queries.slot(query.query_id)))
            for engine in self._engines.values()
            for query in engine.queries.queries()
        ]
        puts += self._joins.puts()
        puts.sort(key=lambda put: put.offset)
        for begin in range(0, len(puts), SNAPSHOT_ROWS):
            some = tuple(puts[begin : begin + SNAPSHOT_ROWS])
            yield Delta(commands=some, since=self._joins.since([put.query.query_id for put in some]))
        for rows_by_feed in self._joins.pages(SNAPSHOT_ROWS):
            yield Delta(joins=rows_by_feed)
        for name, engine in self._engines.items():
            for rows in engine.stream_pages(SNAPSHOT_ROWS):
                yield Delta(streams={name: rows})
            for tracked in engine.pair_pages(SNAPSHOT_ROWS):
                yield Delta(pairs={name: tracked})
            pairs = engine.silent.pairs()
            while page := dict.fromkeys(islice(pairs, SNAPSHOT_ROWS), True):
                yield Delta(silent=page)
        for name, buffer in self._held.items():
            for readings in buffer.pages(SNAPSHOT_ROWS):
                yield Delta(held={name: readings})

    def _recounts(self) -> dict[str, int]:
        return {
            name: engine.streams.n_recounted for name, engine in self._engines.items() if engine.streams.n_recounted
        }

    # -- commands -----------------------------------------------------------------------------------------

    def _apply_one(self, command: Command) -> Applied:
        match command:
            case Put():
                return self._put(command)
            case PutJoin():
                return self._put_join(command)
            case Delete():
                return self._delete(command)
            case Refused():
                return Applied([self._refuse(command)], [], [])

    def _put(self, command: Put) -> Applied:
        query = command.query
        feed_before = self._feed_by_query.get(query.query_id)
        if feed_before is not None and self._is_unchanged(query):
            return Applied([Reply(query.query_id, Status.UNCHANGED, command.offset)], [], [])
        due = self._due(query)
        query = self._unless_over(query)
        pairs = []
        reason = Reason.QUERY_REGISTERED if feed_before is None else Reason.QUERY_UPDATED
        if query.query_id in self._joins:
            reason = Reason.QUERY_UPDATED
            pairs = self._joins.remove(query.query_id, reason, as_told(self._joins.query(query.query_id), query))
        crossings = []
        if feed_before is not None and feed_before != query.feed:
            crossings.append(self._leave(query.query_id, query))
        crossings.append(self._engines[query.feed].put(query, reason, due))
        self._feed_by_query[query.query_id] = query.feed
        self._wait_or_not(query, due)
        self._accepted.append(Put(command.offset, query, due))
        # What begins in the past may be due already; it comes before the next command, wherever batches end.
        at_once = self._engines[query.feed].advance(None, self._clocks[query.feed].settled)
        crossings.append(at_once.crossings)
        if at_once.n_suppressed:
            self._n_suppressed[query.feed] = self._n_suppressed.get(query.feed, 0) + at_once.n_suppressed
        replies = [Reply(query.query_id, Status.ACCEPTED, command.offset), *self._ended(at_once.expired)]
        return Applied(replies, [found for found in crossings if found is not None], pairs)

    def _put_join(self, command: PutJoin) -> Applied:
        query = command.query
        if self._joins.is_unchanged(query):
            return Applied([Reply(query.query_id, Status.UNCHANGED, command.offset)], [], [])
        crossings = []
        is_new = query.query_id not in self._joins
        if query.query_id in self._feed_by_query:
            is_new = False
            crossings.append(self._leave(query.query_id, as_told(self._in_force(query.query_id), query)))
            del self._feed_by_query[query.query_id]
        joined, accepted = self._joins.put(command, Reason.QUERY_REGISTERED if is_new else Reason.QUERY_UPDATED)
        self._accepted.append(accepted)
        replies = [Reply(query.query_id, Status.ACCEPTED, command.offset), *self._ended(joined.expired)]
        return Applied(replies, [found for found in crossings if found is not None], joined.pairs)

    def _leave(self, query_id: str, told_by: RegionQuery) -> Crossings | None:
        """End what a query has over its feed, since it moves to another or becomes a join."""
        feed = self._feed_by_query[query_id]
        self._waiting[feed].discard(query_id)
        return self._engines[feed].remove(query_id, Reason.QUERY_UPDATED, told_by=told_by)

    def _delete(self, command: Delete) -> Applied:
        deleted = [Reply(command.query_id, Status.DELETED, command.offset)]
        if command.query_id in self._joins:
            self._accepted.append(command)
            return Applied(deleted, [], self._joins.remove(command.query_id, Reason.QUERY_DELETED))
        feed = self._feed_by_query.pop(command.query_id, None)
        if feed is None:
            return Applied(self._refuse_delete(command), [], [])
        self._waiting[feed].discard(command.query_id)
        crossings = self._engines[feed].remove(command.query_id, Reason.QUERY_DELETED)
        self._accepted.append(command)
        return Applied(deleted, [] if crossings is None else [crossings], [])

    def _refuse_delete(self, command: Delete) -> list[Reply]:
        if command.offset < self._silent_tombstones_before:
            return []
        message = (
            f"query {command.query_id!r} is not registered, so there is nothing to delete. "
            "`bmq query list` shows the registered ones."
        )
        return [Reply(command.query_id, Status.REJECTED, command.offset, ControlCode.UNKNOWN_QUERY, message)]

    def _refuse(self, command: Refused) -> Reply:
        message = command.message
        if command.query_id in self._feed_by_query or command.query_id in self._joins:
            message += (
                " The definition before it stays in force, but the control topic no longer holds that one: "
                "publish a right one, or a restart from a new checkpoint will not know the query."
            )
        return Reply(command.query_id, Status.REJECTED, command.offset, command.code, message)

    def _restore(self, put: Put) -> None:
        query = put.query
        feed_before = self._feed_by_query.get(query.query_id)
        if feed_before is not None and feed_before != query.feed:
            self._waiting[feed_before].discard(query.query_id)
            self._engines[feed_before].drop(query.query_id)
        self._engines[query.feed].restore(query, put.due)
        self._feed_by_query[query.query_id] = query.feed
        self._wait_or_not(query, put.due)

    def _drop(self, query_id: str) -> None:
        feed = self._feed_by_query.pop(query_id, None)
        if feed is not None:
            self._waiting[feed].discard(query_id)
            self._engines[feed].drop(query_id)

    def _in_force(self, query_id: str) -> RegionQuery:
        engine = self._engines[self._feed_by_query[query_id]]
        return engine.queries.query(engine.queries.slot(query_id))

    def _is_unchanged(self, query: RegionQuery) -> bool:
        # Between the settled time and the clock one may be over and still be there: without effect, as it was put.
        in_force = replace(self._in_force(query.query_id), version=query.version)
        return in_force in (query, self._unless_over(query))

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

    def _wait_or_not(self, query: RegionQuery, due: int) -> None:
        if due == NEVER and query.ttl_ms is not None:
            self._waiting[query.feed].add(query.query_id)
        else:
            self._waiting[query.feed].discard(query.query_id)

    def _start_waiting(self, feed: str) -> None:
        """Let the `ttl` of queries that were put before any reading run from the earliest one."""
        start = self._clocks[feed].start
        if start == NEVER or not self._waiting[feed]:
            return
        for query_id in sorted(self._waiting[feed]):
            query = self._in_force(query_id)
            assert query.ttl_ms is not None
            due = start + query.ttl_ms
            self._engines[feed].set_due(query_id, due)
            self._accepted.append(Put(query.version - 1, query, due))
        self._waiting[feed].clear()

    def _check(self) -> None:
        """State every invariant of the monitor; for tests."""
        for name, engine in self._engines.items():
            engine._check()
            # A query is registered at the engine of its feed and nowhere else.
            ids = {query.query_id for query in engine.queries.queries()}
            assert ids == {query_id for query_id, feed in self._feed_by_query.items() if feed == name}
            assert self._waiting[name] <= ids
        self._joins._check()
