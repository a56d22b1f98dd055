"""Which changes of a configuration an old checkpoint can follow, and what they do to its state.

| change | possible |
|---|---|
| attributes behind those of a feed | yes: null, until the next reading of each stream |
| another number of shards | yes: see `rescaling` |
| another feed | the service adds it at its start, without an upgrade |
| what else `checkpoint.bound_options` names | no: each has its reason below |
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bmq.errors import ConfigError
from bmq.job.checkpoint import Origin, bound_options, changed_options
from bmq.records import Feed

_WHY_NOT = {
    "topic": "the offsets are about the old topic",
    "dimensions": "the state has a number for each of the old ones, and the regions are about them",
    "attributes": "conditions and boxes of queries are about the old ones, so new ones can only stand behind them",
    "space": "regions and readings were read for the old one",
    "format": "attributes were read from the old one, and equal values may have other texts",
    "stream_id": "the streams are known by the old one",
    "event_time": "timers have fired, and readings were ordered, by the old one",
    "max_lateness": "timers have fired, and readings are held, by the old one",
    "join": "joins need the streams of a feed from its first reading on",
}


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What changes from an old checkpoint to a new one.

    Attributes
    ----------
    feeds : what the new checkpoint is bound to, as in `Origin`.
    n_new : feed -> the number of new attributes, for the feeds that have some.
    """

    feeds: dict[str, dict[str, Any]]
    n_new: Mapping[str, int]


def upgrade_to(origin: Origin, feeds: dict[str, Feed]) -> Upgrade:
    """Return the upgrade to a configuration with these feeds.

    Raises
    ------
    ConfigError : the state cannot follow. The message has a line for each option.
    """
    faults = list(_faults(origin, feeds))
    if faults:
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise ConfigError(
            f"The checkpoint cannot follow the configuration:\n{lines}\nPut the old values back. Or keep the feed, and "
            "add one with another name for the new values. Or set job.checkpoint to a new folder."
        )
    now = bound_options(feeds)
    n_new = {name: len(now[name]["attributes"]) - len(old["attributes"]) for name, old in origin.feeds.items()}
    return Upgrade({name: now[name] for name in origin.feeds}, {name: n for name, n in n_new.items() if n})


def _faults(origin: Origin, feeds: dict[str, Feed]) -> Iterator[str]:
    for name, option, value, now in changed_options(origin, feeds):
        if option != "attributes" or now[: len(value)] != value:
            yield f"feeds.{name}.{option} is {now!r}, and was {value!r}: {_WHY_NOT[option]}"
    for name in origin.feeds:
        if name not in feeds:
            yield f"feeds.{name} is missing: its queries would watch nothing"
