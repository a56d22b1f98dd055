"""The configuration: a TOML file and the environment, checked as a whole before anything starts.

`kafka` and `sections` have every option with its default and its rule, `settings` puts file and environment
together and checks what holds between sections, `faults` says what is wrong, `reference` writes the document.
Nothing here starts anything, opens a connection, or imports Spark or a Kafka client.
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
