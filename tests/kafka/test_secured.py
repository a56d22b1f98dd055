"""SASL_SSL, certificates and ACLs: what the service, a publisher and a consumer need, and what an error says.

docs/operations.md, "Rights", has the same tables.
"""

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from bmq.client import Client
from bmq.config import Config, TopicsSection
from bmq.errors import ServiceError, SetupError
from bmq.job.service import Service
from bmq.kafka_io.batch_writer import NO_BATCH, BatchRun, MarkedWriter, Marks
from bmq.kafka_io.connect import Options
from bmq.kafka_io.topic_reader import Start, TopicReader
from bmq.kafka_io.topics import Topics
from bmq.wire.outgoing import MESSAGE_SCHEMA, message_batch
from tests.brokers import wait_until
from tests.secured import Right, SecuredBroker, right

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

FEED, TOPICS = "vehicles", TopicsSection()

SERVICE = [
    right("TOPIC", FEED, "READ"),
    right("TOPIC", TOPICS.control, "READ"),
    right("TOPIC", TOPICS.events, "WRITE"),
    right("TOPIC", TOPICS.replies, "WRITE"),
    right("TOPIC", TOPICS.dead_letter, "WRITE"),
    right("TOPIC", TOPICS.markers, "READ"),
    right("TRANSACTIONAL_ID", "bmq-", "WRITE", prefix=True),
    right("GROUP", "bmq-", "READ", prefix=True),
]
PUBLISHER = [right("TOPIC", TOPICS.control, "WRITE"), right("TOPIC", TOPICS.replies, "READ")]
CONSUMER = [right("TOPIC", TOPICS.events, "READ")]
RIGHTS = {"service": SERVICE, "publisher": PUBLISHER, "consumer": CONSUMER, "machine": CONSUMER}

DEFINITION = {"kind": "border", "feed": "vehicles", "region": {"box": {"x": [0, 10]}}}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as broker:
        Topics({"bootstrap.servers": broker.bootstrap_servers}).create_missing(
            TOPICS.control, [FEED, TOPICS.replies, TOPICS.events, TOPICS.dead_letter], 1, markers=TOPICS.markers
        )
        for user, rights in RIGHTS.items():
            broker.add_user(user, f"{user}-knows")
            broker.allow(user, rights)
        wait_until(
            lambda: _can(lambda: Topics(options_of(broker, "consumer")).partitions()[TOPICS.events]), "the users"
        )
        yield broker


def options_of(broker: SecuredBroker, user: str) -> dict[str, str]:
    return broker.options_of(user, f"{user}-knows")


def _can(act: Callable[[], object]) -> bool:
    try:
        act()
    except (ServiceError, KeyError):
        return False
    return True


def test_each_does_its_part_with_the_least_rights(broker: SecuredBroker, tmp_path: Path) -> None:
    publisher = options_of(broker, "publisher")
    with Client(publisher.pop("bootstrap.servers"), publisher) as client:
        client.publish({"q": DEFINITION})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(FEED, json.dumps({"id": "a", "ts": 1_000, "x": 5.0}), "a")
    producer.produce(FEED, "no reading", "a")
    producer.flush()

    run(options_of(broker, "service"), tmp_path)

    for options in (options_of(broker, "consumer"), broker.options_of_machine()):
        (event,) = read(options, TOPICS.events)
        assert (event["stream_id"], event["sign"]) == ("a", "+")
    (reply,) = read(options_of(broker, "publisher"), TOPICS.replies)
    assert reply["status"] == "accepted"


def run(options: Options, folder: Path) -> None:
    """Read everything by a service with these options."""
    own = {name: value for name, value in options.items() if name != "bootstrap.servers"}
    config = Config(
        feeds={
            FEED: {"topic": FEED, "stream_id": "id", "event_time": "ts", "event_time_unit": "ms", "dimensions": ["x"]}
        },
        job={"checkpoint": str(folder), "shards": 2, "starting_offsets": "earliest", "trigger": "available_now"},
        kafka={"options": own},
        metrics={"port": 0},
    )
    service = Service(config, options["bootstrap.servers"])
    try:
        service.start()
        service.wait()
    finally:
        service.stop()


def read(options: Options, topic: str) -> list[dict[str, object]]:
    with TopicReader(options, topic, Start.BEGINNING) as reader:
        return [json.loads(message.value() or b"") for message in reader.to_end()]


def written_to(options: Options, topic: str) -> None:
    """Write one message to a topic, as a shard does."""
    writer = MarkedWriter(options, Marks("bmq-of-tests-0", TOPICS.markers))
    batch = writer.begin(BatchRun(0, NO_BATCH, has_messages=True, digest=""))
    assert batch == 0
    headers = pa.array([[]], MESSAGE_SCHEMA.field("headers").type)
    writer.write([message_batch(pa.array([topic]), pa.array([b"k"]), pa.array([b"v"]), headers)])


@pytest.mark.parametrize(
    ("lacking", "act", "said"),
    [
        (SERVICE[0], lambda options: Topics(options).ends([FEED]), f"'{FEED}'.*authorization failed"),
        (
            SERVICE[1],
            lambda options: Topics(options).ends([TOPICS.control]),
            f"'{TOPICS.control}'.*authorization failed",
        ),
        (SERVICE[2], lambda options: written_to(options, TOPICS.events), f"'{TOPICS.events}'.*authorization failed"),
        (SERVICE[3], lambda options: written_to(options, TOPICS.replies), f"'{TOPICS.replies}'.*authorization failed"),
        (
            SERVICE[4],
            lambda options: written_to(options, TOPICS.dead_letter),
            f"'{TOPICS.dead_letter}'.*authorization failed",
        ),
        (SERVICE[5], lambda options: written_to(options, TOPICS.events), "forbids this: .*Topic authorization failed"),
        (SERVICE[6], lambda options: written_to(options, TOPICS.events), "forbids this: .*Transactional"),
        (
            SERVICE[7],
            lambda options: written_to(options, TOPICS.events),
            "forbids this: group 'bmq-.*authorization failed",
        ),
    ],
    ids=[f"{line[0].name} {line[1]}" for line in SERVICE],
)
def test_a_right_that_the_service_lacks_is_named(
    broker: SecuredBroker, lacking: Right, act: Callable[[Options], None], said: str
) -> None:
    options = options_of(broker, "service")
    with broker.without("service", lacking):
        error = wait_until(lambda: _error_of(lambda: act(options)), f"the end of {lacking}")
    assert re.search(said, error), error


def _error_of(act: Callable[[], object]) -> str:
    try:
        act()
    except SetupError as error:
        return str(error)
    return ""


def test_who_is_not_let_in_hears_why_and_no_password_is_shown(broker: SecuredBroker) -> None:
    right_one = options_of(broker, "service")
    wrong_password = right_one | {"sasl.password": "not-the-password"}
    other_authority = right_one | {"ssl.ca.location": broker.other_certificate()}
    no_certificate = {
        name: value for name, value in broker.options_of_machine().items() if not name.startswith("ssl.keystore")
    }
    no_security = {"bootstrap.servers": right_one["bootstrap.servers"]}

    def command() -> object:
        servers = wrong_password["bootstrap.servers"]
        with Client(servers, {k: v for k, v in wrong_password.items() if k != "bootstrap.servers"}) as client:
            return client.publish({"q": DEFINITION})

    attempts: dict[str, tuple[Callable[[], object], str]] = {
        "password": (lambda: Topics(wrong_password).partitions(), "invalid credentials"),
        "certificate": (lambda: Topics(other_authority).partitions(), "certificate"),
        "protocol": (lambda: Topics(no_security).partitions(), "listens there. Check security.protocol"),
        "no certificate": (lambda: Topics(no_certificate).partitions(), "certificate"),
        "reader": (lambda: TopicReader(wrong_password, TOPICS.events, Start.END), "invalid credentials"),
        "client": (command, "invalid credentials"),
    }
    # Each of them tries for ten seconds.
    with ThreadPoolExecutor(len(attempts)) as pool:
        errors = dict(zip(attempts, pool.map(lambda attempt: _error_of(attempt[0]), attempts.values()), strict=True))

    for name, (_, said) in attempts.items():
        assert re.search(said, errors[name]), (name, errors[name])
        assert name == "protocol" or re.search("does not let us in: .* security options under", errors[name])
        assert "not-the-password" not in errors[name]
    assert Topics(right_one).partitions()
