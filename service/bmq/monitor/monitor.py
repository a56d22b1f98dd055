"""One shard: its queries, its streams, and the changes that its replicas need. The Spark operator without Spark.

The monitor moves the clocks, replies to commands, and passes each command on to the stage of its query: `FeedStage` or
`JoinStage`. It uses no Spark, no Kafka and no wall clock: the caller decides what a batch is. The monitor returns its
state as deltas, and a monitor that applies the deltas of another is its replica:

    commands ─► apply ───────► replies, events ─┐
    readings ─► advance, join ► events          ├─► take_delta ─► (state store) ─► apply_delta
                                                ┘
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bmq.engines.stage_result import StageResult
from bmq.errors import ControlCode
from bmq.monitor.clock import FeedClock
from bmq.monitor.feed_stage import FeedStage
from bmq.monitor.join_stage import JoinStage
from bmq.monitor.put_pages import put_pages
from bmq.monitor.stage import Stage, as_emitted
from bmq.monitor.tenant_counts import TenantCounts
from bmq.records import (
    NEVER,
    Clock,
    Command,
    Crossings,
    Delete,
    Delta,
    Installation,
    JoinedPairs,
    JoinQuery,
    Kind,
    Put,
    Query,
    Readings,
    Reason,
    Refused,
    RegionQuery,
    Reply,
    Status,
)
from bmq.records.column_records import as_one

SNAPSHOT_ROWS = 50_000  # streams or trackings in a page of a snapshot; 4 MB are quick to write and to read


class Monitor:
    """The queries and streams of one shard, over all feeds.

    Parameters
    ----------
    installation : the feeds, and what queries may cost.
    silent_tombstones_before : control offset
        The monitor does not reply to a delete of an unknown query below this offset. Such a delete was in the
        compacted topic before this state began, so the query was never known here. The limits of a tenant's queries
        and of their streams begin at this offset, too.
    shard, n_shards : which shard this is; the shards divide the joined pairs of a join among them.
    """

    def __init__(
        self, installation: Installation, silent_tombstones_before: int = 0, shard: int = 0, n_shards: int = 1
    ) -> None:
        self._clocks = {name: FeedClock(feed.max_lateness_ms) for name, feed in installation.feeds.items()}
        self._feeds = FeedStage(installation, self._clocks)
        self._joins = JoinStage(installation, self._clocks, shard, n_shards)
        self._installation = installation
        self._tenants = TenantCounts(installation)
        # In the order of a snapshot's pages. `Any`, because `_stage_of` passes each stage only queries of its class.
        self._stages: tuple[Stage[Any], ...] = (self._joins, self._feeds)
        self._silent_tombstones_before = silent_tombstones_before
        self._accepted: list[Put[Query] | Delete] = []
        self._clocks_stored: dict[str, Clock] = {}

    # -- commands -----------------------------------------------------------------------------------------

    def apply(self, commands: Sequence[Command]) -> StageResult:
        """Apply commands in offset order; return replies and the events that the commands cause at once."""
        result = StageResult()
        for command in commands:
            result.add(self._apply_one(command))
        by_feed: dict[str, list[Crossings]] = {}
        for crossings in result.crossings:
            by_feed.setdefault(crossings.feed, []).append(crossings)
        by_feeds: dict[tuple[str, str], list[JoinedPairs]] = {}
        for pairs in result.pairs:
            by_feeds.setdefault((pairs.left.feed, pairs.right.feed), []).append(pairs)
        result.crossings = [as_one(parts) for parts in by_feed.values()]
        result.pairs = [as_one(parts) for parts in by_feeds.values()]
        return result

    def _apply_one(self, command: Command) -> StageResult:
        match command:
            case Put():
                return self._put(command)
            case Delete():
                return self._delete(command)
            case Refused():
                return StageResult(replies=[self._refuse(command)])

    def _put(self, command: Put[Query]) -> StageResult:
        """Register or replace a query.

        1. A definition that is in force changes nothing.
        2. A definition that costs too much now is refused.
        3. If an edit moves the query from the other stage, the events there end.
        4. The query begins at its own stage, or goes on there.
        """
        query = command.query
        stage, before = self._stage_of(query), self._stage_with(query.query_id)
        if stage.is_unchanged(query):  # 1
            return StageResult(replies=[Reply(query.query_id, Status.UNCHANGED, command.offset)])
        old = None if before is None else before.query(query.query_id)
        if (excess := self._excess(command, old)) is not None:  # 2
            refused = Refused(command.offset, query.query_id, ControlCode.OVER_LIMIT, excess)
            return StageResult(replies=[self._refuse(refused)])
        reason = Reason.QUERY_REGISTERED if before is None else Reason.QUERY_UPDATED
        result = StageResult(replies=[Reply(query.query_id, Status.ACCEPTED, command.offset)])
        self._count(old, query)
        if before is not None and old is not None and before is not stage:  # 3
            result.add(before.remove(query.query_id, reason, as_emitted(old, query)))
        result.add(stage.put(command, reason))  # 4
        return self._noted(result)

    def _count(self, old: Query | None, new: Query | None) -> None:
        """Count a new query in place of the old one, for its tenant; None: no such query."""
        if old is not None:
            self._tenants.remove(old)
        if new is not None:
            self._tenants.add(new)

    def _excess(self, command: Put[Query], before: Query | None) -> str | None:
        """Return why a definition costs too much; None: it does not. All shards return the same.

        What a tenant has does not count for what was in the control topic before this state began: there are also
        definitions that were rejected, or whose time is over, and they would take the place of others.
        """
        query, excess = command.query, None
        if command.offset >= self._silent_tombstones_before:
            excess = self._tenants.excess(query, before)
        if excess is None and isinstance(query, JoinQuery):
            excess = self._joins.excess(query)
        return excess

    def _delete(self, command: Delete) -> StageResult:
        stage = self._stage_with(command.query_id)
        if stage is None:
            return StageResult(replies=self._refuse_delete(command))
        self._count(stage.query(command.query_id), None)
        result = stage.remove(command.query_id, Reason.QUERY_DELETED)
        result.replies.append(Reply(command.query_id, Status.DELETED, command.offset))
        self._accepted.append(command)
        return result

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
        if self._stage_with(command.query_id) is not None:
            message += (
                " The definition before it stays in force, but the control topic no longer holds that one: "
                "publish a right one, or a restart from a new checkpoint will not know the query."
            )
        return Reply(command.query_id, Status.REJECTED, command.offset, command.code, message)

    def _stage_of(self, query: Query) -> Stage[Any]:
        """Return the stage that queries of this class belong to."""
        return self._feeds if isinstance(query, RegionQuery) else self._joins

    def _stage_with(self, query_id: str) -> Stage[Any] | None:
        """Return the stage at which a query is registered; None: it is not registered."""
        return next((stage for stage in self._stages if query_id in stage), None)

    def _noted(self, result: StageResult) -> StageResult:
        """Note the put and the ended queries for replicas, and add a reply for each query that ended."""
        self._accepted += result.puts
        self._accepted += [Delete(query.version - 1, query.query_id) for query in result.expired]
        result.replies += [Reply(query.query_id, Status.EXPIRED, query.version - 1) for query in result.expired]
        for query in result.expired:
            self._count(query, None)
        return result

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, feed: str, readings: Readings | None, marks: Clock) -> StageResult:
        """Apply the readings of a batch to one feed; the caller calls it for every feed in every batch, after `apply`.

        Parameters
        ----------
        readings : of this shard, ascending by (partition, offset); None: no readings.
        marks : the earliest and latest event time of the feed's batch over all shards; NEVER: no readings.
        """
        self._clocks[feed].move(marks)
        return self._noted(self._feeds.advance({feed: readings}))

    def join(self, readings: Mapping[str, Readings]) -> StageResult:
        """Apply the readings of a batch to the feeds of joins; the caller calls it after `advance` of every feed.

        Parameters
        ----------
        readings : feed -> its readings of all shards, ascending by (partition, offset).
        """
        return self._noted(self._joins.advance(readings))

    # -- counts -------------------------------------------------------------------------------------------

    def n_queries(self) -> dict[str, int]:
        """Return kind -> number of registered queries of this kind."""
        counts = dict.fromkeys(Kind, 0)
        for engine in self._feeds.engines.values():
            for kind, n in engine.tables.queries.n_of_kind.items():
                counts[kind] += n
        for query in self._joins.queries():
            counts[query.kind] += 1
        return {kind.value: n for kind, n in counts.items()}

    def n_queries_of_tenants(self) -> dict[str, int]:
        """Return tenant -> number of its registered queries."""
        return self._tenants.n_queries()

    def n_streams_of_tenants(self) -> dict[str, int]:
        """Return tenant -> number of the streams that its queries name."""
        return self._tenants.n_streams()

    def n_pending(self) -> int:
        """Return how many crossings are pending: they need a confirmation, or the second half of a pattern."""
        return sum(engine.tables.trackings.n_pending for engine in self._feeds.engines.values())

    def n_streams(self) -> dict[str, int]:
        """Return feed name -> how many streams are known in this shard."""
        return {name: engine.tables.streams.n_seen for name, engine in self._feeds.engines.items()}

    def n_held(self) -> int:
        """Return how many readings of this shard are held back by `max_lateness`."""
        return self._feeds.n_held()

    def n_lagging(self) -> dict[str, int]:
        """Return feed name -> how many streams of this shard have a lag."""
        return {name: engine.tables.streams.n_lagging for name, engine in self._feeds.engines.items()}

    def clocks(self) -> dict[str, int]:
        """Return feed name -> its clock, epoch ms, for the feeds that have one."""
        return {name: clock.now.time for name, clock in self._clocks.items() if clock.now.time != NEVER}

    # -- state --------------------------------------------------------------------------------------------

    def take_delta(self) -> Delta:
        """Return what changed since the last call, and forget that it changed."""
        commands, self._accepted = tuple(self._accepted), []
        clocks = {
            name: clock.now
            for name, clock in self._clocks.items()
            if clock.now != self._clocks_stored.get(name, Clock())
        }
        self._clocks_stored.update(clocks)
        since = self._joins.since(
            [
                command.query.query_id
                for command in commands
                if isinstance(command, Put) and isinstance(command.query, JoinQuery)
            ]
        )
        joins = self._joins.take_touched().joins
        return replace(self._feeds.take_touched(), commands=commands, clocks=clocks, joins=joins, since=since)

    def apply_delta(self, delta: Delta) -> None:
        """Apply a delta that ``take_delta`` or ``snapshot`` of another monitor returned, without events and replies."""
        for command in delta.commands:
            query_id = command.query_id if isinstance(command, Delete) else command.query.query_id
            before = self._stage_with(query_id)
            old = None if before is None else before.query(query_id)
            if isinstance(command, Delete):
                self._count(old, None)
                self._drop(query_id, self._stages)
            else:
                self._count(old, command.query)
                stage = self._stage_of(command.query)
                self._drop(query_id, [other for other in self._stages if other is not stage])
                stage.restore(command, delta)
        for name, clock in delta.clocks.items():
            self._clocks[name].set(clock)
            self._clocks_stored[name] = clock
        for stage in self._stages:
            stage.restore_rows(delta)

    def _drop(self, query_id: str, stages: Iterable[Stage[Any]]) -> None:
        for stage in stages:
            stage.drop(query_id)

    def snapshot(self) -> Iterator[Delta]:
        """Yield the whole state as pages; an empty monitor that applies them is a replica of this one."""
        yield Delta(clocks={name: clock.now for name, clock in self._clocks.items() if clock.now != Clock()})
        puts: list[Put[Query]] = [put for stage in self._stages for put in stage.puts()]
        puts.sort(key=lambda put: put.offset)
        for some in put_pages(puts):
            yield Delta(commands=some, since=self._joins.since([put.query.query_id for put in some]))
        for stage in self._stages:
            yield from stage.pages(SNAPSHOT_ROWS)

    def _check(self) -> None:
        """State every invariant of the monitor; for tests."""
        for stage in self._stages:
            stage._check()
        recounted = TenantCounts(self._installation)
        for put in (put for stage in self._stages for put in stage.puts()):
            recounted.add(put.query)
        assert recounted.n_queries() == self._tenants.n_queries()
        assert recounted.n_streams() == self._tenants.n_streams()
