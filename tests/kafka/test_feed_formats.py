"""Feeds whose records are not flat JSON, through Kafka: their readings become events, all else a dead letter.

One service for all tests of this file; each test has a feed of its own.
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message, Producer

from bmq.kafka_io.topics import Topics
from tests.brokers import wait_until
from tests.conformance.service import Service, topic_names, write_config
from tests.fleet_messages import DESCRIPTORS, reading_class
from tests.kafka_records import read_all
from tests.registry import Registry, framed

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

LIMIT_SECONDS = 30.0  # for one request to a broker on this machine; a busy one takes a second
STOP_LIMIT_SECONDS = 120.0  # for a batch on a busy machine
HIDDEN = "of-registry-2b7e"
START_MS = 1_700_000_000_000
PLAIN_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "fleet",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "location",
            "type": {"type": "record", "name": "Location", "fields": [{"name": "x", "type": ["null", "double"]}]},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sector", "type": ["null", "string"]},
    ],
}
NESTED = {"stream_id": "id", "event_time": "ts", "dimensions": ["location.x"], "attributes": ["sector"]}


def avro(schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    """Return a record in Avro, written by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def reading(stream: str, seconds: int, x: float | None, sector: str | None = None) -> dict[str, Any]:
    """Return the fields of a reading, with the event time in microseconds."""
    time = (START_MS + 1000 * seconds) * 1000
    return {"id": stream, "ts": time, "location": {"x": x}, "tags": ["a", "b"], "sector": sector}


class World:
    """A running service, its feeds, its schema registry, and what it wrote."""

    def __init__(self, folder: Path, servers: str, registry: Registry) -> None:
        self.registry = registry
        run = folder.name
        self._servers = servers
        self._run = run
        self._names = topic_names(run)
        schema = folder / "plain.avsc"
        schema.write_text(json.dumps(PLAIN_SCHEMA))
        descriptors = folder / "fleet.desc"
        descriptors.write_bytes(DESCRIPTORS.SerializeToString())
        feeds: dict[str, dict[str, Any]] = {
            "plain": {"format": "avro", "schema_file": str(schema), **NESTED},
            "nested": {"event_time_unit": "us", **NESTED},
            "registered": {"format": "avro", **NESTED},
            "messages": {
                "format": "protobuf",
                "schema_file": str(descriptors),
                "message": "fleet.Reading",
                "event_time_unit": "us",
                **NESTED,
            },
            "listed": {
                "readings": "points",
                "event_time_unit": "us",
                **NESTED,
                "event_time": "points.ts",
                "dimensions": ["points.location.x"],
            },
            "several": {
                "topics": [f"{run}-several", f"{run}-several-other"],
                "topic_attribute": "source",
                "event_time_unit": "us",
                **NESTED,
            },
        }
        self._log = folder / "service.log"
        config, served = write_config(folder, run, servers, feeds)
        assert served == feeds.keys()
        Topics({"bootstrap.servers": servers}).create_missing(
            self._names["control"], [*map(self.topic, feeds), self.topic("several-other")], 1
        )
        self._producer = Producer({"bootstrap.servers": servers})
        for name in feeds:
            (dimension,) = feeds[name]["dimensions"]
            self._put(name, name, dimension, {})
            end = self._put(f"{name}-tech", name, dimension, {"sector": "tech"})
        self.service = Service(config)
        self.service.wait_for({self._names["control"]: end})

    def put(self, query_id: str, feed: str, where: dict[str, Any]) -> None:
        """Put a query over a feed, and wait until it is in force."""
        self.service.wait_for({self._names["control"]: self._put(query_id, feed, "location.x", where)})

    def topic(self, name: str) -> str:
        """Return the topic of a feed, or another one of this run."""
        return f"{self._run}-{name}"

    def play(self, topic_of: str, values: list[bytes]) -> None:
        """Publish the values on a topic, and wait until the service has read them."""
        self.service.wait_for({self.topic(topic_of): self.send(topic_of, values)})

    def send(self, topic_of: str, values: list[bytes]) -> int:
        """Publish the values on a topic; return the offset behind them."""
        return [self._send(self.topic(topic_of), value, None) for value in values][-1]

    def log(self) -> str:
        """Return what the service has said."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def events(self, query_id: str) -> list[tuple[str, str, int, float]]:
        """Return (sign, stream, seconds, x) of the events of a query, by time: only those of a stream have an order."""
        events = [json.loads(record.value) for record in read_all(self._servers, self._names["events"])]
        found = [
            (event["sign"], event["stream_id"], (event["event_time"] - START_MS) // 1000, *event["value"].values())
            for event in events
            if event["query_id"] == query_id
        ]
        return sorted(found, key=lambda event: event[2])

    def dead(self, topic_of: str) -> dict[int, tuple[str, bytes, str]]:
        """Return offset -> (code, value, message) of the dead letters of a topic."""
        letters = {}
        for record in read_all(self._servers, self._names["dead_letter"]):
            headers = {name: value.decode() for name, value in record.headers}
            if headers["topic"] == self.topic(topic_of):
                letters[int(headers["offset"])] = headers["code"], record.value, headers["message"]
        return dict(sorted(letters.items()))

    def _put(self, query_id: str, feed: str, dimension: str, where: dict[str, Any]) -> int:
        definition = {"kind": "border", "feed": feed, "region": {"box": {dimension: [0, 10]}}, "where": where}
        return self._send(self._names["control"], json.dumps(definition).encode(), query_id)

    def _send(self, topic: str, value: bytes, key: str | None) -> int:
        """Publish a record; return the offset behind it."""
        written: list[Message] = []
        self._producer.produce(topic, value, key, on_delivery=lambda _, message: written.append(message))
        assert self._producer.flush(LIMIT_SECONDS) == 0
        offset = written[0].offset()
        assert offset is not None
        return offset + 1


@pytest.fixture(scope="module")
def world(bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    registry = Registry("reader", HIDDEN)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("BMQ_REGISTRY__URL", registry.url)
        environment.setenv("BMQ_REGISTRY__USER", "reader")
        environment.setenv("BMQ_REGISTRY__PASSWORD", HIDDEN)
        world = World(tmp_path_factory.mktemp("formats"), bootstrap_servers, registry)
        try:
            yield world
        finally:
            world.service.kill()
            registry.stop()


MOVES = [reading("a", 0, 5.0, "tech"), reading("b", 1, 20.0), reading("a", 2, 12.5, "tech"), reading("b", 3, 9.0)]
EVENTS = [("+", "a", 0, 5.0), ("-", "a", 2, 12.5), ("+", "b", 3, 9.0)]


def test_records_of_a_schema_file_are_readings_and_all_others_dead_letters(world: World) -> None:
    good = [avro(PLAIN_SCHEMA, move) for move in MOVES]
    other_fields = [{"name": "version", "type": "long"}, *PLAIN_SCHEMA["fields"]]
    wrong = [
        good[0][:-3],
        avro(PLAIN_SCHEMA | {"fields": other_fields}, {"version": 2**40, **MOVES[0]}),
        b"\x00\x00\x00\x00\x07" + good[0],
        avro(PLAIN_SCHEMA, reading("a", 1, float("nan"))),
        avro(PLAIN_SCHEMA, reading("a", 1, None)),
        json.dumps({"id": "a", "ts": START_MS, "location": {"x": 5}}).encode(),
    ]

    world.play("plain", [*good[:2], *wrong, *good[2:]])

    assert world.events("plain") == EVENTS
    assert world.events("plain-tech") == EVENTS[:2]
    dead = world.dead("plain")
    codes = ["not_json", "not_json", "not_json", "not_finite", "missing_field", "not_json"]
    assert [(offset, code) for offset, (code, _, _) in dead.items()] == list(enumerate(codes, start=2))
    assert [value for _, value, _ in dead.values()] == wrong
    assert "schema registry" in dead[4][2]


def test_fields_within_json_objects_are_named_by_their_paths(world: World) -> None:
    good = [json.dumps(move).encode() for move in MOVES]
    flat = json.dumps({"id": "b", "ts": MOVES[0]["ts"], "x": 5}).encode()

    world.play("nested", [*good, flat])

    assert world.events("nested") == EVENTS
    assert world.events("nested-tech") == EVENTS[:2]
    ((code, value, message),) = world.dead("nested").values()
    assert (code, value) == ("missing_field", flat)
    assert "location.x is absent or null" in message


def test_protobuf_messages_are_readings(world: World) -> None:
    good = [reading_class()(**{name: move[name] for name in move if move[name] is not None}) for move in MOVES]
    no_place = reading_class()(id="a", ts=MOVES[0]["ts"])
    wrong = [b"\xff", no_place.SerializeToString()]

    world.play("messages", [*wrong, *(message.SerializeToString() for message in good)])

    assert world.events("messages") == EVENTS
    # A text that is not set is an empty one, and not absent.
    assert world.events("messages-tech") == EVENTS[:2]
    dead = [(code, value) for code, value, _ in world.dead("messages").values()]
    assert dead == [("not_json", wrong[0]), ("missing_field", wrong[1])]


def test_records_that_name_their_schemas_are_readings_and_a_silent_registry_loses_none(world: World) -> None:
    registry = world.registry
    newer = {**PLAIN_SCHEMA, "fields": [*PLAIN_SCHEMA["fields"][::-1], {"name": "note", "type": "string"}]}
    older = {**PLAIN_SCHEMA, "fields": PLAIN_SCHEMA["fields"][:4]}
    for schema_id, schema in enumerate((PLAIN_SCHEMA, newer, older), start=1):
        registry.register(schema_id, schema)
    registry.start()
    good = [
        framed(1, avro(PLAIN_SCHEMA, MOVES[0])),
        framed(2, avro(newer, {**MOVES[1], "note": "n"})),
        framed(1, avro(PLAIN_SCHEMA, MOVES[2])),
        framed(3, avro(older, MOVES[3])),
    ]
    wrong = [framed(99, avro(PLAIN_SCHEMA, MOVES[0])), avro(PLAIN_SCHEMA, MOVES[0]), framed(1, b"\xff"), b"\0"]

    world.play("registered", [*good[:2], *wrong, *good[2:]])

    assert world.events("registered") == EVENTS
    assert world.events("registered-tech") == EVENTS[:2]
    dead = world.dead("registered")
    assert [(offset, code) for offset, (code, _, _) in dead.items()] == [(n, "not_json") for n in range(2, 6)]
    assert [value for _, value, _ in dead.values()] == wrong
    assert "names the schema 99, but the registry has none with this id" in dead[2][2]

    registry.stop()
    registry.register(4, PLAIN_SCHEMA)
    end = world.send("registered", [framed(4, avro(PLAIN_SCHEMA, reading("c", 4, 1.0)))])
    wait_until(lambda: "The batch waits for it" in world.log(), "the service's wait", STOP_LIMIT_SECONDS)
    registry.start()
    world.service.wait_for({world.topic("registered"): end})
    assert world.events("registered")[3:] == [("+", "c", 4, 1.0)]
    assert HIDDEN not in world.log()


def record(stream: str, seconds: int, x: float) -> bytes:
    """Return a reading in JSON."""
    return json.dumps(reading(stream, seconds, x)).encode()


def test_several_topics_are_one_feed(world: World) -> None:
    world.put("several-other", "several", {"source": world.topic("several-other")})

    world.play("several", [record("a", 0, 5.0), b"bad"])
    world.play("several-other", [record("a", 1, 6.0), record("a", 2, 20.0), b"bad", b"bad"])
    world.play("several", [record("a", 3, 7.0)])

    assert world.events("several") == [("+", "a", 0, 5.0), ("-", "a", 2, 20.0), ("+", "a", 3, 7.0)]
    # A reading that does not fit `where` ends a visit, as leaving the region does.
    assert world.events("several-other") == [("+", "a", 1, 6.0), ("-", "a", 2, 20.0)]
    assert (list(world.dead("several")), list(world.dead("several-other"))) == ([1], [2, 3])


def test_the_items_of_a_list_are_readings(world: World) -> None:
    moves = [{name: move[name] for name in ("ts", "location")} for move in MOVES]
    good = [
        json.dumps({"id": "a", "sector": "tech", "points": moves[::2]}).encode(),
        json.dumps({"id": "b", "points": moves[1::2]}).encode(),
    ]
    wrong = json.dumps({"id": "a", "points": [reading("a", 9, 5.0), reading("a", 9, None)]}).encode()

    world.play("listed", [good[0], wrong, b'{"id": "a", "points": []}', good[1]])

    assert world.events("listed") == EVENTS
    assert world.events("listed-tech") == EVENTS[:2]
    ((code, value, message),) = world.dead("listed").values()
    assert (code, value) == ("missing_field", wrong)
    assert "item 1 of points: points.location.x is absent or null" in message


# Last, because it ends the service.
def test_a_registry_that_refuses_ends_the_service_and_the_next_start_loses_nothing(world: World) -> None:
    n_registered, n_several = len(world.events("registered")), len(world.events("several"))
    world.play("several", [record("z", 5, 5.0)])
    world.play("several-other", [record("z", 6, 15.0), b"bad"])
    n_dead = len(world.dead("several")), len(world.dead("several-other"))
    world.registry.start()
    world.registry.register(5, PLAIN_SCHEMA)
    world.registry.status = 403

    end = world.send("registered", [framed(5, avro(PLAIN_SCHEMA, reading("z", 5, 1.0)))])
    wait_until(lambda: not world.service.runs(), "the service's end", STOP_LIMIT_SECONDS)
    assert world.service.exit_code == 1
    assert f"{world.registry.url} does not let us in" in world.log().splitlines()[-1]

    world.registry.status = 0
    other_end = world.send("several-other", [record("z", 7, 6.0)])
    world.service.restart("kill")
    world.service.wait_for({world.topic("registered"): end, world.topic("several-other"): other_end})
    world.play("several", [record("z", 8, 16.0)])
    assert world.events("registered")[n_registered:] == [("+", "z", 5, 1.0)]
    of_z = [("+", "z", 5, 5.0), ("-", "z", 6, 15.0), ("+", "z", 7, 6.0), ("-", "z", 8, 16.0)]
    assert [event for event in world.events("several")[n_several:] if event[1] == "z"] == of_z
    assert (len(world.dead("several")), len(world.dead("several-other"))) == n_dead
    assert HIDDEN not in world.log()
