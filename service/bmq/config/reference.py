"""The text of docs/configuration.md, from the models; `make reference` writes it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bmq.config.feed_section import FeedSection
from bmq.config.kafka import KafkaSection
from bmq.config.option_types import Section
from bmq.config.registry_section import RegistrySection
from bmq.config.sections import JobSection, LogSection, MetricsSection, TopicsSection
from bmq.config.tenancy import LimitsSection, TenantSection

_SECTIONS: dict[str, type[Section]] = {
    "kafka": KafkaSection,
    "topics": TopicsSection,
    "feeds.NAME": FeedSection,
    "job": JobSection,
    "registry": RegistrySection,
    "tenants.NAME": TenantSection,
    "limits": LimitsSection,
    "metrics": MetricsSection,
    "log": LogSection,
}

_BEFORE = """\
# Configuration

<!-- Written by `make reference` from service/bmq/config: change it there. -->

A TOML file, given with `--config`, and over it the environment. Both are checked as a whole before anything
starts; all faults are reported at once, and the exit code is 2. `config/local.toml` is one to start from.

- **Environment**: `BMQ_SECTION__OPTION`, such as `BMQ_JOB__SHARDS=8`. Two underscores go one level down.
- **Feeds**: `BMQ_FEEDS__VEHICLES__TOPIC=positions`. A feed's name has `a-z`, `0-9`, `-` and single `_`.
- **Lists and tables** in the environment are JSON: `BMQ_FEEDS__VEHICLES__DIMENSIONS='["x", "y"]'`.
- An option that does not exist is a fault, in the file and in the environment.
- So is an option that is not built yet.
- Topics are distinct: each feed's from every other and from the service's own. `a.b` and `a_b` count as the same,
  as they do for Kafka.
- **Durations** are whole numbers with a unit: `250ms`, `90s`, `3m`, `2h`, `1d`; at most 3652059d. A number without a
  unit is a fault.
"""

_AFTER = """\
## Kafka options

`[kafka.options]` holds any option of a Kafka client, by its name in
[librdkafka](https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md), which reads and writes all
topics. All these are the same thing:

```toml
[kafka.options]
"security.protocol" = "SASL_SSL"
security.protocol = "SASL_SSL"         # without quotes: TOML makes a table of it, and it is flattened
```

```sh
BMQ_KAFKA__OPTIONS__SECURITY_PROTOCOL=SASL_SSL     # single underscores become dots
BMQ_KAFKA__OPTIONS='{"security.protocol": "SASL_SSL"}'
```

- **SASL**: `sasl.mechanism`, `sasl.username`, `sasl.password`. **TLS**: `ssl.ca.location`, a file of certificates in
  PEM; for a client with a certificate of its own also `ssl.certificate.location`, `ssl.key.location` and
  `ssl.key.password`, or `ssl.keystore.location` (PKCS#12) and `ssl.keystore.password`.
- **OAUTHBEARER**: `sasl.mechanism = "OAUTHBEARER"` with `sasl.oauthbearer.method = "oidc"` and the
  `sasl.oauthbearer.*` options of librdkafka. This is not tested here; passwords (SCRAM) and certificates are, on a real
  broker.
- **Options of Java's clients** that librdkafka does not have, such as `sasl.jaas.config` and `ssl.truststore.location`,
  are refused with what stands for them here.
- **Transactions**: `isolation.level` is `read_committed` unless you set it. With `read_uncommitted`, the
  service also reads the records of transactions that are open or aborted.
- **Compression** of what the service writes: `compression.type`, none by default, so that every client can read it. A
  consumer needs the codec: for `"lz4"`, for example, kafka-python needs one more package.
- **Refused**, because the service sets them: `bootstrap.servers`, `auto.offset.reset`, `enable.auto.commit`, `group.id`
  and `transactional.id`.
- **Secrets**: the value of an option whose name contains `password`, `secret`, `jaas`, `token` or
  `ssl.key.pem` is shown as `***` in logs and errors. Prefer the environment for them.
- A name that has an underscore itself cannot be written.
"""

# The words for the types of options that are one word of a JSON schema: its format, or else its type.
_WORDS = {
    "duration": "duration",
    "duration or off": 'duration or `"off"`',
    "array": "list of texts",
    "boolean": "`true` or `false`",
    "object": "table",
}


def reference() -> str:
    """Return the whole document."""
    return "\n".join([_BEFORE, *(_section(name, model) for name, model in _SECTIONS.items()), _AFTER])


def _section(name: str, model: type[Section]) -> str:
    options = "\n".join(_options(name, model))
    return f"""\
## `[{name}]`

{model.__doc__}

| option | type | default | meaning |
|---|---|---|---|
{options}
"""


def _options(section: str, model: type[Section]) -> Iterator[str]:
    properties: Mapping[str, Mapping[str, Any]] = model.model_json_schema()["properties"]
    for option, schema in properties.items():
        meaning = " ".join(schema["description"].split())
        yield f"| `{option}` | {_type(schema)} | {_default(model, option, schema)} | {meaning} |"


def _default(model: type[Section], option: str, schema: Mapping[str, Any]) -> str:
    if model.model_fields[option].is_required():
        return "required"
    if "default" not in schema:  # made by a factory: a table
        return "empty"
    return "absent" if schema["default"] is None else _code(json.dumps(schema["default"]))


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of an option in words for a reader."""
    match schema:
        case {"enum": values}:
            return " or ".join(_code(json.dumps(value)) for value in values)
        case {"anyOf": [inner, {"type": "null"}]}:
            return _type(inner)
        case {"type": "integer", "minimum": low} | {"type": "integer", "ge": low}:  # the second below a union
            high = schema.get("maximum", schema.get("le"))
            return f"whole number, {low} " + ("or more" if high is None else f"to {high}")
        case {"format": name} | {"type": name}:
            return _WORDS.get(name, "text")
    return "text"


def _code(text: str) -> str:
    return f"`{text}`"


if __name__ == "__main__":
    print(reference(), end="")
