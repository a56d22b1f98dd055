"""Finds a feed's columns in CSV records, one line a record. Pure: bytes in, numbers out.

    v17,1700000000000,1.5,bus
    ^^^ ^^^^^^^^^^^^^ ^^^ ^^^
    TEXT   NUMBER   NUMBER  a column that no field wants

Knows only plain lines, those without quotes. A quoted cell may hold commas and line breaks; the caller hands every
record with a quote to Python's csv module. The scan must not know what a field means.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.characters import after_byte_order_mark, after_character
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
    """Return which records are plain lines with at most as many cells as there are columns; write the cells of those.

    Parameters
    ----------
    starts : int64[n + 1]
        Record i is ``data[starts[i]:starts[i + 1]]``. A byte order mark at its beginning and one line break at its end
        are ignored.
    data : uint8[]
    field_by_column : int64[c]
        The number of the field that each column holds, or -1 if no field wants the column.
    kinds : int8[k, n]
        Written: the kind of the value of each of the k fields in each record, as in `kernels.text.json_skip`. The
        caller fills it with zeros (ABSENT). An empty cell is ABSENT.
    begins, ends : int64[k, n]
        Written: the cell is ``data[begins[f, i]:ends[f, i]]``.
    numbers : float64[k, n]
        Written: the value of the cell; valid only for kind NUMBER.

    Returns
    -------
    bool[n]
        If false, the output for that record is meaningless.

    Notes
    -----
    Raises nothing.
    """
    n = starts.size - 1
    well_formed = np.zeros(n, dtype=np.bool_)
    for row in range(n):
        begin = after_byte_order_mark(data, starts[row], starts[row + 1])
        end = _end_of_line(data, begin, starts[row + 1])
        well_formed[row] = begin < end and _scan_line(
            row, begin, end, data, field_by_column, kinds, begins, ends, numbers
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
    """Return whether ``data[at:end]`` is a plain line; write its wanted cells to column ``row`` of the arrays."""
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
    """Return (kind, number) of the unquoted cell ``data[begin:end]``."""
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
    """Return ``end`` moved back over one line break (LF or CR LF), if ``data[begin:end]`` ends with one."""
    if begin < end and data[end - 1] == _LINE_FEED:
        end -= 1
        if begin < end and data[end - 1] == _CARRIAGE_RETURN:
            end -= 1
    return end
