"""Finds a feed's fields in Avro records, one record a message, by a compiled schema. Pure: bytes in, numbers out.

    06 76 31 37   80 d0 …   00 00 00 00 00 00 f8 3f
    TEXT "v17"    a time    NUMBER 1.5

Runs the steps of `records.avro_program`. Must not know schemas or names of fields.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.characters import after_character
from bmq.kernels.text.json_skip import NUMBER, TEXT
from bmq.records import Bools, Bytes, Float64s, Int8s, Int64s
from bmq.records.avro_program import (
    BLOCK,
    BOOLEAN,
    BYTES,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    JUMP,
    NEXT,
    STRING,
    UNION,
    VARINT,
)

_SEPARATOR = 31  # `plain_records.ATTRIBUTE_END`: a text with this byte is left to the exact path
_MOST_EXACT = 2**53  # above, a double no longer has each whole number
_LAST_SHIFT = 63  # of the tenth byte of a varint, which has one bit


@njit(cache=True)
def scan_avro(
    starts: Int64s,
    data: Bytes,
    steps: Int64s,
    jumps: Int64s,
    n_counters: int,
    n_dims: int,
    time_field: int,
    power: int,
    first_attribute: int,
    kinds: Int8s,
    begins: Int64s,
    ends: Int64s,
    numbers: Float64s,
) -> Bools:
    """Return which records are well-formed and simple; write the fields of those.

    Not simple: a stream id or an attribute that is neither text nor null, an attribute that is an empty text or has the
    byte 31, a number that is not finite, and a time that no double holds.

    Parameters
    ----------
    starts : int64[n + 1]
        Record i is ``data[starts[i]:starts[i + 1]]``.
    data : uint8[]
    steps, jumps, n_counters
        The program; see `records.avro_program.AvroProgram`.
    n_dims, first_attribute : int
        The fields before ``n_dims`` are dimensions, those from ``first_attribute`` on are attributes.
    time_field : int
        The field of the event time, or -1.
    power : int
        -6 to 3. A whole number in the time field counts ``10**power`` ms; ``numbers`` gets ms, rounded down.
    kinds : int8[k, n]
        Written: ABSENT, TEXT or NUMBER, as in `kernels.text.json_skip`. The caller fills it with zeros (ABSENT).
    begins, ends : int64[k, n]
        Written for kind TEXT: the text is ``data[begins[f, i]:ends[f, i]]``.
    numbers : float64[k, n]
        Written for kind NUMBER.

    Returns
    -------
    bool[n]
        If false, the output for that record is meaningless.

    Notes
    -----
    Raises nothing. Source: Apache Avro 1.12 specification, "Binary encoding".
    """
    n = starts.size - 1
    well_formed = np.zeros(n, dtype=np.bool_)
    counters = np.zeros(n_counters, dtype=np.int64)
    bits64 = np.zeros(1, dtype=np.uint64)
    bits32 = np.zeros(1, dtype=np.uint32)
    doubles = bits64.view(np.float64)
    floats = bits32.view(np.float32)
    scale = 10 ** abs(power)
    for row in range(n):
        at, end = starts[row], starts[row + 1]
        step = 0
        good = True
        while good and step < steps.shape[0]:
            operation, a, b, field = steps[step, 0], steps[step, 1], steps[step, 2], steps[step, 3]
            step += 1
            if operation == DOUBLE:
                good = end - at >= 8
                if good:
                    if field >= 0:
                        bits = np.uint64(0)
                        for i in range(8):
                            bits |= np.uint64(data[at + i]) << np.uint64(8 * i)
                        bits64[0] = bits
                        numbers[field, row] = doubles[0]
                        kinds[field, row] = NUMBER
                        good = np.isfinite(doubles[0]) and (field < n_dims or (field == time_field and power == 0))
                    at += 8
            elif operation == STRING:
                at, length = _read_varint(data, at, end)
                good = at >= 0 and 0 <= length <= end - at
                if good:
                    if field >= 0:
                        kinds[field, row] = TEXT
                        begins[field, row] = at
                        ends[field, row] = at + length
                    at, has_separator = _skip_text(data, at, at + length)
                    good = at >= 0 and (field < first_attribute or (length > 0 and not has_separator))
            elif operation == VARINT:
                at, number = _read_varint(data, at, end)
                good = at >= 0
                if good and field >= 0:
                    kinds[field, row] = NUMBER
                    if field == time_field:
                        if power < 0:
                            number //= scale
                        elif power > 0:
                            good = -_MOST_EXACT // scale < number < _MOST_EXACT // scale
                            number *= scale
                        good = good and -_MOST_EXACT < number < _MOST_EXACT
                    else:
                        good = field < n_dims
                    numbers[field, row] = number
            elif operation == UNION:
                at, number = _read_varint(data, at, end)
                good = at >= 0 and 0 <= number < a
                if good:
                    step = jumps[b + number]
            elif operation == JUMP:
                step = a
            elif operation == FLOAT:
                good = end - at >= 4
                if good:
                    if field >= 0:
                        word = np.uint32(0)
                        for i in range(4):
                            word |= np.uint32(data[at + i]) << np.uint32(8 * i)
                        bits32[0] = word
                        numbers[field, row] = floats[0]
                        kinds[field, row] = NUMBER
                        good = np.isfinite(floats[0]) and (field < n_dims or (field == time_field and power == 0))
                    at += 4
            elif operation == BOOLEAN:
                good = at < end and data[at] <= 1 and field < 0
                at += 1
            elif operation == ENUM:
                at, number = _read_varint(data, at, end)
                good = at >= 0 and 0 <= number < a and field < 0
            elif operation == FIXED:
                good = a <= end - at
                at += a
            elif operation == BYTES:
                at, length = _read_varint(data, at, end)
                good = at >= 0 and 0 <= length <= end - at
                at += length
            elif operation == BLOCK:
                at, number = _read_varint(data, at, end)
                good = at >= 0
                if good and number < 0:
                    number = -number
                    at, length = _read_varint(data, at, end)
                    good = at >= 0 and number > 0
                counters[b] = number
                if number == 0:
                    step = a
            elif operation == NEXT:
                counters[b] -= 1
                step = a + 1 if counters[b] > 0 else a
        well_formed[row] = good and at == end
    return well_formed


@njit(cache=True, forceinline=True)
def _read_varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return (the position behind, the number) of a zigzag varint; position -1: it is cut off or has over 64 bits."""
    bits = np.uint64(0)
    shift = 0
    while at < end:
        byte = data[at]
        at += 1
        if shift == _LAST_SHIFT and byte > 1:
            break
        bits |= np.uint64(byte & 0x7F) << np.uint64(shift)
        if byte < 0x80:
            return at, int(np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1)))
        shift += 7
    return -1, 0


@njit(cache=True, forceinline=True)
def _skip_text(data: Bytes, at: int, end: int) -> tuple[int, bool]:
    """Return (``end``, whether the text has a separator); -1 as position: it is not UTF-8."""
    has_separator = False
    while at < end:
        byte = data[at]
        if byte < 0x80:
            has_separator |= byte == _SEPARATOR
            at += 1
        else:
            at = after_character(data, at, end)
            if at < 0:
                return -1, False
    return at, has_separator
