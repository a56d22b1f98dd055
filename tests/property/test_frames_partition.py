"""Packed, shuffled and concatenated, readings are the same, and no stream is out of order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bmq.kernels.tables.hashing import hash_ids, shards_of
from bmq.records import Attributes, Ids, Readings
from bmq.records.column_records import concat
from bmq.wire.frames import pack_readings, unpack_readings

rows = st.tuples(
    st.text(max_size=4).map(str.encode),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
    st.sampled_from(["null", '"a"', "5.0", '"é"\x1ftrue']),
    st.integers(0, 2**31 - 1),
)
Row = tuple[bytes, int, int, list[float], str, int]


def as_readings(batch: list[Row], n_dimensions: int, *, has_options: bool) -> Readings:
    """Return the rows as readings, with attributes and partitions where ``has_options``."""
    stream_ids, event_times, record_times, values, texts, partitions = zip(*batch, strict=True) if batch else ((),) * 6
    starts = np.cumsum([0, *map(len, stream_ids)], dtype=np.int64)
    id_bytes = np.frombuffer(b"".join(stream_ids), np.uint8)
    of_dimensions = np.array([of_row[:n_dimensions] for of_row in values], np.float64).reshape(-1, n_dimensions)
    known = tuple(sorted(set(texts)))
    codes = np.array([known.index(text) for text in texts], np.int32)
    return Readings(
        Ids(starts, id_bytes, hash_ids(starts, id_bytes)),
        np.array(event_times, np.int64),
        np.array(record_times, np.int64),
        np.ascontiguousarray(of_dimensions.T),
        Attributes(codes, known) if has_options else None,
        np.array(partitions, np.int32) if has_options else None,
    )


def as_rows(readings: Readings) -> list[str]:
    return [
        repr(
            (
                readings.ids.text(i),
                int(readings.ids.hashes[i]),
                int(readings.event_times[i]),
                int(readings.record_times[i]),
                readings.values[:, i].tolist(),
                readings.attributes and readings.attributes.texts[readings.attributes.codes[i]],
                None if readings.partitions is None else int(readings.partitions[i]),
            )
        )
        for i in range(len(readings))
    ]


@given(
    batches=st.lists(st.lists(rows, max_size=12), min_size=1, max_size=3),
    n_dimensions=st.integers(1, 3),
    n_shards=st.integers(1, 5),
    has_options=st.booleans(),
)
def test_a_shard_gets_the_readings_of_its_streams_in_the_order_of_all_batches(
    batches: list[list[Row]], n_dimensions: int, n_shards: int, has_options: bool
) -> None:
    packed = [pack_readings(as_readings(batch, n_dimensions, has_options=has_options), n_shards) for batch in batches]

    everything = as_readings([row for batch in batches for row in batch], n_dimensions, has_options=has_options)
    shards = shards_of(everything.ids.hashes, n_shards)
    all_rows = as_rows(everything)
    for shard in range(n_shards):
        joined = concat([unpack_readings(frames[shard]) for frames in packed])
        assert as_rows(joined) == [all_rows[row] for row in np.flatnonzero(shards == shard)]
