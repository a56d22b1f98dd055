"""The topics on the broker: lists them, creates missing ones, and finds their begin and end offsets.

Knows Kafka's administration and the rules for the service's topics (the control topic has one partition and is
compacted), but no messages.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it re-exports without saying so
    AclOperation,
    AdminClient,
    ConfigResource,
    ListOffsetsResultInfo,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from bmq.errors import SetupError
from bmq.kafka_io.connect import (
    CONNECT_TIMEOUT_SECONDS,
    LEADERLESS,
    Options,
    admin_client,
    explained,
    isolation_level,
    patiently,
)

# A mark is useless once the service has read it. If the service does not read a mark within an hour, the clock advances
# with the next mark instead.
CLOCK_RETENTION_MS = 3_600_000

# What a broker says of a topic that is not there, that has an impossible name, or that it does not show.
_UNUSABLE = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # sixteen zero bytes

_LIMIT = "max.message.bytes"

BROKER_DEFAULT = -1  # Kafka's own value for "use num.partitions and default.replication.factor of the broker"
_COMPACTED = {"cleanup.policy": "compact"}
# For topics whose timestamps nobody needs: the broker's time replaces that of the producer, which may be any number.
_BROKERS_TIME = {"message.timestamp.type": "LogAppendTime"}


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of a topic on the broker."""

    name: str
    n_partitions: int
    compacted: bool


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """Where a topic ends.

    Attributes
    ----------
    id : differs from the id of every other topic, also of one with the same name; None: the broker gives none (before
        Kafka 2.8).
    offsets : partition -> the offset of its next record.
    """

    id: str | None
    offsets: dict[int, int]


class Topics:
    """The topics of one broker.

    Parameters
    ----------
    options : client options with `bootstrap.servers`.

    Notes
    -----
    Every method raises `SetupError` if the broker refuses, or does not answer within CONNECT_TIMEOUT_SECONDS.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._admin: AdminClient = admin_client(options)

    def ping(self) -> None:
        """Ask a broker for something small; return when it has answered."""
        with explained(self._options, self._admin):
            self._admin.describe_cluster(request_timeout=CONNECT_TIMEOUT_SECONDS).result()

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        with explained(self._options, self._admin):
            metadata = self._admin.list_topics(timeout=CONNECT_TIMEOUT_SECONDS)
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def state(self, name: str) -> TopicState | None:
        """Return the state of the topic, or None if it does not exist."""
        n_partitions = self.partitions().get(name)
        if n_partitions is None:
            return None
        resource = ConfigResource(ResourceType.TOPIC, name)
        with explained(self._options, self._admin):
            (future,) = self._admin.describe_configs([resource], request_timeout=CONNECT_TIMEOUT_SECONDS).values()
            policy = future.result()["cleanup.policy"].value
        return TopicState(name, n_partitions, "compact" in policy.split(","))

    def create_missing(
        self,
        control: str,
        others: Iterable[str],
        n_partitions: int = BROKER_DEFAULT,
        *,
        clock: str | None = None,
        membership: str | None = None,
        markers: str | None = None,
    ) -> list[str]:
        """Create the missing topics, return when clients can use them, and return their names.

        Parameters
        ----------
        control : the control topic; created with one partition, compacted.
        others : all other topics, with ``n_partitions`` partitions.
        clock : the clock topic, if a feed needs it; created with one partition and a short retention.
        membership : the membership topic, if configured; created with ``n_partitions`` partitions, compacted.
        markers : the marker topic, if delivery is exactly once; created with one partition.

        Raises
        ------
        SetupError
            The control topic exists and has more than one partition: commands would lose their order.
        """
        there = self.partitions()
        if there.get(control, 1) != 1:
            raise SetupError(
                f"Control topic {control!r} has {there[control]} partitions, but commands keep their order "
                "in one only. Name another under [topics] in the configuration, "
                "or delete this one, set job.checkpoint to a new folder, and put the queries again."
            )
        wanted = [NewTopic(control, 1, BROKER_DEFAULT, config=_COMPACTED | _BROKERS_TIME)]
        if clock is not None:
            retention = {"retention.ms": str(CLOCK_RETENTION_MS)}
            wanted.append(NewTopic(clock, 1, BROKER_DEFAULT, config=retention | _BROKERS_TIME))
        if membership is not None:
            wanted.append(NewTopic(membership, n_partitions, BROKER_DEFAULT, config=_COMPACTED))
        if markers is not None:
            wanted.append(NewTopic(markers, 1, BROKER_DEFAULT))
        wanted += [NewTopic(name, n_partitions, BROKER_DEFAULT) for name in dict.fromkeys(others)]
        return self._create_missing(wanted, there)

    def make(self, names: Iterable[str]) -> None:
        """Create the missing topics of ``names``, with the broker's default number of partitions."""
        wanted = [NewTopic(name, BROKER_DEFAULT, BROKER_DEFAULT) for name in dict.fromkeys(names)]
        self._create_missing(wanted, self.partitions())

    def unusable(self, names: Collection[str]) -> dict[str, str]:
        """Return which of these topics are not there, or not open to this client's records, and why; one request."""
        if not names:
            return {}
        found: dict[str, str] = {}
        with explained(self._options, self._admin):
            described = self._admin.describe_topics(
                TopicCollection(list(names)),
                include_authorized_operations=True,
                request_timeout=CONNECT_TIMEOUT_SECONDS,
            )
            for name, future in described.items():
                try:
                    allowed = future.result().authorized_operations
                except KafkaException as error:
                    code = error.args[0].code()
                    if code in _UNUSABLE:
                        found[name] = error.args[0].str()
                    elif code not in LEADERLESS:  # it is there, and the producer waits for its leader
                        raise
                else:
                    # None: the broker does not say.
                    if allowed is not None and AclOperation.WRITE not in allowed:
                        found[name] = "the broker forbids to write there"
        return found

    def limit(self, name: str) -> int | None:
        """Return the most bytes of a batch of records that a topic takes; None: it, or the right to ask, is missing."""
        with explained(self._options, self._admin):
            resource = ConfigResource(ResourceType.TOPIC, name)
            (future,) = self._admin.describe_configs([resource], request_timeout=CONNECT_TIMEOUT_SECONDS).values()
            try:
                return int(future.result()[_LIMIT].value)
            except KafkaException as error:
                if error.args[0].code() in _UNUSABLE:
                    return None
                raise

    def begin_offsets(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return, for each existing topic, the offset of each partition's oldest record."""
        return self._offsets(names, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return, for each existing topic, the offset of each partition's next record.

        That is the first record of an open transaction, if there is one: a consumer of committed records reads on from
        there when the transaction ends.
        """
        return self._offsets(names, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def offsets_at(self, name: str, time_ms: int) -> dict[int, int]:
        """Return the offset of each partition's first record of a timestamp, epoch ms, or later.

        A partition without such a record is absent.
        """
        wanted = self._wanted([name], OffsetSpec.for_timestamp(time_ms))
        with explained(self._options, self._admin):
            found = patiently(lambda: self._ask_offsets(wanted))
        return {partition: offset for partition, offset in found.get(name, {}).items() if offset >= 0}

    def latest_times(self, names: Iterable[str]) -> dict[str, int]:
        """Return topic -> the latest timestamp of its records, epoch ms; a topic without records is absent."""
        latest: dict[str, int] = {}
        wanted = self._wanted(names, OffsetSpec.max_timestamp())  # type: ignore[no-untyped-call]
        with explained(self._options, self._admin):
            for at, found in patiently(lambda: self._ask(wanted)).items():
                if found.timestamp >= 0:
                    latest[at.topic] = max(found.timestamp, latest.get(at.topic, 0))
        return latest

    def ends(self, names: Sequence[str]) -> dict[str, TopicEnds]:
        """Return, for each existing topic, its id and the ends that `end_offsets` returns; two requests."""
        found: dict[str, TopicEnds] = {}
        with explained(self._options, self._admin):
            described = self._admin.describe_topics(
                TopicCollection(list(names)), request_timeout=CONNECT_TIMEOUT_SECONDS
            )
            for name, future in described.items():
                try:
                    topic = future.result()
                except KafkaException as error:
                    fault = error.args[0]
                    if fault.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise KafkaException(KafkaError(fault.code(), f"topic {name!r}: {fault.str()}")) from error
                identity = str(topic.topic_id)
                found[name] = TopicEnds(None if identity == _NO_ID else identity, {at.id: 0 for at in topic.partitions})
            wanted = {
                TopicPartition(name, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]
                for name, topic in found.items()
                for partition in topic.offsets
            }
            if wanted:
                for name, offsets in patiently(lambda: self._ask_offsets(wanted)).items():
                    found[name].offsets.update(offsets)
        return found

    def _offsets(self, names: Iterable[str], which: OffsetSpec) -> dict[str, dict[int, int]]:
        wanted = self._wanted(names, which)
        with explained(self._options, self._admin):
            return patiently(lambda: self._ask_offsets(wanted))

    def _wanted(self, names: Iterable[str], which: OffsetSpec) -> dict[TopicPartition, OffsetSpec]:
        there = self.partitions()
        return {TopicPartition(name, partition): which for name in names for partition in range(there.get(name, 0))}

    def _ask_offsets(self, wanted: dict[TopicPartition, OffsetSpec]) -> dict[str, dict[int, int]]:
        offsets: dict[str, dict[int, int]] = {}
        for at, found in self._ask(wanted).items():
            offsets.setdefault(at.topic, {})[at.partition] = found.offset
        return offsets

    def _ask(self, wanted: dict[TopicPartition, OffsetSpec]) -> dict[TopicPartition, ListOffsetsResultInfo]:
        if not wanted:
            return {}
        futures = self._admin.list_offsets(
            wanted, request_timeout=CONNECT_TIMEOUT_SECONDS, isolation_level=isolation_level(self._options)
        )
        return {at: future.result() for at, future in futures.items()}

    def _create_missing(self, wanted: list[NewTopic], there: dict[str, int]) -> list[str]:
        missing = [topic for topic in wanted if topic.topic not in there]
        if missing:
            self._create(missing)
        return [topic.topic for topic in missing]

    def _create(self, missing: list[NewTopic]) -> None:
        with explained(self._options, self._admin):
            futures = self._admin.create_topics(missing, request_timeout=CONNECT_TIMEOUT_SECONDS)
            for future in futures.values():
                try:
                    future.result()
                except KafkaException as error:
                    # Not a fault: another process of the service has just created the topic.
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise
            patiently(lambda: self._require_leaders({topic.topic for topic in missing}))

    def _require_leaders(self, names: set[str]) -> None:
        """Raise while a partition has no leader: a broker confirms a new topic before clients can use it."""
        metadata = self._admin.list_topics(timeout=CONNECT_TIMEOUT_SECONDS)
        for name in names:
            topic = metadata.topics.get(name)
            if topic is None or any(partition.leader < 0 for partition in topic.partitions.values()):
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"{name} has no leader"))
