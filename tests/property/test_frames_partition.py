"""Packed, shuffled and joined again, readings are the same, and no stream is out of order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bmq.kernels.hashing import hash_ids, shards_of
from bmq.records import Ids, Readings
from bmq.wire.frames import concat_readings, pack_readings, unpack_readings

rows = st.tuples(
    st.text(max_size=4).map(str.encode),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
)


def as_readings(batch: list[tuple[bytes, int, int, list[float]]], n_dimensions: int) -> Readings:
    starts = np.cumsum([0, *(len(stream_id) for stream_id, *_ in batch)], dtype=np.int64)
    id_bytes = np.frombuffer(b"".join(stream_id for stream_id, *_ in batch), np.uint8)
    values = np.array([values[:n_dimensions] for *_, values in batch], np.float64).reshape(-1, n_dimensions).T
    return Readings(
        Ids(starts, id_bytes, hash_ids(starts, id_bytes)),
        np.array([event_time for _, event_time, _, _ in batch], np.int64),
        np.array([record_time for _, _, record_time, _ in batch], np.int64),
        np.ascontiguousarray(values),
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
            )
        )
        for i in range(len(readings))
    ]


@given(
    batches=st.lists(st.lists(rows, max_size=12), min_size=1, max_size=3),
    n_dimensions=st.integers(1, 3),
    n_shards=st.integers(1, 5),
)
def test_a_shard_gets_the_readings_of_its_streams_in_the_order_of_all_batches(
    batches: list[list[tuple[bytes, int, int, list[float]]]], n_dimensions: int, n_shards: int
) -> None:
    packed = [pack_readings(as_readings(batch, n_dimensions), n_shards) for batch in batches]

    everything = as_readings([row for batch in batches for row in batch], n_dimensions)
    shards = shards_of(everything.ids.hashes, n_shards)
    all_rows = as_rows(everything)
    for shard in range(n_shards):
        joined = concat_readings([unpack_readings(frames[shard]) for frames in packed])
        assert as_rows(joined) == [all_rows[row] for row in np.flatnonzero(shards == shard)]
