"""The Kafka clients: makes them, and explains their errors to a user.

Knows confluent-kafka, but not the service's topics or messages.
"""

import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from bmq.errors import ServiceError, SetupError

# Seconds. A broker in the same network answers in milliseconds, and in a few seconds while it elects a leader. If
# "not reachable" took longer than this, a user would think that the command hangs.
CONNECT_TIMEOUT_SECONDS = 10.0

# Seconds between two attempts while a partition has no leader; a new partition gets its leader in about 0.1.
RETRY_SECONDS = 0.05

# No broker answers, or not in time. The clients themselves keep trying.
UNREACHABLE = frozenset(
    {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE}
)

# A partition has no leader that this client or its broker knows: it is new, or it is moving to another broker.
LEADERLESS = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)

# The broker that keeps the offsets of a group is starting, or another one becomes it.
NO_COORDINATOR = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)

# The option that decides whether a client reads the records of transactions that were aborted, or are still open.
# Clients have different defaults, so the service names its own.
ISOLATION_OPTION = "isolation.level"
ISOLATION = "read_committed"

# A broker refuses the client. The client's calls only say that no broker answers.
_REFUSED = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
_TLS_ALERT = "SSL routines"  # in a broken connection: the broker refuses the client's certificate, or misses one
_FRESH_SECONDS = 30.0  # for so long a refusal explains a failure; the client tries again every few seconds

_LISTEN_SECONDS = 1.0

Options = Mapping[str, str]
Answer = TypeVar("Answer")

# Swallows librdkafka's own log lines ("%3|170…|FAIL|…"), which would appear beside the one sentence for the user.
_LOG = logging.getLogger("bmq.kafka")
_LOG.addHandler(logging.NullHandler())


# Who asks -> when, and why, a broker refused it last. librdkafka says so in a callback.
_refusals: dict[frozenset[tuple[str, str]], tuple[float, KafkaError]] = {}


class Unreachable(SetupError):
    """No broker answered, or a broker was not ready yet: another attempt may succeed."""


def admin_client(options: Options) -> AdminClient:
    """Return a client for topics and offsets; it connects at its first use."""
    with explained(options):
        return AdminClient(_noting_refusals(options), logger=_LOG)


def producer(options: Options) -> Producer:
    """Return an idempotent producer: it reports a delivery when the replicas have the record, once and in order."""
    with explained(options):
        return Producer({"enable.idempotence": "true"} | _noting_refusals(options), logger=_LOG)


def consumer(options: Options) -> Consumer:
    """Return a consumer for assigned partitions that commits no offsets and reports the end of each partition."""
    own = {
        # The client requires a group id although it joins no group; a unique name cannot collide with a real group.
        "group.id": f"bmq-client-{uuid4()}",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "auto.offset.reset": "earliest",
        ISOLATION_OPTION: ISOLATION,
    }
    with explained(options):
        return Consumer(own | _noting_refusals(options), logger=_LOG)


def group_consumer(options: Options, group: str) -> Consumer:
    """Return a member of a consumer group, which commits the offsets that were stored, now and then and at its end.

    If the group has committed nothing of a partition, or Kafka has deleted what comes next, it begins with the first
    record that is there: otherwise it would pass over records that it has not read.
    """
    own = {
        "group.id": group,
        "enable.auto.commit": "true",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "earliest",
    }
    with explained(options):
        return Consumer({ISOLATION_OPTION: ISOLATION} | _noting_refusals(options) | own, logger=_LOG)


def poll_many(client: Consumer, most: int, seconds: float) -> list[Message]:
    """Return what has come, up to ``most`` messages; wait for the first one.

    `Consumer.consume` alone would wait for its whole time unless so many messages came.
    """
    first = client.poll(seconds)
    return [] if first is None else [first, *client.consume(most, 0)]


def _noting_refusals(options: Options) -> dict[str, Any]:
    """Return the options, with a callback that keeps why a broker refuses the client."""
    who = _who(options)

    def note(error: KafkaError) -> None:
        if _is_refusal(error):
            _refusals[who] = time.monotonic(), error

    return {**options, "error_cb": note}


def _who(options: Options) -> frozenset[tuple[str, str]]:
    """Return the options on which it depends whether a broker lets a client in."""
    return frozenset(
        (name, value)
        for name, value in options.items()
        if name == "bootstrap.servers" or name.startswith(("security.", "sasl.", "ssl."))
    )


def _take_refusal(options: Options) -> KafkaError | None:
    """Return why a broker has just refused a client, once: a later failure may have another reason."""
    noted, refusal = _refusals.pop(_who(options), (float("-inf"), None))
    return refusal if time.monotonic() - noted < _FRESH_SECONDS else None


def isolation_level(options: Options) -> IsolationLevel:
    """Return the isolation level of a consumer with these options, for a client that only asks for offsets."""
    if options.get(ISOLATION_OPTION, ISOLATION) == ISOLATION:
        return IsolationLevel.READ_COMMITTED
    return IsolationLevel.READ_UNCOMMITTED


def _is_leaderless(error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in LEADERLESS


def patiently(
    ask: Callable[[], Answer],
    may_pass: Callable[[Exception], bool] = _is_leaderless,
    seconds: float = CONNECT_TIMEOUT_SECONDS,
) -> Answer:
    """Return the result of ``ask``; repeat it, for up to some seconds, while its error may pass.

    Parameters
    ----------
    may_pass : by default, whether a partition has no leader.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except (KafkaException, ServiceError) as error:
            if not may_pass(error) or time.monotonic() > deadline:
                raise
        time.sleep(RETRY_SECONDS)


@contextmanager
def explained(options: Options, client: AdminClient | Producer | Consumer | None = None) -> Iterator[None]:
    """Turn errors of the client into a `SetupError` that names the broker and the way out.

    Parameters
    ----------
    client : the client of the call, whose callbacks run here if it fails; a consumer only if it has no partitions.
    """
    try:
        yield
    except KafkaException as error:
        fault = error.args[0]
        if isinstance(fault, KafkaError) and fault.code() in UNREACHABLE:
            if client is not None:
                client.poll(0)
            refusal = _take_refusal(options)
            if refusal is not None:
                raise SetupError(_sentence(options, KafkaException(refusal))) from error
        may_pass = isinstance(fault, KafkaError) and (fault.code() in UNREACHABLE | NO_COORDINATOR or fault.retriable())
        raise (Unreachable if may_pass else SetupError)(_sentence(options, error)) from error


def missing_topic(options: Options, topic: str) -> SetupError:
    """Return the error for a missing topic that the service creates at its start."""
    return SetupError(
        f"Kafka at {options['bootstrap.servers']} has no topic {topic!r}. "
        "The service makes its topics when it starts: bmq serve --config config/local.toml"
    )


def _sentence(options: Options, raised: KafkaException) -> str:
    servers = options.get("bootstrap.servers", "an unnamed broker")
    error = raised.args[0]
    if not isinstance(error, KafkaError):
        return f"Kafka at {servers}: {error}. Look at the broker's log."
    text = error.str().rstrip(".")
    if _is_refusal(error):
        return (
            f"Kafka at {servers} does not let us in: {text}. "
            "Check the security options under [kafka.options] in the configuration."
        )
    match error.code():
        case KafkaError._TRANSPORT | KafkaError._ALL_BROKERS_DOWN if _listens(servers):
            return (
                f"No Kafka answers at {servers}, but a program listens there. Check security.protocol under "
                "[kafka.options] in the configuration, and the broker's log; it may still be starting."
            )
        case code if code in UNREACHABLE:
            return (
                f"No Kafka answers at {servers}. "
                "Start one with 'bmq broker' or 'bmq serve', or name another with --bootstrap."
            )
        case KafkaError._INVALID_ARG:
            return f"Kafka's client refuses its options: {text}. Correct [kafka.options] in the configuration."
        case (
            KafkaError.TOPIC_AUTHORIZATION_FAILED
            | KafkaError.CLUSTER_AUTHORIZATION_FAILED
            | KafkaError.GROUP_AUTHORIZATION_FAILED
            | KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        ):
            return f"Kafka at {servers} forbids this: {text}. Ask its operator for the right."
    return f"Kafka at {servers}: {text}. Look at the broker's log."


def _is_refusal(error: KafkaError) -> bool:
    return error.code() in _REFUSED or (error.code() == KafkaError._TRANSPORT and _TLS_ALERT in error.str())


def _listens(servers: str) -> bool:
    """Return whether a program takes connections at the first of these addresses."""
    host, _, port = servers.split(",")[0].rpartition(":")
    with suppress(OSError, ValueError):
        socket.create_connection((host.strip("[]"), int(port)), _LISTEN_SECONDS).close()
        return True
    return False
