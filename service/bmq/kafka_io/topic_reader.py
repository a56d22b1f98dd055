"""Reads one topic: from its beginning or its end, or from where a consumer group has come.

Knows Kafka's offsets, but not the meaning of the records.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from bmq.errors import SetupError
from bmq.kafka_io.connect import (
    CONNECT_TIMEOUT_SECONDS,
    LEADERLESS,
    NO_COORDINATOR,
    UNREACHABLE,
    Options,
    consumer,
    explained,
    group_consumer,
    missing_topic,
    patiently,
    poll_many,
)

# How long one call of the Kafka client may last: Python handles Ctrl-C only between calls.
_POLL_SECONDS = 0.2
# A member of a group must ask again within five minutes, so it gets few records at once: each may take seconds.
_POLL_RECORDS, _POLL_RECORDS_OF_MEMBER = 1_000, 20

# The client recovers from these errors by itself, and the reader continues at its position.
_PASSING = LEADERLESS | UNREACHABLE | {KafkaError._PARTITION_EOF}


class Start(IntEnum):
    """The position at which a reader begins."""

    BEGINNING = 0
    END = 1


class RecordReader:
    """What the readers of a topic have in common. Only one thread may use one at a time."""

    passing = _PASSING  # the errors that are no failure
    most = _POLL_RECORDS  # records at once

    def __init__(self, options: Options, topic: str, client: Consumer) -> None:
        self._options = options
        self._topic = topic
        self._consumer = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def follow(self, deadline: float | None = None) -> Iterator[Message]:
        """Return records as they arrive, until ``deadline`` (of `time.monotonic`); None: forever."""
        while deadline is None or time.monotonic() < deadline:
            for message in self.poll():
                yield message
                self.mark([message])

    def poll(self) -> list[Message]:
        """Return the records that have come, after a fraction of a second at most."""
        return [message for message in self._poll() if message.error() is None]

    def mark(self, messages: Sequence[Message]) -> None:
        """Note that records are read, if this reader has a group."""

    def _poll(self) -> Sequence[Message]:
        with explained(self._options):
            polled = poll_many(self._consumer, self.most, _POLL_SECONDS)
            for message in polled:
                error = message.error()
                if error is not None and error.code() not in self.passing:
                    raise KafkaException(error)
            return polled

    def _offsets_of(self, at: TopicPartition) -> tuple[int, int]:
        found: tuple[int, int] = self._consumer.get_watermark_offsets(at, CONNECT_TIMEOUT_SECONDS)
        return found

    def _partitions(self) -> list[TopicPartition]:
        # Metadata of all topics: some brokers create a missing topic when a client asks for its metadata.
        topics = self._consumer.list_topics(timeout=CONNECT_TIMEOUT_SECONDS).topics
        if self._topic not in topics:
            raise missing_topic(self._options, self._topic)
        return [TopicPartition(self._topic, n, OFFSET_BEGINNING) for n in topics[self._topic].partitions]


class TopicReader(RecordReader):
    """A reader of all partitions of one topic, without a consumer group.

    The constructor fixes the position, not the first read. So the reader certainly sees every record that is published
    after its construction.

    Parameters
    ----------
    options : client options with `bootstrap.servers`.
    n_before : with `Start.END`, begin so many offsets before the end of each partition, as far as Kafka has them.
    offsets : next offset by partition, where an earlier reader stopped. It goes before `start`, unless Kafka has no
        such offset any more.

    Raises
    ------
    SetupError
        If the broker does not answer or has no such topic.
    """

    # The client looks for its group's coordinator, and may not be allowed to; but this reader needs no group.
    passing = _PASSING | {KafkaError.GROUP_AUTHORIZATION_FAILED}

    def __init__(
        self, options: Options, topic: str, start: Start, n_before: int = 0, offsets: Mapping[int, int] | None = None
    ) -> None:
        super().__init__(options, topic, consumer(options))
        known = offsets or {}
        with explained(options, self._consumer):
            partitions = self._partitions()
            for at in partitions:
                if start is Start.END or at.partition in known:
                    first, end = patiently(partial(self._offsets_of, at))
                    at.offset = first_offset(first, end, start, n_before, known.get(at.partition))
            self._consumer.assign(partitions)
        self._n_partitions = len(partitions)

    def to_end(self) -> Iterator[Message]:
        """Return all records up to the end of every partition.

        Compaction, aborted records and the markers of transactions leave gaps in the offsets. So the broker's
        end-of-partition signal decides, not a count of records. If a transaction is open, the partition ends at its
        first record.

        Raises
        ------
        SetupError
            No record and no signal came for CONNECT_TIMEOUT_SECONDS.
        """
        ended: set[int] = set()
        last_sign = time.monotonic()
        while len(ended) < self._n_partitions:
            polled = self._poll()
            for message in polled:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition() or 0)
            if polled:
                last_sign = time.monotonic()
            elif time.monotonic() - last_sign > CONNECT_TIMEOUT_SECONDS:
                raise SetupError(
                    f"Topic {self._topic!r} could not be read to its end: the broker fell silent. "
                    "Try again when it is well."
                )


def first_offset(first: int, end: int, start: Start, n_before: int, known: int | None) -> int:
    """Return the offset at which a reader begins in a partition that has the offsets from ``first`` to before ``end``.

    If Kafka has deleted the offset that is known, the reader begins with the next one that is there. An offset behind
    the end belongs to an earlier topic of that name.
    """
    if known is not None and known <= end:
        return max(first, known)
    return max(first, end - n_before) if start is Start.END else first


# A member that asks for nothing for five minutes is out of the group. The next poll takes it in again.
_PASSING_FOR_MEMBERS = _PASSING | {KafkaError._MAX_POLL_EXCEEDED}

# The group has members, whose partitions nobody else may commit: they have done it.
_OTHER_MEMBERS = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
)


def _may_pass(error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in LEADERLESS | NO_COORDINATOR


class GroupReader(RecordReader):
    """A member of a consumer group, which divides the partitions of one topic among its members.

    A record counts as read when `follow` is asked for the next one, or by `mark`. The offsets of read records are
    committed every five seconds, when another member takes a partition, and by `close`. So after a crash, and when
    members join or leave, the group gets the last records again, and misses none.

    Parameters
    ----------
    start : where a new group begins. The constructor commits this position, so that the group has it from then on.

    Raises
    ------
    SetupError
        If the broker does not answer or has no such topic.
    """

    passing = _PASSING_FOR_MEMBERS
    most = _POLL_RECORDS_OF_MEMBER

    def __init__(self, options: Options, topic: str, group: str, start: Start) -> None:
        super().__init__(options, topic, group_consumer(options, group))
        with explained(options, self._consumer):
            partitions = self._partitions()
            if start is Start.END:
                self._begin_at_end(partitions)
            self._consumer.subscribe([topic])

    def _begin_at_end(self, partitions: list[TopicPartition]) -> None:
        """Commit the end of each partition of which the group has committed nothing."""
        committed = patiently(partial(self._consumer.committed, partitions, CONNECT_TIMEOUT_SECONDS), _may_pass)
        new = [
            TopicPartition(at.topic, at.partition, patiently(partial(self._offsets_of, at))[1])
            for at in committed
            if at.offset < 0
        ]
        if new:
            try:
                patiently(partial(self._consumer.commit, offsets=new, asynchronous=False), _may_pass)
            except KafkaException as error:
                if error.args[0].code() not in _OTHER_MEMBERS:
                    raise

    def mark(self, messages: Sequence[Message]) -> None:
        """Have the offsets behind records committed with the next commit."""
        for message in messages:
            with suppress(KafkaException):  # another member of the group has the partition now, and reads on there
                self._consumer.store_offsets(message)
