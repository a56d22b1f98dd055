"""The topics on the broker: which there are, the missing ones made, and where they end.

Knows Kafka's administration and the rules for our topics (the control topic has one partition and is
compacted). Knows no message.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it re-exports without saying so
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from bmq.errors import SetupError
from bmq.kafka_io.connect import CONNECT_TIMEOUT_SECONDS, Options, admin_client, explained, patiently

# A mark is of no use once the service has read it; one that was not read in an hour only means a clock that goes on
# with the next mark.
CLOCK_RETENTION_MS = 3_600_000

BROKER_DEFAULT = -1  # Kafka's own word for "as num.partitions and default.replication.factor say"
_COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it is on the broker."""

    name: str
    n_partitions: int
    compacted: bool


class Topics:
    """The topics of one broker.

    Parameters
    ----------
    options : client options with `bootstrap.servers`.

    Notes
    -----
    Every method raises `SetupError` where the broker refuses, or does not answer in CONNECT_TIMEOUT_SECONDS.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._admin: AdminClient = admin_client(options)

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        with explained(self._options):
            metadata = self._admin.list_topics(timeout=CONNECT_TIMEOUT_SECONDS)
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def state(self, name: str) -> TopicState | None:
        """Return the topic, or None where there is none of that name."""
        n_partitions = self.partitions().get(name)
        if n_partitions is None:
            return None
        resource = ConfigResource(ResourceType.TOPIC, name)
        with explained(self._options):
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
    ) -> list[str]:
        """Create the topics that are not there, wait until they can be used, and return their names.

        Parameters
        ----------
        control : the control topic; created with one partition, compacted.
        others : all other topics, with ``n_partitions`` partitions.
        clock : the clock topic, where one is needed; created with one partition and a short retention.
        membership : the membership topic, where there is one; created with ``n_partitions`` partitions, compacted.

        Raises
        ------
        SetupError
            If the control topic is there with more than one partition: commands would lose their order.
        """
        there = self.partitions()
        if there.get(control, 1) != 1:
            raise SetupError(
                f"Control topic {control!r} has {there[control]} partitions, but commands keep their order "
                "in one only. Name another under [topics] in the configuration, "
                "or delete this one, set job.checkpoint to a new folder, and put the queries again."
            )
        wanted = [NewTopic(control, 1, BROKER_DEFAULT, config=_COMPACTED)]
        if clock is not None:
            wanted.append(NewTopic(clock, 1, BROKER_DEFAULT, config={"retention.ms": str(CLOCK_RETENTION_MS)}))
        if membership is not None:
            wanted.append(NewTopic(membership, n_partitions, BROKER_DEFAULT, config=_COMPACTED))
        wanted += [NewTopic(name, n_partitions, BROKER_DEFAULT) for name in dict.fromkeys(others)]
        return self._create_missing(wanted, there)

    def make(self, names: Iterable[str]) -> None:
        """Create those topics that are not there, with as many partitions as the broker gives by itself."""
        wanted = [NewTopic(name, BROKER_DEFAULT, BROKER_DEFAULT) for name in dict.fromkeys(names)]
        self._create_missing(wanted, self.partitions())

    def begin_offsets(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return, for each topic that is there, the offset of each partition's oldest record."""
        return self._offsets(names, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return, for each topic that is there, the offset that each partition's next record will get."""
        return self._offsets(names, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def _offsets(self, names: Iterable[str], which: OffsetSpec) -> dict[str, dict[int, int]]:
        there = self.partitions()
        wanted = {TopicPartition(name, partition): which for name in names for partition in range(there.get(name, 0))}
        if not wanted:
            return {}
        with explained(self._options):
            return patiently(lambda: self._ask_offsets(wanted))

    def _ask_offsets(self, wanted: dict[TopicPartition, OffsetSpec]) -> dict[str, dict[int, int]]:
        offsets: dict[str, dict[int, int]] = {}
        futures = self._admin.list_offsets(wanted, request_timeout=CONNECT_TIMEOUT_SECONDS)
        for at, future in futures.items():
            offsets.setdefault(at.topic, {})[at.partition] = future.result().offset
        return offsets

    def _create_missing(self, wanted: list[NewTopic], there: dict[str, int]) -> list[str]:
        missing = [topic for topic in wanted if topic.topic not in there]
        if missing:
            self._create(missing)
        return [topic.topic for topic in missing]

    def _create(self, missing: list[NewTopic]) -> None:
        with explained(self._options):
            futures = self._admin.create_topics(missing, request_timeout=CONNECT_TIMEOUT_SECONDS)
            for future in futures.values():
                try:
                    future.result()
                except KafkaException as error:
                    # Another process of ours was faster.
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise
            patiently(lambda: self._require_leaders({topic.topic for topic in missing}))

    def _require_leaders(self, names: set[str]) -> None:
        """Raise while a partition has no leader: a broker says "made" before the topic can be used."""
        metadata = self._admin.list_topics(timeout=CONNECT_TIMEOUT_SECONDS)
        for name in names:
            topic = metadata.topics.get(name)
            if topic is None or any(partition.leader < 0 for partition in topic.partitions.values()):
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"{name} has no leader"))
