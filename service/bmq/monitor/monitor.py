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

from bmq.engines.border import Advanced, BorderEngine
from bmq.errors import ControlCode
from bmq.monitor.joined import join_crossings
from bmq.records import (
    Command,
    Crossings,
    Delete,
    Delta,
    Feed,
    Put,
    Readings,
    Reason,
    Refused,
    RegionQuery,
    Reply,
    Status,
)

SNAPSHOT_ROWS = 50_000  # streams or queries a page of a snapshot; a page of 4 MB is quick to write and to read


@dataclass(frozen=True, slots=True)
class Applied:
    """What commands did: a reply for each that is to be answered, and the crossings they caused, by feed."""

    replies: list[Reply]
    crossings: list[Crossings]


class Monitor:
    """The queries and streams of one shard, over all feeds.

    Parameters
    ----------
    feeds : feed name -> Feed.
    silent_tombstones_before : control offset
        A delete of an unknown query below it is not answered: it was in the compacted topic before this state
        began, so the query it deleted was never known here.
    """

    def __init__(self, feeds: Mapping[str, Feed], silent_tombstones_before: int = 0) -> None:
        self._engines = {name: BorderEngine(feed) for name, feed in feeds.items()}
        self._feed_by_query: dict[str, str] = {}
        self._silent_tombstones_before = silent_tombstones_before
        self._accepted: list[Put | Delete] = []

    # -- the ledger ---------------------------------------------------------------------------------------

    def apply(self, commands: Sequence[Command]) -> Applied:
        """Apply commands in offset order; return replies and what the ledger says at once."""
        applied = Applied([], [])
        by_feed: dict[str, list[Crossings]] = {}
        for command in commands:
            reply, crossings = self._apply_one(command)
            if reply is not None:
                applied.replies.append(reply)
            for found in crossings:
                by_feed.setdefault(found.feed, []).append(found)
        applied.crossings.extend(join_crossings(parts) for parts in by_feed.values())
        return applied

    def advance(self, feed: str, readings: Readings) -> Advanced:
        """Apply readings of one feed, given ascending by (partition, offset); return crossings and counts."""
        return self._engines[feed].advance(readings)

    # -- counts -------------------------------------------------------------------------------------------

    @property
    def n_queries(self) -> int:
        """How many queries are registered."""
        return len(self._feed_by_query)

    def n_streams(self) -> dict[str, int]:
        """Return feed name -> how many streams have had a reading in this shard."""
        return {name: engine.streams.n_seen for name, engine in self._engines.items()}

    # -- state --------------------------------------------------------------------------------------------

    def take_delta(self) -> Delta:
        """Return what changed since the last call, and forget that it changed."""
        commands, self._accepted = tuple(self._accepted), []
        streams = {}
        silent: dict[tuple[str, str], bool] = {}
        for name, engine in self._engines.items():
            rows = engine.streams.take_touched()
            if len(rows.ids):
                streams[name] = rows
            # A pair that a query had over its former feed ended there; what the feed in force says wins.
            silent.update(
                (pair, now)
                for pair, now in engine.silent.take_changes().items()
                if now or self._feed_by_query.get(pair[0], name) == name
            )
        return Delta(commands, streams, silent)

    def apply_delta(self, delta: Delta) -> None:
        """Apply what ``take_delta`` or ``snapshot`` of another monitor returned, without a word."""
        for command in delta.commands:
            if isinstance(command, Put):
                self._restore(command.query)
            else:
                self._engines[self._feed_by_query.pop(command.query_id)].restore_removal(command.query_id)
        for name, rows in delta.streams.items():
            self._engines[name].restore_streams(rows)
        for (query_id, stream), is_silent in delta.silent.items():
            if query_id in self._feed_by_query:
                self._engines[self._feed_by_query[query_id]].silent.set(query_id, stream, is_silent=is_silent)

    def snapshot(self) -> Iterator[Delta]:
        """Yield the whole state as pages; an empty monitor that applies them is a replica of this one."""
        puts = [
            Put(query.version - 1, query) for engine in self._engines.values() for query in engine.queries.queries()
        ]
        puts.sort(key=lambda put: put.offset)
        for begin in range(0, len(puts), SNAPSHOT_ROWS):
            yield Delta(commands=tuple(puts[begin : begin + SNAPSHOT_ROWS]))
        for name, engine in self._engines.items():
            slots = engine.streams.seen_slots()
            for begin in range(0, slots.size, SNAPSHOT_ROWS):
                rows = engine.streams.rows_of(slots[begin : begin + SNAPSHOT_ROWS])
                yield Delta(streams={name: rows})
            pairs = engine.silent.pairs()
            while page := dict.fromkeys(islice(pairs, SNAPSHOT_ROWS), True):
                yield Delta(silent=page)

    # -- commands -----------------------------------------------------------------------------------------

    def _apply_one(self, command: Command) -> tuple[Reply | None, list[Crossings]]:
        match command:
            case Put():
                return self._put(command)
            case Delete():
                return self._delete(command)
            case Refused():
                return self._refuse(command), []

    def _put(self, command: Put) -> tuple[Reply, list[Crossings]]:
        query = command.query
        feed_before = self._feed_by_query.get(query.query_id)
        if feed_before is None:
            crossings = [self._engines[query.feed].put(query, Reason.QUERY_REGISTERED)]
        else:
            engine = self._engines[feed_before]
            in_force = engine.queries.query(engine.queries.slot(query.query_id))
            if _same_definition(in_force, query):
                return Reply(query.query_id, Status.UNCHANGED, command.offset), []
            crossings = []
            if feed_before != query.feed:
                crossings.append(engine.remove(query.query_id, Reason.QUERY_UPDATED, told_by=query))
            crossings.append(self._engines[query.feed].put(query, Reason.QUERY_UPDATED))
        self._feed_by_query[query.query_id] = query.feed
        self._accepted.append(command)
        reply = Reply(query.query_id, Status.ACCEPTED, command.offset)
        return reply, [found for found in crossings if found is not None]

    def _delete(self, command: Delete) -> tuple[Reply | None, list[Crossings]]:
        feed = self._feed_by_query.pop(command.query_id, None)
        if feed is None:
            if command.offset < self._silent_tombstones_before:
                return None, []
            message = (
                f"query {command.query_id!r} is not registered, so there is nothing to delete. "
                "`bmq query list` shows the registered ones."
            )
            code = ControlCode.UNKNOWN_QUERY
            return Reply(command.query_id, Status.REJECTED, command.offset, code, message), []
        crossings = self._engines[feed].remove(command.query_id, Reason.QUERY_DELETED)
        self._accepted.append(command)
        reply = Reply(command.query_id, Status.DELETED, command.offset)
        return reply, [] if crossings is None else [crossings]

    def _refuse(self, command: Refused) -> Reply:
        message = command.message
        if command.query_id in self._feed_by_query:
            message += (
                " The definition before it stays in force, but the control topic no longer holds that one: "
                "publish a right one, or a restart from a new checkpoint will not know the query."
            )
        return Reply(command.query_id, Status.REJECTED, command.offset, command.code, message)

    def _restore(self, query: RegionQuery) -> None:
        feed_before = self._feed_by_query.get(query.query_id)
        if feed_before is not None and feed_before != query.feed:
            self._engines[feed_before].restore_removal(query.query_id)
        self._engines[query.feed].restore(query)
        self._feed_by_query[query.query_id] = query.feed

    def _check(self) -> None:
        """State every invariant of the monitor; for tests."""
        for name, engine in self._engines.items():
            engine._check()
            # A query is registered at the engine of its feed and nowhere else.
            ids = {query.query_id for query in engine.queries.queries()}
            assert ids == {query_id for query_id, feed in self._feed_by_query.items() if feed == name}


def _same_definition(one: RegionQuery, other: RegionQuery) -> bool:
    return replace(one, version=0) == replace(other, version=0)
