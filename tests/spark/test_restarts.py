"""The service over crashes: kill -9 at any moment, start again on the same checkpoint, compare with the definition.

One service reads all feeds, so that each crash meets border queries, joins and select queries.
"""

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from bmq.kafka_io.topics import Topics
from tests.conformance.service import Service, write_config
from tests.kafka_records import read_all
from tests.ledger_check import must_be_whole
from tests.oracle import Oracle, Reading
from tests.spark import joins_by_hand

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SEED = 3
N_STREAMS = 40
N_ROUNDS = 40
# Readings of the joined feeds come in each third round. What the kill meets is read by the next process, which knows
# all streams of the rounds before from the state only.
ROUNDS_PER_JOIN_ROUND = 3
KILL_AFTER_ROUNDS = (12, 24)
QUERIES: dict[str, dict[str, Any]] = {
    f"q{n}": {"kind": "border", "feed": "line", "region": {"box": {"x": [n, n + 3]}}} for n in range(12)
}
FEEDS: dict[str, dict[str, Any]] = {"line": {"dimensions": ["x"], "event_time_unit": "ms"}, **joins_by_hand.FEEDS}


@dataclass(frozen=True)
class Played:
    """What the definitions say, and the events that came."""

    borders: Oracle
    joins: joins_by_hand.Definition
    events: list[dict[str, Any]]


class Run:
    """A service, what is sent to it, and the definitions, which read the same."""

    def __init__(self, run: str, bootstrap_servers: str, service: Service) -> None:
        self.service = service
        self.borders = Oracle({"line": ("x",)})
        self.joins = joins_by_hand.Definition()
        self._control = f"{run}-control"
        self._topics = {feed: f"{run}-{feed}" for feed in FEEDS}
        self._n_sent = dict.fromkeys((self._control, *self._topics.values()), 0)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers})
        self._rng = random.Random(SEED)
        self.positions = {f"s{n}": self._rng.uniform(0, 15) for n in range(N_STREAMS)}

    def put_queries(self) -> None:
        for offset, (query_id, definition) in enumerate({**QUERIES, **joins_by_hand.DEFINITIONS}.items()):
            self._send(self._control, query_id, definition)
            if query_id in QUERIES:
                self.borders.put(offset, query_id, QUERIES[query_id])

    def move_all(self, number: int) -> None:
        for stream in self.positions:
            self.positions[stream] += self._rng.uniform(-2, 2)
            x = self.positions[stream]
            self._send(self._topics["line"], stream, {"id": stream, "ts": number, "x": x})
            self.borders.read("line", [Reading(stream, number, (x,))])

    def join_round(self, number: int) -> None:
        # One feed at a time: across batches arrival decides which of two readings was there first.
        side = ("left", "right")[number % 2]
        for stream in joins_by_hand.STREAMS[side]:
            value = {"id": stream, "ts": number, "price": self._rng.randrange(10), "group": self._rng.randrange(3)}
            self._send(self._topics[side], stream, value)
            self.joins.read(side, value)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    def settle(self) -> None:
        """Wait until a finished batch has read all that was sent."""
        self.flush()
        self.service.wait_for(self._n_sent)

    def _send(self, topic: str, key: str, value: dict[str, Any]) -> None:
        self._producer.produce(topic, json.dumps(value), key, partition=0)
        self._n_sent[topic] += 1


def make_config(folder: Path, bootstrap_servers: str, checkpoint: str | None = None) -> tuple[str, Path]:
    """Make the topics of a run, and write its configuration; return its name and the configuration."""
    name = folder.name.replace("_", "-")
    config, served = write_config(folder, name, bootstrap_servers, FEEDS, checkpoint)
    assert served == set(FEEDS)
    Topics({"bootstrap.servers": bootstrap_servers}).create_missing(
        f"{name}-control", [f"{name}-{feed}" for feed in FEEDS], 1
    )
    return name, config


@pytest.fixture(scope="module")
def played(bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("restarts")
    name, config = make_config(folder, bootstrap_servers)
    run = Run(name, bootstrap_servers, Service(config))
    try:
        run.put_queries()
        run.settle()
        for number in range(N_ROUNDS):
            run.move_all(number)
            if number % ROUNDS_PER_JOIN_ROUND == 0:
                run.join_round(number // ROUNDS_PER_JOIN_ROUND)
            run.flush()
            if number in KILL_AFTER_ROUNDS:
                # No waiting: the kill meets a batch wherever it is.
                run.service.restart("kill")
            if number % ROUNDS_PER_JOIN_ROUND == 0:
                run.settle()
    finally:
        run.service.kill()
    must_be_whole(bootstrap_servers, f"{name}-events")
    return Played(run.borders, run.joins, events_of(bootstrap_servers, f"{name}-events"))


def test_kills_lose_nothing_and_double_nothing(played: Played) -> None:
    found: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for event in played.events:
        if event["kind"] == "border":
            found[event["stream_id"]].append((event["sign"], event["query_id"], event["event_time"], event["reason"]))
    expected: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for said in played.borders.events:
        expected[said.stream].append((said.sign, said.query_id, said.event_time, said.reason))
    assert found == expected


def test_kills_lose_no_pair_and_no_reading(played: Played) -> None:
    emitted, definition = joins_by_hand.Definition(), played.joins
    emitted.tell(played.events)

    assert emitted.pairs == definition.pairs
    assert emitted.found == definition.found
    assert emitted.selected == definition.selected
    assert {pair[2] for pairs in emitted.pairs.values() for pair in pairs} == {"+", "-"}


def events_of(bootstrap_servers: str, topic: str) -> list[dict[str, Any]]:
    """Return all events; each must be there once."""
    found: dict[str, dict[str, Any]] = {}
    for record in read_all(bootstrap_servers, topic):
        event = json.loads(record.value)
        stream = event["left"] if event["kind"] in ("band_join", "window_join") else event
        assert record.key.decode() == stream["stream_id"]
        assert event["event_id"] not in found
        found[event["event_id"]] = event
    return list(found.values())
