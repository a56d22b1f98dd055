"""The events among the records of a topic that are about a query or a stream."""

from collections.abc import Iterable, Iterator

from confluent_kafka import Message

from bmq.client.messages import Event, JoinEvent, read_event
from bmq.kafka_io.topic_reader import RecordReader

EventRecord = tuple[Event | JoinEvent, bytes]  # an event, and the unchanged value of its record


def matching(messages: Iterable[Message], query_id: str | None, stream_id: str | None) -> Iterator[EventRecord]:
    """Yield the events of one query, of one stream, or of all (None)."""
    for message in messages:
        value = message.value() or b""
        event = read_event(value)
        if event is None or (stream_id is not None and not event.is_of(stream_id)):
            continue
        if query_id is None or event.is_about(query_id):
            yield event, value


def follow(
    reader: RecordReader, deadline: float | None, query_id: str | None, stream_id: str | None
) -> Iterator[EventRecord]:
    """Yield the events that a reader reads until ``deadline``, and close it at the end."""
    with reader:
        yield from matching(reader.follow(deadline), query_id, stream_id)
