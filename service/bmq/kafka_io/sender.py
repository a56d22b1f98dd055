"""A producer for the messages of one shard whose errors say what to do, with or without transactions.

Knows how Kafka refuses a message or a step of a transaction, but neither marks nor batches.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from bmq.errors import SetupError
from bmq.kafka_io import connect
from bmq.kafka_io.block_producer import BlockProducer, Failure
from bmq.kafka_io.connect import Options, Unreachable, explained

# Seconds for one step of a transaction. The JVM's producer waits as long for a delivery.
STEP_SECONDS = 120.0

# The longest transaction: the coordinator aborts a longer one. After a crash without a restart, readers of committed
# records wait this long for the records behind it.
TRANSACTION_SECONDS = 600.0

# Bytes of a batch of records, unless the options say something else.
BATCH_BYTES = 262_144

# The broker decides the limit of a topic; this one is of the client.
LONGEST_MESSAGE_BYTES = 16_777_216

BATCH_RUNS_AGAIN = "The batch runs again at the next start."

_OPTIONS = {
    "linger.ms": "5",
    "message.max.bytes": str(LONGEST_MESSAGE_BYTES),
    "message.timeout.ms": "120000",
    "queue.buffering.max.kbytes": "131072",
    # Java's rule, so that every client in Java, and records of earlier versions, agree on the partition of a key.
    "partitioner": "murmur2_random",
}

_FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})

Messages = Iterable[pa.RecordBatch]  # of `wire.outgoing.MESSAGE_SCHEMA`; all rows of a batch have the same header names


class Fenced(SetupError):
    """Somebody else writes with the same transactional id."""


class TooLarge(SetupError):
    """A topic refused a batch of records, or a single record, for its size.

    Attributes
    ----------
    topic : its name.
    n_bytes : of key and value of the message, or of the first one of the batch.
    limit : the most bytes that the topic accepts, as far as they are known.
    is_batch : a batch was too large, and the next ones are smaller; otherwise it was a single message.
    """

    topic = ""
    n_bytes = 0
    limit = LONGEST_MESSAGE_BYTES
    is_batch = False


class Sender:
    """A producer whose errors are explained to a user.

    Parameters
    ----------
    own : options of this producer; they take precedence over ``options``.
    options : of a librdkafka client, with `bootstrap.servers`.
    batch_bytes : the most bytes of a batch of records, unless it has only one.
    after_failure : the sentence of an error that says what follows if Kafka does not take a message.
    """

    def __init__(
        self, own: dict[str, str], options: Options, batch_bytes: int, after_failure: str = BATCH_RUNS_AGAIN
    ) -> None:
        self._options = options
        self._after_failure = after_failure
        self._is_transactional = "transactional.id" in own
        self.producer = BlockProducer(_OPTIONS | dict(options) | own | {"batch.size": str(batch_bytes)})

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
        if self.producer.failure is None:
            return
        self.producer.wait_for_cause()
        if not (self._is_transactional and self.producer.failure.error.code() in _FENCED):
            # Without a variable for the error: it would keep the producer alive through its traceback.
            raise _as_error(self.producer.failure, self._after_failure)
        # The next step of the transaction says so.


def _as_error(failure: Failure, after_failure: str) -> SetupError:
    text = f"Kafka did not take a message for topic {failure.topic!r}: {failure.error.str()}. {after_failure}"
    if failure.error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
        return SetupError(text)
    error = TooLarge(text)
    error.topic, error.n_bytes = failure.topic, failure.n_bytes
    return error


def _fault_of(error: Exception) -> KafkaError | None:
    """Return the client's error that an error explains."""
    cause = error.__cause__
    return cause.args[0] if isinstance(cause, KafkaException) else None


def _may_pass(error: Exception) -> bool:
    """Return whether a step of a transaction may succeed if it is tried again."""
    fault = _fault_of(error)
    return isinstance(error, Unreachable) and fault is not None and not fault.txn_requires_abort()
