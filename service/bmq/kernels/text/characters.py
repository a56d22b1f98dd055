"""Checks UTF-8 byte by byte, for kernels that read text without decoding it. Pure: bytes in, positions out.

Knows one character at a time. It must not know JSON, CSV or fields.
"""

import numpy as np
from numba import njit

from bmq.records import Bools, Bytes, Int64s


@njit(cache=True)
def are_utf8(starts: Int64s, data: Bytes) -> Bools:
    """Return which of the texts ``data[starts[i]:starts[i + 1]]`` are valid UTF-8.

    Parameters
    ----------
    starts : int64[n + 1]
        Positions in ``data``, ascending.
    data : uint8[]

    Returns
    -------
    bool[n]

    Notes
    -----
    Raises nothing.
    """
    valid = np.empty(starts.size - 1, dtype=np.bool_)
    for i in range(valid.size):
        at = starts[i]
        while 0 <= at < starts[i + 1]:
            at = at + 1 if data[at] < 0x80 else after_character(data, at, starts[i + 1])
        valid[i] = at >= 0
    return valid


@njit(cache=True)
def after_character(data: Bytes, at: int, end: int) -> int:
    """Return the position after the multi-byte character that begins at ``at``, or -1 if it is not valid UTF-8.

    Parameters
    ----------
    data : uint8[]
    at : int
        The position of a byte of 0x80 or above; the caller handles ASCII bytes itself.
    end : int
        Where the text ends; no byte from here on is read.

    Notes
    -----
    Raises nothing. Source: The Unicode Standard, table 3-7 "Well-formed UTF-8 byte sequences": overlong forms,
    surrogates and code points above U+10FFFF are invalid.
    """
    first = data[at]
    if 0xC2 <= first <= 0xDF:
        length, low, high = 2, 0x80, 0xBF
    elif 0xE0 <= first <= 0xEF:
        length, low, high = 3, (0xA0 if first == 0xE0 else 0x80), (0x9F if first == 0xED else 0xBF)
    elif 0xF0 <= first <= 0xF4:
        length, low, high = 4, (0x90 if first == 0xF0 else 0x80), (0x8F if first == 0xF4 else 0xBF)
    else:
        return -1
    if at + length > end or data[at + 1] < low or data[at + 1] > high:
        return -1
    for i in range(at + 2, at + length):
        if data[i] < 0x80 or data[i] > 0xBF:
            return -1
    return at + length


@njit(cache=True, forceinline=True)
def after_byte_order_mark(data: Bytes, at: int, end: int) -> int:
    """Return the position after the UTF-8 byte order mark at ``at``, or ``at`` if there is none before ``end``."""
    if end - at >= 3 and data[at] == 0xEF and data[at + 1] == 0xBB and data[at + 2] == 0xBF:
        return at + 3
    return at
