"""The ledger over crashes: kill -9 at any moment, start again on the same checkpoint, compare with the definition."""

import json
import random
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bmq.kafka_io.topics import Topics
from tests.conformance.service import Service, write_config
from tests.kafka_records import read_all
from tests.ledger_check import must_be_whole
from tests.oracle import Oracle, Reading

pytestmark = [pytest.mark.spark, pytest.mark.timeout(420)]

SEED = 3
N_STREAMS = 40
N_ROUNDS = 40
KILL_AFTER_ROUNDS = (12, 25)
QUERIES = {f"q{n}": {"kind": "border", "feed": "line", "region": {"box": {"x": [n, n + 3]}}} for n in range(12)}


def test_kills_lose_nothing_and_double_nothing(bootstrap_servers: str, tmp_path: Path) -> None:
    run = tmp_path.name.replace("_", "-")
    config, _ = write_config(tmp_path, run, bootstrap_servers, {"line": {"dimensions": ["x"], "event_time_unit": "ms"}})
    Topics({"bootstrap.servers": bootstrap_servers}).create_missing(f"{run}-control", [f"{run}-line"], 1)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    oracle = Oracle({"line": ("x",)})
    rng = random.Random(SEED)
    positions = {f"s{n}": rng.uniform(0, 15) for n in range(N_STREAMS)}

    service = Service(config)
    try:
        for offset, (query_id, definition) in enumerate(QUERIES.items()):
            producer.produce(f"{run}-control", json.dumps(definition), query_id)
            oracle.put(offset, query_id, definition)
        producer.flush()
        service.wait_for({f"{run}-control": len(QUERIES)})
        n_read = 0
        for number in range(N_ROUNDS):
            for stream in positions:
                positions[stream] += rng.uniform(-2, 2)
                value = {"id": stream, "ts": number, "x": positions[stream]}
                producer.produce(f"{run}-line", json.dumps(value), stream, partition=0)
                oracle.read("line", [Reading(stream, number, (positions[stream],))])
                n_read += 1
            producer.flush()
            if number in KILL_AFTER_ROUNDS:
                # No waiting: the kill meets a batch wherever it is.
                service.restart("kill")
            elif number % 5 == 0:
                service.wait_for({f"{run}-line": n_read})
        service.wait_for({f"{run}-line": n_read})
    finally:
        service.kill()

    must_be_whole(bootstrap_servers, f"{run}-events", was_killed=True)
    # At least once: an event may be there again, with the same id; and each stream's order stays that of the first.
    found: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    seen: set[str] = set()
    for record in read_all(bootstrap_servers, f"{run}-events"):
        event = json.loads(record.value)
        if event["event_id"] not in seen:
            seen.add(event["event_id"])
            found[event["stream_id"]].append((event["sign"], event["query_id"], event["event_time"], event["reason"]))
    expected: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for said in oracle.events:
        expected[said.stream].append((said.sign, said.query_id, said.event_time, said.reason))
    assert found == expected
