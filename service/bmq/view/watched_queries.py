"""What the page knows about each query: its definition, the replies to it, its members, and its events a minute.

Bounded: at most MOST_QUERIES queries and MOST_TEXT of definitions, and for each query the last definitions and replies.
Beyond that, the query that changed least recently is left out until it changes.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

import msgspec

from bmq.client.messages import ReplyMessage, last_reply
from bmq.view.bounded_ids import BoundedIds
from bmq.view.minute_count import SPAN_SECONDS, MinuteCount
from bmq.view.query_members import Member, QueryMembers

MOST_QUERIES = 20_000  # an update of all of them is about 6 MB
MOST_TEXT = 64_000_000  # bytes of all definitions together, as JSON
MOST_VERSIONS = 10
MOST_MEMBERS_SHOWN = 500
_GONE_KEPT = 10_000
_NESTING = 200  # levels around a definition in an update, and then some

Details = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Version:
    """One definition of a query; its version is the offset + 1."""

    offset: int
    published: int
    definition: Any  # the JSON value, or the text if it is no JSON
    n_bytes: int


@dataclass(slots=True)
class WatchedQuery:
    """One query.

    Attributes
    ----------
    versions : the definitions that the control topic has or had, the newest last; never empty for long.
    touched : when something was counted, in seconds.
    """

    query_id: str
    versions: deque[Version] = field(default_factory=deque)
    replies: deque[ReplyMessage] = field(default_factory=lambda: deque(maxlen=MOST_VERSIONS))
    reply: ReplyMessage | None = None
    events: MinuteCount = field(default_factory=MinuteCount)
    touched: float = 0.0
    revision: int = 0

    @property
    def answered(self) -> ReplyMessage | None:
        """The reply to the last definition."""
        reply = self.reply
        return reply if reply is not None and reply.control_offset == self.versions[-1].offset else None

    def note(self, reply: ReplyMessage) -> bool:
        """Note a reply; return whether it is new."""
        if reply in self.replies:
            return False
        self.replies.append(reply)
        self.reply = last_reply(self.reply, reply)
        return True

    def shown(self) -> dict[str, Any]:
        """Return the query for an update."""
        last, answered = self.versions[-1], self.answered
        return {
            "id": self.query_id,
            "definition": last.definition,
            "version": last.offset + 1,
            "status": "unanswered" if answered is None else answered.status,
            "error": None if answered is None or answered.error is None else _error(answered),
        }


class WatchedQueries:
    """All queries. Not thread-safe: `LiveState` has the lock.

    Parameters
    ----------
    note_inside : is called with a stream and the change of the number of shown queries that it is inside.
    members_of_events : whether a delete ends the members; otherwise the membership topic does.
    most, most_text : queries, and bytes of their definitions.
    """

    def __init__(
        self,
        note_inside: Callable[[Member, int], None],
        *,
        members_of_events: bool,
        most: int = MOST_QUERIES,
        most_text: int = MOST_TEXT,
    ) -> None:
        self.members = QueryMembers()
        self._note_inside = note_inside
        self._members_of_events = members_of_events
        self._most = most
        self._most_text = most_text
        self._n_bytes = 0
        self._by_id: OrderedDict[str, WatchedQuery] = OrderedDict()  # the one that changed last is last
        self._early: OrderedDict[str, list[ReplyMessage]] = OrderedDict()  # replies to what was not read yet
        self._deleted: OrderedDict[str, int] = OrderedDict()  # offset of the delete
        self._gone: deque[tuple[int, str]] = deque()
        self._forgotten = 0
        self._left_out = BoundedIds()

    @property
    def n_left_out(self) -> int:
        """How many queries there are that are not kept, as far as they are counted."""
        return len(self._left_out)

    def put(self, query_id: str, value: bytes, offset: int, published: int, revision: int, now: float) -> Any:
        """Note a definition in the control topic and return it; a definition that is known changes nothing."""
        definition = _read(value)
        query = self._by_id.get(query_id)
        newest = query.versions[-1].offset if query is not None else self._deleted.get(query_id, -1)
        if offset <= newest:
            return definition
        if query is None:
            query = self._by_id[query_id] = WatchedQuery(query_id)
            self._left_out.discard(query_id)
            for member in self.members.of(query_id):
                self._note_inside(member, 1)
            for reply in self._early.pop(query_id, ()):
                query.note(reply)
        query.versions.append(Version(offset, published, definition, len(value)))
        query.touched = now  # also the counts of an earlier query of this id must be sent anew
        self._n_bytes += len(value)
        if len(query.versions) > MOST_VERSIONS:
            self._drop_version(query)
        self._touch(query, revision)
        self._make_room(query, revision)
        return definition

    def delete(self, query_id: str, offset: int, revision: int) -> None:
        """Note a delete in the control topic."""
        query = self._by_id.get(query_id)
        if query is not None and query.versions[-1].offset >= offset:
            return
        self._remember_delete(query_id, offset)
        self._left_out.discard(query_id)
        self._early[query_id] = [one for one in self._early.get(query_id, ()) if one.control_offset > offset]
        if not self._early[query_id]:
            del self._early[query_id]
        if query is not None:
            self._remove(query, revision)
        if self._members_of_events:
            self.members.clear(query_id)

    def reply(self, reply: ReplyMessage, revision: int) -> None:
        """Note a reply of the service; one that comes before its definition waits for it."""
        query = self._by_id.get(reply.query_id)
        if query is not None:
            if query.note(reply):
                self._touch(query, revision)
        elif reply.control_offset > self._deleted.get(reply.query_id, -1):
            waiting = self._early.setdefault(reply.query_id, [])
            waiting.append(reply)
            del waiting[:-MOST_VERSIONS]
            if len(self._early) > _GONE_KEPT:
                self._early.popitem(last=False)

    def output_of(self, query_id: str) -> tuple[str | None, str]:
        """Return the output topic that the last definition of a query names, and the status of that definition."""
        query = self._by_id.get(query_id)
        if query is None:
            return None, "unknown"
        definition, answered = query.versions[-1].definition, query.answered
        output = definition.get("output_topic") if isinstance(definition, dict) else None
        return output if isinstance(output, str) else None, "unanswered" if answered is None else answered.status

    def ids(self) -> list[str]:
        """Return the ids of all queries, the one that changed last at the end."""
        return list(self._by_id)

    def count(self, query_id: str, now: float) -> None:
        """Count an event of a query."""
        query = self._by_id.get(query_id)
        if query is not None:
            query.events.add(now)
            query.touched = now

    def enter(self, query_id: str, member: Member, now: float, version: int | None = None) -> None:
        """Note that a stream is inside; ``version`` is that of the definition, if it is known."""
        if version is not None and version <= self._deleted.get(query_id, -1):
            return  # an old event of a query that was deleted since then
        if self.members.add(query_id, member):
            self._count_inside(query_id, member, 1, now)

    def leave(self, query_id: str, member: Member, now: float) -> None:
        """Note that a stream is no longer inside."""
        if self.members.remove(query_id, member):
            self._count_inside(query_id, member, -1, now)

    def since(self, revision: int) -> list[dict[str, Any]]:
        """Return the queries whose definition or reply changed after a revision, the one that changed last first."""
        return [query.shown() for query in self._changed(revision)]

    def gone_since(self, revision: int) -> list[str]:
        """Return the ids of the queries that were deleted after a revision and do not stand now."""
        return [query_id for at, query_id in self._gone if at > revision and query_id not in self._by_id]

    def has_forgotten(self, revision: int) -> bool:
        """Return whether `gone_since` no longer knows all of them."""
        return revision < self._forgotten

    def counts(self, now: float, *, everything: bool) -> list[tuple[str, int, int]]:
        """Return (query id, members, events of the last minute) of the queries that may have others now."""
        recent = now - SPAN_SECONDS - 10
        return [
            (query.query_id, len(self.members.of(query.query_id)), query.events.total(now))
            for query in self._by_id.values()
            if everything or query.touched > recent
        ]

    def details(self, query_id: str) -> tuple[Details, list[Member]] | None:
        """Return versions and replies of a query, and its members in any order; None if there is no such query."""
        query = self._by_id.get(query_id)
        if query is None:
            return None
        return {
            "id": query_id,
            "versions": [
                {"version": one.offset + 1, "published": one.published, "definition": one.definition}
                for one in reversed(query.versions)
            ],
            "replies": [
                {"status": one.status, "version": one.version, "offset": one.control_offset, "error": _error(one)}
                for one in reversed(query.replies)
            ],
        }, list(self.members.of(query_id))

    def _count_inside(self, query_id: str, member: Member, change: int, now: float) -> None:
        query = self._by_id.get(query_id)
        if query is not None:
            query.touched = now
            self._note_inside(member, change)

    def _make_room(self, newest: WatchedQuery, revision: int) -> None:
        while len(self._by_id) > self._most or self._n_bytes > self._most_text:
            oldest = next(iter(self._by_id.values()))
            if oldest is not newest:
                self._left_out.add(oldest.query_id)
                self._remove(oldest, revision)
            elif len(newest.versions) > 1:
                self._drop_version(newest)
            else:
                return

    def _remove(self, query: WatchedQuery, revision: int) -> None:
        del self._by_id[query.query_id]
        self._n_bytes -= sum(one.n_bytes for one in query.versions)
        for member in self.members.of(query.query_id):
            self._note_inside(member, -1)
        self._gone.append((revision, query.query_id))
        if len(self._gone) > _GONE_KEPT:
            self._forgotten = self._gone.popleft()[0]

    def _remember_delete(self, query_id: str, offset: int) -> None:
        self._deleted[query_id] = offset
        self._deleted.move_to_end(query_id)
        if len(self._deleted) > _GONE_KEPT:
            self._deleted.popitem(last=False)

    def _drop_version(self, query: WatchedQuery) -> None:
        self._n_bytes -= query.versions.popleft().n_bytes

    def _touch(self, query: WatchedQuery, revision: int) -> None:
        query.revision = revision
        self._by_id.move_to_end(query.query_id)

    def _changed(self, revision: int) -> Iterator[WatchedQuery]:
        for query in reversed(self._by_id.values()):
            if query.revision <= revision:
                return
            yield query


def with_members(details: Details, members: list[Member]) -> Details:
    """Return the details of a query with its first members; slow for many, so without the lock."""
    return details | {"members": nsmallest(MOST_MEMBERS_SHOWN, members), "n_members": len(members)}


def _read(value: bytes) -> Any:
    """Return a definition that can be sent: the JSON value, or the text if it is not JSON that can be sent."""
    try:
        definition = nested = msgspec.json.decode(value)
        for _ in range(_NESTING):
            nested = [nested]
        msgspec.json.encode(nested)
    except (ValueError, OverflowError, RecursionError):  # the service rejects it, but it stands in the topic
        return value.decode(errors="replace")
    return definition


def _error(reply: ReplyMessage) -> dict[str, str] | None:
    return None if reply.error is None else {"code": reply.error.code, "message": reply.error.message}
