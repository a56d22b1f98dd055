"""Splits readings by shard, by counting, so that one pass writes every column. Pure: arrays in, arrays out.

    shards        1  0  1  2            (3 shards)
    row_starts    0  1  3  4            rows of shard s: row_starts[s]:row_starts[s + 1]
    rows out      1 | 0  2 | 3
    id starts     0 k | 0 k m | 0 k     n + n_shards numbers

The id starts of each shard begin again at 0, as in an Arrow array. Knows columns of readings and the shard of each row;
it must not know how a shard is chosen.
"""

import numpy as np
from numba import njit

from bmq.records import Bytes, Float64s, Int32s, Int64s


@njit(cache=True)
def count_by_shard(shards: Int32s, id_starts: Int64s, n_shards: int) -> tuple[Int64s, Int64s]:
    """Return (row starts, byte starts) of the shards, both int64[n_shards + 1].

    Parameters
    ----------
    shards : int32[n], 0..n_shards - 1
        The shard of each row.
    id_starts : int64[n + 1]
        The id of row i has the bytes ``id_starts[i]`` to ``id_starts[i + 1]``.
    n_shards : int

    Notes
    -----
    Raises nothing.
    """
    row_starts = np.zeros(n_shards + 1, dtype=np.int64)
    byte_starts = np.zeros(n_shards + 1, dtype=np.int64)
    for row in range(shards.size):
        row_starts[shards[row] + 1] += 1
        byte_starts[shards[row] + 1] += id_starts[row + 1] - id_starts[row]
    for shard in range(n_shards):
        row_starts[shard + 1] += row_starts[shard]
        byte_starts[shard + 1] += byte_starts[shard]
    return row_starts, byte_starts


@njit(cache=True)
def rows_by_shard(shards: Int32s, row_starts: Int64s) -> Int64s:
    """Return the rows shard by shard, in their order within each shard: int64[n].

    The caller uses it for columns that few feeds have; `scatter_by_shard` writes those that all feeds have.

    Parameters
    ----------
    shards : int32[n]
    row_starts : int64[n_shards + 1]
        From `count_by_shard`.

    Notes
    -----
    Raises nothing.
    """
    next_row = row_starts[:-1].copy()
    rows = np.empty(shards.size, dtype=np.int64)
    for row in range(shards.size):
        rows[next_row[shards[row]]] = row
        next_row[shards[row]] += 1
    return rows


@njit(cache=True)
def scatter_by_shard(
    shards: Int32s,
    row_starts: Int64s,
    byte_starts: Int64s,
    id_starts: Int64s,
    id_bytes: Bytes,
    event_times: Int64s,
    record_times: Int64s,
    values: Float64s,
) -> tuple[Int64s, Bytes, Int64s, Int64s, Float64s]:
    """Return (id starts, id bytes, event times, record times, values), with the rows of each shard side by side.

    The rows of a shard keep their order, because the order of the readings of a stream is part of the semantics.

    Parameters
    ----------
    shards : int32[n]
    row_starts, byte_starts : int64[n_shards + 1]
        From `count_by_shard`.
    id_starts : int64[n + 1]
    id_bytes : uint8[]
    event_times, record_times : int64[n], epoch ms
    values : float64[d, n]

    Returns
    -------
    int64[n + n_shards], uint8[], int64[n], int64[n], float64[d, n]
        Id starts count from the first byte of their own shard; each shard has one id start more than it has rows.

    Notes
    -----
    Raises nothing.
    """
    n_shards = row_starts.size - 1
    n_dimensions = values.shape[0]
    next_row = row_starts[:n_shards].copy()
    next_byte = byte_starts[:n_shards].copy()
    starts_out = np.zeros(shards.size + n_shards, dtype=np.int64)
    bytes_out = np.empty(byte_starts[n_shards], dtype=np.uint8)
    event_times_out = np.empty_like(event_times)
    record_times_out = np.empty_like(record_times)
    values_out = np.empty_like(values)
    for row in range(shards.size):
        shard = shards[row]
        to = next_row[shard]
        next_row[shard] = to + 1
        event_times_out[to] = event_times[row]
        record_times_out[to] = record_times[row]
        for dimension in range(n_dimensions):
            values_out[dimension, to] = values[dimension, row]
        byte = next_byte[shard]
        for i in range(id_starts[row], id_starts[row + 1]):
            bytes_out[byte] = id_bytes[i]
            byte += 1
        next_byte[shard] = byte
        # The start of the next id; the first start of the shard stays 0.
        starts_out[to + shard + 1] = byte - byte_starts[shard]
    return starts_out, bytes_out, event_times_out, record_times_out, values_out
