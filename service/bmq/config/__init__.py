"""The configuration: a TOML file and the environment, checked as a whole before anything starts.

`kafka`, `feed_section`, `tenancy` and `sections` define every option with its default and its rule. `settings` combines
file and environment and checks the rules between sections. `faults` describes faults in words, and `reference` writes
docs/configuration.md.
No module of this package starts anything, opens a connection, or imports Spark or a Kafka client.

The names are imported at their first use: the library needs `feed_section` alone, and pydantic-settings may be
missing there.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmq.config.feed_section import FeedSection
    from bmq.config.kafka import KafkaSection
    from bmq.config.sections import JobSection, MetricsSection, TopicsSection
    from bmq.config.settings import Config, load_config

__all__ = [
    "Config",
    "FeedSection",
    "JobSection",
    "KafkaSection",
    "MetricsSection",
    "TopicsSection",
    "load_config",
]

_MODULES = {
    "Config": "settings",
    "FeedSection": "feed_section",
    "JobSection": "sections",
    "KafkaSection": "kafka",
    "MetricsSection": "sections",
    "TopicsSection": "sections",
    "load_config": "settings",
}


if not TYPE_CHECKING:  # or a type checker would believe in every name

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
