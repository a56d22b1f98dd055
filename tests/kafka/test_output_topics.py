"""Queries with a topic of their own, on a broker that makes no topics by itself: lost, made again, forbidden."""

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unsaid
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bmq.broker.broker import SETTINGS, Broker
from bmq.broker.ports import free_ports
from bmq.engines.stage_result import StageResult
from bmq.job.outcome import ShardResult
from bmq.job.received import Frames
from bmq.job.rendering import Output
from bmq.job.replicas import Head
from bmq.job.writing import look, write
from bmq.kafka_io.batch_writer import Marks
from bmq.kafka_io.output_topics import NO_FAULTS, OutputTopics, TopicUse
from bmq.kafka_io.topics import Topics
from bmq.kafka_io.writer_process import Place, RemoteWriter
from bmq.records import Installation
from tests.brokers import ANSWER_LIMIT_SECONDS, wait_until
from tests.conformance.service import Service, topic_names, write_config
from tests.crossings import FEED, Row, make_crossings, query
from tests.golden.play import PLAN
from tests.kafka_records import read_all
from tests.ledger_check import must_be_whole

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

LINE = {"dimensions": ["x"], "event_time_unit": "ms"}


class World:
    """A service with feeds of one dimension, and a stream that goes in and out of [0, 10)."""

    def __init__(self, servers: str, folder: Path, feeds: Mapping[str, Any], others: tuple[str, ...] = ()) -> None:
        self.servers = servers
        self.run = folder.name.replace("_", "-")
        self.feeds = [self.name(feed) for feed in feeds]
        self.names = topic_names(self.run)
        self.checkpoint = folder / "checkpoint"
        config, _ = write_config(folder, self.run, servers, feeds)
        (self.metrics_port,) = free_ports(1)
        config.write_text(config.read_text().replace("port = 0", f"port = {self.metrics_port}"))
        self.topics = Topics({"bootstrap.servers": servers})
        self.topics.create_missing(self.names["control"], [*self.feeds, *map(self.name, others)], 1)
        self._producer = Producer({"bootstrap.servers": servers})
        self._n_commands = self.n_sent = 0
        self.service = Service(config)

    def name(self, name: str) -> str:
        """The topic of that name in this run."""
        return f"{self.run}-{name}"

    def put(self, **definitions: Mapping[str, Any]) -> None:
        """Put queries, and wait until they are in effect."""
        for query_id, definition in definitions.items():
            self._producer.produce(self.names["control"], json.dumps(definition), query_id)
        self._producer.flush()
        self._n_commands += len(definitions)
        self.service.wait_for({self.names["control"]: self._n_commands})

    def send(self, x: int) -> dict[str, int]:
        """Send a reading to each feed; return where these end."""
        self.n_sent += 1
        for feed in self.feeds:
            self._producer.produce(feed, json.dumps({"id": "a", "ts": self.n_sent, "x": x}), "a")
        self._producer.flush()
        return dict.fromkeys(self.feeds, self.n_sent)

    def move(self, *steps: int) -> None:
        """Send one reading after the other, each in a batch of its own."""
        for x in steps:
            # A joined pair would be the same, and not its way there, if one feed came first.
            self.service.wait_for(self.send(x))

    def values(self, topic: str) -> list[dict[str, Any]]:
        """What a topic holds."""
        return [json.loads(record.value) for record in read_all(self.servers, topic)]

    def signs(self, topic: str, query_id: str) -> str:
        """The signs of a query in a topic."""
        return "".join(event["sign"] for event in self.values(topic) if event["query_id"] == query_id)

    def replies(self) -> dict[str, list[str]]:
        """Query id -> the status of each reply."""
        found: dict[str, list[str]] = {}
        for reply in self.values(self.names["replies"]):
            found.setdefault(reply["query_id"], []).append(reply["status"])
        return found

    def degraded_count(self) -> float:
        """What the metrics say of degraded replies."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as page:
            lines = page.read().decode().splitlines()
        found = [line for line in lines if line.startswith('bmq_replies_total{status="degraded"}')]
        return sum(float(line.split()[-1]) for line in found)

    def kill_in_a_batch(self) -> None:
        """Kill the service while a batch runs, and start it again."""
        self.wait_for_batch()
        self.service.restart("kill")

    def wait_for_batch(self) -> None:
        """Wait until a batch runs."""
        wait_until(lambda: self._latest("offsets") > self._latest("commits"), "a batch that runs", 120)

    def _latest(self, folder: str) -> int:
        return max(
            (int(file.name) for file in (self.checkpoint / folder).glob("*") if file.name.isdecimal()), default=-1
        )


def border(**options: Any) -> dict[str, Any]:
    """Return a query over the line."""
    return {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}, **options}


def test_what_a_lost_topic_misses_is_among_all_events_and_nobody_stops(bootstrap_servers: str, tmp_path: Path) -> None:
    # Kafka takes `.` and `_` for the same in its metrics, so it refuses the name a_b beside a.b.
    feeds = {"line": LINE, "left": LINE | {"join": True}, "right": LINE | {"join": True}}
    world = World(bootstrap_servers, tmp_path, feeds, ("a.b",))
    own, pairs, clash, events = world.name("own"), world.name("pairs"), world.name("a_b"), world.names["events"]
    try:
        sides = {"left": "left", "right": "right", "on": {"left": "x", "right": "x"}}
        join = {"kind": "band_join", **sides, "band": [-1, 1], "output_topic": pairs}
        owners = {"one": border(output_topic=own), "two": border(output_topic=own)}
        world.put(**owners, clash=border(output_topic=clash), plain=border(), join=join)
        world.move(5, 50)
        must_be_whole(bootstrap_servers, events, own)
        assert (world.signs(own, "one"), world.signs(own, "two"), world.signs(pairs, "join")) == ("+-", "+-", "+-+")
        assert (world.signs(events, "clash"), world.signs(events, "plain")) == ("+-", "+-")

        delete_topic(bootstrap_servers, own)
        world.move(5, 50)
        assert own not in world.topics.partitions()
        must_be_whole(bootstrap_servers, events)
        assert (world.signs(events, "one"), world.signs(events, "two")) == ("+-", "+-")
        assert (world.signs(events, "plain"), world.signs(pairs, "join")) == ("+-+-", "+-+-+-+")
        assert world.replies() == {
            "one": ["accepted", "degraded"],
            "two": ["accepted", "degraded"],
            "clash": ["degraded"],
            "plain": ["accepted"],
            "join": ["accepted"],
        }
        wait_until(lambda: world.degraded_count() == 3, "the count of degraded replies")

        world.service.restart("kill")
        world.move(5)
        assert (world.signs(events, "one"), world.signs(events, "plain")) == ("+-+", "+-+-+")
        assert world.replies()["one"] == ["accepted", "degraded", "degraded"]  # one for each start

        world.topics.make([own])
        world.move(50)
        assert (world.signs(own, "one"), world.signs(own, "two")) == ("-", "-")
        assert world.signs(events, "one") == "+-+"

        delete_topic(bootstrap_servers, own)
        world.put(**owners)  # unchanged, and yet the topic is made
        world.move(5)
        assert world.signs(own, "one") == "+"
        assert world.replies()["one"] == ["accepted", "degraded", "degraded", "unchanged"]
    finally:
        world.service.kill()  # between two batches: all that was sent is read

    meant = {"one": own, "two": own, "clash": clash, "plain": None}
    for record in read_all(bootstrap_servers, events):
        headers = {name: value.decode() for name, value in record.headers}
        assert headers.get("output_topic") == meant[headers["query_id"]]
    assert world.replies()["clash"] == ["degraded", "degraded"]
    faults: dict[str, Any] = {}  # the first one of each query
    for reply in world.values(world.names["replies"]):
        if "error" in reply:
            faults.setdefault(reply["query_id"], reply)
    assert faults["clash"]["error"]["code"] == "bad_option"
    assert "cannot be made" in faults["clash"]["error"]["message"]
    assert "cannot be used" in faults["one"]["error"]["message"]
    assert (faults["one"]["version"], faults["clash"]["version"]) == (1, 3)


def test_batches_that_run_again_write_each_event_once_whether_the_topic_is_there_or_not(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    world = World(bootstrap_servers, tmp_path, {"line": LINE})
    own, events = world.name("own"), world.names["events"]
    n_moves = 40

    def send_until(end: int) -> None:
        while world.n_sent < end:
            world.send(50 if world.n_sent % 2 else 5)

    try:
        world.put(own=border(output_topic=own), plain=border())
        delete_topic(bootstrap_servers, own)  # with nothing in it
        send_until(15)
        world.kill_in_a_batch()
        send_until(20)
        world.service.wait_for(world.send(5))
        n_diverted = len(world.signs(events, "own"))
        send_until(30)
        world.wait_for_batch()
        world.topics.make([own])
        world.kill_in_a_batch()
        send_until(n_moves)
        world.service.wait_for(dict.fromkeys(world.feeds, n_moves))
    finally:
        world.service.kill()

    assert n_diverted == 21
    assert len(world.signs(events, "own") + world.signs(own, "own")) == n_moves
    assert world.signs(own, "own")
    assert len(world.signs(events, "plain")) == n_moves
    found = [event for topic in (events, own) for event in world.values(topic)]
    assert set(Counter(event["event_id"] for event in found).values()) == {1}
    for query_id in ("own", "plain"):
        times = {event["event_time"]: event["sign"] for event in found if event["query_id"] == query_id}
        assert "".join(times[time] for time in range(1, n_moves + 1)) == "+-" * (n_moves // 2)


# -- with rights ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that knows rights; whoever is not denied may do all."""
    rights = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in rights.items():
            patch.setitem(SETTINGS, name, value)
        with Broker(tmp_path_factory.mktemp("strict")) as broker:
            yield broker.bootstrap_servers


def deny(servers: str, topic: str, operation: AclOperation) -> None:
    """Forbid one thing with a topic to everybody; a moment later the broker does."""

    def rules(kind: ResourceType, name: str) -> list[AclBinding]:
        denied_and_allowed = ((operation, AclPermissionType.DENY), (AclOperation.ALL, AclPermissionType.ALLOW))
        return [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:*", "*", what, permission)
            for what, permission in denied_and_allowed
        ]

    wanted = rules(ResourceType.TOPIC, topic)
    if operation is AclOperation.CREATE:  # the right to create every topic comes first
        wanted += rules(ResourceType.BROKER, "kafka-cluster")
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_acls(wanted).values():
        future.result(ANSWER_LIMIT_SECONDS)


def needed(*named: str, shard: int = 0, batch: int = 0, **users: str) -> TopicUse:
    """Return that topics are needed; each user is a query with events for the topic of that name."""
    return TopicUse(shard, batch, frozenset(named), {topic: frozenset({user}) for topic, user in users.items()})


def test_a_topic_that_commands_name_is_made_or_is_missing_with_the_reason(strict_servers: str) -> None:
    topics = OutputTopics({"bootstrap.servers": strict_servers})
    deny(strict_servers, "no-create", AclOperation.CREATE)
    deny(strict_servers, "no-write", AclOperation.WRITE)
    Topics({"bootstrap.servers": strict_servers}).make(["hidden"])
    deny(strict_servers, "hidden", AclOperation.DESCRIBE)
    named = ("good", "no-create", "no-write", "hidden", "x" * 300)

    def missing() -> dict[str, str]:
        return dict(topics.look(needed(*named)).missing)

    wait_until(lambda: len(missing()) == 4, "the rights")
    found = missing()
    assert "good" in Topics({"bootstrap.servers": strict_servers}).partitions()
    assert "cannot be used: the broker forbids to write there" in found.pop("no-write")
    assert "forbids this" in found.pop("no-create")
    assert "cannot be made" in found.pop("hidden")
    assert "cannot be made: " in found.pop("x" * 300)
    assert found == {}


def test_only_commands_make_topics_and_each_loss_is_said_once(strict_servers: str) -> None:
    topics = OutputTopics({"bootstrap.servers": strict_servers})

    def unreported(**of_batch: Any) -> set[str]:
        faults = topics.look(needed(**of_batch))
        assert faults.missing.keys() == {"lost"}
        return set(faults.unreported)

    assert unreported(lost="q", shard=1) == {"q"}
    assert unreported(lost="q", shard=0) == set()
    assert unreported(lost="q", shard=1) == {"q"}  # it runs again
    assert unreported(lost="q", shard=1, batch=1) == set()
    assert unreported(lost="r", shard=0, batch=1) == {"r"}

    assert topics.look(needed("lost", lost="q", batch=2)) == NO_FAULTS
    delete_topic(strict_servers, "lost")
    assert unreported(lost="q", batch=3) == {"q"}


def test_a_topic_that_is_lost_after_the_look_leaves_no_half_of_a_transaction(strict_servers: str, owner: int) -> None:
    options = {"bootstrap.servers": strict_servers}
    Topics(options).make(["events", "replies", "late", "late-marks"])
    writer = RemoteWriter(owner, Place("run", 0, options, Marks("late-0", "late-marks")))
    owned = query("owned", output_topic="late")
    output = output_of([Row(query=query("plain")), Row(query=owned), Row(query=query("plain2"))])

    faults = look(writer, output)
    assert faults == NO_FAULTS
    writer.begin(output.run())
    deny(strict_servers, "late", AclOperation.WRITE)
    wait_until(lambda: OutputTopics(options).look(output.topic_use()).missing, "the rights")
    faults = write(writer, output, faults).faults

    assert faults.missing.keys() == {"late"}
    assert list(read_all(strict_servers, "late")) == []
    found = [json.loads(record.value)["query_id"] for record in read_all(strict_servers, "events")]
    assert sorted(found) == ["owned", "plain", "plain2"]
    (reply,) = read_all(strict_servers, "replies")
    assert json.loads(reply.value)["status"] == "degraded"

    faults = look(writer, output)  # the batch runs again
    assert writer.begin(output.run()) == 0
    write(writer, output, faults)
    assert len(list(read_all(strict_servers, "events"))) == 3


def output_of(rows: list[Row]) -> Output:
    """Return the output of a shard with these events."""
    plan = replace(PLAN, installation=Installation({FEED.name: FEED}), start_offsets={}, membership_topic=None)
    result = ShardResult(StageResult(crossings=[make_crossings(rows)]))
    return Output(plan, 0, 0, Head(), Frames(), result)


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic; return when the broker has."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.delete_topics([name])[name].result(ANSWER_LIMIT_SECONDS)
    wait_until(lambda: name not in admin.list_topics(timeout=ANSWER_LIMIT_SECONDS).topics, "the end of the topic")
