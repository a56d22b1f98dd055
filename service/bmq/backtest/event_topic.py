"""Events to a topic, as the messages that the service writes.

All events go to this one topic, also those of queries with an `output_topic`: a backtest must not write where consumers
of real events read. Delivery is at least once. If the run fails, the events before the failure stay in the topic.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from bmq.errors import ServiceError
from bmq.kafka_io.connect import Options
from bmq.kafka_io.sender import BATCH_BYTES, Sender
from bmq.kafka_io.topics import Topics
from bmq.library.local_shard import Events
from bmq.monitor.crossing_batches import cut_crossings
from bmq.records import Crossings, Feed
from bmq.wire.cloud_events import CloudEvents
from bmq.wire.event_messages import render_crossings
from bmq.wire.outgoing import MESSAGE_SCHEMA

PIECE_ROWS = 20_000  # events that are rendered at once: some megabytes
_AFTER_FAILURE = (
    "The topic holds the events before it. Make room, or allow larger messages, and name a new --out-topic."
)


@dataclass(frozen=True, slots=True)
class MessageForm:
    """How an event is a message: the options of `[topics]` in the configuration; see `render_crossings`."""

    key: Literal["stream_id", "query_id"]
    layout: Literal["crossing", "reading"]
    envelope: CloudEvents | None


class EventTopic:
    """A topic of events; a `pieces.Sink`.

    Parameters
    ----------
    topic : made if it is not there.
    feeds : of the replay.
    options : of a librdkafka client, with `bootstrap.servers`.
    used : topics that the service or the replay uses for something else.
    form : of the messages.

    Raises
    ------
    ServiceError
        The topic is one of ``used``, or has records.
    SetupError
        Kafka does not answer, or refuses to make the topic.
    """

    def __init__(
        self,
        topic: str,
        feeds: Mapping[str, Feed],
        options: Options,
        used: Collection[str],
        form: MessageForm,
    ) -> None:
        if topic in used:
            raise ServiceError(
                f"--out-topic is {topic!r}, which the service or this run uses for something else. Name another one."
            )
        topics = Topics(options)
        topics.make([topic])
        if topics.begin_offsets([topic]) != topics.end_offsets([topic]):
            raise ServiceError(
                f"--out-topic is {topic!r}, which has records already: the new events would be among them. "
                "Name another one, or delete this one."
            )
        self._topic, self._feeds = topic, feeds
        self._form = form
        batch_bytes = int(options.get("batch.size", BATCH_BYTES))
        self._sender = Sender({"enable.idempotence": "true"}, options, batch_bytes, _AFTER_FAILURE)

    def write(self, events: Events) -> None:
        """Hand the events to the producer.

        Raises
        ------
        SetupError
            Kafka did not take an earlier event.
        """
        self._sender.send(self._messages(events))

    def finish(self) -> None:
        """Return when Kafka has all events.

        Raises
        ------
        SetupError
            Kafka did not take one.
        """
        self._sender.flush()

    def abandon(self) -> None:
        """Do nothing: what Kafka has stays there."""

    def _messages(self, events: Events) -> Iterator[pa.RecordBatch]:
        for some in events:
            assert isinstance(some, Crossings)  # a backtest of one feed has no joins
            for piece in cut_crossings(some, PIECE_ROWS):
                feed = self._feeds[piece.feed]
                messages = render_crossings(
                    piece,
                    feed,
                    topic=self._topic,
                    key=self._form.key,
                    layout=self._form.layout,
                    envelope=self._form.envelope,
                )
                yield messages.set_column(0, MESSAGE_SCHEMA.field(0), pa.repeat(self._topic, messages.num_rows))
