"""Large frames through the whole service: several partitions in one task, for several shards."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bmq.config import Config
from bmq.job.service import Service
from bmq.job.session import temporary_folder
from tests.kafka_records import read_all

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

N_PARTITIONS = 3
N_STREAMS = 4_000  # of each partition: frames of 50 KB for each of two shards, and one task for all partitions
FEEDS = {
    name: {"stream_id": "id", "event_time": "ts", "event_time_unit": "ms", "dimensions": ["x"], "join": True}
    for name in ("left", "right")
}


def test_large_frames_of_all_partitions_reach_all_shards(
    bootstrap_servers: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    names = {name: topics(name) for name in ("events", "replies", "dead_letter", "markers")}
    feed_topics = {name: topics(name, partitions=N_PARTITIONS) for name in FEEDS}
    feeds = {name: feed | {"topic": feed_topics[name]} for name, feed in FEEDS.items()}
    names["control"] = topics("control", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    definition = {"kind": "border", "feed": "left", "region": {"box": {"x": [0, 10]}}}
    producer.produce(names["control"], json.dumps(definition), "q")
    for topic in feed_topics.values():
        for number in range(N_PARTITIONS * N_STREAMS):
            value = {"id": f"stream-{number}", "ts": 1_000, "x": 5.0 if number % 10 == 0 else 50.0}
            producer.produce(topic, json.dumps(value), partition=number % N_PARTITIONS)
            producer.poll(0)
    assert producer.flush(60) == 0
    job = {"checkpoint": str(tmp_path / "c"), "shards": 2, "starting_offsets": "earliest", "trigger": "available_now"}
    service = Service(Config(feeds=feeds, job=job, topics=names, metrics={"port": 0}), bootstrap_servers)
    try:
        service.start()
        service.wait()
        sizes = [path.stat().st_size for path in temporary_folder().glob("frames-*/*")]
    finally:
        service.stop()

    found = Counter(json.loads(record.value)["stream_id"] for record in read_all(bootstrap_servers, names["events"]))
    assert found == Counter(f"stream-{number}" for number in range(0, N_PARTITIONS * N_STREAMS, 10))
    assert sum(sizes) > N_PARTITIONS * N_STREAMS * 20
