"""The work of a task that reads topics: ranges of offsets to rows of frames.

Runs in Spark's Python workers. A worker keeps its Kafka client from batch to batch.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain

import pyarrow as pa

from bmq.job.decode import ControlDecoder, FeedDecoder
from bmq.job.frame_files import FrameFile
from bmq.job.source.losses import DataLost, loss_sentence
from bmq.job.source.offsets import Loss, Range
from bmq.job.source.source_settings import SourceSettings
from bmq.job.spark_task import this_task
from bmq.kafka_io.librdkafka import connection
from bmq.kafka_io.range_reader import Gap, read_range

_log = logging.getLogger(__name__)


def frames_of(settings: SourceSettings, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    """Return the rows of `frame_rows.FRAME_SCHEMA` for ranges, a batch of rows or more for each block of records.

    Raises
    ------
    DataLost : the broker no longer has offsets of the range, and ``on_loss`` is "stop".
    SetupError : the broker refuses, or gives nothing for too long.
    """
    found = chain.from_iterable(_frames_in_rows(settings, at) for at in ranges)
    folder = settings.plan.frames_folder
    if folder is None:
        yield from found
        return
    with closing(FrameFile(folder, *this_task())) as file:
        for rows in found:
            yield file.store(rows)


def _frames_in_rows(settings: SourceSettings, at: Range) -> Iterator[pa.RecordBatch]:
    plan = settings.plan
    feed = plan.feed_by_topic().get(at.topic)
    decoder = ControlDecoder(plan) if feed is None else FeedDecoder(plan, feed, at.topic)

    def note(sentence: str, expected: int, first: int) -> Iterator[pa.RecordBatch]:
        if isinstance(decoder, FeedDecoder):
            yield decoder.note_loss(at.partition, expected, first, sentence)
        elif at.topic != plan.clock_topic:  # only feeds have dead letters, and a lost mark means nothing
            _log.warning("%s Commands that were there are not read; put them again.", sentence)

    if at.loss is not None:
        sentence = loss_sentence(at.loss, at.topic, at.partition, at.expected, at.start)
        yield from note(sentence, at.expected, at.start)
    client = connection(tuple(sorted(plan.client_options.items())))
    for found in read_range(client, at.topic, at.partition, at.start, at.end):
        if isinstance(found, Gap):
            first = min(found.first, at.end)
            loss = Loss.DELETED if first > found.expected else Loss.CUT_OFF
            sentence = loss_sentence(loss, at.topic, at.partition, found.expected, found.first)
            if settings.on_loss == "stop":
                raise DataLost(sentence)
            yield from note(sentence, found.expected, first)
        else:
            yield from decoder.decode(found)
