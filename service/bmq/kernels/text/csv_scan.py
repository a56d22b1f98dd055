"""Finds a feed's columns in CSV records, one line a record. Pure: bytes in, numbers out.

    v17,1700000000000,1.5,bus
    ^^^ ^^^^^^^^^^^^^ ^^^ ^^^
    TEXT   NUMBER   NUMBER  a column that no field wants

Only lines without quotes: a quoted cell may hold commas and line breaks, which the csv module knows.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.characters import after_character
from bmq.kernels.text.json_skip import ABSENT, COMMA, LONG_NUMBER, NUMBER, OTHER, QUOTE, TEXT
from bmq.kernels.text.numerals import LONG_NUMERAL, NO_NUMERAL, NUMERAL, read_numeral
from bmq.records import Bools, Bytes, Float64s, Int8s, Int64s

_LINE_FEED = 10
_CARRIAGE_RETURN = 13
_FIRST_PRINTABLE = 32


@njit(cache=True)
def scan_csv(
    starts: Int64s,
    data: Bytes,
    field_by_column: Int64s,
    kinds: Int8s,
    begins: Int64s,
    ends: Int64s,
    numbers: Float64s,
) -> Bools:
    """Return which records are plain lines of at most as many cells as columns; fill the columns for those.

    Parameters
    ----------
    starts : int64[n + 1]
        Record i is ``data[starts[i]:starts[i + 1]]``; a line break at its end does not count.
    data : uint8[]
    field_by_column : int64[c]
        The field that a column holds; -1: none.
    kinds : int8[k, n]
        Zeroed by the caller (ABSENT); an empty cell is absent.
    begins, ends : int64[k, n]
        Where the cell stands in ``data``.
    numbers : float64[k, n]
        Valid for NUMBER.

    Returns
    -------
    bool[n]
        Where false, the columns of that record mean nothing.

    Notes
    -----
    Raises nothing.
    """
    n = starts.size - 1
    well_formed = np.zeros(n, dtype=np.bool_)
    for row in range(n):
        end = _end_of_line(data, starts[row], starts[row + 1])
        well_formed[row] = starts[row] < end and _scan_line(
            row, starts[row], end, data, field_by_column, kinds, begins, ends, numbers
        )
    return well_formed


@njit(cache=True)
def _scan_line(
    row: int,
    at: int,
    end: int,
    data: Bytes,
    field_by_column: Int64s,
    kinds: Int8s,
    begins: Int64s,
    ends: Int64s,
    numbers: Float64s,
) -> bool:
    """Return whether ``data[at:end]`` is a plain line, noting the wanted cells in column ``row``."""
    for column in range(field_by_column.size):
        begin = at
        while at < end and data[at] != COMMA:
            if data[at] == QUOTE or data[at] < _FIRST_PRINTABLE:
                return False
            at = at + 1 if data[at] < 0x80 else after_character(data, at, end)
            if at < 0:
                return False
        field = field_by_column[column]
        if field >= 0:
            begins[field, row] = begin
            ends[field, row] = at
            kinds[field, row], numbers[field, row] = _read_cell(data, begin, at)
        if at == end:
            return True
        at += 1
    return False


@njit(cache=True, forceinline=True)
def _read_cell(data: Bytes, begin: int, end: int) -> tuple[int, float]:
    """Return (kind, number) of a cell without quotes."""
    if begin == end:
        return ABSENT, 0.0
    after, found, number = read_numeral(data, begin, end)
    if found == NO_NUMERAL or after != end:
        return TEXT, 0.0
    if found == NUMERAL:
        return NUMBER, number
    return (LONG_NUMBER if found == LONG_NUMERAL else OTHER), 0.0


@njit(cache=True)
def _end_of_line(data: Bytes, begin: int, end: int) -> int:
    """Return ``end`` without one line break."""
    if begin < end and data[end - 1] == _LINE_FEED:
        end -= 1
        if begin < end and data[end - 1] == _CARRIAGE_RETURN:
            end -= 1
    return end
