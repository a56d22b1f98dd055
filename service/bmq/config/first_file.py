"""The text of a first configuration, which `bmq init` writes: the options that matter, each with its reason."""

import json
import re
from collections.abc import Sequence

from bmq.config.feed_guess import Option

_KAFKA = """\
[kafka]
bootstrap_servers = {servers}
"""
_OWN_KAFKA = """\
# [kafka]
# bootstrap_servers = "localhost:9092"  # without an address the service runs a Kafka of its own, for a first try
"""
_NO_TIME = """\
# event_time = "ts"     # the field with the event time; without it, the time of the record
"""
_TEXT = """\
# The first configuration of `bmq serve`. Every option and its default: docs/configuration.md

{kafka}
[feeds.{name}]  # the name that queries use
{options}
{no_time}# max_lateness = "5s"   # hold and order readings that come late
# stream_ttl = "1h"     # a stream that is silent so long is inside nowhere
# idle_advance = "30s"  # wall time moves the clock when the whole feed is silent
# join = true           # for band_join and window_join

[job]
checkpoint = "var/checkpoint"  # offsets and state; on a disk that survives a restart
shards = 4                     # into how many parts the streams are divided; fixed for a checkpoint
starting_offsets = "latest"    # "earliest": also the readings that are in the topic already

[metrics]
port = 9108  # Prometheus' /metrics, and /health
"""


def first_file(options: Sequence[Option], servers: str | None) -> str:
    """Return the text.

    Parameters
    ----------
    options : of the feed; the first one is its topic.
    servers : the address of Kafka; None: the service runs its own.
    """
    lines = [f"{option.name} = {_toml(option.value)}" for option in options]
    width = max(map(len, lines))
    return _TEXT.format(
        kafka=_OWN_KAFKA if servers is None else _KAFKA.format(servers=_toml(servers)),
        no_time="" if any(option.name == "event_time" for option in options) else _NO_TIME,
        name=feed_name(str(options[0].value)),
        options="\n".join(f"{line:{width}}  # {option.reason}" for line, option in zip(lines, options, strict=True)),
    )


def feed_name(topic: str) -> str:
    """Return a name for the feed of a topic: a-z, 0-9, - and single _ inside."""
    return re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-") or "readings"


def _toml(value: str | list[str]) -> str:
    # A string of JSON without escapes for other letters is a string of TOML.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
