"""Which definitions of a file or folder a replay of one feed can have."""

import json
from collections.abc import Mapping
from typing import Any

from bmq.errors import ServiceError
from bmq.zones.desired_state import DesiredQuery

SIDES = ("left", "right")


def choose(desired: Mapping[str, DesiredQuery], feed: str, *, skip_others: bool) -> tuple[dict[str, bytes], list[str]]:
    """Return the definitions of queries over the feed alone, as JSON by query id, and the ids of the others.

    A definition that names no feed is returned, too: the engine refuses it with the reason.

    Parameters
    ----------
    skip_others : whether queries over other feeds are left out, or are an error.

    Raises
    ------
    ServiceError
        A query is over another feed, and these are not left out; or no query is left.
    """
    chosen: dict[str, bytes] = {}
    others: list[str] = []
    for query_id, query in desired.items():
        if feeds_of(query.definition) <= {feed}:
            chosen[query_id] = json.dumps(query.definition).encode()
        else:
            others.append(query_id)
    if others and not skip_others:
        named = ", ".join(sorted(feeds_of(desired[others[0]].definition)))
        raise ServiceError(
            f"Query {others[0]!r} is over {named}, but the readings are of feed {feed!r} alone. There are "
            f"{len(others)} such queries among {len(desired)}. --skip-other-feeds leaves them out."
        )
    if not chosen:
        raise ServiceError(f"There is no query over feed {feed!r} among {len(desired)}. Name another feed with --feed.")
    return chosen, others


def feeds_of(definition: Mapping[str, Any]) -> set[str]:
    """Return the names of the feeds that a definition has, right or wrong."""
    sides = [definition.get(side) for side in SIDES]
    names = [definition.get("feed"), *(side.get("feed") if isinstance(side, dict) else side for side in sides)]
    return {name for name in names if isinstance(name, str)}
