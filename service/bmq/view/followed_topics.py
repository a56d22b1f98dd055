"""Reads the topics of one service into the live state, each on a thread of its own.

    feeds ─────────► readings        from a little before the end
    control ───────► definitions     from the beginning, because it is compacted
    replies ───────► replies         from the beginning
    events ────────► events          from a little before the end; also the output topics of queries
    membership ────► members         from the beginning, because it is compacted
    dead letters ──► dead letters    from a little before the end

A topic that cannot be read is a trouble that the page shows, and is tried again.
"""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaException, Message

from bmq.client.messages import read_event, read_member, read_reply
from bmq.config import TopicsSection
from bmq.errors import ServiceError
from bmq.kafka_io.connect import Options
from bmq.kafka_io.topic_reader import Start, TopicReader
from bmq.records import Feed
from bmq.view.live_state import LiveState
from bmq.view.read_positions import PositionReader

RETRY_SECONDS = 1.0
READINGS_BEFORE, EVENTS_BEFORE, LETTERS_BEFORE = 5_000, 2_000, 100  # offsets of each partition, before the end
MOST_OUTPUT_TOPICS = 20
_STOP_SECONDS = 5.0

_log = logging.getLogger("bmq")

Apply = Callable[[Sequence[Message]], None]


class FollowedTopics:
    """The threads. `start` returns at once; what the topics have comes later.

    Parameters
    ----------
    options : client options with `bootstrap.servers`.
    """

    def __init__(self, options: Options, topics: TopicsSection, feeds: dict[str, Feed], state: LiveState) -> None:
        self._options = options
        self._topics = topics
        self._feeds = feeds
        self._state = state
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self._outputs: set[str] = set()

    def start(self) -> None:
        """Start to read."""
        topics = self._topics
        self._follow(topics.control, Start.BEGINNING, 0, self._apply_commands)
        self._follow(topics.replies, Start.BEGINNING, 0, self._apply_replies)
        if topics.membership is not None:
            self._follow(topics.membership, Start.BEGINNING, 0, self._apply_members)
        self._follow(topics.events, Start.END, EVENTS_BEFORE, self._apply_events)
        self._follow(topics.dead_letter, Start.END, LETTERS_BEFORE, self._apply_dead_letters)
        for name, feed in self._feeds.items():
            reader = PositionReader(feed)
            self._follow(feed.topic, Start.END, READINGS_BEFORE, partial(self._apply_readings, name, reader))

    def stop(self) -> None:
        """Stop to read, and close the connections."""
        self._ending.set()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def _follow(self, topic: str, start: Start, n_before: int, apply: Apply) -> None:
        run = partial(self._run, topic, start, n_before, apply)
        thread = threading.Thread(target=run, name=f"view-{topic}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, topic: str, start: Start, n_before: int, apply: Apply) -> None:
        while not self._ending.is_set():
            try:
                with TopicReader(self._options, topic, start, n_before) as reader:
                    self._state.set_trouble(topic, None)
                    while not self._ending.is_set():
                        messages = reader.poll()
                        if messages:
                            apply(messages)
            except (ServiceError, KafkaException) as error:
                self._state.set_trouble(topic, str(error))
            except Exception:  # one record that this version cannot read must not end the page
                _log.exception("A record of %s could not be shown.", topic)
                self._state.set_trouble(topic, "A record could not be shown; the log of bmq view has the reason.")
            self._ending.wait(RETRY_SECONDS)

    def _apply_commands(self, messages: Sequence[Message]) -> None:
        for message in messages:
            query_id, value = _key(message), message.value()
            if value is None:
                self._state.delete_query(query_id)
                continue
            definition = self._state.put_query(query_id, value, message.offset() or 0, message.timestamp()[1])
            output = definition.get("output_topic") if isinstance(definition, dict) else None
            if isinstance(output, str) and self._is_new_output(output):
                self._outputs.add(output)
                self._follow(output, Start.END, EVENTS_BEFORE, self._apply_events)

    def _is_new_output(self, topic: str) -> bool:
        known = {self._topics.events, *self._topics.reserved(), *self._outputs}
        allowed = topic.startswith(self._topics.allowed_output_prefix)
        return allowed and topic not in known and len(self._outputs) < MOST_OUTPUT_TOPICS

    def _apply_replies(self, messages: Sequence[Message]) -> None:
        for message in messages:
            reply = read_reply(message.value() or b"")
            if reply is not None:
                self._state.add_reply(reply)

    def _apply_events(self, messages: Sequence[Message]) -> None:
        read = (read_event(message.value() or b"") for message in messages)
        self._state.add_events([event for event in read if event is not None])

    def _apply_members(self, messages: Sequence[Message]) -> None:
        for message in messages:
            with suppress(ValueError, TypeError):  # not a key that the service writes
                parts: list[str] = json.loads(message.key() or b"")
                (query_id, feed, stream_id) = parts
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
