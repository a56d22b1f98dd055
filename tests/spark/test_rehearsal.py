"""The batches before the first one: they run the whole plan, leave nothing behind, and need no Kafka."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from bmq.job.idle import IdleFeeds
from bmq.job.plan import Plan
from bmq.job.progress import ProgressListener
from bmq.job.rehearsal import rehearse
from bmq.job.session import make_session, temporary_folder
from bmq.job.shards import shard_keys
from bmq.metrics.endpoint import Place
from bmq.metrics.metrics import Metrics
from bmq.records import Feed, Installation
from tests.brokers import wait_until
from tests.golden.play import PLAN

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

NOBODY = "127.0.0.1:1"  # where no broker listens
FEEDS = {"line": Feed("line", "line-topic", "id", ("x",), event_time="ts")}


def plan() -> Plan:
    return replace(
        PLAN,
        installation=Installation(FEEDS),
        shard_keys=shard_keys(2),
        start_offsets={"line": {0: 0}},
        client_options={"bootstrap.servers": NOBODY},
        markers_topic="markers",
    )


def served(metrics: Metrics) -> str:
    metrics.start()
    try:
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=5) as response:
            return str(response.read().decode())
    finally:
        metrics.stop()


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    session = make_session(2)
    yield session
    session.stop()


def test_a_rehearsal_runs_whole_batches_without_kafka_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a folder of its own: the JVM of the session has another
    metrics = Metrics(Place(0), feeds=FEEDS)
    listener = ProgressListener(metrics, plan(), IdleFeeds({}))
    listener.register(spark)

    rehearse(spark, plan())

    # Spark calls the listener on a thread of its own.
    wait_until(lambda: "bmq_batch_seconds_count 3.0" in served(metrics), "the reports of three batches")
    assert listener.batch_ended.is_set()
    assert temporary_folder().is_relative_to(tmp_path)
    assert not list(temporary_folder().iterdir())
    assert not spark.streams.active
