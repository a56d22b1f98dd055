"""What must be published so that the registered queries are the desired ones. Pure.

desired     a  b  c              put a (new), put b (another definition), keep c
registered     b' c  d  e        delete d if its id begins with the prefix of --prune, else leave it; e likewise
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bmq.errors import ServiceError
from bmq.zones.definition_texts import canonical_text

# A time that is over stays over: another put would begin the `ttl` anew each time that somebody applies the folder. And
# what is in the topic without a reply needs no second put: the service will read it, or Kafka has deleted the reply.
REPEATED = "rejected"


class Action(StrEnum):
    """What happens to one query."""

    CREATE = "create"
    REPLACE = "replace"
    REPEAT = "repeat"  # the same definition, which the service rejected
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Registered:
    """A definition in the control topic.

    Attributes
    ----------
    definition : JSON as Python reads it; a text if it is not JSON.
    status : of exactly this definition, as `StandingQuery.status`.
    """

    definition: Any
    status: str


@dataclass(frozen=True, slots=True)
class Change:
    """One command that is to be published.

    Attributes
    ----------
    before, after : the definitions; None if the query is not there.
    """

    query_id: str
    action: Action
    before: Any
    after: Any


def find_changes(
    desired: Mapping[str, Any], registered: Mapping[str, Registered], prune_prefix: str | None
) -> list[Change]:
    """Return the commands that make the desired state of the registered one, sorted by query id, deletions first.

    A tenant with all the queries that it may have can so rename one.

    Parameters
    ----------
    desired : definition by query id, JSON as Python reads it.
    prune_prefix : registered queries that are not desired are deleted if their ids begin with it; None: no query is.

    Raises
    ------
    ServiceError
        The prefix is empty, a desired id does not begin with it, or nothing is desired. Each is probably a mistake that
        would delete queries of others.
    """
    if prune_prefix is not None:
        _check_prefix(prune_prefix, desired)
    changes = [
        Change(query_id, Action.DELETE, registered[query_id].definition, None)
        for query_id in sorted(registered.keys() - desired.keys())
        if prune_prefix is not None and query_id.startswith(prune_prefix)
    ]
    changes += [
        Change(query_id, action, registered[query_id].definition if query_id in registered else None, definition)
        for query_id, definition in sorted(desired.items())
        if (action := _action(definition, registered.get(query_id))) is not None
    ]
    return changes


def count_changes(changes: list[Change], n_desired: int) -> str:
    """Return how many queries each action has, in one line."""
    n_by_action = {action: sum(change.action is action for change in changes) for action in Action}
    n_kept = n_desired - len(changes) + n_by_action[Action.DELETE]
    return f"{', '.join(f'{action.value} {n}' for action, n in n_by_action.items())}, keep {n_kept}"


def _action(definition: Any, registered: Registered | None) -> Action | None:
    if registered is None:
        return Action.CREATE
    if canonical_text(registered.definition) != canonical_text(definition):
        return Action.REPLACE
    return Action.REPEAT if registered.status == REPEATED else None


def _check_prefix(prefix: str, desired: Mapping[str, Any]) -> None:
    if not prefix:
        raise ServiceError("The prefix of --prune is empty, so that every query would fit. Give the beginning of ids.")
    if not desired:
        raise ServiceError(
            f"There are no definitions, so that --prune would delete every query that begins with {prefix!r}. Check "
            "the path; 'bmq query rm' deletes single queries."
        )
    foreign = [query_id for query_id in sorted(desired) if not query_id.startswith(prefix)]
    if foreign:
        raise ServiceError(
            f"--prune deletes only queries that begin with {prefix!r}, but {len(foreign)} of the definitions do not, "
            f"among them {foreign[0]!r}. A prefix belongs to one folder: give the one that all its ids have."
        )
