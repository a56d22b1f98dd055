"""Variants of queries for a forecast: a query with one noise option in one size, put beside the query itself.

    query 0: as it is, with stay_for 10s, with stay_for 1m, …     numbers 0, 1, 2, …
    query 1: as it is, …                                          numbers n, n + 1, …       n = 1 + variants

The query id in the run is the number of the tenant and this number, such as "0.12", so that ids of variants do not meet
ids of queries. The forecast of an option is exact, because the engine applies the option to the history.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from bmq.backtest.grown_regions import grow, read_margin
from bmq.errors import ControlError
from bmq.records import Feed, Installation, Tenant
from bmq.wire.durations import read_positive_duration
from bmq.zones.checks import check_definition


class NoiseOption(StrEnum):
    """An option of border queries whose sizes are compared."""

    STAY_FOR = "stay_for"
    COOLDOWN = "cooldown"
    EXIT_REGION = "exit_region"


@dataclass(frozen=True, slots=True)
class Variant:
    """One size of one option.

    Attributes
    ----------
    size : a duration, such as "10s"; for `EXIT_REGION` a margin, such as "5%" (`grown_regions.read_margin`).

    Raises
    ------
    ValueError
        The size has another form; the message has the rule and the way out.
    """

    option: NoiseOption
    size: str

    def __post_init__(self) -> None:
        if self.option is NoiseOption.EXIT_REGION:
            read_margin(self.size)
        else:
            read_positive_duration(self.size)

    def __str__(self) -> str:
        return f"{self.option} {self.size}"

    def of(self, definition: Mapping[str, Any], feed: Feed) -> dict[str, Any] | None:
        """Return the definition with this option in place of its own; None: its region cannot be grown."""
        if self.option is not NoiseOption.EXIT_REGION:
            return dict(definition) | {self.option.value: self.size}
        grown = grow(definition["region"], read_margin(self.size), feed.dimensions if feed.lonlat else ())
        return None if grown is None else dict(definition) | {self.option.value: grown}


def put_variants(
    definitions: Mapping[str, bytes], variants: Sequence[Variant], installation: Installation
) -> tuple[dict[str, bytes], Installation]:
    """Return the definitions of all queries and of the variants that they can have, and the installation for the run.

    Only border queries have variants, and only those without `passes`: passes of variants would count against
    `limits.passes` together with those of the query. A query does not have the variants that the service would reject.

    Parameters
    ----------
    definitions : query id -> definition that the service accepts, JSON.
    installation : of these definitions.

    Returns
    -------
    Query id in the run -> definition; `number_of` has its number. The tenants of the installation are those of the
    queries, because passes count for each tenant, but they may have any number of queries.
    """
    tenants = installation.tenants
    of_run = replace(installation, tenants=tuple(_tenant_of_run(number, one) for number, one in enumerate(tenants)))
    found: dict[str, bytes] = {}
    for row, (query_id, text) in enumerate(definitions.items()):
        first = row * (1 + len(variants))
        tenant = installation.tenant_of(query_id)
        prefix = _prefix(0 if tenant is None else tenants.index(tenant))
        found[f"{prefix}{first}"] = text
        definition = json.loads(text)
        if definition.get("kind") != "border" or definition.get("passes"):
            continue
        for number, variant in enumerate(variants, first + 1):
            if (changed := variant.of(definition, installation.feeds[definition["feed"]])) is not None:
                as_text = json.dumps(changed).encode()
                if _is_accepted(f"{prefix}{number}", as_text, of_run):
                    found[f"{prefix}{number}"] = as_text
    return found, of_run


def number_of(query_id: str) -> int:
    """Return the number of a query id in the run."""
    return int(query_id.rpartition(".")[2])


def _prefix(tenant: int) -> str:
    return f"{tenant}."


def _tenant_of_run(number: int, tenant: Tenant) -> Tenant:
    return replace(tenant, prefix=_prefix(number), queries=None, streams=None)


def _is_accepted(query_id: str, definition: bytes, installation: Installation) -> bool:
    try:
        check_definition(query_id, definition, installation)
    except ControlError:
        return False
    return True
