"""Records as Arrow batches to the rows of a decode task, as the source of the feeds makes them."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from bmq.job.decode import FeedDecoder
from bmq.job.plan import Plan
from bmq.kafka_io.range_reader import RecordBlock


def decode_readings(plan: Plan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function from batches of one partition each to batches of rows, one for one.

    The columns are key, value, topic, partition, offset and timestamp (microseconds).
    """

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        feeds = plan.feed_by_topic()
        for batch in batches:
            if batch.num_rows:
                block = _block(batch)
                yield FeedDecoder(plan, feeds[block.topic]).decode(block)

    return decode


def _block(batch: pa.RecordBatch) -> RecordBlock:
    return RecordBlock(
        batch.column("topic")[0].as_py(),
        batch.column("partition")[0].as_py(),
        batch.column("offset").to_numpy(),
        batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000,
        batch.column("key").cast(pa.large_binary()),
        batch.column("value").cast(pa.large_binary()),
    )
