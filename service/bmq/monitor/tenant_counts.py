"""What each tenant has registered: queries, and the streams that they name."""

from collections import Counter

from bmq.records import Installation, Query, RegionQuery, Tenant


class TenantCounts:
    """The registered queries by tenant, and the streams that they name; without tenants it counts nothing."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._queries: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()

    def excess(self, query: Query, before: Query | None) -> str | None:
        """Return why the tenant of a query may not have it in place of the one before; None: it may."""
        tenant = self._tenant_of(query)
        if tenant is None:
            return None
        n_queries, most = self._queries[tenant.name], tenant.queries
        if before is None and most is not None and n_queries >= most:
            return (
                f"Tenant {tenant.name!r} has {n_queries} queries, and {most} are the most. "
                f"Delete some, or raise tenants.{tenant.name}.queries in the configuration."
            )
        n_more = _n_named(query) - (0 if before is None else _n_named(before))
        n_streams, most = self._streams[tenant.name], tenant.streams
        if n_more > 0 and most is not None and n_streams + n_more > most:
            return (
                f"The queries of tenant {tenant.name!r} name {n_streams} streams, with this one {n_streams + n_more}, "
                f"and {most} are the most. Name fewer, or raise tenants.{tenant.name}.streams in the configuration."
            )
        return None

    def add(self, query: Query) -> None:
        """Count a query that is registered now."""
        self._add(query, 1)

    def remove(self, query: Query) -> None:
        """Count a query no longer."""
        self._add(query, -1)

    def n_queries(self) -> dict[str, int]:
        """Return tenant -> number of its registered queries."""
        return {tenant.name: self._queries[tenant.name] for tenant in self._installation.tenants}

    def n_streams(self) -> dict[str, int]:
        """Return tenant -> number of the streams that its queries name, each as often as it is named."""
        return {tenant.name: self._streams[tenant.name] for tenant in self._installation.tenants}

    def _add(self, query: Query, n: int) -> None:
        tenant = self._tenant_of(query)
        if tenant is not None:
            self._queries[tenant.name] += n
            self._streams[tenant.name] += n * _n_named(query)

    def _tenant_of(self, query: Query) -> Tenant | None:
        return self._installation.tenant_of(query.query_id)


def _n_named(query: Query) -> int:
    return len(query.streams) if isinstance(query, RegionQuery) and query.streams is not None else 0
