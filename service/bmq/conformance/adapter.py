"""The adapter: what another system needs in order to play scenarios, and where the adapters are.

    scenario ─► AdapterBackend ─► Adapter ─► the system
                                     └─► events, as docs/wire-format.md has them

docs/conformance.md shows how to write one. An adapter of the user is named as MODULE:CLASS.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Protocol

from bmq.conformance.event_text import Lack
from bmq.conformance.scenario import Json, Scenario
from bmq.errors import ConfigError, SetupError

ADAPTERS = {
    "bmq": "bmq.conformance.local_adapter:LocalAdapter",
    "tile38": "bmq.conformance.tile38_adapter:Tile38Adapter",
}


class SystemFailed(SetupError):
    """The other system does not run, or answers in a way that its adapter does not know."""


class Adapter(Protocol):
    """One other system. The runner starts and stops it for each scenario that it can express."""

    @property
    def lacks(self) -> Set[Lack]:
        """What the answers of the system do not have; the runner does not compare it."""

    def cannot(self, scenario: Scenario) -> str | None:
        """Return why the system has no means to express a scenario; None: it has. The system does not run."""

    def start(self, feeds: Mapping[str, Json]) -> None:
        """Start the system with no queries and no readings.

        Parameters
        ----------
        feeds : feed name -> its options: `dimensions`, `space`, `max_lateness`, `stream_ttl`, `join`.

        Raises
        ------
        SystemFailed
            The system does not start. The same error comes from every method below if the system ends.
        """

    def put(self, query_id: str, definition: bytes) -> str:
        """Register or replace a query; return "accepted", "unchanged", or "rejected:CODE"."""

    def delete(self, query_id: str) -> str:
        """Remove a query; return "deleted", or "rejected:CODE"."""

    def send(self, feed: str, values: Sequence[bytes]) -> Sequence[str]:
        """Send records to a feed, in this order and as one batch; return a code for each record that was refused."""

    def events(self) -> Sequence[Json]:
        """Return the events since the last call, once all that was sent is processed.

        An event has the fields of docs/wire-format.md that its text needs: for a border event `kind`, `query_id`,
        `stream_id`, `sign`, `event_time` and `reason`, the last one unless the system lacks it.
        """

    def restart(self, how: str) -> None:
        """End the system by "kill" or "stop", and start it with what it kept."""

    def stop(self) -> None:
        """End the system and forget everything, also if it did not start."""


def find_adapter(name: str, server: str | None) -> Adapter:
    """Return the adapter of a name.

    Parameters
    ----------
    name : one of `ADAPTERS`, or MODULE:CLASS for another one; the class gets ``server`` as its only argument.
    server : what the adapter needs to reach its system, such as the path of a program.

    Raises
    ------
    ConfigError
        There is no such adapter.
    """
    module, colon, attribute = ADAPTERS.get(name, name).partition(":")
    if not colon:
        known = ", ".join(ADAPTERS)
        raise ConfigError(
            f"There is no adapter {name!r}. Adapters are {known}; name one of these, or your own as MODULE:CLASS."
        )
    try:
        make: Callable[[str | None], Adapter] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"The adapter {name!r} cannot be loaded: {error}. MODULE must be on Python's path (PYTHONPATH), and CLASS "
            "must be in it."
        ) from None
    return make(server)
