"""What an installation allows a query to name, and to cost."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from bmq.records.queries import Feed


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one definition, or one reading, may cost.

    Attributes
    ----------
    vertices, rings : of one shape.
    streams : that a query names.
    where_values : in all lists of `where` together.
    conjunctions : in `any`.
    window_readings : of a counted window.
    pairs : of streams that are in the band of a band join when it is put.
    passes : visits of one reading to regions of one tenant's queries with `passes`.
    """

    vertices: int = 10_000
    rings: int = 500
    streams: int = 20_000
    where_values: int = 5_000
    conjunctions: int = 1_000
    window_readings: int = 1_000_000
    pairs: int = 100_000
    passes: int = 10_000


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who may put queries whose ids begin with a prefix, and what they may name.

    Attributes
    ----------
    feeds : the only feeds that they may watch; None: all.
    output_prefix : the required prefix of their `output_topic`; None: that of the installation.
    queries : the most that they may have; None: any number.
    streams : the most that their queries may name, together; None: any number.
    """

    name: str
    prefix: str
    feeds: frozenset[str] | None = None
    output_prefix: str | None = None
    queries: int | None = None
    streams: int | None = None


@dataclass(frozen=True, slots=True)
class Installation:
    """What the rules for a definition depend on.

    Attributes
    ----------
    feeds : every feed by name.
    output_prefix : the required prefix of the `output_topic` of a query.
    reserved_topics : topics that the service reads or replies on; no query may send its events there.
    tenants : all who may put queries; empty: everybody may.
    """

    feeds: Mapping[str, Feed]
    output_prefix: str = ""
    reserved_topics: Collection[str] = ()
    limits: Limits = field(default_factory=Limits)
    tenants: tuple[Tenant, ...] = ()

    def tenant_of(self, query_id: str) -> Tenant | None:
        """Return the tenant whose prefix the id begins with, the longest if several fit; None: none fits."""
        own = [tenant for tenant in self.tenants if query_id.startswith(tenant.prefix)]
        return max(own, key=lambda tenant: len(tenant.prefix), default=None)
