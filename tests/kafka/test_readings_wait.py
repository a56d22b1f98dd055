"""Whether readings wait, so that a start rehearses nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer

from bmq.job.rehearsal import readings_wait
from bmq.kafka_io.topics import Topics
from bmq.records import Feed, Installation
from bmq.records.queries import PARTITIONS_OF_A_TOPIC
from tests.golden.play import PLAN


def test_readings_wait_until_a_whole_batch_has_read_them(
    bootstrap_servers: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    first, second = topics("first"), topics("second")
    feed = Feed("line", first, "id", ("x",), event_time="ts", more_topics=(second,))
    starts = {"line": {0: 0, PARTITIONS_OF_A_TOPIC: 0}}
    plan = replace(PLAN, installation=Installation({"line": feed}), start_offsets=starts)
    broker = Topics({"bootstrap.servers": bootstrap_servers})

    assert not readings_wait(plan, broker, tmp_path)

    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(second, b'{"id": "s", "ts": 1, "x": 1}')
    assert producer.flush(60) == 0
    assert readings_wait(plan, broker, tmp_path)
    assert not readings_wait(plan, broker, None)

    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n" + json.dumps({first: {"0": 0}, second: {"0": 1}}))
    assert readings_wait(plan, broker, tmp_path)  # the batch was planned, and is not whole
    (tmp_path / "commits" / "0").touch()
    assert not readings_wait(plan, broker, tmp_path)
