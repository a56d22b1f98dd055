"""Which streams are inside each query, also of queries whose definition is not known yet.

The topics are read beside each other. A member that comes before the definition of its query must not be lost, because
the compacted topic has it once.
"""

from bmq.view.bounded_ids import BoundedIds

MOST_MEMBERS = 1_000_000  # of all queries together; each takes an entry of a set

Member = tuple[str, str]  # feed, stream id


class QueryMembers:
    """The members by query id. Not thread-safe.

    Parameters
    ----------
    most : members of all queries together. Further ones are not kept, and `is_full` says so.
    """

    def __init__(self, most: int = MOST_MEMBERS) -> None:
        self._most = most
        self._n = 0
        self._by_query: dict[str, set[Member]] = {}
        self._streams: dict[Member, Member] = {}  # one tuple for each stream, however many queries it is inside
        self._left_out = BoundedIds()

    @property
    def is_full(self) -> bool:
        """Whether a member was not kept, and has not left since."""
        return bool(self._left_out)

    def of(self, query_id: str) -> frozenset[Member] | set[Member]:
        """Return the members of a query; do not change them."""
        return self._by_query.get(query_id, _NONE)

    def add(self, query_id: str, member: Member) -> bool:
        """Add a member; return whether that is new."""
        members = self._by_query.get(query_id, _NONE)
        if member in members:
            return False
        if self._n >= self._most:
            self._left_out.add(repr((query_id, *member)))
            return False
        self._by_query.setdefault(query_id, set()).add(self._streams.setdefault(member, member))
        self._n += 1
        return True

    def remove(self, query_id: str, member: Member) -> bool:
        """Remove a member; return whether it was there."""
        members = self._by_query.get(query_id)
        if members is None or member not in members:
            self._left_out.discard(repr((query_id, *member)))
            return False
        members.discard(member)
        self._n -= 1
        if not members:
            del self._by_query[query_id]
        return True

    def clear(self, query_id: str) -> None:
        """Remove all members of a query."""
        self._n -= len(self._by_query.pop(query_id, ()))


_NONE: frozenset[Member] = frozenset()
