"""What the page knows about each query: its definition, the replies to it, its members, and its events a minute.

Bounded: at most MOST_QUERIES queries, and for each the last definitions and replies.
"""

import json
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bmq.client.messages import ReplyMessage, last_reply
from bmq.view.minute_count import SPAN_SECONDS, MinuteCount

MOST_QUERIES = 20_000  # an update of all of them is about 6 MB
MOST_VERSIONS = 10
MOST_MEMBERS_SHOWN = 500
_GONE_KEPT = 10_000

Member = tuple[str, str]  # feed, stream id


@dataclass(frozen=True, slots=True)
class Version:
    """One definition of a query; its version is the offset + 1."""

    offset: int
    published: int
    definition: Any  # the JSON value, or the text if it is no JSON


@dataclass(slots=True)
class WatchedQuery:
    """One query.

    Attributes
    ----------
    versions : the definitions that the control topic has or had, the newest last.
    touched : when something was counted, in seconds.
    """

    query_id: str
    versions: deque[Version] = field(default_factory=lambda: deque(maxlen=MOST_VERSIONS))
    replies: deque[ReplyMessage] = field(default_factory=lambda: deque(maxlen=MOST_VERSIONS))
    reply: ReplyMessage | None = None
    members: set[Member] = field(default_factory=set)
    events: MinuteCount = field(default_factory=MinuteCount)
    touched: float = 0.0
    revision: int = 0

    @property
    def is_registered(self) -> bool:
        """Whether the control topic has a definition of the query."""
        return bool(self.versions)

    def shown(self) -> dict[str, Any]:
        """Return the query for an update."""
        last, reply = self.versions[-1], self.reply
        answered = reply if reply is not None and reply.control_offset == last.offset else None
        return {
            "id": self.query_id,
            "definition": last.definition,
            "version": last.offset + 1,
            "status": "unanswered" if answered is None else answered.status,
            "error": None if answered is None or answered.error is None else _error(answered),
        }


class WatchedQueries:
    """All queries. Not thread-safe: `LiveState` has the lock."""

    def __init__(self, most: int = MOST_QUERIES) -> None:
        self.n_left_out = 0
        self._most = most
        self._by_id: OrderedDict[str, WatchedQuery] = OrderedDict()  # the one that changed last is last
        self._gone: deque[tuple[int, str]] = deque(maxlen=_GONE_KEPT)

    def put(self, query_id: str, value: bytes, offset: int, published: int, revision: int) -> Any:
        """Note a definition in the control topic and return it; a definition that is known changes nothing."""
        query = self._query(query_id, revision)
        definition = _read(value)
        if query is not None and (not query.versions or offset > query.versions[-1].offset):
            query.versions.append(Version(offset, published, definition))
        return definition

    def delete(self, query_id: str, revision: int) -> set[Member]:
        """Note a delete; return who was inside."""
        query = self._by_id.pop(query_id, None)
        if query is None:
            return set()
        self._gone.append((revision, query_id))
        return query.members

    def reply(self, reply: ReplyMessage, revision: int) -> None:
        """Note a reply of the service; one for a query that is gone is dropped."""
        query = self._by_id.get(reply.query_id)
        if query is not None and reply not in query.replies:
            query.replies.append(reply)
            query.reply = last_reply(query.reply, reply)
            self._touch(query, revision)

    def count(self, query_id: str, now: float) -> None:
        """Count an event of a query."""
        query = self._by_id.get(query_id)
        if query is not None:
            query.events.add(now)
            query.touched = now

    def enter(self, query_id: str, member: Member, now: float) -> bool:
        """Note that a stream is inside; return whether that is new."""
        query = self._by_id.get(query_id)
        if query is None or member in query.members:
            return False
        query.members.add(member)
        query.touched = now
        return True

    def leave(self, query_id: str, member: Member, now: float) -> bool:
        """Note that a stream is no longer inside; return whether that is new."""
        query = self._by_id.get(query_id)
        if query is None or member not in query.members:
            return False
        query.members.discard(member)
        query.touched = now
        return True

    def since(self, revision: int) -> list[dict[str, Any]]:
        """Return the queries whose definition or reply changed after a revision, the one that changed last first."""
        return [query.shown() for query in self._changed(revision) if query.is_registered]

    def gone_since(self, revision: int) -> list[str]:
        """Return the ids of the queries that were deleted after a revision and do not stand now."""
        return [query_id for at, query_id in self._gone if at > revision and query_id not in self._by_id]

    def counts(self, now: float, *, everything: bool) -> list[tuple[str, int, int]]:
        """Return (query id, members, events of the last minute) of the queries that may have others now."""
        recent = now - SPAN_SECONDS - 10
        return [
            (query.query_id, len(query.members), query.events.total(now))
            for query in self._by_id.values()
            if everything or query.touched > recent
        ]

    def details(self, query_id: str) -> dict[str, Any] | None:
        """Return versions, replies and the first members of a query; None if there is no such query."""
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
            "members": sorted(query.members)[:MOST_MEMBERS_SHOWN],
            "n_members": len(query.members),
        }

    def _query(self, query_id: str, revision: int) -> WatchedQuery | None:
        query = self._by_id.get(query_id)
        if query is None:
            if len(self._by_id) >= self._most:
                self.n_left_out += 1
                return None
            query = self._by_id[query_id] = WatchedQuery(query_id)
        self._touch(query, revision)
        return query

    def _touch(self, query: WatchedQuery, revision: int) -> None:
        query.revision = revision
        self._by_id.move_to_end(query.query_id)

    def _changed(self, revision: int) -> Iterator[WatchedQuery]:
        for query in reversed(self._by_id.values()):
            if query.revision <= revision:
                return
            yield query


def _read(value: bytes) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # the service rejects it, but it stands in the topic
        return value.decode(errors="replace")


def _error(reply: ReplyMessage) -> dict[str, str] | None:
    return None if reply.error is None else {"code": reply.error.code, "message": reply.error.message}
