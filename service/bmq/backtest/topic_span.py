"""A span of a topic as a source of readings. Knows Kafka's client; `merged_partitions` knows the order."""

from collections.abc import Iterator, Mapping

from bmq.backtest.merged_partitions import PartitionReadings, merge
from bmq.backtest.pieces import BATCH_ROWS, Piece, read_ahead
from bmq.kafka_io.connect import Options
from bmq.kafka_io.librdkafka import connection
from bmq.kafka_io.range_reader import read_range
from bmq.records import Feed
from bmq.wire.registry_records import SchemaSource

# What the client reads ahead of all partitions together, KiB. With more partitions, each has less of it.
QUEUES_KIB = 262_144
LEAST_QUEUE_KIB = 1_024  # below it, the client would ask the broker for every few records
LARGEST_QUEUE_KIB = 32_768  # the usual size in the service; more is read in vain at the end of the span


class TopicSpan:
    """A span of a topic; a `pieces.Source`.

    A record that is not a reading is counted with the code of its dead letter.

    Parameters
    ----------
    options : of a librdkafka client, with `bootstrap.servers`.
    feed : its topic is the one to read.
    offsets : partition -> first offset and the one behind the last.
    schemas : see `TopicDecoder`.
    batch_rows : about how many readings make a piece.
    """

    def __init__(
        self,
        options: Options,
        feed: Feed,
        offsets: Mapping[int, tuple[int, int]],
        schemas: SchemaSource | None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        room = min(max(QUEUES_KIB // max(1, len(offsets)), LEAST_QUEUE_KIB), LARGEST_QUEUE_KIB)
        self._options = {"queued.max.messages.kbytes": str(room)} | dict(options)
        self._feed = feed
        self._offsets = offsets
        self._schemas = schemas
        self._batch_rows = batch_rows

    @property
    def total(self) -> int:
        """How many offsets the span has."""
        return sum(end - first for first, end in self._offsets.values())

    def pieces(self) -> Iterator[Piece]:
        """Yield the readings of the span.

        Raises
        ------
        SetupError
            Kafka gives nothing for too long, or has deleted records of the span meanwhile.
        """
        client, topic = connection(tuple(sorted(self._options.items()))), self._feed.topic
        partitions = [
            PartitionReadings(
                self._feed, number, first, end, read_range(client, topic, number, first, end), self._schemas
            )
            for number, (first, end) in sorted(self._offsets.items())
        ]
        yield from read_ahead(merge(partitions, self._batch_rows))
