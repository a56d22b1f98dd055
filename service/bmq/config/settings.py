"""Combines file and environment, and checks the rules between sections."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from bmq import records
from bmq.config.faults import ENVIRONMENT_PREFIX, describe, unknown_variables
from bmq.config.feed_section import FeedSection
from bmq.config.kafka import KafkaSection
from bmq.config.registry_section import RegistrySection
from bmq.config.sections import JobSection, LogSection, MetricsSection, TopicsSection
from bmq.config.tenancy import LimitsSection, TenantSection
from bmq.errors import ConfigError

# No capitals and no double underscore, because these names are part of the names of environment variables.
_NAME = re.compile(r"(?!.*__)[a-z0-9][a-z0-9_-]*(?<!_)")


def _name_of(what: str) -> AfterValidator:
    def check(name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"a {what}'s name has a-z, 0-9, - and single _ inside; rename it")
        return name

    return AfterValidator(check)


class _Environment(EnvSettingsSource):
    """The variables as pydantic-settings reads them, except that only texts that begin with `[` or `{` are JSON.

    Otherwise a password of digits would become a number, and `1.10` would become `1.1`.
    """

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        if not str(value).lstrip().startswith(("[", "{")):
            raise ValueError(value)
        return json.loads(value)


class Config(BaseSettings):
    """The whole configuration. Its constructor raises ConfigError with every fault in one message."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__"
    )

    kafka: KafkaSection = Field(default_factory=KafkaSection)
    topics: TopicsSection = Field(default_factory=TopicsSection)
    feeds: dict[Annotated[str, _name_of("feed")], FeedSection] = Field(default_factory=dict)
    job: JobSection = Field(default_factory=JobSection)
    registry: RegistrySection = Field(default_factory=RegistrySection)
    tenants: dict[Annotated[str, _name_of("tenant")], TenantSection] = Field(default_factory=dict)
    limits: LimitsSection = Field(default_factory=LimitsSection)
    metrics: MetricsSection = Field(default_factory=MetricsSection)
    log: LogSection = Field(default_factory=LogSection)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, the strongest first: the environment, then the file."""
        return _Environment(settings_cls), init_settings

    @model_validator(mode="wrap")
    @classmethod
    def _collect_faults(cls, document: dict[str, Any], check: ModelWrapValidatorHandler[Self]) -> Self:
        """Return the configuration, or raise ConfigError with every fault, including those between sections.

        The rules between sections check the raw document. Otherwise a fault in one feed would hide that two other feeds
        share a topic, and a user would find only one fault at each start.
        """
        faults = unknown_variables(os.environ, cls.model_fields)
        config = None
        try:
            config = check(document)
        except ValidationError as error:
            faults += [describe(fault, cls) for fault in error.errors()]
        faults += _faults_between(document)
        if faults or config is None:
            raise ConfigError("\n".join(faults))
        return config

    def feed_records(self) -> dict[str, records.Feed]:
        """Return the feeds by name, as records for the other layers."""
        return {name: feed.record(name) for name, feed in self.feeds.items()}

    def installation(self) -> records.Installation:
        """Return what the rules for the definition of a query depend on."""
        topics = self.topics
        return records.Installation(
            self.feed_records(),
            topics.allowed_output_prefix,
            topics.reserved(),
            self.limits.record(),
            tuple(tenant.record(name) for name, tenant in self.tenants.items()),
        )

    def with_broker(self, bootstrap_servers: str) -> Self:
        """Return the same configuration with the address of Kafka, which may be the broker that the service started."""
        kafka = self.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
        return self.model_copy(update={"kafka": kafka})


def load_config(path: Path | None) -> Config:
    """Return the configuration of a file (None: no file); environment variables take precedence.

    Raises
    ------
    ConfigError
        The file cannot be read or is not TOML, or the configuration has faults: one line each, all in one message.
    """
    document = {} if path is None else _read(path)
    return config_of(document, "configuration from the environment" if path is None else str(path))


def config_of(document: dict[str, Any], where: str) -> Config:
    """Return the configuration of a parsed file, as `load_config` does; ``where`` is its name for messages."""
    try:
        return Config(**document)
    except SettingsError as error:
        section = str(error).split('"')[1]
        raise ConfigError(
            f"environment: BMQ_{section.upper()} or another variable for a whole table is no JSON. "
            "Write JSON, or one variable for each option."
        ) from None
    except ConfigError as error:
        faults = str(error).splitlines()
        lines = "\n".join(f"  - {fault}" for fault in faults)
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise ConfigError(f"{where}: {count}\n{lines}\nEvery option is in docs/configuration.md.") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that can be read, e.g. config/local.toml.") from None
    except ValueError as error:  # TOMLDecodeError, and UnicodeDecodeError
        raise ConfigError(f"{path}: no TOML: {error}. Mend the file at that place.") from None


def _faults_between(document: Mapping[str, Any]) -> list[str]:
    """Return the faults that involve several sections; the sections themselves may have faults, too."""
    feeds = document.get("feeds", {})
    topics = document.get("topics", {})
    if not isinstance(feeds, Mapping) or not isinstance(topics, Mapping):
        return []
    if not feeds:
        return ["feeds: name at least one; add a table [feeds.NAME] with topic, stream_id, dimensions"]
    topic_by_role = {
        f"topics.{name}": topics.get(name, TopicsSection.model_fields[name].default)
        for name in ("control", "replies", "events", "dead_letter", "clock", "membership", "markers")
    }
    for name, feed in feeds.items():
        if isinstance(feed, Mapping):
            topic_by_role[f"feeds.{name}.topic"] = feed.get("topic")
            topic_by_role |= {f"feeds.{name}.topics[{i}]": one for i, one in enumerate(_listed(feed.get("topics")))}
    shared = _shared_topics({role: topic for role, topic in topic_by_role.items() if isinstance(topic, str)})
    return shared + _faults_of_registry(document, feeds) + _faults_of_tenants(document.get("tenants", {}), feeds)


def _faults_of_registry(document: Mapping[str, Any], feeds: Mapping[str, object]) -> list[str]:
    """Return a fault for each feed that needs a registry, if none is configured."""
    registry = document.get("registry", {})
    if not isinstance(registry, Mapping) or registry.get("url") is not None:
        return []
    return [
        f'feeds.{name}.format = "avro": the feed needs the schema of its records; set schema_file, or registry.url if '
        "they have the header of a schema registry"
        for name, feed in feeds.items()
        if isinstance(feed, Mapping) and feed.get("format") == "avro" and feed.get("schema_file") is None
    ]


def _faults_of_tenants(tenants: object, feeds: Mapping[str, object]) -> list[str]:
    """Return a fault for each feed of a tenant that is not configured, and for each prefix that two tenants have."""
    faults = []
    first_by_prefix: dict[object, str] = {}
    for name, tenant in tenants.items() if isinstance(tenants, Mapping) else ():
        if not isinstance(tenant, Mapping):
            continue
        unknown = [feed for feed in _listed(tenant.get("feeds")) if feed not in feeds]
        faults += [
            f"tenants.{name}.feeds: there is no feed {json.dumps(feed)}; known here: {', '.join(feeds)}"
            for feed in unknown
        ]
        prefix = tenant.get("prefix")
        if isinstance(prefix, str) and (first := first_by_prefix.setdefault(prefix, name)) != name:
            faults.append(f"tenants.{name}.prefix = {json.dumps(prefix)}: tenants.{first} has it; choose another")
    return faults


def _listed(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def _shared_topics(topic_by_role: Mapping[str, str]) -> list[str]:
    """Return a fault for each topic with two roles. Kafka treats `a.b` and `a_b` as the same name."""
    faults = []
    first_role_by_topic: dict[str, str] = {}
    for role, topic in topic_by_role.items():
        first_role = first_role_by_topic.setdefault(topic.replace(".", "_"), role)
        if first_role != role:
            first_topic = json.dumps(topic_by_role[first_role])
            faults.append(f"{role} = {json.dumps(topic)}: {first_role} is {first_topic}; choose another")
    return faults
