"""Reads the spans that a scan of records has found: event times, ids, attributes. Pure: arrays in, arrays out.

`kernels.text.json_scan` and `kernels.text.csv_scan` know where the fields are; `wire` knows what they mean. This module
is between the two: it knows how a time and a text are read, and must not know names of fields.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.json_skip import ABSENT, LONG_NUMBER, NUMBER, OPEN_LIST, OPEN_OBJECT, OTHER, TEXT
from bmq.kernels.text.times import read_epoch, read_rfc3339
from bmq.records import Bools, Bytes, Float64s, Int8s, Int64s


@njit(cache=True)
def read_times(
    plain: Bools,
    kinds: Int8s,
    begins: Int64s,
    ends: Int64s,
    numbers: Float64s,
    data: Bytes,
    power: int,
    first_number_ms: int,
    last_number_ms: int,
    first_ms: int,
    last_ms: int,
) -> Int64s:
    """Return the event times; clear ``plain`` for each record whose time is missing, malformed or out of range.

    Parameters
    ----------
    plain : bool[n]
        Which records to read; written.
    kinds : int8[n]
        NUMBER, LONG_NUMBER: the time is ``10**power`` epoch milliseconds times the number, rounded down. TEXT: the time
        is RFC 3339. No other kind is a time.
    begins, ends : int64[n]
        The text of record i is ``data[begins[i]:ends[i]]``.
    numbers : float64[n]
        Finite; read only for kind NUMBER.
    data : uint8[]
    power : int
        -6 to 3.
    first_number_ms, last_number_ms : int, epoch ms
        The least and the greatest time allowed for a number, both included.
    first_ms, last_ms : int, epoch ms
        The same for a text.

    Returns
    -------
    int64[n], epoch ms
        0 for records that are not plain afterwards.

    Notes
    -----
    Raises nothing.
    """
    times = np.zeros(plain.size, dtype=np.int64)
    for row in range(plain.size):
        if not plain[row]:
            continue
        first, last = first_number_ms, last_number_ms
        if kinds[row] == NUMBER and power == 0:
            # A double has all digits of a NUMBER, so rounding it down is exact, and faster than reading them again.
            number = np.floor(numbers[row])
            is_time = first <= number <= last
            time = np.int64(number) if is_time else np.int64(0)
        elif kinds[row] == NUMBER or kinds[row] == LONG_NUMBER:
            is_time, time = read_epoch(data, begins[row], ends[row], power)
        elif kinds[row] == TEXT:
            first, last = first_ms, last_ms
            is_time, time = read_rfc3339(data, begins[row], ends[row])
        else:
            is_time, time = False, np.int64(0)
        if is_time and first <= time <= last:
            times[row] = time
        else:
            plain[row] = False
    return times


@njit(cache=True)
def gather_texts(rows: Int64s, begins: Int64s, ends: Int64s, data: Bytes) -> tuple[Int64s, Bytes]:
    """Return the texts of ``rows``, one after the other, as (starts, bytes).

    Parameters
    ----------
    rows : int64[m]
    begins, ends : int64[n]
        The text of row i is ``data[begins[i]:ends[i]]``.
    data : uint8[]

    Returns
    -------
    int64[m + 1], uint8[starts[m]]
        Text j is ``bytes[starts[j]:starts[j + 1]]``.

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
        # Byte by byte: ids are short, and a call of memcpy for each one costs more.
        for j in range(starts[i + 1] - starts[i]):
            texts[starts[i] + j] = data[begin + j]
    return starts, texts


ATTRIBUTE_END = 31  # never occurs in JSON, except inside a string as an escape, nor in a cell of a plain CSV line


@njit(cache=True)
def gather_attributes(
    plain: Bools, kinds: Int8s, begins: Int64s, ends: Int64s, data: Bytes, n_quotes: int
) -> tuple[Int64s, Bytes]:
    """Return the texts of each record's attributes, with the byte ``ATTRIBUTE_END`` between two, as (starts, bytes).

    Parameters
    ----------
    plain : bool[n]
        A record that is not plain gets an empty text.
    kinds : int8[k, n]
        One row an attribute, k >= 1. An ABSENT attribute gets an empty text.
    begins, ends : int64[k, n]
        Attribute a of record i is ``data[begins[a, i]:ends[a, i]]``.
    data : uint8[]
    n_quotes : int
        How many bytes on either side of a TEXT belong to the attribute's text, too: 1 in JSON, 0 in CSV.

    Returns
    -------
    int64[n + 1], uint8[starts[n]]
        The text of record i is ``bytes[starts[i]:starts[i + 1]]``.

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
    """Return where an attribute's text begins and ends in ``data``; for a list or an object only its opening bracket.

    The bracket is enough, because no condition is equal to a list or an object.
    """
    kind = kinds[attribute, row]
    if kind == ABSENT:
        return 0, 0
    begin, end = begins[attribute, row], ends[attribute, row]
    if kind == TEXT:
        return begin - n_quotes, end + n_quotes
    if kind == OTHER and (data[begin] == OPEN_LIST or data[begin] == OPEN_OBJECT):
        return begin, begin + 1
    return begin, end
