"""The service to which a command connects: the options that all client commands share, and their result."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bmq.client import Client
from bmq.config import Config, TopicsSection, load_config

USUAL_CONFIG = Path("config/local.toml")
BROKER_PORT = 9092  # Kafka's default; the service's own broker uses it, too, so that these commands find it
USUAL_SERVERS = f"localhost:{BROKER_PORT}"

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help=f"Configuration of the service.  [default: {USUAL_CONFIG}, where there is one]",
        show_default=False,
    ),
]
BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        metavar="HOST:PORT",
        envvar="BMQ_KAFKA__BOOTSTRAP_SERVERS",
        help=f"Where Kafka is.  [default: as the configuration says, else {USUAL_SERVERS}]",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Target:
    """The service to which a command connects.

    Attributes
    ----------
    servers : the address of Kafka.
    config : None if no configuration was named and the usual file does not exist.
    """

    servers: str
    config: Config | None

    @property
    def topics(self) -> TopicsSection:
        """The names of the topics."""
        return TopicsSection() if self.config is None else self.config.topics

    def options(self) -> dict[str, str]:
        """Return the options of Kafka clients, with the address."""
        if self.config is None:
            return {"bootstrap.servers": self.servers}
        return self.config.with_broker(self.servers).kafka.client_options()

    def client(self) -> Client:
        """Return a client of the service; the caller closes it."""
        return Client(self.servers, self.options(), self.topics)


def find_target(config: Path | None, bootstrap: str | None) -> Target:
    """Return the service that the two options select.

    Raises
    ------
    ConfigError
        The configuration cannot be used.
    """
    path = config or (USUAL_CONFIG if USUAL_CONFIG.exists() else None)
    loaded = None if path is None else load_config(path)
    configured = None if loaded is None else loaded.kafka.bootstrap_servers
    return Target(bootstrap or configured or USUAL_SERVERS, loaded)
