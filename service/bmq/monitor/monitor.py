"""One shard: its queries, its streams, its ledger. The operator without the engine.

Knows commands and readings, and what each means for the ledger (docs/semantics.md): what a command is answered, and
whether it is for `feeds` or for `joins`. No Spark, no Kafka, no wall clock: whoever calls decides what a batch is.
State goes out as deltas, and a monitor that applies the deltas of another is its replica:

    commands ─► apply ───► replies, crossings ─┐
    readings ─► advance ─► crossings           ├─► take_delta ─► (state store) ─► apply_delta
                                               ┘
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bmq.errors import ControlCode
from bmq.monitor.clock import FeedClock
from bmq.monitor.feed_stage import FeedStage
from bmq.monitor.join_stage import JoinStage, as_emitted
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
from bmq.records.column_records import as_one

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
        self._clocks = {name: FeedClock(feed.max_lateness_ms) for name, feed in feeds.items()}
        self._feeds = FeedStage(feeds, self._clocks)
        self._joins = JoinStage(feeds, self._clocks, shard, n_shards)
        self._silent_tombstones_before = silent_tombstones_before
        self._accepted: list[Put | PutJoin | Delete] = []
        self._clocks_stored: dict[str, Clock] = {}

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
        applied.crossings.extend(as_one(parts) for parts in by_feed.values())
        applied.pairs.extend(as_one(parts) for parts in by_feeds.values())
        return applied

    def advance(self, feed: str, readings: Readings | None, marks: Clock) -> Advanced:
        """Apply what a batch brought to one feed; to be called for every feed in every batch, after `apply`.

        Parameters
        ----------
        readings : those of this shard, ascending by (partition, offset); None: none.
        marks : the earliest and latest event time of the feed's batch over all shards; NEVER: none.
        """
        told = self._feeds.advance(feed, readings, marks)
        self._accepted += told.started
        crossings = told.crossings[0] if told.crossings else None
        replies = self._ended(told.expired)
        return Advanced(crossings, replies, told.n_late, told.visits, told.n_suppressed, told.level_visits)

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
        """Note for replicas that queries have ended, and return the replies that say so."""
        self._accepted += [Delete(query.version - 1, query.query_id) for query in queries]
        return [Reply(query.query_id, Status.EXPIRED, query.version - 1) for query in queries]

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
        query_id = command.query.query_id
        if self._feeds.is_unchanged(command.query):
            return Applied([Reply(query_id, Status.UNCHANGED, command.offset)], [], [])
        reason = self._reason(query_id)
        told, accepted = self._feeds.put(command, reason)
        pairs = []
        if query_id in self._joins:
            pairs = self._joins.remove(query_id, reason, as_emitted(self._joins.query(query_id), accepted.query))
        self._accepted.append(accepted)
        replies = [Reply(query_id, Status.ACCEPTED, command.offset), *self._ended(told.expired)]
        return Applied(replies, told.crossings, pairs)

    def _put_join(self, command: PutJoin) -> Applied:
        query_id = command.query.query_id
        if self._joins.is_unchanged(command.query):
            return Applied([Reply(query_id, Status.UNCHANGED, command.offset)], [], [])
        reason = self._reason(query_id)
        crossings = []
        if query_id in self._feeds:
            crossings = self._feeds.remove(query_id, reason, as_emitted(self._feeds.query(query_id), command.query))
        told, accepted = self._joins.put(command, reason)
        self._accepted.append(accepted)
        replies = [Reply(query_id, Status.ACCEPTED, command.offset), *self._ended(told.expired)]
        return Applied(replies, crossings, told.pairs)

    def _delete(self, command: Delete) -> Applied:
        crossings, pairs = [], []
        if command.query_id in self._joins:
            pairs = self._joins.remove(command.query_id, Reason.QUERY_DELETED)
        elif command.query_id in self._feeds:
            crossings = self._feeds.remove(command.query_id, Reason.QUERY_DELETED)
        else:
            return Applied(self._refuse_delete(command), [], [])
        self._accepted.append(command)
        return Applied([Reply(command.query_id, Status.DELETED, command.offset)], crossings, pairs)

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
        if command.query_id in self._feeds or command.query_id in self._joins:
            message += (
                " The definition before it stays in force, but the control topic no longer holds that one: "
                "publish a right one, or a restart from a new checkpoint will not know the query."
            )
        return Reply(command.query_id, Status.REJECTED, command.offset, command.code, message)

    def _reason(self, query_id: str) -> Reason:
        """Return why what a put begins and ends does so."""
        is_known = query_id in self._feeds or query_id in self._joins
        return Reason.QUERY_UPDATED if is_known else Reason.QUERY_REGISTERED

    # -- counts -------------------------------------------------------------------------------------------

    def n_queries(self) -> dict[str, int]:
        """Return kind -> how many queries of it are registered."""
        counts = dict.fromkeys(Kind, 0)
        for engine in self._feeds.engines.values():
            for kind, n in engine.queries.n_of_kind.items():
                counts[kind] += n
        for query in self._joins.queries():
            counts[query.kind] += 1
        return {kind.value: n for kind, n in counts.items()}

    def n_pending(self) -> int:
        """Return how many crossings wait for a confirmation, or for the second half of a pattern."""
        return sum(engine.trackings.n_pending for engine in self._feeds.engines.values())

    def n_streams(self) -> dict[str, int]:
        """Return feed name -> how many streams are known in this shard."""
        return {name: engine.streams.n_seen for name, engine in self._feeds.engines.items()}

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
        joins = self._joins.take_touched()
        since = self._joins.since([command.query.query_id for command in commands if isinstance(command, PutJoin)])
        return replace(self._feeds.take_touched(), commands=commands, clocks=clocks, joins=joins, since=since)

    def apply_delta(self, delta: Delta) -> None:
        """Apply what ``take_delta`` or ``snapshot`` of another monitor returned, without a word."""
        for command in delta.commands:
            match command:
                case Put():
                    self._joins.drop(command.query.query_id)
                    self._feeds.restore(command)
                case PutJoin():
                    self._feeds.drop(command.query.query_id)
                    self._joins.restore(command, delta.since.get(command.query.query_id, (0, 0)))
                case Delete():
                    self._joins.drop(command.query_id)
                    self._feeds.drop(command.query_id)
        for name, clock in delta.clocks.items():
            self._clocks[name].set(clock)
            self._clocks_stored[name] = clock
        self._feeds.restore_rows(delta)
        self._joins.restore_rows(delta.joins)

    def snapshot(self) -> Iterator[Delta]:
        """Yield the whole state as pages; an empty monitor that applies them is a replica of this one."""
        yield Delta(clocks={name: clock.now for name, clock in self._clocks.items() if clock.now != Clock()})
        puts: list[Put | PutJoin] = [*self._feeds.puts(), *self._joins.puts()]
        puts.sort(key=lambda put: put.offset)
        for begin in range(0, len(puts), SNAPSHOT_ROWS):
            some = tuple(puts[begin : begin + SNAPSHOT_ROWS])
            yield Delta(commands=some, since=self._joins.since([put.query.query_id for put in some]))
        for rows_by_feed in self._joins.pages(SNAPSHOT_ROWS):
            yield Delta(joins=rows_by_feed)
        yield from self._feeds.pages(SNAPSHOT_ROWS)

    def _check(self) -> None:
        """State every invariant of the monitor; for tests."""
        self._feeds._check()
        self._joins._check()
