"""Commands that put and delete queries, and the replies to them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from bmq.records.arrays import NEVER
from bmq.records.queries import Query

Query_co = TypeVar("Query_co", bound=Query, covariant=True)


@dataclass(frozen=True, slots=True)
class Put(Generic[Query_co]):
    """A command that registers or replaces a query; `query.version` is `offset + 1`.

    Attributes
    ----------
    due : epoch ms at which the query ends, as the shard that applied the command has computed it; ``NEVER`` before, and
        for a query that does not end.
    """

    offset: int
    query: Query_co
    due: int = NEVER


@dataclass(frozen=True, slots=True)
class Delete:
    """A command that removes a query."""

    offset: int
    query_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that `wire` could not accept. It changes nothing; it is answered."""

    offset: int
    query_id: str
    code: str
    message: str


Command = Put[Query] | Delete | Refused


class Status(StrEnum):
    """What a reply says of a command."""

    ACCEPTED = "accepted"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    DELETED = "deleted"
    EXPIRED = "expired"
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one command; `code` and `message` only where `status` is rejected or degraded."""

    query_id: str
    status: Status
    offset: int
    code: str | None = None
    message: str | None = None
