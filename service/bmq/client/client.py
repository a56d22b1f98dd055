"""The client for users: put queries, receive the replies, read the events.

    >>> with Client("localhost:9092") as client:
    ...     region = {"box": {"price": [40, 50]}}
    ...     reply = client.put("forties", {"kind": "border", "feed": "stocks", "region": region})
    ...     print(reply.status, reply.version)
    ...     for event in client.events(query_id="forties", timeout=60):
    ...         print(event.stream_id, event.sign, event.value)
    accepted 1
    AAPL + {'price': 40.25}

Knows the topics and their records. Validates nothing: the service validates, and callers that have the configuration
can use `bmq.wire.control.validate_definition`.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaError, Message

from bmq.client.ledger import Ledger, Report
from bmq.client.matching import EventRecord, follow, matching
from bmq.client.messages import Event, JoinEvent, Member, ReplyMessage, last_reply, read_member, read_reply
from bmq.client.reply_collection import OnReply, collect_replies
from bmq.config import TopicsSection
from bmq.errors import SetupError
from bmq.kafka_io.connect import CONNECT_TIMEOUT_SECONDS, explained, missing_topic, producer
from bmq.kafka_io.topic_reader import GroupReader, RecordReader, Start, TopicReader
from bmq.kafka_io.topics import Topics

if TYPE_CHECKING:
    import pandas

# A batch takes at most some seconds, and so does the first one after a start. It took more than 30 on a machine whose
# cores were busy, so a lower limit reports failures of commands that the service accepts.
REPLY_TIMEOUT_SECONDS = 60.0

Definition = Mapping[str, Any] | str | bytes


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """A definition in the control topic.

    Attributes
    ----------
    definition : the record's value, unchanged.
    control_offset : the record's offset in the control topic.
    reply : the last reply for the query id, which may be to an earlier command; None: there is no reply yet.
    """

    query_id: str
    definition: bytes
    control_offset: int
    reply: ReplyMessage | None

    @property
    def status(self) -> str:
        """The status of exactly this definition; "unanswered" if the service has not replied to it."""
        if self.reply is None or self.reply.control_offset != self.control_offset:
            return "unanswered"
        return self.reply.status


class Client:
    """Queries and events of one service. Every method may be called from any thread.

    Parameters
    ----------
    bootstrap_servers : "host:port", several with commas.
    options : further options of librdkafka, such as "security.protocol".
    topics : the names of the topics, if they are not the defaults.

    Notes
    -----
    Every method raises `SetupError` if the broker does not answer, or a topic does not exist.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        options: Mapping[str, str] | None = None,
        topics: TopicsSection | None = None,
    ) -> None:
        self.topics = topics or TopicsSection()
        self._options = {**(options or {}), "bootstrap.servers": bootstrap_servers}
        self._producer = producer(self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send the records that are still in the producer's queue."""
        with explained(self._options):
            self._producer.flush(CONNECT_TIMEOUT_SECONDS)

    def put(self, query_id: str, definition: Definition, wait: float = REPLY_TIMEOUT_SECONDS) -> ReplyMessage:
        """Register or replace a query and return the service's reply, which may be a rejection.

        Parameters
        ----------
        definition : a JSON object, or its text.
        wait : seconds to wait for the reply.

        Raises
        ------
        SetupError
            No reply came in time. The command stays published, and the service will reply to it later.
        """
        return self.put_many({query_id: definition}, wait)[query_id]

    def put_many(
        self,
        definitions: Mapping[str, Definition | None],
        wait: float = REPLY_TIMEOUT_SECONDS,
        on_reply: OnReply | None = None,
    ) -> dict[str, ReplyMessage]:
        """Register or replace many queries (None: delete) together and return the replies, by query id; like `put`.

        Parameters
        ----------
        wait : seconds to wait for the next reply, whichever command it belongs to.
        on_reply : is called with each reply as it arrives.
        """
        return self._command(definitions, wait, on_reply)

    def delete(self, query_id: str, wait: float = REPLY_TIMEOUT_SECONDS) -> ReplyMessage:
        """Delete a query and return the service's reply; raises as `put`."""
        return self._command({query_id: None}, wait)[query_id]

    def publish(self, commands: Mapping[str, Definition | None]) -> dict[str, int]:
        """Publish definitions (None: delete) without waiting for replies; return their control offsets."""
        control = self.topics.control
        with explained(self._options, self._producer):
            # The producer itself would create a missing topic, uncompacted and with any number of partitions.
            if control not in self._producer.list_topics(timeout=CONNECT_TIMEOUT_SECONDS).topics:
                raise missing_topic(self._options, control)
        offsets: dict[str, int] = {}
        failures: list[KafkaError] = []

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
            else:
                offsets[_key(message)] = _offset(message)

        with explained(self._options):
            for query_id, definition in commands.items():
                value = _to_bytes(definition)
                while not self._queue(control, query_id, value, note):
                    self._producer.poll(CONNECT_TIMEOUT_SECONDS)
            unsent = self._producer.flush(CONNECT_TIMEOUT_SECONDS)
        if failures or unsent:
            reason = failures[0].str() if failures else f"no answer in {CONNECT_TIMEOUT_SECONDS:g} s"
            raise SetupError(
                f"{len(failures) + unsent} of {len(commands)} commands could not be published "
                f"to {control!r}: {reason}. Publish them again when the broker is well."
            )
        return offsets

    def queries(self) -> dict[str, StandingQuery]:
        """Return every query in the control topic, by id, with the last reply to it.

        Cost: reads both topics from their beginning to their end.
        """
        definitions: dict[str, tuple[bytes, int]] = {}  # query id -> (definition, control offset)
        for message in self._read(self.topics.control):
            value = message.value()
            if value is None:
                definitions.pop(_key(message), None)
            else:
                definitions[_key(message)] = (value, _offset(message))
        answers: dict[str, ReplyMessage | None] = {}
        for message in self._read(self.topics.replies):
            key = _key(message)
            answers[key] = last_reply(answers.get(key), read_reply(message.value() or b""))
        return {
            query_id: StandingQuery(query_id, definition, offset, answers.get(query_id))
            for query_id, (definition, offset) in definitions.items()
        }

    def members(self, query_id: str) -> list[Member]:
        """Return the streams that are inside a query now, sorted by feed and stream id.

        Cost: reads the membership topic from its beginning to its end.

        Raises
        ------
        SetupError
            This client's configuration names no membership topic.
        """
        if self.topics.membership is None:
            raise SetupError(
                "No membership topic is configured, so nothing says who is inside now. Set topics.membership in the "
                'configuration (membership = "bmq.membership") and restart the service: it then holds whoever enters '
                "from that moment on."
            )
        members: dict[bytes, Member] = {}
        for message in self._read(self.topics.membership):
            key, member = message.key() or b"", read_member(message.value() or b"")
            members.pop(key, None)
            if member is not None and member.query_id == query_id:
                members[key] = member
        return sorted(members.values(), key=lambda member: (member.feed, member.stream_id))

    def events(
        self,
        query_id: str | None = None,
        stream_id: str | None = None,
        *,
        from_beginning: bool = False,
        timeout: float | None = None,
        topic: str | None = None,
        group: str | None = None,
    ) -> Iterator[Event | JoinEvent]:
        """Return an iterator over the events from this moment on; it blocks until the next event.

        Parameters
        ----------
        query_id, stream_id : only events of this query, of this stream; events of joins match on either side.
        from_beginning : begin with all events that the topic still has, then continue with new ones.
        timeout : seconds after which the iterator ends; None: never.
        topic : another topic, for queries with an `output_topic` of their own.
        group : a consumer group. Its members share the events, and it goes on where it was: an event counts as read
            when the next one is asked for. After a crash or a `break`, and when members join or leave, the last events
            come again, with the same `event_id`s.
        """
        return (
            event
            for event, _ in self.event_records(
                query_id, stream_id, from_beginning=from_beginning, timeout=timeout, topic=topic, group=group
            )
        )

    def event_records(
        self,
        query_id: str | None = None,
        stream_id: str | None = None,
        *,
        from_beginning: bool = False,
        timeout: float | None = None,
        topic: str | None = None,
        group: str | None = None,
    ) -> Iterator[EventRecord]:
        """Return the same as `events`, each event with the unchanged value of its record."""
        reader = self.event_reader(topic=topic, group=group, from_beginning=from_beginning)
        deadline = None if timeout is None else time.monotonic() + timeout
        return follow(reader, deadline, query_id, stream_id)

    def event_reader(self, *, topic: str | None, group: str | None, from_beginning: bool) -> RecordReader:
        """Return a reader of the records that `events` reads; the caller closes it."""
        start, topic = (Start.BEGINNING if from_beginning else Start.END), topic or self.topics.events
        options = self._options
        return TopicReader(options, topic, start) if group is None else GroupReader(options, topic, group, start)

    def events_frame(
        self, query_id: str | None = None, stream_id: str | None = None, *, topic: str | None = None
    ) -> "pandas.DataFrame":
        """Return all events that the topic has now as a frame; see `event_frame`. Reads the topic to its end."""
        from bmq.client.event_frame import frame_of  # not at the top: pandas takes half a second

        records = matching(self._read(topic or self.topics.events), query_id, stream_id)
        return frame_of((event for event, _ in records), query_id)

    def check_ledger(self, topics: Sequence[str] = (), *, from_beginning: bool = False) -> Report:
        """Check all existing events against the ledger and return a report.

        Parameters
        ----------
        topics : the topics to read; by default the events topic, and each existing `output_topic` of a query in the
            control topic.
        from_beginning : whether the topics have every event since the service's first start.
        """
        ledger = Ledger(from_beginning=from_beginning)
        for topic in topics or self._event_topics():
            for message in self._read(topic):
                ledger.take(topic, message.value())
        return ledger.finish()

    def _event_topics(self) -> list[str]:
        there = Topics(self._options).partitions()
        named = {_output_topic(message.value() or b"") for message in self._read(self.topics.control)}
        return [self.topics.events, *sorted(topic for topic in named - {self.topics.events} if topic in there)]

    def _command(
        self, commands: Mapping[str, Definition | None], wait: float, on_reply: OnReply | None = None
    ) -> dict[str, ReplyMessage]:
        """Publish commands and return the reply to each.

        1. Open a reader at the end of the replies topic, so that it misses no reply.
        2. Publish.
        3. Read replies until each command has its own.
        """
        with TopicReader(self._options, self.topics.replies, Start.END) as replies:
            offsets = self.publish(commands)
            return collect_replies(replies, offsets, wait, on_reply)

    def _queue(
        self, topic: str, key: str, value: bytes | None, note: Callable[[KafkaError | None, Message], None]
    ) -> bool:
        """Add a record to the producer's queue; return False if the queue is full."""
        try:
            self._producer.produce(topic, value, key.encode(), on_delivery=note)
        except BufferError:
            return False
        return True

    def _read(self, topic: str) -> Iterator[Message]:
        with TopicReader(self._options, topic, Start.BEGINNING) as reader:
            yield from reader.to_end()


def _output_topic(definition: bytes) -> str:
    """Return the `output_topic` of a definition; "" if it names no topic."""
    try:
        topic = json.loads(definition).get("output_topic")
    except (ValueError, AttributeError, RecursionError):  # a rejected definition may be no JSON, or no object
        return ""
    return topic if isinstance(topic, str) else ""


def _to_bytes(definition: Definition | None) -> bytes | None:
    match definition:
        case None | bytes():
            return definition
        case str():
            return definition.encode()
    return json.dumps(definition).encode()


def _key(message: Message) -> str:
    # The service refuses a key that is not UTF-8, but the record stays in the topic and must remain visible.
    return (message.key() or b"").decode(errors="replace")


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "a record that the broker has, has an offset"
    return offset
