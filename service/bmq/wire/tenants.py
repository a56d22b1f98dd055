"""What the tenant of a query may name. The id of the query says whose it is.

Kafka cannot say who has written a key. So whoever lets tenants write to the control topic, a gateway, has to see to it
that each writes only keys with its prefix.
"""

from bmq.errors import ControlCode, ControlError
from bmq.records import Installation
from bmq.wire.definition_models import Definition
from bmq.wire.fault_texts import shorten


def check_tenant(query_id: str, definition: Definition, installation: Installation) -> None:
    """Refuse a definition that the tenant of the query may not put; do nothing if there are no tenants.

    Raises
    ------
    ControlError : `forbidden`.
    """
    if not installation.tenants:
        return
    tenant = installation.tenant_of(query_id)
    if tenant is None:
        raise _forbidden(
            f"No tenant has query ids like {shorten(query_id)}. Begin the id with the prefix of one: [tenants] in the "
            "configuration has them."
        )
    for feed in definition.feeds:
        if tenant.feeds is not None and feed not in tenant.feeds:
            allowed = ", ".join(sorted(tenant.feeds)) or "none"
            raise _forbidden(f"Tenant {tenant.name!r} may watch these feeds: {allowed}; but not {shorten(feed)}.")
    topic = definition.output_topic
    if topic is not None and tenant.output_prefix is not None and not topic.startswith(tenant.output_prefix):
        raise _forbidden(
            f"Field 'output_topic' is {shorten(topic)}, but that of tenant {tenant.name!r} must begin with "
            f"'{tenant.output_prefix}'. Choose such a name."
        )


def _forbidden(message: str) -> ControlError:
    return ControlError(ControlCode.FORBIDDEN, message)
