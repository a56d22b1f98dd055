"""The section `kafka`: an address, and any other option of a Kafka client, by the names of librdkafka."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from bmq.config.faults import is_secret
from bmq.config.option_types import Section
from bmq.errors import ConfigError

_SERVERS = re.compile(r"[^\s,]+:\d+(,[^\s,]+:\d+)*")
# The service sets these; the address has an option of its own.
_NOT_AN_OPTION = {
    "bootstrap.servers": "set kafka.bootstrap_servers",
    "metadata.broker.list": "set kafka.bootstrap_servers",
    "auto.offset.reset": "set job.starting_offsets",
    "enable.auto.commit": "leave it out, offsets are in the checkpoint",
    "group.id": "leave it out, every client has a group of its own",
    "transactional.id": "leave it out, every shard has one of its own",
}
# Options of Java's clients for which librdkafka has another name, or no need.
_JAVA_NAMES = {
    "sasl.jaas.config": "set sasl.username and sasl.password",
    "ssl.truststore.location": "set ssl.ca.location to a file of certificates in PEM",
    "ssl.truststore.password": "leave it out, ssl.ca.location has no password",
    "ssl.truststore.type": "leave it out, ssl.ca.location is in PEM",
    "ssl.keystore.type": "leave it out, ssl.keystore.location is in PKCS#12",
}


def _flat(options: object) -> object:
    """Return Kafka options as one map of texts, for every notation of TOML and of the environment.

    For TOML an unquoted `security.protocol` is a nested table. The name of a variable cannot contain a dot, so the
    environment has `SECURITY_PROTOCOL`; it takes precedence over the file.
    """
    if not isinstance(options, Mapping):
        return options
    in_file: dict[str, str] = {}
    in_environment: dict[str, str] = {}
    for name, value in options.items():
        inner = _flat(value)
        if isinstance(inner, dict):
            in_file |= {f"{name}.{tail}": text for tail, text in inner.items()}
        elif "_" in name and "." not in name:
            in_environment[name.replace("_", ".")] = _text(inner)
        else:
            in_file[name] = _text(inner)
    return in_file | in_environment


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class KafkaSection(Section):
    """Where Kafka is, and how to talk to it."""

    bootstrap_servers: str | None = None
    """`host:port`, several with commas. Absent: the service starts a Kafka of its own."""
    options: Annotated[dict[str, str], BeforeValidator(_flat)] = Field(default_factory=dict)
    """Any other client option, passed on as it is: see "Kafka options"."""

    @field_validator("bootstrap_servers")
    @classmethod
    def _has_ports(cls, servers: str | None) -> str | None:
        if servers is not None and not _SERVERS.fullmatch(servers):
            raise ValueError('write "host:port" or "host:port,host:port", without spaces')
        return servers

    @field_validator("options")
    @classmethod
    def _may_be_passed_on(cls, options: dict[str, str]) -> dict[str, str]:
        refused = _NOT_AN_OPTION | _JAVA_NAMES
        taken = [f"{name} ({refused[name]})" for name in options if name in refused]
        if taken:
            raise ValueError(f"not to be set here: {'; '.join(taken)}")
        isolation = options.get("isolation.level")
        if isolation not in (None, "read_committed", "read_uncommitted"):
            raise ValueError(f'isolation.level is {isolation!r}: write "read_committed" or "read_uncommitted"')
        return options

    def client_options(self) -> dict[str, str]:
        """Return the options for a librdkafka client.

        Raises
        ------
        ConfigError
            No address is known; see `Config.with_broker`.
        """
        return {"bootstrap.servers": self._servers(), **self.options}

    def _servers(self) -> str:
        if self.bootstrap_servers is None:
            raise ConfigError(
                "kafka.bootstrap_servers is absent, so no address is known until the service's own Kafka "
                "runs. Set it, or BMQ_KAFKA__BOOTSTRAP_SERVERS, to the broker that is meant."
            )
        return self.bootstrap_servers

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """Return the fields for `repr` and `str`, with `***` for secrets, because logs may contain them."""
        shown = {name: "***" if is_secret(name) else text for name, text in self.options.items()}
        return [("bootstrap_servers", self.bootstrap_servers), ("options", shown)]
