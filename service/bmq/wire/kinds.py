"""The table of kinds: for each kind of query its definition, the function that reads it, and its event.

    JSON object ──► KINDS[kind].definition ──► KINDS[kind].read ──► RegionQuery or JoinQuery ··► KINDS[kind].event

Control commands, schemas and the CLI find everything that depends on the kind here. The family of a kind's events
(`Kind.family`) is in `records.kinds`, because engines need it as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate

from pydantic import BaseModel

from bmq.records import JoinQuery, Kind, RegionQuery
from bmq.wire.definition_models import (
    BandJoinDefinition,
    BorderDefinition,
    Definition,
    MatchDefinition,
    SelectDefinition,
    TransitionDefinition,
    WindowJoinDefinition,
)
from bmq.wire.event_models import BandJoinEvent, CrossingEvent, LevelEvent, TransitionEvent, WindowJoinEvent
from bmq.wire.join_queries import band_join_query, window_join_query
from bmq.wire.region_queries import border_query, match_query, transition_query
from bmq.wire.select_queries import select_query


@dataclass(frozen=True, slots=True)
class QueryKind:
    """One kind of query, for the packages that read, write and list queries.

    Attributes
    ----------
    definition : the model of its definitions; its property `feeds` names the feeds.
    read : returns the query of a definition. Its arguments are the query id, the version, the definition, the canonical
        JSON of the tags, and the feeds that the definition names. Raises ControlError.
    event : the model of its events under layout `crossing`.
    reports : a phrase for users: the facts that the events report if the kind has no members. None: its queries have
        members.
    """

    definition: type[Definition]
    read: Callable[Concatenate[str, int, Any, str, ...], RegionQuery | JoinQuery]
    event: type[BaseModel]
    reports: str | None


# By name; messages list the kinds in this order.
KINDS: Mapping[str, QueryKind] = {
    Kind.BORDER: QueryKind(BorderDefinition, border_query, CrossingEvent, None),
    Kind.TRANSITION: QueryKind(
        TransitionDefinition, transition_query, TransitionEvent, "what streams did within a time"
    ),
    Kind.MATCH: QueryKind(MatchDefinition, match_query, LevelEvent, "every reading inside"),
    Kind.SELECT: QueryKind(SelectDefinition, select_query, LevelEvent, "every reading that fits"),
    Kind.BAND_JOIN: QueryKind(BandJoinDefinition, band_join_query, BandJoinEvent, "which pairs of streams are in band"),
    Kind.WINDOW_JOIN: QueryKind(
        WindowJoinDefinition, window_join_query, WindowJoinEvent, "every pair of readings that fits"
    ),
}
