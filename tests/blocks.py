"""Records as Arrow batches to the rows of a decode task, as the sources make them."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from bmq.job.decode import ControlDecoder, FeedDecoder
from bmq.job.plan import Plan
from bmq.kafka_io.range_reader import RecordBlock

Decode = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def decode_readings(plan: Plan) -> Decode:
    """Return the function from batches of one partition each to batches of rows, one for one.

    The columns are key, value, topic, partition, offset and timestamp (microseconds).
    """
    feeds = plan.feed_by_topic()
    return _decode_by(lambda block: FeedDecoder(plan, feeds[block.topic], block.topic))


def decode_control(plan: Plan) -> Decode:
    """Return the same for batches of the control or the clock topic, which need no partition and no timestamp."""
    return _decode_by(lambda block: ControlDecoder(plan))


def _decode_by(decoder_of: Callable[[RecordBlock], FeedDecoder | ControlDecoder]) -> Decode:
    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                block = _block(batch)
                yield from decoder_of(block).decode(block)

    return decode


def _block(batch: pa.RecordBatch) -> RecordBlock:
    names, no_times = batch.schema.names, np.zeros(batch.num_rows, dtype=np.int64)
    return RecordBlock(
        batch.column("topic")[0].as_py(),
        batch.column("partition")[0].as_py() if "partition" in names else 0,
        batch.column("offset").to_numpy(),
        batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000 if "timestamp" in names else no_times,
        batch.column("key").cast(pa.large_binary()),
        batch.column("value").cast(pa.large_binary()),
    )
