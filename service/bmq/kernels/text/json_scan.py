"""Finds a feed's fields in JSON records without building an object. Pure: bytes in, numbers out.

    {"id": "v17", "ts": 1700000000000, "x": 1.5, "tags": ["a", {"b": null}]}
            ^^^         ^^^^^^^^^^^^^       ^^^          ^^^^^^^^^^^^^^^^^^
          TEXT span       NUMBER          NUMBER         skipped, but checked

Invariant: the scan may reject JSON that is valid, but it never accepts text that is not. A record that it calls
well-formed is one JSON object by RFC 8259, in valid UTF-8, whose fields are where the scan says. The caller hands every
other record to the exact parser. The scan knows the names of fields and must not know what they mean.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.characters import after_byte_order_mark
from bmq.kernels.text.json_skip import (
    CLOSE_OBJECT,
    COLON,
    COMMA,
    OPEN_OBJECT,
    QUOTE,
    TEXT,
    find_closing_quote,
    skip_spaces,
    skip_value,
)
from bmq.records import Bools, Bytes, Float64s, Int8s, Int64s


@njit(cache=True)
def scan_json(
    starts: Int64s,
    data: Bytes,
    name_starts: Int64s,
    names: Bytes,
    kinds: Int8s,
    begins: Int64s,
    ends: Int64s,
    numbers: Float64s,
) -> Bools:
    """Return which records are well-formed; write ``kinds``, ``begins``, ``ends`` and ``numbers`` for those.

    Parameters
    ----------
    starts : int64[n + 1]
        Record i is ``data[starts[i]:starts[i + 1]]``. A byte order mark at its beginning is ignored.
    data : uint8[]
    name_starts : int64[k + 1]
        Field f has the name ``names[name_starts[f]:name_starts[f + 1]]``. No two names are equal.
    names : uint8[]
    kinds : int8[k, n]
        Written: the kind of each field's value in each record, as in `kernels.text.json_skip`. The caller fills it with
        zeros (ABSENT). If a name occurs twice in a record, the last value counts.
    begins, ends : int64[k, n]
        Written: the value is ``data[begins[f, i]:ends[f, i]]``, for a TEXT without its quotes. Valid unless ABSENT.
    numbers : float64[k, n]
        Written: the value as a number; valid only for kind NUMBER.

    Returns
    -------
    bool[n]
        If false, the output for that record is meaningless.

    Notes
    -----
    Raises nothing. One pass over the bytes; no allocation per record.
    """
    n = starts.size - 1
    well_formed = np.zeros(n, dtype=np.bool_)
    for row in range(n):
        well_formed[row] = _scan_record(
            row, starts[row], starts[row + 1], data, name_starts, names, kinds, begins, ends, numbers
        )
    return well_formed


@njit(cache=True)
def _scan_record(
    row: int,
    at: int,
    end: int,
    data: Bytes,
    name_starts: Int64s,
    names: Bytes,
    kinds: Int8s,
    begins: Int64s,
    ends: Int64s,
    numbers: Float64s,
) -> bool:
    """Return whether ``data[at:end]`` is one JSON object; write its wanted fields to column ``row`` of the arrays."""
    at = skip_spaces(data, after_byte_order_mark(data, at, end), end)
    if at >= end or data[at] != OPEN_OBJECT:
        return False
    at = skip_spaces(data, at + 1, end)
    if at < end and data[at] == CLOSE_OBJECT:
        return skip_spaces(data, at + 1, end) == end
    guess = 0
    while True:
        if at >= end or data[at] != QUOTE:
            return False
        close, escaped = find_closing_quote(data, at + 1, end)
        # An escaped name may spell one of the wanted names: "\u0069d" is "id". So the exact parser reads this record.
        if close < 0 or escaped:
            return False
        field = _find_name(data, at + 1, close, name_starts, names, guess)
        at = skip_spaces(data, close + 1, end)
        if at >= end or data[at] != COLON:
            return False
        at = skip_spaces(data, at + 1, end)
        begin = at
        at, kind, number = skip_value(data, at, end)
        if at < 0:
            return False
        if field >= 0:
            kinds[field, row] = kind
            begins[field, row] = begin + 1 if kind == TEXT else begin
            ends[field, row] = at - 1 if kind == TEXT else at
            numbers[field, row] = number
            guess = field + 1
        at = skip_spaces(data, at, end)
        if at >= end:
            return False
        if data[at] == CLOSE_OBJECT:
            return skip_spaces(data, at + 1, end) == end
        if data[at] != COMMA:
            return False
        at = skip_spaces(data, at + 1, end)


@njit(cache=True, forceinline=True)
def _find_name(data: Bytes, begin: int, end: int, name_starts: Int64s, names: Bytes, guess: int) -> int:
    """Return the number of the field named ``data[begin:end]``, or -1 if no field has that name.

    The search begins at field ``guess``, because the records of one producer keep the order of their fields.
    """
    n_names = name_starts.size - 1
    for step in range(n_names):
        field = guess + step
        if field >= n_names:
            field -= n_names
        first = name_starts[field]
        length = name_starts[field + 1] - first
        if length == end - begin:
            same = 0
            while same < length and data[begin + same] == names[first + same]:
                same += 1
            if same == length:
                return field
    return -1
