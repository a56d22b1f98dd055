"""Reads what a scan of records has found: event times, texts side by side, attributes. Pure: arrays in, arrays out.

Between `json_scan` or `csv_scan`, which know where the fields stand, and `wire`, which knows what they are.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.json_skip import ABSENT, NUMBER, OPEN_LIST, OPEN_OBJECT, OTHER, TEXT
from bmq.kernels.text.times import read_rfc3339
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


ATTRIBUTE_END = 31  # no byte of JSON outside of strings, nor inside them unescaped, and of no plain CSV cell


@njit(cache=True)
def gather_attributes(
    plain: Bools, kinds: Int8s, begins: Int64s, ends: Int64s, data: Bytes, n_quotes: int
) -> tuple[Int64s, Bytes]:
    """Return (starts, bytes) of the attributes of each record as they stand, ``ATTRIBUTE_END`` between two.

    Parameters
    ----------
    plain : bool[n]
        Of other records comes an empty text.
    kinds : int8[k, n]
        One row an attribute, k >= 1. ABSENT gives an empty text.
    begins, ends : int64[k, n]
    data : uint8[]
    n_quotes : int
        How many bytes stand on either side of a TEXT that belong to it: 1 in JSON, 0 in CSV.

    Returns
    -------
    int64[n + 1], uint8[starts[n]]

    Notes
    -----
    Raises nothing.
    """
    n_attributes, n = kinds.shape
    starts = np.empty(n + 1, dtype=np.int64)
    starts[0] = 0
    for row in range(n):
        size = 0
        if plain[row]:
            size = n_attributes - 1
            for attribute in range(n_attributes):
                begin, end = _span(kinds, begins, ends, data, n_quotes, attribute, row)
                size += end - begin
        starts[row + 1] = starts[row] + size
    texts = np.empty(starts[n], dtype=np.uint8)
    for row in range(n):
        if not plain[row]:
            continue
        to = starts[row]
        for attribute in range(n_attributes):
            if attribute > 0:
                texts[to] = ATTRIBUTE_END
                to += 1
            begin, end = _span(kinds, begins, ends, data, n_quotes, attribute, row)
            for at in range(begin, end):
                texts[to] = data[at]
                to += 1
    return starts, texts


@njit(cache=True, forceinline=True)
def _span(
    kinds: Int8s, begins: Int64s, ends: Int64s, data: Bytes, n_quotes: int, attribute: int, row: int
) -> tuple[int, int]:
    """Return where the text of an attribute stands; of a list or object the bracket alone, since nothing equals it."""
    kind = kinds[attribute, row]
    if kind == ABSENT:
        return 0, 0
    begin, end = begins[attribute, row], ends[attribute, row]
    if kind == TEXT:
        return begin - n_quotes, end + n_quotes
    if kind == OTHER and (data[begin] == OPEN_LIST or data[begin] == OPEN_OBJECT):
        return begin, begin + 1
    return begin, end
