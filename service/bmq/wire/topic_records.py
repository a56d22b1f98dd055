"""Decodes the records of one topic of a feed: by the feed's format, and with the attributes that no record has.

Whoever reads a topic decodes with this: the service, and a backtest over a span of the topic. Knows how the options of
a feed go together; each kind of record has a module of its own.
"""

from dataclasses import replace

import pyarrow as pa

from bmq.records import Feed, Int64s
from bmq.wire.attributes import attribute_text, with_constants
from bmq.wire.reading_lists import ListDecoder
from bmq.wire.readings import Decoded, Decoder
from bmq.wire.registry_records import RegistryDecoder, SchemaSource


class TopicDecoder:
    """Decodes the records of one topic of a feed.

    Parameters
    ----------
    topic : one of the feed's topics; it may be an attribute of the readings.
    schemas : what knows the schemas of records that name theirs; None: the feed has no such records.
    """

    def __init__(self, feed: Feed, topic: str, schemas: SchemaSource | None) -> None:
        self._decoder = _decoder_of(feed.of_records(), schemas)
        self._constants = [text for _, text in feed.constants]
        if feed.topic_attribute is not None:
            self._constants.append(attribute_text(topic))

    def decode(self, keys: pa.BinaryArray | None, values: pa.BinaryArray, record_times: Int64s) -> Decoded:
        """Return the readings and the bad records of a batch; the parameters are those of `Decoder.decode`."""
        decoded = self._decoder.decode(keys, values, record_times)
        return replace(decoded, readings=with_constants(decoded.readings, self._constants))


def _decoder_of(feed: Feed, schemas: SchemaSource | None) -> Decoder | ListDecoder | RegistryDecoder:
    if feed.readings is not None:
        return ListDecoder(feed)
    if not feed.registry:
        return Decoder(feed)
    assert schemas is not None  # the configuration checks this
    return RegistryDecoder(feed, schemas)
