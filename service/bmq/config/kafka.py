"""The section `kafka`: an address, and any other option of a Kafka client.

Two kinds of clients read it, Spark's clients in the JVM and librdkafka in Python; they know different option names.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from bmq.config.faults import is_secret
from bmq.config.sections import Section
from bmq.errors import ConfigError

_SERVERS = re.compile(r"[^\s,]+:\d+(,[^\s,]+:\d+)*")
# Spark's Kafka source or the service refuses these or sets them; the address has an option of its own.
_NOT_AN_OPTION = {
    "bootstrap.servers": "set kafka.bootstrap_servers",
    "auto.offset.reset": "set job.starting_offsets",
    "enable.auto.commit": "leave it out, offsets are in the checkpoint",
    "group.id": "leave it out, every client has a group of its own",
    "transactional.id": "leave it out, every shard has one of its own",
    "key.deserializer": "leave it out",
    "value.deserializer": "leave it out",
    "key.serializer": "leave it out",
    "value.serializer": "leave it out",
    "interceptor.classes": "leave it out, Spark allows none",
}
# librdkafka fails on a name that it does not know; the JVM's clients warn and go on.
_JVM_ONLY = re.compile(r"sasl\.jaas\.config|ssl\.truststore\..+|ssl\.keystore\.type|.+\.(class|classes|handler)")


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
        taken = [f"{name} ({_NOT_AN_OPTION[name]})" for name in options if name in _NOT_AN_OPTION]
        if taken:
            raise ValueError(f"not to be set here: {'; '.join(taken)}")
        isolation = options.get("isolation.level")
        if isolation not in (None, "read_committed", "read_uncommitted"):
            raise ValueError(f'isolation.level is {isolation!r}: write "read_committed" or "read_uncommitted"')
        return options

    def client_options(self) -> dict[str, str]:
        """Return the options for a librdkafka client, without those that only the JVM knows.

        Raises
        ------
        ConfigError
            No address is known; see `Config.with_broker`.
        """
        options = {name: text for name, text in self.options.items() if not _JVM_ONLY.fullmatch(name)}
        return {"bootstrap.servers": self._servers(), **options}

    def spark_options(self) -> dict[str, str]:
        """Return the options for Spark's Kafka source, with the prefix `kafka.`; raises as `client_options`."""
        options = {f"kafka.{name}": text for name, text in self.options.items()}
        return {"kafka.bootstrap.servers": self._servers(), **options}

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
