"""A thread that reads one topic, whatever happens to the connection or is in a record.

After a failure it goes on where it was, so that no record is applied twice or missed.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, Message

from bmq.errors import ServiceError
from bmq.kafka_io.connect import Options
from bmq.kafka_io.topic_reader import Start, TopicReader

RETRY_SECONDS = 1.0
_MOST_LOGGED = 20  # records of a topic; if this version can read none of them, the log must not grow with each

_log = logging.getLogger("bmq")

Apply = Callable[[Sequence[Message]], None]


@dataclass(frozen=True, slots=True)
class Task:
    """What a thread reads.

    Attributes
    ----------
    apply : is called with records; it may raise anything.
    in_batches : whether `apply` may get the records of a batch twice, if it raises for one of them.
    at_end : is called once, when everything is applied that the topic had at the start.
    """

    topic: str
    start: Start
    n_before: int
    apply: Apply
    in_batches: bool = False
    at_end: Callable[[], None] | None = None


class TopicThread:
    """The thread of one topic.

    Parameters
    ----------
    note : is called with a name and why it is in trouble, or None when that is over.
    ending : ends the thread.
    """

    def __init__(
        self, options: Options, task: Task, note: Callable[[str, str | None], None], ending: threading.Event
    ) -> None:
        self._options = options
        self._task = task
        self._note = note
        self._ending = ending
        self.next_offsets: dict[int, int] = {}  # by partition
        self._n_failed = 0
        self._at_end = task.at_end
        self._thread = threading.Thread(target=self._run, name=f"view-{task.topic}", daemon=True)

    @property
    def topic(self) -> str:
        """The topic that the thread reads."""
        return self._task.topic

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(seconds)

    def _run(self) -> None:
        topic = self._task.topic
        while not self._ending.is_set():
            try:
                with TopicReader(
                    self._options, topic, self._task.start, self._task.n_before, self.next_offsets
                ) as reader:
                    self._note(topic, None)
                    self._read(reader)
            except (ServiceError, KafkaException) as error:
                self._note(topic, str(error))
            except Exception as error:  # if the thread ended, the page would stand still and look healthy
                _log.exception("%s could not be read; it is tried again.", topic)
                self._note(topic, f"The topic could not be read: {error}. The log of bmq view has more.")
            self._ending.wait(RETRY_SECONDS)

    def _read(self, reader: TopicReader) -> None:
        if self._at_end is not None:
            for message in reader.to_end():
                self.apply([message])
                if self._ending.is_set():
                    return
            self._at_end()
            self._at_end = None
        while not self._ending.is_set():
            messages = reader.poll()
            if messages:
                self.apply(messages)

    def apply(self, messages: Sequence[Message]) -> None:
        """Apply records, each of them even if another one fails, and note how far the topic is read."""
        if not (self._task.in_batches and self._succeeds(messages)):
            for message in messages:
                try:
                    self._task.apply([message])
                except Exception:  # one record that this version cannot read must not end the page
                    self._note_failure(message)
        for message in messages:
            self.next_offsets[message.partition() or 0] = (message.offset() or 0) + 1

    def _succeeds(self, messages: Sequence[Message]) -> bool:
        try:
            self._task.apply(messages)
        except Exception:  # one by one, the record that fails is found and named
            return False
        return True

    def _note_failure(self, message: Message) -> None:
        self._n_failed += 1
        where = f"{self._task.topic}[{message.partition()}]@{message.offset()}"
        if self._n_failed <= _MOST_LOGGED:
            _log.exception("The record at %s could not be shown.", where)
        count = "1 record" if self._n_failed == 1 else f"{self._n_failed:,} records"
        sentence = f"{count} could not be shown, the last one at {where}. The log of bmq view has the reason."
        self._note(f"{self._task.topic}, records", sentence)
