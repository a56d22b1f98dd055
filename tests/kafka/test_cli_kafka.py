"""The client commands on a real broker, as users type them."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # re-exported unsaid
from kafka import KafkaConsumer
from typer.testing import CliRunner, Result

from bmq.broker.ports import free_ports
from bmq.cli import app
from bmq.config import load_config
from bmq.job.checkpoint import FORMAT
from bmq.kafka_io.connect import admin_client
from tests.kafka.pure_responder import Place

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 60.0  # for a process that takes one or two; a busy machine takes many times that
FORTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}
FIFTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [50, 60]}}, "streams": ["B", "C"]}

Bmq = Callable[..., Result]


@pytest.fixture
def config(place: Place, tmp_path: Path) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(
        place.config_text()
        + f"""
        [job]
        checkpoint = "{tmp_path / "checkpoint"}"
        [metrics]
        port = 0
        """
    )
    return path


@pytest.fixture
def bmq(config: Path) -> Bmq:
    def run(*arguments: str, definition: object = None) -> Result:
        stdin = None if definition is None else json.dumps(definition)
        return CliRunner().invoke(app, [*arguments, "--config", str(config)], input=stdin)

    return run


@pytest.mark.usefixtures("service")
def test_put_says_what_the_service_replied(bmq: Bmq) -> None:
    outputs = [bmq("query", "put", "q", "-", definition=d).stdout for d in (FORTIES, FIFTIES, FIFTIES)]

    assert outputs == ["accepted: q, version 1\n", "accepted: q, version 2\n", "unchanged: q, version 3\n"]


@pytest.mark.usefixtures("service")
def test_a_rejection_by_the_service_exits_with_1(bmq: Bmq) -> None:
    result = bmq("query", "rm", "absent")

    assert result.exit_code == 1
    assert result.stderr.startswith("bmq: absent was rejected: unknown_query: ")


def test_a_service_that_does_not_reply_is_said_to_be_down(bmq: Bmq) -> None:
    result = bmq("query", "put", "q", "-", "--timeout", "0.5", definition=FORTIES)

    assert result.exit_code == 1
    assert "Is the service running?" in result.stderr


def test_no_wait_publishes_and_returns(bmq: Bmq, place: Place) -> None:
    result = bmq("query", "put", "q", "-", "--no-wait", definition=FORTIES)

    assert (result.exit_code, result.stdout) == (0, "published: q, control offset 0\n")
    consumer = KafkaConsumer(place.topics.control, bootstrap_servers=place.servers, auto_offset_reset="earliest")
    record = next(consumer)
    consumer.close()
    assert (record.key, json.loads(record.value)) == (b"q", FORTIES)


@pytest.mark.usefixtures("service")
def test_list_and_show_say_what_stands_and_what_was_replied(bmq: Bmq) -> None:
    bmq("query", "put", "forties", "-", definition=FORTIES)
    bmq("query", "put", "fifties", "-", definition=FIFTIES)

    table = bmq("query", "list").stdout.splitlines()
    listed = [json.loads(line) for line in bmq("query", "list", "--json").stdout.splitlines()]
    shown = bmq("query", "show", "fifties").stdout

    assert table[0].split() == ["ID", "STATUS", "VERSION", "KIND", "FEED", "REGION", "STREAMS"]
    assert table[1].split() == ["fifties", "accepted", "2", "border", "stocks", "price", "[50,", "60]", "2"]
    assert table[2].split() == ["forties", "accepted", "1", "border", "stocks", "price", "[40,", "50]", "all"]
    assert [(one["query_id"], one["definition"]) for one in listed] == [
        ("fifties", FIFTIES),
        ("forties", FORTIES),
    ]
    assert json.loads(shown[: shown.rindex("}") + 1]) == FIFTIES
    assert "accepted: version 2, control offset 1" in shown


@pytest.mark.usefixtures("service")
def test_a_deleted_query_is_no_longer_listed_and_the_nearest_is_named(bmq: Bmq) -> None:
    bmq("query", "put", "forties", "-", definition=FORTIES)
    bmq("query", "put", "fifties", "-", definition=FIFTIES)

    assert bmq("query", "rm", "fifties").stdout == "deleted: fifties, version 3\n"

    result = bmq("query", "show", "fortys")
    assert result.exit_code == 1
    assert "Did you mean 'forties'?" in result.stderr
    assert "fifties" not in bmq("query", "list").stdout


@pytest.mark.usefixtures("service")
def test_events_are_written_for_people_or_as_they_are(bmq: Bmq, place: Place) -> None:
    bmq("query", "put", "forties", "-", definition=FORTIES)
    place.read(stocks={"A": 45.25})

    people = bmq("events", "--from-beginning", "--limit", "1").stdout
    machines = bmq("events", "--from-beginning", "--limit", "1", "--json", "--query", "forties").stdout

    assert people.rstrip().endswith("A entered forties at price=45.25 (first_seen)")
    event = json.loads(machines)
    assert (event["stream_id"], event["sign"], event["value"]) == ("A", "+", {"price": 45.25})


@pytest.mark.usefixtures("service")
def test_events_of_others_are_left_out_and_the_time_ends_them(bmq: Bmq, place: Place) -> None:
    bmq("query", "put", "forties", "-", definition=FORTIES)
    place.read(stocks={"A": 45, "B": 46})
    only = bmq("events", "--from-beginning", "--limit", "1", "--stream", "B")

    none = bmq("events", "--from-beginning", "--timeout", "0.5", "--query", "fifties")

    assert " B entered forties " in only.stdout
    assert (none.exit_code, none.stdout) == (0, "")


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Yield `bmq` with ``arguments`` as a process of its own, and end it if it has not ended."""
    child = subprocess.Popen(
        [sys.executable, "-m", "bmq.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "service"), "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=LIMIT_SECONDS)


def first_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


@pytest.mark.usefixtures("service")
def test_ctrl_c_is_the_usual_end_of_events(bmq: Bmq, place: Place, config: Path) -> None:
    bmq("query", "put", "forties", "-", definition=FORTIES)
    place.read(stocks={"A": 45})

    with process("events", "--from-beginning", "--config", str(config)) as events:
        assert " A entered forties " in first_line(events)
        events.send_signal(signal.SIGINT)

        assert events.wait(LIMIT_SECONDS) == 0
        assert events.communicate()[1] == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_broker_command_serves_until_it_gets_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    (port,) = free_ports(1)

    with process("broker", "--port", str(port), "--dir", str(tmp_path / "kafka")) as broker:
        assert first_line(broker).startswith(f"Kafka listens at 127.0.0.1:{port}")
        consumer = KafkaConsumer(bootstrap_servers=f"127.0.0.1:{port}")
        assert consumer.topics() == set()
        consumer.close()
        broker.send_signal(number)

        assert broker.wait(LIMIT_SECONDS) == 0


def test_the_doctor_finds_nothing_wrong_where_all_is_well(bmq: Bmq, place: Place) -> None:
    result = bmq("doctor")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    assert any("PySpark: 4.2.1" in line for line in lines)
    assert f"topics.control: {place.topics.control}, 1 partition, compacted" in result.stdout
    assert any("checkpoint: " in line and "new" in line for line in lines)


def test_the_doctor_says_what_the_service_will_make(bmq: Bmq, config: Path, place: Place) -> None:
    config.write_text(config.read_text().replace(place.topics.events, f"bmq-{uuid.uuid4().hex}"))

    result = bmq("doctor")

    assert result.exit_code == 0
    (warning,) = [line for line in result.stdout.splitlines() if line.startswith("warn")]
    assert "topics.events" in warning
    assert "The service makes it at its start" in warning


def test_the_doctor_says_that_a_feed_cannot_be_joined_alone(bmq: Bmq, config: Path) -> None:
    config.write_text(config.read_text().replace("dimensions =", "join = true\ndimensions =", 1))

    result = bmq("doctor")

    assert result.exit_code == 0
    (warning,) = [line for line in result.stdout.splitlines() if line.startswith("warn")]
    assert "join = true, and no other feed has it" in warning


def test_the_doctor_fails_a_control_topic_of_two_partitions(bmq: Bmq, config: Path, place: Place) -> None:
    name = f"bmq-{uuid.uuid4().hex}"
    admin = admin_client({"bootstrap.servers": place.servers})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(LIMIT_SECONDS)
    config.write_text(config.read_text().replace(place.topics.control, name))

    result = bmq("doctor")

    assert result.exit_code == 1
    assert f"fail  topics.control: {name} has 2 partitions" in result.stdout


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{", "bmq.json in checkpoint"),
        ("[]", "is damaged (Expected `object`, got `array`)"),
        ('{"format": "4"}', "is damaged (Expected `int`, got `str`"),
        (f'{{"format":{FORMAT}}}', "missing required field `shards`"),
        ('{"format": 0}', f"has format 0, and this version reads {FORMAT}"),
        (
            f'{{"format":{FORMAT},"shards":9,"start_offsets":{{}},"control_end":0,"feeds":{{}}}}',
            "job.shards",
        ),
    ],
)
def test_the_doctor_fails_a_checkpoint_that_does_not_fit(written: str, says: str, bmq: Bmq, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/bmq.json").write_text(written)

    result = bmq("doctor")

    assert result.exit_code == 1
    (failure,) = [line for line in result.stdout.splitlines() if line.startswith("fail")]
    assert failure.startswith("fail  checkpoint: ")
    assert says in failure


def test_the_doctor_fails_sparks_files_without_the_file_that_binds_them(bmq: Bmq, tmp_path: Path) -> None:
    (tmp_path / "checkpoint/offsets").mkdir(parents=True)

    result = bmq("doctor")

    assert result.exit_code == 1
    assert "has no bmq.json, but Spark's files are there (offsets)" in result.stdout


def test_the_doctor_fails_a_kafka_that_does_not_answer(bmq: Bmq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmq.kafka_io.topics.CONNECT_TIMEOUT_SECONDS", 0.5)
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"

    result = bmq("doctor", "--bootstrap", nowhere)

    assert result.exit_code == 1
    assert f"fail  Kafka: No Kafka answers at {nowhere}" in result.stdout


def test_init_writes_a_configuration_from_the_records_of_a_topic(
    bootstrap_servers: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    topic, file = topics("positions", partitions=2), tmp_path / "bmq.toml"
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(3):
        value = {"device": f"d{number}", "when": time.time(), "lon": 11.5, "lat": 48.1, "line": "U6"}
        producer.produce(topic, json.dumps(value), f"d{number}")
    assert producer.flush(LIMIT_SECONDS) == 0

    arguments = ["init", str(file), "--topic", topic, "--bootstrap", bootstrap_servers]
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 0, result.output
    assert "stream_id = device: it equals the key of each record" in result.stdout
    (feed,) = load_config(file).feeds.values()
    assert (feed.topic, feed.stream_id, feed.event_time, feed.event_time_unit) == (topic, "device", "when", "s")
    assert (feed.dimensions, feed.space, feed.attributes) == (("lon", "lat"), "lonlat", ("line",))
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 2
    assert "exists already and is not touched" in again.stderr
