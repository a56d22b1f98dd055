"""The process that holds the writers of all shards of one executor, and the way to it.

    home of shard 0 ──┐  Unix socket   ┌─ writer of shard 0
    home of shard 1 ──┴──────────────► └─ writer of shard 1 …   ─► Kafka

To open a transactional id costs a tenth of a second and more, so the open producers live where no batch that fails can
end them. They also share what they know of the topics that queries name. The owner, the process from which the workers
are forked, starts the process early; a home that finds none starts another. It ends with its owner.

Knows processes and sockets. What is written, and how, is in `batch_writer`.
"""

import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Listener
from typing import Any

import pyarrow as pa

from bmq.errors import ServiceError, SetupError
from bmq.kafka_io.batch_writer import BatchRun, LooseWriter, MarkedWriter, Marks, Writer
from bmq.kafka_io.block_producer import produce_no_messages
from bmq.kafka_io.connect import Options
from bmq.kafka_io.output_topics import OutputTopics, TopicFaults, TopicUse
from bmq.kafka_io.sender import Messages, TooLarge
from bmq.owned_process import address_of, connect, end_with, start_once

ANSWER_SECONDS = 600.0  # seconds; longer than all steps of a transaction together
_ENDED = "The writer process has ended. The batch runs again and starts another."
_NAME = "writer"


class WriterEnded(SetupError):
    """The writer process has ended in the middle of a batch."""


@dataclass(frozen=True, slots=True)
class Place:
    """Whose messages are written.

    Attributes
    ----------
    run_id : of the start of the streaming query. Writers of other runs are closed.
    options : of a librdkafka client.
    marks : where the marks are; None: delivery is at least once.
    """

    run_id: str
    shard: int
    options: Options
    marks: Marks | None


class RemoteWriter:
    """The writer of one shard, in the writer process; as `batch_writer.MarkedWriter`, for one batch.

    Parameters
    ----------
    owner : process id with which the writer process ends.
    """

    def __init__(self, owner: int, place: Place) -> None:
        self._owner = owner
        self._connection = _connect(owner)
        self._place = place

    def look(self, use: TopicUse) -> TopicFaults:
        """As `OutputTopics.look`, with one memory for all shards; not between `begin` and `write`."""
        faults = self._ask((self._place, use))
        assert isinstance(faults, TopicFaults)
        return faults

    def begin(self, run: BatchRun) -> int:
        """As `MarkedWriter.begin`."""
        return int(self._ask((self._place, run)))

    def write(self, messages: Messages) -> None:
        """As `MarkedWriter.write`."""
        for batch in messages:
            self._send(_pack(batch))
        self._send(b"")
        self._answer()

    def close(self) -> None:
        """Close the connection. A batch that is not written whole is aborted."""
        self._connection.close()

    def _ask(self, question: object) -> Any:
        packed = pickle.dumps(question)
        try:
            self._send(packed)
            return self._answer()
        except WriterEnded:  # nothing is written yet, so another process may as well answer
            self._connection = _connect(self._owner)
            self._send(packed)
            return self._answer()

    def _send(self, packed: bytes | memoryview) -> None:
        try:
            self._connection.send_bytes(packed)
        except OSError as error:
            raise WriterEnded(_ENDED) from error

    def _answer(self) -> Any:
        try:
            if not self._connection.poll(ANSWER_SECONDS):
                raise WriterEnded(
                    f"The writer process gave no answer for {ANSWER_SECONDS:.0f} s. The batch runs again."
                )
            is_error, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise WriterEnded(_ENDED) from error
        if is_error:
            raise answer
        return answer


class _Server:
    """Answers homes, each connection on a thread of its own."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._writers: dict[tuple[str, int], tuple[Writer, threading.Lock]] = {}
        self._topics: dict[str, OutputTopics] = {}
        self._lock = threading.Lock()

    def run(self) -> None:
        while True:
            connection = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                place, question = pickle.loads(connection.recv_bytes())  # noqa: S301 - of our own homes
                if isinstance(question, TopicUse):
                    topics = self._topics_of(place)
                    connection.send(_answered(lambda: topics.look(question)))  # noqa: B023 - called at once
                else:
                    writer, lock = self._writer(place)
                    with lock:
                        _serve_batch(connection, writer, self._topics_of(place), question)
                        if writer.is_written_before:
                            self._topics_of(place).forget(place.shard, question.batch)

    def _topics_of(self, place: Place) -> OutputTopics:
        with self._lock:
            if place.run_id not in self._topics:
                self._topics = {place.run_id: OutputTopics(place.options)}
            return self._topics[place.run_id]

    def _writer(self, place: Place) -> tuple[Writer, threading.Lock]:
        with self._lock:
            for other in [key for key in self._writers if key[0] != place.run_id]:
                del self._writers[other]
            found = self._writers.get((place.run_id, place.shard))
            if found is None:
                marks = place.marks
                writer = LooseWriter(place.options) if marks is None else MarkedWriter(place.options, marks)
                found = self._writers[place.run_id, place.shard] = (writer, threading.Lock())
            return found


def _serve_batch(connection: Connection, writer: Writer, topics: OutputTopics, run: BatchRun) -> None:
    begun = _answered(lambda: writer.begin(run))
    connection.send(begun)
    if begun[0]:
        return
    messages = _unpacked(connection)
    answer = _answered(lambda: _write(writer, topics, messages))
    # What is left is read before the answer: a home that still sends does not see it.
    for _ in messages:
        pass
    connection.send(answer)


def _write(writer: Writer, topics: OutputTopics, messages: Messages) -> None:
    try:
        writer.write(messages)
    except TooLarge as error:
        writer.batch_bytes = topics.refuse(error, writer.batch_bytes)
        raise


def _answered(run: Callable[[], Any]) -> tuple[bool, Any]:
    """Return whether an error came, and it or the result."""
    try:
        return False, run()
    except ServiceError as error:
        return True, error


def _unpacked(connection: Connection) -> Iterator[pa.RecordBatch]:
    """Yield the batches that a home sends; raise EOFError if it ends in the middle."""
    while packed := connection.recv_bytes():
        yield from pa.ipc.open_stream(packed)


def _pack(batch: pa.RecordBatch) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return memoryview(sink.getvalue())


def start(owner: int) -> None:
    """Start the writer process of an owner, unless it runs or starts already.

    It takes a second until it answers, so whoever knows early that it will be needed calls this.
    """
    start_once("bmq.kafka_io.writer_process", address_of(_NAME, owner), owner)


def _connect(owner: int) -> Connection:
    """Return a connection to the writer process of an owner; start it if it does not run."""
    return connect(address_of(_NAME, owner), owner, lambda: start(owner), "writer process")


def main(address: str, owner: int, lock: int) -> None:
    """Serve until the owner has ended.

    Parameters
    ----------
    lock : descriptor of the lock that `start` took; it is closed as soon as homes can connect.
    """
    produce_no_messages()  # otherwise the first batch loads the kernel and pandas, which takes two seconds
    listener = Listener(address, "AF_UNIX", backlog=64)
    os.close(lock)
    threading.Thread(target=end_with, args=(owner, address), daemon=True).start()
    _Server(listener).run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
