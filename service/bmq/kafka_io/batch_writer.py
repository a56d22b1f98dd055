"""Writes the messages of one shard to Kafka: in one transaction a batch, or at least once.

    transaction of batch n   messages ─► their topics
                             n + 1    ─► offset of the group ``<delivery id>-<shard>`` on the marker topic: the mark

The mark is in the same transaction as the messages. So a batch that runs again finds either both or neither, and writes
nothing in the first case. A transactional id belongs to one shard of one checkpoint: whoever opens it later fences the
one before, whose transaction then never commits.

Knows Kafka and marks, but not the contents of messages.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bmq.errors import SetupError, StateError
from bmq.kafka_io import connect
from bmq.kafka_io.block_producer import BlockProducer, Stuck
from bmq.kafka_io.connect import Options, Unreachable, explained

NO_BATCH = -1  # the number before that of the first batch

# Seconds for one step of a transaction. The JVM's producer waits as long for a delivery.
STEP_SECONDS = 120.0

# The longest transaction: the coordinator aborts a longer one. After a crash without a restart, readers of committed
# records wait this long for the records behind it.
TRANSACTION_SECONDS = 600.0

# For the mark, which takes milliseconds. After this time the writer is opened anew, and waits for the coordinator then.
MARK_SECONDS = 3.0

# A group offset expires when nobody has renewed it for `offsets.retention.minutes`, 7 days by default. A shard without
# output renews its mark this often.
RENEW_SECONDS = 3_600.0

# Bytes of a batch of records. Large requests: with the client's default, requests took a tenth of all time.
BATCH_BYTES = 262_144

# The broker decides the limit of a topic; this one is of the client.
LONGEST_MESSAGE_BYTES = 16_777_216

_OPTIONS = {
    "linger.ms": "5",
    "message.max.bytes": str(LONGEST_MESSAGE_BYTES),
    "message.timeout.ms": "120000",
    "queue.buffering.max.kbytes": "131072",
    # Java's rule, so that every client in Java, and records of earlier versions, agree on the partition of a key.
    "partitioner": "murmur2_random",
}

Messages = Iterable[pa.RecordBatch]  # of `wire.outgoing.MESSAGE_SCHEMA`; all rows of a batch have the same header names


class Fenced(SetupError):
    """Somebody else writes with the same transactional id."""


class TooLarge(SetupError):
    """A topic takes no batch of records, or no single one, of the size of one that it got.

    Attributes
    ----------
    topic : its name.
    n_bytes : of key and value of the message, or of the first one of the batch.
    limit : the bytes that the topic takes, as far as they are known.
    is_batch : a batch was too large, and the next ones are smaller; otherwise it was a single message.
    """

    topic = ""
    n_bytes = 0
    limit = LONGEST_MESSAGE_BYTES
    is_batch = False


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
        self.batch_bytes = BATCH_BYTES
        self._sender: _Sender | None = None

    def begin(self, batch: int, marked: int, *, has_messages: bool) -> int:
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
        sender = sender or _Sender({"enable.idempotence": "true"}, self._options, self.batch_bytes)
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

    def at(self, mark: int) -> TopicPartition:
        """Return a mark as the client writes it."""
        return TopicPartition(self.topic, 0, mark)


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
        self.batch_bytes = BATCH_BYTES
        self._marks = marks
        self._sender: _Sender | None = None
        self._mark: int | None = None  # known while nobody else has opened the transactional id
        self._renewed = 0.0
        self._batch = self._marked = NO_BATCH
        self._is_due = False
        self.is_written_before = False

    def begin(self, batch: int, marked: int, *, has_messages: bool) -> int:
        """Find out whether the batch is to be written, and return the last marked batch after it.

        Parameters
        ----------
        batch : the number of the batch.
        marked : the last marked batch before it, from the state; NO_BATCH: none, or not known.
        has_messages : whether the batch has messages.

        Raises
        ------
        StateError : the mark is not the one that the state expects.
        SetupError : Kafka refuses transactions.
        """
        self._batch, self._marked = batch, marked
        if self._sender is None or not _fits(self._mark, batch, marked):
            self._open()  # the shard may have been written elsewhere in between
        _must_fit(self._mark, batch, marked, self._marks)
        self.is_written_before = self._mark == batch + 1
        is_old = time.monotonic() > self._renewed + RENEW_SECONDS
        self._is_due = not self.is_written_before and (has_messages or is_old)
        return batch if self.is_written_before or self._is_due else marked

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
        self._mark, self._renewed = self._batch + 1, time.monotonic()

    def _begin_marked(self) -> "_Sender":
        """Begin a transaction, with the mark in it, and return its sender.

        The mark comes before the messages: if it has to be set anew, nothing is lost with the transaction.
        """
        deadline = time.monotonic() + STEP_SECONDS
        marks, before = self._marks, self._mark
        while True:
            sender, self._sender = self._sender, None  # after a failure the writer is opened anew
            assert sender is not None, "begin() comes first"
            sender.step(sender.producer.begin_transaction)
            try:
                sender.step(partial(sender.producer.send_offset, marks.at(self._batch + 1), marks.group), MARK_SECONDS)
            except (Stuck, Unreachable):
                if time.monotonic() > deadline:
                    raise SetupError(
                        f"Kafka did not take the mark of batch {self._batch} (group {marks.group!r}) in "
                        f"{STEP_SECONDS:.0f} s. Look at the log of the broker that coordinates the group."
                    ) from None
            except BaseException:
                sender.abort()
                raise
            else:
                return sender
            self._open()
            _must_fit(self._mark, self._batch, self._marked, marks)
            if self._mark != before:
                raise Fenced(f"Batch {self._batch} was written elsewhere meanwhile (group {marks.group!r}).")

    def _open(self) -> None:
        """Take the transactional id, which fences and aborts whatever is left of others, and read the mark."""
        of_shard = {
            "transactional.id": self._marks.group,
            "transaction.timeout.ms": f"{TRANSACTION_SECONDS * 1000:.0f}",
        }
        self._sender = None
        sender = _Sender(of_shard, self._options, self.batch_bytes)
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
        self._mark = found.offset if found.offset >= 0 else None


Writer = LooseWriter | MarkedWriter


def _must_fit(mark: int | None, batch: int, marked: int, marks: Marks) -> None:
    """Raise StateError unless the mark is that of an earlier run of the batch, or the one that the state expects."""
    if _fits(mark, batch, marked):
        return
    where = f"group {marks.group!r} on topic {marks.topic!r}"
    if mark is None or mark < marked + 1:
        found = "is gone" if mark is None else f"is {mark}"
        raise StateError(
            f"The mark of the last written batch ({where}) {found}, and the state expects {marked + 1}. Kafka forgets "
            "such a mark after offsets.retention.minutes. Or somebody reset the group, or changed topics.markers. So "
            f"it is not known whether batch {batch} was written by an earlier run. Start once with job.delivery = "
            '"at_least_once" until a batch has run, which may write that batch twice; then go back.'
        )
    raise StateError(
        f"The mark of the last written batch ({where}) is {mark}, but this checkpoint is at batch {batch}. Another "
        "service has gone on with a copy of it, or it was restored from an older copy. Give each service a checkpoint "
        "of its own."
    )


def _fits(mark: int | None, batch: int, marked: int) -> bool:
    if marked == NO_BATCH:
        return mark is None or mark <= batch + 1
    return mark in (marked + 1, batch + 1)


class _Sender:
    """A producer whose errors are explained to a user."""

    def __init__(self, own: dict[str, str], options: Options, batch_bytes: int) -> None:
        self._options = options
        self._is_transactional = "transactional.id" in own
        in_batch = {"batch.size": str(min(batch_bytes, int(options.get("batch.size", batch_bytes))))}
        self.producer = BlockProducer(_OPTIONS | dict(options) | own | in_batch)

    def send(self, messages: Messages) -> None:
        """Hand all messages to the producer, in order."""
        for batch in messages:
            try:
                with explained(self._options):
                    self.producer.produce(batch)
            finally:
                self._raise_failed()  # the first failure says more than what follows from it

    def flush(self) -> None:
        """Return when the broker has all messages.

        Raises
        ------
        SetupError : it did not take one.
        """
        self.producer.flush()
        self._raise_failed()

    def abort(self) -> None:
        """Abort the transaction; otherwise readers of committed records would wait until it times out."""
        with suppress(KafkaException):
            self.producer.abort_transaction(connect.CONNECT_TIMEOUT_SECONDS)

    def step(self, run: Callable[[float], object], seconds: float = STEP_SECONDS) -> None:
        """Run one step of a transaction, each time with this limit, and run it again while its failure may pass."""
        try:
            connect.patiently(lambda: self._try(run, seconds), _may_pass, STEP_SECONDS)
        except SetupError as error:
            if _may_pass(error):
                raise SetupError(
                    f"{error} A broker of one node needs transaction.state.log.replication.factor=1 and "
                    'transaction.state.log.min.isr=1. job.delivery = "at_least_once" needs no transactions.'
                ) from error
            fault = _fault_of(error)
            if fault is not None and fault.code() in _FENCED:
                raise Fenced(
                    f"{error} Another service, or a newer task of this one, writes with the same checkpoint: give "
                    "each service a checkpoint of its own. Or the broker aborted the transaction, because it took "
                    f"longer than {TRANSACTION_SECONDS:.0f} s."
                ) from error
            raise

    def _try(self, run: Callable[[float], object], seconds: float) -> None:
        try:
            with explained(self._options):
                run(seconds)
        except SetupError:
            self._raise_failed()  # the first failure says more than what follows from it
            raise

    def _raise_failed(self) -> None:
        failure = self.producer.failure
        if failure is None or (self._is_transactional and failure.error.code() in _FENCED):
            return  # the next step of the transaction says so
        kind = TooLarge if failure.error.code() == KafkaError.MSG_SIZE_TOO_LARGE else SetupError
        raised = kind(
            f"Kafka did not take a message for topic {failure.topic!r}: {failure.error.str()}. The batch runs again at "
            "the next start."
        )
        if isinstance(raised, TooLarge):
            raised.topic, raised.n_bytes = failure.topic, failure.n_bytes
        raise raised


def _fault_of(error: Exception) -> KafkaError | None:
    """Return the client's error that an error explains."""
    cause = error.__cause__
    return cause.args[0] if isinstance(cause, KafkaException) else None


def _may_pass(error: Exception) -> bool:
    """Return whether a step of a transaction may succeed if it is tried again."""
    fault = _fault_of(error)
    return isinstance(error, Unreachable) and fault is not None and not fault.txn_requires_abort()


_FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
