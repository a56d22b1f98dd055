"""Readings of the partitions of a topic, merged in the order in which their records were written.

    partition 0 ─► blocks ─► readings ─┐
    partition 1 ─► blocks ─► readings ─┼─► up to a common timestamp ─► batches by (partition, offset)
    …                                  ┘

A batch ends at the same timestamp of the records in all partitions, as a batch of a service that keeps up does. So no
partition runs ahead, and timers fire as they did in the service. Knows blocks and timestamps; `wire.readings` knows
what a record means, and `topic_span` where blocks come from.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np

from bmq.backtest.pieces import Piece
from bmq.errors import SetupError
from bmq.kafka_io.range_reader import Gap, RecordBlock
from bmq.records import Feed, Int64s, Readings
from bmq.records.column_records import concat, take
from bmq.wire.registry_records import SchemaSource
from bmq.wire.topic_records import TopicDecoder


def merge(partitions: Sequence["PartitionReadings"], batch_rows: int) -> Iterator[Piece]:
    """Yield the readings of all partitions, and close the partitions at the end.

    Parameters
    ----------
    partitions : ascending by number.
    batch_rows : a piece ends when it has so many readings; it has more by at most a block for each partition.

    Raises
    ------
    SetupError
        Kafka gives nothing for too long, or has deleted records meanwhile.
    """
    parts: dict[int, list[Readings]] = {}
    n_rows = 0
    try:
        while going := [partition for partition in partitions if partition.fill()]:
            until = min(partition.newest for partition in going)
            for partition in going:
                readings = partition.take_until(until)
                if len(readings):
                    parts.setdefault(partition.number, []).append(readings)
                    n_rows += len(readings)
            if n_rows >= batch_rows:
                yield _piece(parts, partitions)
                parts, n_rows = {}, 0
        yield _piece(parts, partitions)
    finally:
        for partition in partitions:
            partition.close()


class PartitionReadings:
    """The readings of one partition: at most one block of them is in memory.

    Parameters
    ----------
    feed : of the readings.
    number : of the partition.
    first, end : the first offset, and the one behind the last.
    blocks : the records of these offsets.
    schemas : see `TopicDecoder`.
    """

    def __init__(
        self,
        feed: Feed,
        number: int,
        first: int,
        end: int,
        blocks: Iterator[RecordBlock | Gap],
        schemas: SchemaSource | None = None,
    ) -> None:
        self.number = number
        self._first, self._position, self._end = first, first, end
        self._feed = feed
        self._decoder = TopicDecoder(feed, feed.topic, schemas)
        self._blocks = blocks
        self._readings: Readings | None = None
        self._newest: Int64s = np.zeros(0, dtype=np.int64)
        self._bad: Counter[str] = Counter()

    @property
    def n_read(self) -> int:
        """How many offsets are read."""
        return self._position - self._first

    @property
    def newest(self) -> int:
        """The latest timestamp of the block; `fill` was true."""
        return int(self._newest[-1])

    def fill(self) -> bool:
        """Return whether there is a block with readings, after reading the next one if that is needed."""
        while self._readings is None:
            block = next(self._blocks, None)
            if block is None:
                self._position = self._end
                return False
            if isinstance(block, Gap):
                raise SetupError(
                    f"Kafka no longer has the offsets {block.expected} to {block.first - 1} of partition {self.number} "
                    f"of topic {block.topic!r}: it deleted them during the run. Begin later with --from."
                )
            self._decode(block)
        return True

    def take_until(self, time_ms: int) -> Readings:
        """Return, and drop, the readings whose records and all records before them are not later than a timestamp."""
        assert self._readings is not None
        n = int(np.searchsorted(self._newest, time_ms, side="right"))
        taken, left = take(self._readings, slice(0, n)), take(self._readings, slice(n, None))
        self._newest = self._newest[n:]
        self._readings = left if len(left) else None
        return taken

    def take_bad(self) -> Counter[str]:
        """Return, and forget, the reasons of the records that are not readings."""
        bad, self._bad = self._bad, Counter()
        return bad

    def close(self) -> None:
        """End the read."""
        if isinstance(self._blocks, Generator):
            self._blocks.close()

    def _decode(self, block: RecordBlock) -> None:
        decoded = self._decoder.decode(block.keys, block.values, block.times)
        self._bad.update(f"records ({one.code.value})" for one in decoded.bad)
        self._position = int(block.offsets[-1]) + 1
        readings = decoded.readings
        if not len(readings):
            return
        if self._feed.max_lateness_ms:
            readings = replace(readings, partitions=np.full(len(readings), self.number, dtype=np.int32))
        self._readings = readings
        # A producer's timestamps may go back. The record behind a later one came after it.
        self._newest = np.maximum.accumulate(block.times[decoded.rows])


def _piece(parts: dict[int, list[Readings]], partitions: Sequence[PartitionReadings]) -> Piece:
    bad: Counter[str] = Counter()
    for partition in partitions:
        bad.update(partition.take_bad())
    ordered = [readings for number in sorted(parts) for readings in parts[number]]
    # Always a copy: kernels are compiled for contiguous columns, and parts of blocks are views.
    return Piece(concat(ordered) if ordered else None, sum(partition.n_read for partition in partitions), bad)
