"""A producer of the C library that takes messages by the thousand, with or without transactions.

    RecordBatch of messages ─► kernel ─► librdkafka's queues ─► broker

Knows C calls and errors. When a transaction begins and ends is the caller's affair.
"""

import ctypes
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from bmq.kafka_io.librdkafka import PRODUCER, Delivery, library, new_client
from bmq.kernels.text.produced_messages import produce_messages
from bmq.records import Bools, Bytes, Int32s

_GRACE_SECONDS = 1.0  # a call that keeps to its limit comes back in this time
_FULL_MS = 50  # how long to wait for room in the queue before the next attempt
_FLUSH_MS = 50  # how often to look whether a message has failed
_CAUSE_SECONDS = 5.0  # the cause follows its consequences within a tenth of a second

# Why a message fails because another one has failed.
_CONSEQUENCES = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._STATE})


class Stuck(Exception):
    """A call into the library does not come back, although it has a time limit; the producer is of no more use.

    librdkafka 2.16 does not keep to the limit of `rd_kafka_send_offsets_to_transaction`, and waits for ever when the
    group's coordinator was away for a moment (its issues 5456 and 5511).
    """


@dataclass(frozen=True, slots=True)
class Failure:
    """The first message that Kafka did not take.

    Attributes
    ----------
    n_bytes : of key and value.
    """

    error: KafkaError
    topic: str
    n_bytes: int


class BlockProducer:
    """One producer. Methods raise KafkaException as those of `confluent_kafka.Producer` do.

    Parameters
    ----------
    options : of a librdkafka client, with `bootstrap.servers`.

    Attributes
    ----------
    failure : known after `produce`, `flush` or the end of a transaction; None: no message has failed.

    Raises
    ------
    SetupError : an option is wrong.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.failure: Failure | None = None
        self._delivery = Delivery(_noter(weakref.ref(self)))
        self._handle = new_client(PRODUCER, dict(options) | {"delivery.report.only.error": "true"}, self._delivery)
        self._topics: dict[str, int] = {}
        self._names: dict[str, Any] = {}  # of headers, as C strings
        self._finalizer = weakref.finalize(self, _destroy, self._handle, self._topics, self._delivery)

    def produce(self, messages: pa.RecordBatch) -> None:
        """Hand all messages to the library, in order; wait while its queue is full.

        Parameters
        ----------
        messages : `wire.outgoing.MESSAGE_SCHEMA`; all rows have the same header names.
        """
        n = messages.num_rows
        topics = messages.column("topic").dictionary_encode()
        handles = np.array([self._topic(name) for name in topics.dictionary.to_pylist()], dtype=np.int64)
        headers = messages.column("headers").flatten()
        names = headers.field("key")[: len(headers) // n if n else 0].to_pylist()
        columns = (
            handles[topics.indices.to_numpy()],
            _parts(messages.column("key")),
            _parts(messages.column("value")),
            np.array([ctypes.addressof(self._name(name)) for name in names], dtype=np.int64),
            _parts(headers.field("value"))[1:],
        )
        c = library()
        taken = 0
        while taken < n and self.failure is None:
            taken, error = produce_messages(c.produce, self._handle, taken, *columns)
            if error and c.error_code(error) == KafkaError._QUEUE_FULL:
                c.error_destroy(error)
                c.poll(self._handle, _FULL_MS)
            elif error:
                c.poll(self._handle, 0)  # an earlier message may have failed, and this one because of it
                refused = _error_at(error)
                n_bytes = sum(len(messages.column(name)[taken].as_py() or b"") for name in ("key", "value"))
                self._keep(Failure(refused, messages.column("topic")[taken].as_py(), n_bytes))
                raise KafkaException(refused)
        c.poll(self._handle, 0)

    def flush(self) -> None:
        """Return when the broker has all messages, or when the first one has failed.

        A commit flushes, too. But if a message has failed, librdkafka 2.16 sends none behind it, and the commit still
        waits for them until its limit.
        """
        while library().flush(self._handle, _FLUSH_MS) and self.failure is None:
            pass
        self.wait_for_cause()

    def wait_for_cause(self) -> None:
        """Wait a moment for the message that was refused, if only messages are known that failed because of it.

        In a transaction, librdkafka purges its queues before it reports the message that it does so for.
        """
        deadline = time.monotonic() + _CAUSE_SECONDS
        while self._is_consequence() and time.monotonic() < deadline:
            library().flush(self._handle, _FLUSH_MS)

    def init_transactions(self, seconds: float) -> None:
        """Take the transactional id; fence whoever had it, and end its transaction."""
        _check(library().init_transactions(self._handle, _ms(seconds)))

    def begin_transaction(self, seconds: float) -> None:
        """Begin a transaction."""
        _check(library().begin_transaction(self._handle))

    def send_offset(self, place: TopicPartition, group: str, seconds: float) -> None:
        """Set the offset of a consumer group, with its metadata, as part of the transaction.

        Raises
        ------
        Stuck : no answer in that time.
        """
        errors: SimpleQueue[int | None] = SimpleQueue()
        Thread(target=self._send_offset, args=(place, group, _ms(seconds), errors), daemon=True).start()
        try:
            error = errors.get(timeout=seconds + _GRACE_SECONDS)
        except Empty:
            self._finalizer.detach()  # nobody can free what a call still uses
            raise Stuck from None
        _check(error)

    def _send_offset(self, place: TopicPartition, group: str, limit_ms: int, errors: "SimpleQueue[int | None]") -> None:
        c = library()
        offsets, members = c.offsets_new(1), c.group_new(group.encode())
        element = _Offset.from_address(c.offsets_add(offsets, place.topic.encode(), place.partition))
        metadata = (place.metadata or "").encode()
        # With the zero byte at its end: the Python client reads a C string, and the library copies so many bytes.
        n_bytes = len(metadata) + 1 if metadata else 0
        element.offset, element.metadata, element.n_metadata_bytes = place.offset, metadata, n_bytes
        errors.put(c.send_offsets(self._handle, offsets, members, limit_ms))
        element.metadata, element.n_metadata_bytes = None, 0  # it is Python's, and the library has copied it
        c.offsets_destroy(offsets)
        c.group_destroy(members)

    def commit_transaction(self, seconds: float) -> None:
        """Flush, and commit the transaction."""
        _check(library().commit_transaction(self._handle, _ms(seconds)))

    def abort_transaction(self, seconds: float) -> None:
        """Drop the messages that wait, and abort the transaction."""
        _check(library().abort_transaction(self._handle, _ms(seconds)))

    def note(self, message: "_Message") -> None:
        """Keep the failure of a message that was handed over."""
        if message.error:
            c = library()
            error = KafkaError(message.error, c.text_of(message.error).decode())
            self._keep(Failure(error, c.topic_name(message.topic).decode(), message.n_bytes + message.n_key_bytes))

    def _keep(self, failure: Failure) -> None:
        """Keep the first failure that is no consequence of another one."""
        if self.failure is None or self._is_consequence():
            self.failure = failure

    def _is_consequence(self) -> bool:
        return self.failure is not None and self.failure.error.code() in _CONSEQUENCES

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            c = library()
            handle = c.topic_new(self._handle, name.encode(), None)
            if not handle:
                raise KafkaException(KafkaError(c.last_fault(), f"topic {name!r} is not possible"))
            self._topics[name] = handle
        return self._topics[name]

    def _name(self, name: str) -> Any:
        if name not in self._names:
            self._names[name] = ctypes.create_string_buffer(name.encode())
        return self._names[name]


def produce_no_messages() -> None:
    """Call the kernel of this module without a message, so that it is compiled, or loaded, before the first start."""
    none = np.zeros(0, dtype=np.int64)
    texts = _parts(pa.array([], pa.binary()))
    produce_messages(0, 0, 0, none, texts, texts, none, texts[1:])


class _Message(ctypes.Structure):
    """The beginning of `rd_kafka_message_t`."""

    _fields_ = (
        ("error", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("value", ctypes.c_void_p),
        ("n_bytes", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("n_key_bytes", ctypes.c_size_t),
    )


class _Offset(ctypes.Structure):
    """The beginning of `rd_kafka_topic_partition_t`."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_char_p),
        ("n_metadata_bytes", ctypes.c_size_t),
    )


def _noter(producer: "weakref.ref[BlockProducer]") -> Any:
    def note(client: int, message: int, opaque: int) -> None:
        found = producer()
        if found is not None:
            found.note(_Message.from_address(message))

    return note


def _destroy(client: int, topics: Mapping[str, int], delivery: Any) -> None:
    c = library()
    for topic in topics.values():
        c.topic_destroy(topic)
    c.destroy(client, 0)


def _check(error: int | None) -> None:
    """Raise the error at an address; do nothing at 0."""
    if error:
        raise KafkaException(_error_at(error))


def _error_at(address: int) -> KafkaError:
    """Return the error at an address, and free it there."""
    c = library()
    found = KafkaError(
        c.error_code(address),
        c.error_text(address).decode(errors="replace"),
        fatal=bool(c.error_is_fatal(address)),
        retriable=bool(c.error_is_retriable(address)),
        txn_requires_abort=bool(c.error_ends_transaction(address)),
    )
    c.error_destroy(address)
    return found


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _parts(column: pa.Array) -> tuple[Bools, Int32s, Bytes]:
    """Return which rows of a binary column are there, where each begins, and the bytes; of these, views."""
    _, starts, data = column.buffers()
    rows = slice(column.offset, column.offset + len(column) + 1)
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    begins: Int32s = np.frombuffer(starts, np.int32)[rows] if starts else np.zeros(1, np.int32)
    return is_there, begins, np.frombuffer(data or b"", np.uint8)
