"""How many queries each tenant has registered."""

from collections import Counter

from bmq.records import Installation


class TenantCounts:
    """The number of registered queries by tenant; without tenants it counts nothing."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._counts: Counter[str] = Counter()

    def excess(self, query_id: str) -> str | None:
        """Return why the tenant of a query may have no more queries; None: it may."""
        tenant = self._installation.tenant_of(query_id)
        if tenant is None or tenant.queries is None or self._counts[tenant.name] < tenant.queries:
            return None
        return (
            f"Tenant {tenant.name!r} has {self._counts[tenant.name]} queries, and {tenant.queries} are the most. "
            f"Delete some, or raise tenants.{tenant.name}.queries in the configuration."
        )

    def add(self, query_id: str) -> None:
        """Count a query that is registered now."""
        self._add(query_id, 1)

    def remove(self, query_id: str) -> None:
        """Count a query no longer."""
        self._add(query_id, -1)

    def counts(self) -> dict[str, int]:
        """Return tenant -> number of its registered queries."""
        return {tenant.name: self._counts[tenant.name] for tenant in self._installation.tenants}

    def _add(self, query_id: str, n: int) -> None:
        tenant = self._installation.tenant_of(query_id)
        if tenant is not None:
            self._counts[tenant.name] += n
