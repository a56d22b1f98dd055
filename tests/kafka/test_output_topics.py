"""Queries with a topic of their own, on a broker that makes no topics by itself."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bmq.kafka_io.topics import Topics
from tests.conformance.service import Service, topic_names, write_config
from tests.kafka_records import read_all
from tests.ledger_check import must_be_whole

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


def test_an_output_topic_is_made_or_the_query_is_refused_and_the_job_goes_on(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    run = tmp_path.name.replace("_", "-")
    feeds = {
        name: {"dimensions": ["x"], "event_time_unit": "ms", "join": name != "line"}
        for name in ("line", "left", "right")
    }
    config, _ = write_config(tmp_path, run, bootstrap_servers, feeds)
    names = topic_names(run)
    topics = Topics({"bootstrap.servers": bootstrap_servers})
    # Kafka takes `.` and `_` for the same in its metrics, so it refuses the second of these two names.
    topics.create_missing(names["control"], [*(f"{run}-{feed}" for feed in feeds), f"{run}-a.b"], 1)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    service = Service(config)
    try:
        for query_id, topic in (("own", f"{run}-own"), ("clash", f"{run}-a_b")):
            definition = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}, "output_topic": topic}
            producer.produce(names["control"], json.dumps(definition), query_id)
        sides = {"left": "left", "right": "right", "on": {"left": "x", "right": "x"}}
        join = {"kind": "band_join", **sides, "band": [-1, 1], "output_topic": f"{run}-pairs"}
        producer.produce(names["control"], json.dumps(join), "join")
        producer.flush()
        service.wait_for({names["control"]: 3})
        for number, x in enumerate((5, 50)):
            for feed in feeds:
                producer.produce(f"{run}-{feed}", json.dumps({"id": "a", "ts": number, "x": x}), "a")
            producer.flush()
            # One step after the other: the pair would be the same, and not its way there, if one feed came first.
            service.wait_for({f"{run}-{feed}": number + 1 for feed in feeds})
    finally:
        service.kill()  # between two batches: all that was sent is read

    must_be_whole(bootstrap_servers, names["events"], f"{run}-own")
    replies = {reply["query_id"]: reply for reply in map(json.loads, values(bootstrap_servers, names["replies"]))}
    assert replies["own"]["status"] == "accepted"
    assert replies["clash"]["error"]["code"] == "bad_option"
    assert "cannot be made" in replies["clash"]["error"]["message"]
    signs = {
        topic: [json.loads(value)["sign"] for value in values(bootstrap_servers, f"{run}-{topic}")]
        for topic in ("own", "pairs")
    }
    assert signs == {"own": ["+", "-"], "pairs": ["+", "-", "+"]}


def values(bootstrap_servers: str, topic: str) -> list[bytes]:
    return [record.value for record in read_all(bootstrap_servers, topic)]
