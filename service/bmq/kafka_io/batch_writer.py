"""Writes the messages of one shard to Kafka: in one transaction a batch, or at least once.

    transaction of batch n   messages ─► their topics
                             n + 1    ─► offset of the group ``<delivery id>-<shard>`` on the marker topic: the mark
                             digest   ─► metadata of that offset

The mark is in the same transaction as the messages. So a batch that runs again finds either both or neither, and writes
nothing in the first case. A transactional id belongs to one shard of one checkpoint: whoever opens it later fences the
one before, whose transaction then never commits.

A checkpoint that was restored from a copy, or lost its newest file, plans a batch anew, and that batch reads other
records than the marked one of its number. The digest of what a batch has read distinguishes the two.

Knows Kafka and marks, but not the contents of messages.
"""

import time
from dataclasses import dataclass
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bmq.errors import SetupError, StateError
from bmq.kafka_io import connect
from bmq.kafka_io.block_producer import Stuck
from bmq.kafka_io.connect import Options, Unreachable
from bmq.kafka_io.sender import BATCH_BYTES, STEP_SECONDS, TRANSACTION_SECONDS, Fenced, Messages, Sender

NO_BATCH = -1  # the number before that of the first batch

# For the mark, which takes milliseconds. After this time the writer is opened anew, and waits for the coordinator then.
MARK_SECONDS = 3.0

# A group offset expires when nobody has renewed it for `offsets.retention.minutes`, 7 days by default. A shard without
# output renews its mark this often.
RENEW_SECONDS = 3_600.0

_WRITE_TWICE = (
    'Start with job.delivery = "at_least_once" until batch {batch} is over, which may write its events twice; '
    "then go back."
)


@dataclass(frozen=True, slots=True)
class BatchRun:
    """A run of a batch, as its writer must know it.

    Attributes
    ----------
    batch : the number of the batch.
    marked : the last marked batch before it, from the state; NO_BATCH: none, or not known.
    has_messages : whether the batch has messages.
    digest : of what the batch has read.
    """

    batch: int
    marked: int
    has_messages: bool
    digest: str


class LooseWriter:
    """Writes each batch at least once: one that runs again is written again.

    Parameters
    ----------
    options : of a librdkafka client.

    Attributes
    ----------
    batch_bytes : the most bytes of a batch of records, unless it has only one; for the next producer.
    """

    is_written_before = False

    def __init__(self, options: Options) -> None:
        self._options = options
        self.batch_bytes = int(options.get("batch.size", BATCH_BYTES))
        self._sender: Sender | None = None

    def begin(self, run: BatchRun) -> int:
        """Return NO_BATCH: this writer sets no marks."""
        return NO_BATCH

    def write(self, messages: Messages) -> None:
        """Write the messages; return when the broker has them all.

        Raises
        ------
        SetupError : the broker did not take a message in time.
        """
        # After a failure another producer is made: this one remembers what failed.
        sender, self._sender = self._sender, None
        sender = sender or Sender({"enable.idempotence": "true"}, self._options, self.batch_bytes)
        sender.send(messages)
        sender.flush()
        self._sender = sender


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the marks of a shard are.

    Attributes
    ----------
    group : the consumer group of the mark, and the transactional id.
    topic : the marker topic. The mark is an offset of its partition 0; nobody writes records there.
    """

    group: str
    topic: str

    def place(self) -> str:
        """Return the names for a person."""
        return f"group {self.group!r} on topic {self.topic!r}"

    def at(self, mark: int, digest: str = "") -> TopicPartition:
        """Return a mark as the client writes it."""
        return TopicPartition(self.topic, 0, mark, digest)


class MarkedWriter:
    """Writes each batch exactly once, with its mark.

    Use: ``begin`` says which batch will be the marked one; then the caller commits its state, with that number in it;
    then ``write`` writes and marks, unless an earlier run of the batch did.

    Parameters
    ----------
    options : of a librdkafka client.

    Attributes
    ----------
    is_written_before : whether an earlier run has written the batch that ``begin`` named.
    batch_bytes : as of `LooseWriter`.
    """

    def __init__(self, options: Options, marks: Marks) -> None:
        self._options = options
        self.batch_bytes = int(options.get("batch.size", BATCH_BYTES))
        self._marks = marks
        self._sender: Sender | None = None
        self._mark: int | None = None  # known while nobody else has opened the transactional id
        self._digest = ""  # in the mark
        self._renewed = 0.0
        self._run = BatchRun(NO_BATCH, NO_BATCH, has_messages=False, digest="")
        self._is_due = False
        self.is_written_before = False

    def begin(self, run: BatchRun) -> int:
        """Find out whether the batch is to be written, and return the last marked batch after it.

        Raises
        ------
        StateError : the mark is not the one that the state expects, or that of another batch with this number.
        SetupError : Kafka refuses transactions.
        """
        self._run = run
        if self._sender is None or not _fits(self._mark, run):
            self._open()  # the shard may have been written elsewhere in between
        _must_fit(self._mark, run, self._marks)
        self.is_written_before = self._mark == run.batch + 1
        # A mark without a digest is of an older version.
        if self.is_written_before and self._digest not in ("", run.digest):
            raise _planned_anew(run.batch, self._marks)
        is_old = time.monotonic() > self._renewed + RENEW_SECONDS
        self._is_due = not self.is_written_before and (run.has_messages or is_old)
        return run.batch if self.is_written_before or self._is_due else run.marked

    def write(self, messages: Messages) -> None:
        """Write the messages and the mark of the batch in one transaction, if ``begin`` found that they are due.

        Raises
        ------
        Fenced : somebody else has opened the transactional id. Another run of the batch opens it anew.
        SetupError : the broker did not take a message, or did not commit in time.
        StateError : the mark was lost since ``begin``.
        """
        if not self._is_due:
            return
        sender = self._begin_marked()
        try:
            sender.send(messages)
            sender.flush()
            sender.step(sender.producer.commit_transaction)
        except BaseException:
            sender.abort()
            raise
        self._sender, self._is_due = sender, False
        self._mark, self._digest, self._renewed = self._run.batch + 1, self._run.digest, time.monotonic()

    def _begin_marked(self) -> "Sender":
        """Begin a transaction, with the mark in it, and return its sender.

        The mark comes before the messages: if it has to be set anew, nothing is lost with the transaction.
        """
        deadline = time.monotonic() + STEP_SECONDS
        marks, before, run = self._marks, self._mark, self._run
        mark = marks.at(run.batch + 1, run.digest)
        while True:
            sender, self._sender = self._sender, None  # after a failure the writer is opened anew
            assert sender is not None, "begin() comes first"
            sender.step(sender.producer.begin_transaction)
            try:
                sender.step(partial(sender.producer.send_offset, mark, marks.group), MARK_SECONDS)
            except (Stuck, Unreachable):
                if time.monotonic() > deadline:
                    raise SetupError(
                        f"Kafka did not take the mark of batch {run.batch} (group {marks.group!r}) in "
                        f"{STEP_SECONDS:.0f} s. Look at the log of the broker that coordinates the group."
                    ) from None
            except BaseException:
                sender.abort()
                raise
            else:
                return sender
            self._open()
            _must_fit(self._mark, run, marks)
            if self._mark != before:
                raise Fenced(f"Batch {run.batch} was written elsewhere meanwhile (group {marks.group!r}).")

    def _open(self) -> None:
        """Take the transactional id, which fences and aborts whatever is left of others, and read the mark."""
        of_shard = {
            "transactional.id": self._marks.group,
            "transaction.timeout.ms": f"{TRANSACTION_SECONDS * 1000:.0f}",
        }
        self._sender = None
        sender = Sender(of_shard, self._options, self.batch_bytes)
        sender.step(sender.producer.init_transactions)
        # Whoever reads uncommitted records gets the mark from before a transaction that just ends.
        of_group = {"group.id": self._marks.group, connect.ISOLATION_OPTION: connect.ISOLATION}
        reader = connect.consumer(dict(self._options) | of_group)
        try:
            sender.step(lambda seconds: self._read_mark(reader))
        finally:
            reader.close()
        self._sender = sender
        self._renewed = time.monotonic() if self._mark is not None else float("-inf")

    def _read_mark(self, reader: Consumer) -> None:
        try:
            (found,) = reader.committed([self._marks.at(0)], timeout=connect.CONNECT_TIMEOUT_SECONDS)
        except KafkaException as error:
            # The call only says that its time is over. The next poll returns the reason.
            said = reader.poll(0)
            reason = None if said is None else said.error()
            if reason is None:
                raise
            raise KafkaException(KafkaError(reason.code(), f"group {self._marks.group!r}: {reason.str()}")) from error
        if found.error is not None:
            raise KafkaException(found.error)
        self._mark, self._digest = found.offset if found.offset >= 0 else None, found.metadata or ""


Writer = LooseWriter | MarkedWriter


def _must_fit(mark: int | None, run: BatchRun, marks: Marks) -> None:
    """Raise StateError unless the mark is that of an earlier run of the batch, or the one that the state expects."""
    if _fits(mark, run):
        return
    batch, marked, where = run.batch, run.marked, marks.place()
    if mark is None or mark < marked + 1:
        found = "is gone" if mark is None else f"is {mark}"
        raise StateError(
            f"The mark of the last written batch ({where}) {found}, and the state expects {marked + 1}. Kafka forgets "
            "such a mark after offsets.retention.minutes. Or somebody reset the group, or changed topics.markers. So "
            f"it is not known whether batch {batch} was written by an earlier run. " + _WRITE_TWICE.format(batch=batch)
        )
    raise StateError(
        f"The mark of the last written batch ({where}) is {mark}, but this checkpoint is at batch {batch}. Another "
        "service has gone on with a copy of it: give each service a checkpoint of its own. Or it was restored from an "
        f'older copy: run with job.delivery = "at_least_once" until batch {mark} is over; events since then come twice.'
    )


def _fits(mark: int | None, run: BatchRun) -> bool:
    if run.marked == NO_BATCH:
        return mark is None or mark <= run.batch + 1
    return mark in (run.marked + 1, run.batch + 1)


def _planned_anew(batch: int, marks: Marks) -> StateError:
    return StateError(
        f"An earlier run wrote batch {batch} to Kafka ({marks.place()}), but it had read other records: the checkpoint "
        "no longer has the offsets of that batch. The machine lost power, or the checkpoint was restored from a copy, "
        "or two services have a copy of it. It is not known which events are missing. "
        + _WRITE_TWICE.format(batch=batch)
    )
