"""How many of the records ahead fit into a number of bytes. Knows sizes of records, and not what is in them."""

import time

from confluent_kafka import TopicPartition

from bmq.kafka_io.connect import CONNECT_TIMEOUT_SECONDS, Options, consumer, explained

_POLL_SECONDS = 0.2
_POLL_RECORDS = 500


def end_of_bytes(options: Options, at: TopicPartition, end: int, most: int) -> int:
    """Return the offset behind the last record that fits, at least behind the first one, and at most ``end``.

    A broker that gives no records for CONNECT_TIMEOUT_SECONDS sets no limit: whoever reads them will say why.

    Parameters
    ----------
    at : topic, partition and first offset.
    most : bytes of keys and values together.
    """
    n_bytes, next_offset = 0, at.offset
    reader = consumer(options)
    try:
        with explained(options, reader):
            reader.assign([at])
            last_sign = time.monotonic()
            while next_offset < end and time.monotonic() - last_sign < CONNECT_TIMEOUT_SECONDS:
                for message in reader.consume(_POLL_RECORDS, _POLL_SECONDS):
                    offset = message.offset()
                    if message.error() is not None or offset is None:
                        continue
                    if offset >= end:
                        return end
                    n_bytes += len(message.key() or b"") + len(message.value() or b"")
                    if n_bytes > most:
                        return next_offset if next_offset > at.offset else offset + 1
                    next_offset, last_sign = offset + 1, time.monotonic()
    finally:
        reader.close()
    return end
