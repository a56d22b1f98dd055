"""The configuration: a TOML file and the environment, checked as a whole before anything starts.

`kafka` and `sections` define every option with its default and its rule. `settings` combines file and environment and
checks the rules between sections. `faults` describes faults in words, and `reference` writes docs/configuration.md.
No module of this package starts anything, opens a connection, or imports Spark or a Kafka client.
"""

from bmq.config.kafka import KafkaSection
from bmq.config.sections import FeedSection, JobSection, MetricsSection, TopicsSection
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
