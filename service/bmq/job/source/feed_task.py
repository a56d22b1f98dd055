"""The work of a task that reads feeds: a range of offsets to rows of frames.

Runs in Spark's Python workers. A worker keeps its Kafka client from batch to batch.
"""

from collections.abc import Iterator

import pyarrow as pa

from bmq.job.decode import FeedDecoder
from bmq.job.source.losses import DataLost, loss_sentence
from bmq.job.source.offsets import Loss, Range
from bmq.job.source.source_settings import SourceSettings
from bmq.kafka_io.librdkafka import connection
from bmq.kafka_io.range_reader import Gap, read_range


def frames_of(settings: SourceSettings, at: Range) -> Iterator[pa.RecordBatch]:
    """Return the rows of `frame_rows.FRAME_SCHEMA` for one range, one batch of rows for each block of records.

    Raises
    ------
    DataLost : the broker no longer has offsets of the range, and `job.on_data_loss` is "stop".
    SetupError : the broker refuses, or gives nothing for too long.
    """
    plan = settings.plan
    decoder = FeedDecoder(plan, settings.feed_of(at.topic))
    if at.loss is not None:
        yield decoder.note_loss(
            at.partition, at.expected, at.start, loss_sentence(at.loss, at.topic, at.partition, at.expected, at.start)
        )
    client = connection(tuple(sorted(plan.client_options.items())))
    for found in read_range(client, at.topic, at.partition, at.start, at.end):
        if isinstance(found, Gap):
            first = min(found.first, at.end)
            loss = Loss.DELETED if first > found.expected else Loss.CUT_OFF
            sentence = loss_sentence(loss, at.topic, at.partition, found.expected, found.first)
            if settings.on_loss == "stop":
                raise DataLost(sentence)
            yield decoder.note_loss(at.partition, found.expected, first, sentence)
        else:
            yield decoder.decode(found)
