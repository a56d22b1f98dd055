"""The partitions of a topic are merged by the timestamps of their records."""

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.backtest.merged_partitions import PartitionReadings, merge
from bmq.errors import SetupError
from bmq.kafka_io.range_reader import Gap, RecordBlock
from bmq.records import Feed

pytestmark = pytest.mark.property

LINE = Feed("line", "line", "id", ("x",), "ts", max_lateness_ms=1)
BAD = -1  # stands for a record that is not a reading


def block_of(partition: int, first: int, times: Sequence[int]) -> RecordBlock:
    """Return records whose ids name their place, at these timestamps; a negative one is not a reading."""
    values = [
        b"bad" if time < 0 else json.dumps({"id": f"{partition}/{first + k}", "ts": 10**12, "x": 0}).encode()
        for k, time in enumerate(times)
    ]
    n = len(times)
    offsets = np.arange(first, first + n)
    keys = pa.nulls(n, pa.large_binary())
    return RecordBlock("line", partition, offsets, np.abs(np.array(times)), keys, pa.array(values, pa.large_binary()))


def blocks_of(partition: int, blocks: Sequence[Sequence[int]]) -> Iterator[RecordBlock]:
    first = 0
    for times in blocks:
        yield block_of(partition, first, times)
        first += len(times)


times = st.integers(0, 9) | st.just(BAD)
topics = st.lists(st.lists(st.lists(times, min_size=1, max_size=4), max_size=4), min_size=1, max_size=3)


@given(topic=topics, batch_rows=st.integers(1, 6))
@example(topic=[[[1, 2], [9]], [[3, 4, 5]]], batch_rows=1)
@example(topic=[[[1, BAD]], [[BAD], [BAD]]], batch_rows=1)
def test_a_batch_ends_at_the_same_timestamp_in_all_partitions(
    topic: Sequence[Sequence[Sequence[int]]], batch_rows: int
) -> None:
    partitions = [
        PartitionReadings(LINE, number, 0, sum(map(len, blocks)), blocks_of(number, blocks))
        for number, blocks in enumerate(topic)
    ]

    pieces = list(merge(partitions, batch_rows))

    # The time of a record is the latest timestamp up to it, as far as readings have one.
    written: dict[str, int] = {}
    for number, blocks in enumerate(topic):
        flat = [time for block in blocks for time in block]
        good = [offset for offset, time in enumerate(flat) if time >= 0]
        written |= {f"{number}/{at}": t for at, t in zip(good, accumulate((flat[k] for k in good), max), strict=True)}
    batches = []
    for piece in pieces:
        if piece.readings is not None:
            ids, numbers = piece.readings.ids, piece.readings.partitions
            batches.append([ids.text(k) for k in range(len(piece.readings))])
            assert numbers is not None
            assert batches[-1] == sorted(batches[-1], key=lambda text: [int(part) for part in text.split("/")])
            assert [int(text.split("/")[0]) for text in batches[-1]] == numbers.tolist()
            assert piece.readings.values.flags.c_contiguous
    found = [text for batch in batches for text in batch]
    assert sorted(found) == sorted(written)
    for before, after in pairwise(batches):
        assert max(written[text] for text in before) <= min(written[text] for text in after)
        assert len(before) >= batch_rows
    n_bad = sum(time < 0 for blocks in topic for block in blocks for time in block)
    assert sum(piece.bad.total() for piece in pieces) == n_bad
    assert pieces[-1].done == sum(len(block) for blocks in topic for block in blocks)


def test_records_that_kafka_deletes_meanwhile_end_the_run() -> None:
    gap = PartitionReadings(LINE, 1, 5, 20, iter([block_of(1, 5, [1]), Gap("line", 1, 6, 9)]))

    with pytest.raises(SetupError, match=r"offsets 6 to 8 of partition 1 of topic 'line'.*--from"):
        list(merge([gap], 1))
