"""Reads a range of offsets of one partition, in blocks of records that are columns.

    broker ─► librdkafka's queue ─► addresses of messages ─► kernels ─► RecordBlock

A range ends by position and never by a count: control markers, aborted records and compaction leave gaps in the
offsets. Knows offsets and bytes, but not the meaning of the records.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from bmq.errors import SetupError
from bmq.kafka_io.connect import LEADERLESS, UNREACHABLE
from bmq.kafka_io.librdkafka import Connection, library
from bmq.kernels.text.message_columns import NULL, copy_messages, describe_messages, free_messages
from bmq.records import Bools, Bytes, Int32s, Int64s

# The columns of a block fit into the processor's cache; each block costs a frame for every shard.
BLOCK_RECORDS = 20_000
BLOCK_BYTES = 33_554_432  # a block of long records ends earlier, so that a task needs no more memory than this

# Seconds without a record or an answer after which a task fails, as with Spark's own source (spark.network.timeout).
# A broker that starts again, or a partition whose leader moves, takes a few seconds.
PATIENCE_SECONDS = 120.0
_POLL_MS = 100

# The broker does not have the offset that was asked for.
_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION})
# The library tries again by itself. A deleted topic is among them: the planner of the next batch names it.
_PASSING = LEADERLESS | UNREACHABLE | {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
_ASK_MS = 10_000


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Records of one partition, ascending by offset.

    Attributes
    ----------
    offsets : int64[n], n > 0.
    times : int64[n], the records' timestamps, epoch milliseconds; any 64-bit number.
    keys, values : large_binary[n], may be null.
    """

    topic: str
    partition: int
    offsets: Int64s
    times: Int64s
    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets of a range that the broker no longer has.

    Attributes
    ----------
    expected : the first offset that is gone.
    first : the first offset that the broker has; it may be before ``expected`` if the partition lost its end.
    """

    topic: str
    partition: int
    expected: int
    first: int


def read_range(connection: Connection, topic: str, partition: int, start: int, end: int) -> Iterator[RecordBlock | Gap]:
    """Return the records of ``[start, end)`` in blocks, and a `Gap` in the place of records that are gone.

    Raises
    ------
    SetupError
        The broker refuses, or nothing came for PATIENCE_SECONDS.
    """
    position = start
    last_sign = time.monotonic()
    while position < end:
        reader = _PartitionReader(connection, topic, partition, position, end)
        try:
            yield from reader.blocks(last_sign)
        finally:
            position, last_sign = reader.position, reader.last_sign
            reader.close()
        if position >= end:
            return
        gap = _find_gap(connection, topic, partition, position)
        if gap is not None:
            yield gap
            # A partition that lost its end has nothing more of this range.
            position = gap.first if gap.first > position else end
        elif time.monotonic() - last_sign > PATIENCE_SECONDS:
            raise _silent(connection, topic, partition, position)
        else:
            time.sleep(_POLL_MS / 1000)


def read_no_messages() -> None:
    """Call each kernel of this module without a message, so that it is compiled before the first start."""
    none, columns = np.zeros(0, dtype=np.int64), _Columns.empty(0)
    describe_messages(none, 0, *columns.all())
    starts, texts = _room(none)
    copy_messages(none, starts, texts, starts, texts)
    free_messages(none, 0)


def _find_gap(connection: Connection, topic: str, partition: int, position: int) -> Gap | None:
    """Return what is gone at ``position``; None if the broker does not answer, or has the offset after all."""
    found = connection.watermarks(topic, partition, _ASK_MS)
    if found is None:
        return None
    first, after = found
    if first > position:
        return Gap(topic, partition, position, first)
    return Gap(topic, partition, position, after) if after < position else None


def _place(connection: Connection, topic: str, partition: int) -> str:
    return f"Topic {topic!r} partition {partition} of Kafka at {connection.servers}"


def _silent(connection: Connection, topic: str, partition: int, position: int) -> SetupError:
    return SetupError(
        f"{_place(connection, topic, partition)} gave nothing from offset {position} on for {PATIENCE_SECONDS:.0f} s. "
        "Start the service again when the broker is well: it goes on at this batch."
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """What messages have besides their bytes, a row for each; see `describe_messages`."""

    faults: Int32s
    offsets: Int64s
    times: Int64s
    key_lengths: Int64s
    value_lengths: Int64s

    @classmethod
    def empty(cls, n: int) -> "_Columns":
        offsets, times, key_lengths, value_lengths = np.zeros((4, n), dtype=np.int64)
        return cls(np.zeros(n, dtype=np.int32), offsets, times, key_lengths, value_lengths)

    def all(self) -> tuple[Int32s, Int64s, Int64s, Int64s, Int64s]:
        return self.faults, self.offsets, self.times, self.key_lengths, self.value_lengths

    def rows(self, rows: slice) -> "_Columns":
        """Return views of some rows."""
        return _Columns(
            self.faults[rows],
            self.offsets[rows],
            self.times[rows],
            self.key_lengths[rows],
            self.value_lengths[rows],
        )

    def keep(self, is_kept: Bools) -> None:
        """Move the kept rows to the front."""
        n = int(np.count_nonzero(is_kept))
        for column in self.all():
            column[:n] = column[is_kept]


def _room(lengths: Int64s) -> tuple[Int64s, Bytes]:
    """Return where texts of these lengths begin, one behind another, and room for all of them."""
    starts = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(np.maximum(lengths, 0), out=starts[1:])
    return starts, np.empty(int(starts[-1]), dtype=np.uint8)


def _binary(lengths: Int64s, starts: Int64s, data: Bytes) -> pa.LargeBinaryArray:
    """Return an Arrow array over the two arrays; nothing is copied."""
    is_there = lengths != NULL
    valid = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, [valid, pa.py_buffer(starts), pa.py_buffer(data)])


class _PartitionReader:
    """One run of the library's fetcher over one partition, with a queue of its own.

    A new queue for each run, so that no record of an earlier run can be in it. The library fetches until `close`.
    """

    def __init__(self, connection: Connection, topic: str, partition: int, start: int, end: int) -> None:
        c = library()
        self.position = start
        self.last_sign = 0.0
        self._connection = connection
        self._topic, self._partition, self._end = topic, partition, end
        self._is_at_end = False
        self._held: Int64s = np.zeros(BLOCK_RECORDS, dtype=np.int64)  # addresses of messages
        self._columns = _Columns.empty(BLOCK_RECORDS)
        self._n_held = 0
        self._handle = connection.topic(topic)
        c.poll(connection.handle, 0)  # the library renews its credentials in this call
        self._queue = c.queue_new(connection.handle)
        if c.start(self._handle, partition, start, self._queue):
            text = c.text_of(c.last_fault()).decode(errors="replace")
            c.queue_destroy(self._queue)
            raise SetupError(f"{_place(connection, topic, partition)} cannot be read from {start}: {text}.")

    def close(self) -> None:
        """Stop fetching, and free all messages."""
        c = library()
        free_messages(self._held[: self._n_held], c.destroy_message)
        self._n_held = 0
        c.stop(self._handle, self._partition)
        c.queue_destroy(self._queue)

    def blocks(self, last_sign: float) -> Iterator[RecordBlock]:
        """Return blocks until the range ends, or until the broker does not have the next offset."""
        self.last_sign = last_sign
        n_bytes = 0
        while self.position < self._end:
            is_gone, n_new_bytes = self._take(self._consume())
            if time.monotonic() - self.last_sign > PATIENCE_SECONDS:
                raise _silent(self._connection, self._topic, self._partition, self.position)
            n_bytes += n_new_bytes
            is_over = is_gone or self.position >= self._end
            if self._n_held and (is_over or self._n_held == BLOCK_RECORDS or n_bytes >= BLOCK_BYTES):
                yield self._block()
                n_bytes = 0
                self.last_sign = time.monotonic()  # the caller may have taken long
            if is_gone:
                return

    def _consume(self) -> int:
        """Put the addresses of new messages behind those that are held; return their number."""
        c = library()
        at = self._held.ctypes.data + 8 * self._n_held
        n_room = BLOCK_RECORDS - self._n_held
        # With a timeout the library waits until there is no more room, so wait for one message and take the others.
        n = int(c.consume(self._queue, _POLL_MS, at, 1))
        if n == 1 and n_room > 1:
            n += max(0, int(c.consume(self._queue, 0, at + 8, n_room - 1)))
        return max(0, n)

    def _take(self, n_new: int) -> tuple[bool, int]:
        """Keep the records of the range among the new messages, free the other messages, and move the position.

        Returns whether the broker does not have the next offset, and the bytes of the kept records.
        """
        c = library()
        new = slice(self._n_held, self._n_held + n_new)
        messages, columns = self._held[new], self._columns.rows(new)
        describe_messages(messages, c.time_of, *columns.all())
        is_gone = False
        for row in np.flatnonzero(columns.faults).tolist():
            is_gone |= self._handle_fault(int(columns.faults[row]), int(columns.offsets[row]), int(messages[row]))
        is_record = columns.faults == 0
        # Other faults may come for ever.
        if (is_record | (columns.faults == KafkaError._PARTITION_EOF)).any():
            self.last_sign = time.monotonic()
        is_beyond = is_record & (columns.offsets >= self._end)
        self._is_at_end |= bool(is_beyond.any())
        is_kept = is_record & ~is_beyond
        if not is_kept.all():
            free_messages(messages[~is_kept], c.destroy_message)
            messages[: np.count_nonzero(is_kept)] = messages[is_kept]
            columns.keep(is_kept)
        n_kept = int(np.count_nonzero(is_kept))
        self._n_held += n_kept
        if self._is_at_end:
            self.position = self._end
        elif n_kept:
            self.position = int(columns.offsets[n_kept - 1]) + 1
        lengths = columns.key_lengths[:n_kept], columns.value_lengths[:n_kept]
        return is_gone, sum(int(column.sum()) for column in lengths)

    def _handle_fault(self, fault: int, offset: int, message: int) -> bool:
        """Return whether the broker does not have the next offset; raise SetupError for what does not pass."""
        if fault == KafkaError._PARTITION_EOF:
            self._is_at_end |= offset >= self._end
            return False
        if fault in _GONE:
            return True
        if fault in _PASSING:
            return False
        text = library().fault_text(message).decode(errors="replace")
        place = _place(self._connection, self._topic, self._partition)
        raise SetupError(f"{place} cannot be read at offset {self.position}: {text}. Look at the broker's log.")

    def _block(self) -> RecordBlock:
        """Return what is held as a block, and free the messages."""
        n, columns = self._n_held, self._columns
        key_starts, keys = _room(columns.key_lengths[:n])
        value_starts, values = _room(columns.value_lengths[:n])
        copy_messages(self._held[:n], key_starts, keys, value_starts, values)
        free_messages(self._held[:n], library().destroy_message)
        self._n_held = 0
        return RecordBlock(
            self._topic,
            self._partition,
            columns.offsets[:n].copy(),
            columns.times[:n].copy(),
            _binary(columns.key_lengths[:n], key_starts, keys),
            _binary(columns.value_lengths[:n], value_starts, values),
        )
