"""Reads the topics of one service into the live state, each on a thread of its own.

    feeds ─────────► readings        from a little before the end
    control ───────► definitions     from the beginning, because it is compacted
    replies ───────► replies         from the beginning
    events ────────► events          from a little before the end; also the output topics of queries
    membership ────► members         from the beginning, because it is compacted
    dead letters ──► dead letters    from a little before the end

Replies, events and members begin when control is read to its end, because they are about queries. The output topics
begin when the replies are read to their end, because only a definition in force has one.

A topic that cannot be read is a trouble that the page shows, and is tried again.
"""

import threading
from collections.abc import Sequence
from functools import partial

import msgspec
from confluent_kafka import Message

from bmq.client.messages import read_event, read_member, read_reply
from bmq.config import TopicsSection
from bmq.kafka_io.connect import Options
from bmq.kafka_io.schema_registry import SchemaRegistry
from bmq.kafka_io.topic_reader import Start
from bmq.records import Feed
from bmq.view.live_state import LiveState
from bmq.view.read_positions import PositionReader
from bmq.view.topic_thread import Task, TopicThread

READINGS_BEFORE, EVENTS_BEFORE, LETTERS_BEFORE = 5_000, 2_000, 100  # offsets of each partition, before the end
MOST_OUTPUT_TOPICS = 20
_STOP_SECONDS = 5.0

_NOT_IN_FORCE = frozenset({"unknown", "rejected", "expired", "deleted"})


class FollowedTopics:
    """The threads. `start` returns at once; what the topics have comes later.

    Parameters
    ----------
    options : client options with `bootstrap.servers`.
    registry : has the schemas of feeds whose records name them; None: there is no such feed.
    """

    def __init__(
        self,
        options: Options,
        topics: TopicsSection,
        feeds: dict[str, Feed],
        state: LiveState,
        registry: SchemaRegistry | None = None,
    ) -> None:
        self._options = options
        self._registry = registry
        self._topics = topics
        self._feeds = feeds
        self._state = state
        self._ending = threading.Event()
        self._lock = threading.Lock()  # of what is below
        self._threads: list[TopicThread] = []
        self._outputs: set[str] = set()
        self._has_replies = False

    @property
    def threads(self) -> list[TopicThread]:
        """The threads that were started."""
        with self._lock:
            return list(self._threads)

    def start(self) -> None:
        """Start to read."""
        topics = self._topics
        self._follow(Task(topics.control, Start.BEGINNING, 0, self.apply_commands, at_end=self.start_others))
        self._follow(Task(topics.dead_letter, Start.END, LETTERS_BEFORE, self._apply_dead_letters))
        for name, feed in self._feeds.items():
            for topic in feed.topics:
                reader = PositionReader(feed, self._registry if feed.registry else None)
                apply = partial(self._apply_readings, name, reader)
                self._follow(Task(topic, Start.END, READINGS_BEFORE, apply, in_batches=True))

    def stop(self) -> None:
        """Stop to read, and close the connections."""
        self._ending.set()
        for thread in self.threads:
            thread.join(_STOP_SECONDS)

    def start_others(self) -> None:
        """Begin to read what is about queries, when all definitions are read."""
        topics = self._topics
        self._follow(Task(topics.replies, Start.BEGINNING, 0, self.apply_replies, at_end=self.follow_outputs))
        if topics.membership is not None:
            self._follow(Task(topics.membership, Start.BEGINNING, 0, self.apply_members))
        self._follow(Task(topics.events, Start.END, EVENTS_BEFORE, self.apply_events))

    def follow_outputs(self) -> None:
        """Begin to read the output topics of the queries in force, the latest first."""
        self._has_replies = True
        for query_id in reversed(self._state.query_ids()):
            # A reply may be older than the topic of replies keeps them: then the definition has been in force for long.
            self._follow_output(query_id, {"unanswered"})

    def _follow_output(self, query_id: str, also: set[str] | frozenset[str] = frozenset()) -> None:
        output, status = self._state.output_of(query_id)
        if output is None or status in _NOT_IN_FORCE or (status == "unanswered" and status not in also):
            return
        known = {self._topics.events, *self._topics.reserved()}
        if not output.startswith(self._topics.allowed_output_prefix) or output in known:
            return
        with self._lock:
            if output in self._outputs:
                return
            is_room = len(self._outputs) < MOST_OUTPUT_TOPICS
            if is_room:
                self._outputs.add(output)
        if is_room:
            self._follow(Task(output, Start.END, EVENTS_BEFORE, self.apply_events))
            return
        sentence = f"The page reads {MOST_OUTPUT_TOPICS} of them, and not {output[:100]!r}: its events are not shown."
        self._state.set_trouble("output topics", sentence)

    def _follow(self, task: Task) -> None:
        thread = TopicThread(self._options, task, self._state.set_trouble, self._ending)
        with self._lock:
            if self._ending.is_set():
                return
            self._threads.append(thread)
            thread.start()

    def apply_commands(self, messages: Sequence[Message]) -> None:
        """Apply records of the control topic."""
        for message in messages:
            query_id, value, offset = _key(message), message.value(), message.offset() or 0
            if value is None:
                self._state.delete_query(query_id, offset)
                continue
            self._state.put_query(query_id, value, offset, message.timestamp()[1])
            if self._has_replies:  # its reply may be there already
                self._follow_output(query_id)

    def apply_replies(self, messages: Sequence[Message]) -> None:
        """Apply records of the topic of replies."""
        for message in messages:
            reply = read_reply(message.value() or b"")
            if reply is None:
                continue
            self._state.add_reply(reply)
            if self._has_replies:
                self._follow_output(reply.query_id)

    def apply_events(self, messages: Sequence[Message]) -> None:
        """Apply records of a topic of events."""
        read = (read_event(message.value() or b"") for message in messages)
        self._state.add_events([event for event in read if event is not None])

    def apply_members(self, messages: Sequence[Message]) -> None:
        """Apply records of the membership topic."""
        for message in messages:
            try:
                query_id, feed, stream_id = msgspec.json.decode(message.key() or b"", type=tuple[str, str, str])
            except ValueError:  # not a key that the service writes
                continue
            self._state.set_member((query_id, feed, stream_id), read_member(message.value() or b""))

    def _apply_readings(self, feed: str, reader: PositionReader, messages: Sequence[Message]) -> None:
        self._state.apply_readings(feed, *reader.read(messages))

    def _apply_dead_letters(self, messages: Sequence[Message]) -> None:
        for message in messages:
            headers = {name: _text(value) for name, value in dict(message.headers() or []).items()}
            shown = {name: headers.get(name, "") for name in ("topic", "partition", "offset", "code", "message")}
            begin = (message.value() or b"")[:LONGEST_SHOWN]
            self._state.add_dead_letter({**shown, "time": message.timestamp()[1], "value": _text(begin)})


LONGEST_SHOWN = 300  # bytes of a dead letter


def _key(message: Message) -> str:
    return _text(message.key() or b"")


def _text(value: bytes | str | None) -> str:
    return value if isinstance(value, str) else (value or b"").decode(errors="replace")
