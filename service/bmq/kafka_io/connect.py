"""Kafka clients of this process (not Spark's): how they are made, and what their errors mean to a user.

Knows confluent-kafka and nothing of our topics or messages.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bmq.errors import SetupError

# Seconds. A broker in the same network answers in milliseconds, one that is electing a leader in a few
# seconds; a user who waits longer than this for "not reachable" thinks that the command hangs.
CONNECT_TIMEOUT_SECONDS = 10.0

# Seconds between two tries of what a broker could not do yet; a new partition gets its leader in about 0.1.
RETRY_SECONDS = 0.05

# No broker answers, or not in time. Clients go on trying by themselves.
UNREACHABLE = frozenset(
    {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE}
)

# A partition has no leader, as far as this client or its broker knows: just made, or moving elsewhere.
LEADERLESS = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)

Options = Mapping[str, str]
Answer = TypeVar("Answer")

# Takes librdkafka's own log lines ("%3|170…|FAIL|…"), which would stand beside our one sentence.
_LOG = logging.getLogger("bmq.kafka")
_LOG.addHandler(logging.NullHandler())


class Unreachable(SetupError):
    """No broker answered, or none could yet: asking again may help."""


def admin_client(options: Options) -> AdminClient:
    """Return a client for topics and offsets; it connects when first used."""
    with explained(options):
        return AdminClient(dict(options), logger=_LOG)


def producer(options: Options) -> Producer:
    """Return a producer whose records are on the broker's replicas, once and in order, when it says so."""
    with explained(options):
        return Producer({"enable.idempotence": "true"} | dict(options), logger=_LOG)


def consumer(options: Options) -> Consumer:
    """Return a consumer that is told its partitions, commits nothing, and says where a partition ends."""
    own = {
        # A group is asked for although none is joined; a name of its own disturbs nobody.
        "group.id": f"bmq-client-{uuid4()}",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "auto.offset.reset": "earliest",
    }
    with explained(options):
        return Consumer(own | dict(options), logger=_LOG)


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Return what ``ask`` returns; ask again, in CONNECT_TIMEOUT_SECONDS, while a partition has no leader."""
    deadline = time.monotonic() + CONNECT_TIMEOUT_SECONDS
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in LEADERLESS or time.monotonic() > deadline:
                raise
        time.sleep(RETRY_SECONDS)


@contextmanager
def explained(options: Options) -> Iterator[None]:
    """Turn errors of the client into a `SetupError` that names the broker and the way out."""
    try:
        yield
    except KafkaException as error:
        fault = error.args[0]
        may_pass = isinstance(fault, KafkaError) and (fault.code() in UNREACHABLE or fault.retriable())
        raise (Unreachable if may_pass else SetupError)(_sentence(options, error)) from error


def missing_topic(options: Options, topic: str) -> SetupError:
    """Return the error for a topic that the service would have made."""
    return SetupError(
        f"Kafka at {options['bootstrap.servers']} has no topic {topic!r}. "
        "The service makes its topics when it starts: bmq serve --config config/local.toml"
    )


def _sentence(options: Options, raised: KafkaException) -> str:
    servers = options.get("bootstrap.servers", "an unnamed broker")
    error = raised.args[0]
    if not isinstance(error, KafkaError):
        return f"Kafka at {servers}: {error}. Look at the broker's log."
    match error.code():
        case code if code in UNREACHABLE:
            return (
                f"No Kafka answers at {servers}. "
                "Start one with 'bmq broker' or 'bmq serve', or name another with --bootstrap."
            )
        case KafkaError._INVALID_ARG:
            return f"Kafka's client refuses its options: {error.str()}. Correct [kafka.options] in the configuration."
        case KafkaError._AUTHENTICATION | KafkaError._SSL:
            return (
                f"Kafka at {servers} does not let us in: {error.str()}. "
                "Check the security options under [kafka.options] in the configuration."
            )
        case (
            KafkaError.TOPIC_AUTHORIZATION_FAILED
            | KafkaError.CLUSTER_AUTHORIZATION_FAILED
            | KafkaError.GROUP_AUTHORIZATION_FAILED
        ):
            return f"Kafka at {servers} forbids this: {error.str()}. Ask its operator for the right."
    return f"Kafka at {servers}: {error.str()}. Look at the broker's log."
