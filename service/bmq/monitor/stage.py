"""The protocol of the monitor's two stages: the queries over single feeds, and the joins.

Each query is registered at one stage. The class of its definition decides which. An edit may move a query to the other
stage.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from bmq.engines.stage_result import StageResult
from bmq.monitor.lifetimes import OwnQuery
from bmq.records import Delta, Put, Query, Readings, Reason


class Stage(Protocol[OwnQuery]):
    """The queries of one class in one shard, and the state kept for them. A stage makes no replies."""

    def __contains__(self, query_id: str) -> bool:
        """Return whether a query is registered here."""

    def query(self, query_id: str) -> OwnQuery:
        """Return a registered query."""

    # -- commands -----------------------------------------------------------------------------------------

    def is_unchanged(self, query: OwnQuery) -> bool:
        """Return whether this definition is registered already, whatever its version is."""

    def put(self, command: Put[OwnQuery], reason: Reason) -> StageResult:
        """Register or replace a query; return the events that this causes at once, and the put for replicas."""

    def remove(self, query_id: str, reason: Reason, emitted_as: OwnQuery | None = None) -> StageResult:
        """Remove a registered query; return the events that this causes.

        ``emitted_as`` is the definition that the events carry; None: the registered definition.
        """

    def drop(self, query_id: str) -> None:
        """Remove a query without events, if it is there."""

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, readings: Mapping[str, Readings | None]) -> StageResult:
        """Apply readings, ascending by (partition, offset) in each feed, and fire the timers that are due."""

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self) -> Delta:
        """Return what changed since the last call, without commands and clocks, and forget that it changed."""

    def restore(self, put: Put[OwnQuery], delta: Delta) -> None:
        """Register or replace a query without events, by a put of ``delta``."""

    def restore_rows(self, delta: Delta) -> None:
        """Apply the rows that ``take_touched`` or ``pages`` of another stage returned; the clocks are set already."""

    def puts(self) -> list[Put[OwnQuery]]:
        """Return the puts that register the present queries."""

    def pages(self, size: int) -> Iterator[Delta]:
        """Yield everything that is kept beside the queries, ``size`` rows at a time."""

    def _check(self) -> None:
        """State every invariant; for tests."""


def as_emitted(registered: OwnQuery, new: Query) -> OwnQuery:
    """Return the definition that the ends of ``registered`` carry if an edit moves it to another kind or other feeds.

    It is the old definition with the version, the tags and the output topic of the new one.
    """
    return replace(registered, version=new.version, tags=new.tags, output_topic=new.output_topic)
