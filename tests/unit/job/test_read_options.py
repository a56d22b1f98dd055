"""The options of Spark's Kafka source: the service's own, unless the configuration has others."""

import pytest

from bmq.config import KafkaSection
from bmq.job.pipeline import read_options


@pytest.mark.parametrize(
    ("options", "isolation"),
    [({}, "read_committed"), ({"isolation.level": "read_uncommitted"}, "read_uncommitted")],
)
def test_spark_reads_committed_records_unless_configured_otherwise(options: dict[str, str], isolation: str) -> None:
    kafka = KafkaSection(bootstrap_servers="a:1", options=options)

    assert read_options(kafka)["kafka.isolation.level"] == isolation
