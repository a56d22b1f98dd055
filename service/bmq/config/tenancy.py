"""The options of `limits` and `tenants`: what queries may cost, and who may put which."""

from dataclasses import fields
from typing import Annotated

from pydantic import Field

from bmq import records
from bmq.config.option_types import Section, Whole

_LIMITS = records.Limits()


class LimitsSection(Section):
    """How much one query, and one batch of commands, may cost the others. A definition beyond a limit is rejected."""

    commands_per_batch: Whole = Field(2_000, ge=1)
    """The most commands in one batch; the next batches read the rest. The commands that a new checkpoint finds all
    come in its first batch. With a long `job.trigger`, so many come in that time."""
    command_bytes_per_batch: Whole = Field(1_000_000, ge=1)
    """The most bytes of commands in one batch, but at least four commands."""
    vertices: Whole = Field(_LIMITS.vertices, ge=3)
    """The most vertices of a shape."""
    rings: Whole = Field(_LIMITS.rings, ge=1)
    """The most rings of a shape: outer rings and holes."""
    streams: Whole = Field(_LIMITS.streams, ge=1)
    """The most streams that a query names."""
    where_values: Whole = Field(_LIMITS.where_values, ge=1)
    """The most values in the `where` of a query, in all lists together."""
    conjunctions: Whole = Field(_LIMITS.conjunctions, ge=1)
    """The most conjunctions in `any`."""
    window_readings: Whole = Field(_LIMITS.window_readings, ge=1, le=2**31 - 1)
    """The most readings of a counted window."""
    pairs: Whole = Field(_LIMITS.pairs, ge=1)
    """The most pairs of streams in the band of a `band_join` when it is put: each pair that begins is an event. An edit
    that only narrows the band may have more."""
    passes: Whole = Field(_LIMITS.passes, ge=1)
    """The most passes between two readings of a stream. If there are more, none of them becomes an event, and
    `bmq_suppressed_events_total` counts them. The passes of each tenant count for themselves."""

    def record(self) -> records.Limits:
        """Return what a definition or a reading may cost, for the other layers."""
        return records.Limits(**{limit.name: getattr(self, limit.name) for limit in fields(records.Limits)})


class TenantSection(Section):
    """One of those who may put queries. If there is a tenant, every query must belong to one: by its id."""

    prefix: str
    """The ids of its queries begin with it; the longest prefix counts. Empty: all ids that no other tenant has."""
    feeds: tuple[str, ...] | None = None
    """The only feeds that it may watch. Absent: all."""
    output_prefix: str | None = None
    """Its `output_topic`s begin with it. Absent: as `topics.allowed_output_prefix`."""
    queries: Annotated[Whole, Field(ge=1)] | None = None
    """The most queries that it may have. Absent: any number. What a new checkpoint finds in the control topic counts,
    and is not rejected."""
    streams: Annotated[Whole, Field(ge=1)] | None = None
    """The most streams that its queries may name, together; a stream that two queries name counts twice, and a query
    without `streams` names none. Absent: any number. As with `queries`, what a new checkpoint finds is not rejected,
    and neither is an edit that names no more streams than before."""

    def record(self, name: str) -> records.Tenant:
        """Return the tenant as a record for the other layers."""
        feeds = None if self.feeds is None else frozenset(self.feeds)
        return records.Tenant(name, self.prefix, feeds, self.output_prefix, self.queries, self.streams)
