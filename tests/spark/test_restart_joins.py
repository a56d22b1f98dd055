"""Joins and select queries over crashes: what came before a kill is joined with what comes after it."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from bmq.kafka_io.topics import Topics
from tests.conformance.service import Service, write_config
from tests.kafka_records import read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SEED = 5
STREAMS = {"left": [f"l{n}" for n in range(6)], "right": [f"r{n}" for n in range(6)]}
N_ROUNDS = 12
# What the kill meets is read by the next process, which knows all streams of the rounds before from the state only.
KILL_AFTER_ROUNDS = (3, 8)
FEED = {"dimensions": ["price"], "event_time_unit": "ms", "join": True}
FEEDS = {"left": FEED, "right": FEED}
# Whole numbers, as prices are, so that bands begin and end at differences that occur.
BANDS = {f"b{n}": (n - 4, n - 2) for n in range(8)}
JOIN = {"kind": "band_join", "left": "left", "right": "right", "on": {"left": "price", "right": "price"}}
ALIKE = {"equal": {"left": "group", "right": "group"}}
# The last eight left readings are one round and two readings of the round before; three milliseconds are two rounds.
WINDOWS = {
    "kind": "window_join",
    "left": {"feed": "left", "window": 8},
    "right": {"feed": "right", "window": "3ms"},
    "any": [{"band": [["left.price", "right.price", 0, 1]], "right.group": [1, None]}],
}
SELECT = {"kind": "select", "feed": "left", "any": [{"price": [None, 2]}, {"price": [7, 9], "group": [1, None]}]}

Reading = dict[str, Any]
Pair = tuple[str, str, str, str, int]  # query id, right stream, sign, reason, event time
Found = tuple[str, int, int]  # right stream, event times of left and right
Selected = tuple[str, int]  # query id, event time


class Definition:
    """What the queries say by left stream, written to be obviously right."""

    def __init__(self) -> None:
        self._all: dict[str, list[Reading]] = {"left": [], "right": []}
        self._last: dict[str, dict[str, Reading]] = {"left": {}, "right": {}}
        self.pairs: dict[str, list[Pair]] = defaultdict(list)
        self.found: dict[str, list[Found]] = defaultdict(list)
        self.selected: dict[str, list[Selected]] = defaultdict(list)

    def read(self, side: str, reading: Reading) -> None:
        if side == "left" and (reading["price"] < 2 or (7 <= reading["price"] < 9 and reading["group"] >= 1)):
            self.selected[reading["id"]].append(("s", reading["ts"]))
        self._find(side, reading)
        before = self._pairs_of(side, reading["id"])
        reason = "moved" if reading["id"] in self._last[side] else "first_seen"
        self._last[side][reading["id"]] = reading
        after = self._pairs_of(side, reading["id"])
        for sign, changed in (("-", before - after), ("+", after - before)):
            for query_id, left, right in sorted(changed):
                self.pairs[left].append((query_id, right, sign, reason, reading["ts"]))

    def _find(self, side: str, reading: Reading) -> None:
        self._all[side].append(reading)
        if side == "left":
            in_window = [earlier for earlier in self._all["right"] if reading["ts"] - earlier["ts"] <= 3]
        else:
            in_window = self._all["left"][-8:]
        for earlier in in_window:
            left, right = (reading, earlier) if side == "left" else (earlier, reading)
            if 0 <= left["price"] - right["price"] <= 1 and right["group"] >= 1:
                self.found[left["id"]].append((right["id"], left["ts"], right["ts"]))

    def _pairs_of(self, side: str, stream: str) -> set[tuple[str, str, str]]:
        return {
            (query_id, left["id"], right["id"])
            for left in self._last["left"].values()
            for right in self._last["right"].values()
            for query_id, holds in QUERIES.items()
            if stream == {"left": left, "right": right}[side]["id"] and holds(left, right)
        }


def _in_band(lo: int, hi: int) -> Callable[[Reading, Reading], bool]:
    return lambda left, right: lo <= left["price"] - right["price"] <= hi


QUERIES: dict[str, Callable[[Reading, Reading], bool]] = {
    **{query_id: _in_band(*band) for query_id, band in BANDS.items()},
    "alike": lambda left, right: _in_band(-2, 2)(left, right) and left["group"] == right["group"],
}
DEFINITIONS = {
    **{query_id: {**JOIN, "band": band} for query_id, band in BANDS.items()},
    "alike": {**JOIN, "band": [-2, 2], **ALIKE},
    "w": WINDOWS,
    "s": SELECT,
}


def test_kills_lose_no_pair_and_no_reading(bootstrap_servers: str, tmp_path: Path) -> None:
    run = tmp_path.name.replace("_", "-")
    config, served = write_config(tmp_path, run, bootstrap_servers, FEEDS)
    assert served == set(FEEDS)
    topics = {side: f"{run}-{side}" for side in FEEDS}
    Topics({"bootstrap.servers": bootstrap_servers}).create_missing(f"{run}-control", list(topics.values()), 1)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    definition = Definition()
    rng = random.Random(SEED)
    n_read = dict.fromkeys(FEEDS, 0)

    service = Service(config)
    try:
        for query_id, query in DEFINITIONS.items():
            producer.produce(f"{run}-control", json.dumps(query), query_id)
        producer.flush()
        service.wait_for({f"{run}-control": len(DEFINITIONS)})
        for number in range(N_ROUNDS):
            # One feed at a time: across batches arrival decides which of two readings was there first.
            side = ("left", "right")[number % 2]
            for stream in STREAMS[side]:
                value = {"id": stream, "ts": number, "price": rng.randrange(10), "group": rng.randrange(3)}
                producer.produce(topics[side], json.dumps(value), stream, partition=0)
                definition.read(side, value)
                n_read[side] += 1
            producer.flush()
            if number in KILL_AFTER_ROUNDS:
                service.restart("kill")
            service.wait_for({topics[side]: n_read[side]})
    finally:
        service.kill()

    told = Definition()
    for event in events_of(bootstrap_servers, f"{run}-events"):
        match event["kind"]:
            case "select":
                told.selected[event["stream_id"]].append((event["query_id"], event["event_time"]))
            case "window_join":
                left, right = event["left"], event["right"]
                told.found[left["stream_id"]].append((right["stream_id"], left["event_time"], right["event_time"]))
            case "band_join":
                pair = event["query_id"], event["right"]["stream_id"], event["sign"], event["reason"]
                told.pairs[event["left"]["stream_id"]].append((*pair, event["event_time"]))
    assert told.pairs == definition.pairs
    assert told.found == definition.found
    assert told.selected == definition.selected
    assert {pair[2] for pairs in told.pairs.values() for pair in pairs} == {"+", "-"}


def events_of(bootstrap_servers: str, topic: str) -> Iterator[dict[str, Any]]:
    """Yield each event once. At least once: a batch that was cut off may have written some again, with the same ids."""
    seen: set[str] = set()
    for record in read_all(bootstrap_servers, topic):
        event = json.loads(record.value)
        stream = event if event["kind"] == "select" else event["left"]
        assert record.key.decode() == stream["stream_id"]
        if event["event_id"] not in seen:
            seen.add(event["event_id"])
            yield event
