"""Reads what a scan of records has found: event times, and texts side by side. Pure: arrays in, arrays out.

Between `json_scan` or `csv_scan`, which know where the fields stand, and `wire`, which knows what they are.
"""

import numpy as np
from numba import njit

from bmq.kernels.json_skip import NUMBER, TEXT
from bmq.kernels.times import read_rfc3339
from bmq.records import Bools, Bytes, Float64s, Int8s, Int64s


@njit(cache=True)
def read_times(
    plain: Bools,
    kinds: Int8s,
    begins: Int64s,
    ends: Int64s,
    numbers: Float64s,
    data: Bytes,
    first_ms: int,
    last_ms: int,
) -> Int64s:
    """Return the event times, int64[n]; clear ``plain`` where there is none between the two ends, inclusive.

    Parameters
    ----------
    plain : bool[n]
    kinds : int8[n]
        NUMBER: epoch milliseconds, rounded down. TEXT: RFC 3339.
    begins, ends : int64[n]
    numbers : float64[n]
        Finite.
    data : uint8[]

    Notes
    -----
    Raises nothing.
    """
    times = np.zeros(plain.size, dtype=np.int64)
    for row in range(plain.size):
        if not plain[row]:
            continue
        if kinds[row] == NUMBER:
            number = np.floor(numbers[row])
            if number < first_ms or number > last_ms:
                plain[row] = False
            else:
                times[row] = np.int64(number)
        elif kinds[row] == TEXT:
            is_time, time = read_rfc3339(data, begins[row], ends[row])
            if not is_time or time < first_ms or time > last_ms:
                plain[row] = False
            else:
                times[row] = time
        else:
            plain[row] = False
    return times


@njit(cache=True)
def gather_texts(rows: Int64s, begins: Int64s, ends: Int64s, data: Bytes) -> tuple[Int64s, Bytes]:
    """Return (starts, bytes) of the texts of ``rows``, one after the other.

    Parameters
    ----------
    rows : int64[m]
    begins, ends : int64[n]
        Text of row i is ``data[begins[i]:ends[i]]``.
    data : uint8[]

    Returns
    -------
    int64[m + 1], uint8[starts[m]]

    Notes
    -----
    Raises nothing.
    """
    starts = np.empty(rows.size + 1, dtype=np.int64)
    starts[0] = 0
    for i in range(rows.size):
        starts[i + 1] = starts[i] + ends[rows[i]] - begins[rows[i]]
    texts = np.empty(starts[rows.size], dtype=np.uint8)
    for i in range(rows.size):
        begin = begins[rows[i]]
        # Byte by byte: ids are short, and a call of memcpy for each costs more.
        for j in range(starts[i + 1] - starts[i]):
            texts[starts[i] + j] = data[begin + j]
    return starts, texts
