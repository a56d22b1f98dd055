"""How far a batch may read a topic: so many records, and so many bytes of them.

Offsets do not say it: compaction and the marks of transactions leave gaps. Knows sizes of records, and not what is in
them.
"""

import time

from confluent_kafka import KafkaError, Message, TopicPartition

from bmq.kafka_io.connect import CONNECT_TIMEOUT_SECONDS, Options, consumer, explained, poll_many

_POLL_SECONDS = 0.2
_POLL_RECORDS = 500


def end_of_records(options: Options, at: TopicPartition, end: int, most_records: int, most_bytes: int) -> int:
    """Return the offset behind the last record that fits, at least behind the first one, and at most ``end``.

    A broker that gives no records for CONNECT_TIMEOUT_SECONDS sets no limit: whoever reads them will say why.

    Parameters
    ----------
    at : topic, partition and first offset.
    most_bytes : of keys and values together.
    """
    n_records = n_bytes = 0
    next_offset = at.offset
    with explained(options):
        reader = consumer(options)
    try:
        with explained(options):
            reader.assign([at])
            last_sign = time.monotonic()
            while next_offset < end and time.monotonic() - last_sign < CONNECT_TIMEOUT_SECONDS:
                for message in poll_many(reader, _POLL_RECORDS, _POLL_SECONDS):
                    last_sign = time.monotonic()
                    if _is_end(message):
                        return end  # behind the last record there may be marks of transactions
                    offset = message.offset()
                    if message.error() is not None or offset is None:
                        continue
                    if offset >= end:
                        return end
                    n_records += 1
                    n_bytes += len(message.key() or b"") + len(message.value() or b"")
                    if n_records > 1 and (n_records > most_records or n_bytes > most_bytes):
                        return next_offset
                    next_offset = offset + 1
    finally:
        reader.close()
    return end


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF
