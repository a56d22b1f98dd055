"""Records of a feed to readings for the page, at most so many a second.

One record at a time and without kernels, because the page must not compile any: some microseconds each. Above the most
a second, further records are skipped unread, so that the page stays at the end of the topic; each stream then shows
its position a little later.
"""

import time
from collections.abc import Callable, Sequence

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from bmq.errors import ReadingError
from bmq.kafka_io.schema_registry import SchemaRegistry
from bmq.records import Feed
from bmq.wire.list_items import ExactListDecoder
from bmq.wire.readings import MAX_RECORD_BYTES
from bmq.wire.readings_exact import ExactDecoder, ExactReading
from bmq.wire.registry_records import ExactRegistryDecoder

MOST_A_SECOND = 12_000

Reading = tuple[str, int, Sequence[float]]  # stream id, event time (epoch ms), values


class PositionReader:
    """Reads the records of one feed. Only one thread may use it at a time.

    Parameters
    ----------
    registry : has the schemas of the records if they name them; None: they do not.
    most : records a second that are read.
    clock : seconds that never go back.
    """

    def __init__(
        self,
        feed: Feed,
        registry: SchemaRegistry | None = None,
        most: int = MOST_A_SECOND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._decode = _decoder_of(feed, registry)
        self._most = most
        self._clock = clock
        self._second = -1
        self._n_read = 0

    def read(self, messages: Sequence[Message]) -> tuple[list[Reading], int]:
        """Return the readings among records, and how many records were skipped; what is no reading is left out."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._n_read = second, 0
        n = min(len(messages), self._most - self._n_read)
        self._n_read += n
        readings: list[Reading] = []
        # The last ones, because they are the newest.
        for message in messages[len(messages) - n :]:
            kind, record_time = message.timestamp()
            try:
                found = self._decode(
                    message.key(), message.value(), 0 if kind == TIMESTAMP_NOT_AVAILABLE else record_time
                )
            except ReadingError:
                continue  # the service writes a dead letter, and the page shows that
            readings += [(one.stream_id.decode(), one.event_time, one.values) for one in found]
        return readings, len(messages) - n


def _decoder_of(feed: Feed, registry: SchemaRegistry | None) -> Callable[..., Sequence[ExactReading]]:
    """Return the function from key, value and timestamp of a record to its readings."""
    if feed.readings is not None:
        return ExactListDecoder(feed, MAX_RECORD_BYTES).decode
    decoder: ExactDecoder | ExactRegistryDecoder
    if registry is None:
        decoder = ExactDecoder(feed, MAX_RECORD_BYTES)
    else:
        decoder = ExactRegistryDecoder(feed, registry.schema_at_once, MAX_RECORD_BYTES)
    return lambda key, value, record_time: [decoder.decode(key, value, record_time)]
