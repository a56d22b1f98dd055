"""Steps over JSON values in bytes and returns the kind of each. Pure: bytes in, positions out.

Knows the grammar of RFC 8259 and is as strict as it: text that is not JSON is never accepted. It is not complete: it
also rejects lists and objects nested deeper than `MAX_NESTING`, so the caller must read a rejection as "unknown".
It must not know names of fields.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.characters import after_character
from bmq.kernels.text.numerals import LONG_NUMERAL, NO_NUMERAL, NUMERAL, read_numeral
from bmq.records import Bytes

# The kinds of a value.
ABSENT = 0
TEXT = 1  # a string without escapes; its span is the text between the quotes
NUMBER = 2  # its span is the text of the number; the number read from it is exact
LONG_NUMBER = 3  # its span is the text of a number far from overflow and underflow, which needs a slower, exact parser
OTHER = 4  # anything else: null, true, false, a list, an object, a string with escapes, a number that may overflow

MAX_NESTING = 60  # levels; `_skip_container` keeps one bit a level in an int64

QUOTE = 34
COMMA = 44
COLON = 58
OPEN_LIST = 91
OPEN_OBJECT = 123
CLOSE_OBJECT = 125
_BACKSLASH = 92
_CLOSE_LIST = 93
_LOWER_U = 117

_ESCAPES = np.zeros(256, dtype=np.bool_)
_ESCAPES[list(b'"\\/bfnrtu')] = True
_HEX = np.zeros(256, dtype=np.bool_)
_HEX[list(b"0123456789abcdefABCDEF")] = True
# Bytes that stand for themselves inside a string: ASCII without control characters, quote and backslash.
_ORDINARY = np.zeros(256, dtype=np.bool_)
_ORDINARY[32:128] = True
_ORDINARY[list(b'"\\')] = False

_TRUE = np.frombuffer(b"true", dtype=np.uint8)
_FALSE = np.frombuffer(b"false", dtype=np.uint8)
_NULL = np.frombuffer(b"null", dtype=np.uint8)


# Forced inline, here and below: a call passes one array as seven arguments, and a scan with calls takes nearly twice as
# long.
@njit(cache=True, forceinline=True)
def skip_value(data: Bytes, at: int, end: int) -> tuple[int, int, float]:
    """Return (position after the value at ``at``, its kind, its number); the position is -1 if it is not valid JSON.

    The number is valid only for kind NUMBER. ``data`` is uint8[], and no byte from ``end`` on is read.
    """
    if at < end and (data[at] == OPEN_LIST or data[at] == OPEN_OBJECT):
        return _skip_container(data, at, end), OTHER, 0.0
    return _skip_scalar(data, at, end)


@njit(cache=True, forceinline=True)
def _skip_scalar(data: Bytes, at: int, end: int) -> tuple[int, int, float]:
    """Return what `skip_value` returns, for a string, a number, true, false or null."""
    if at >= end:
        return -1, OTHER, 0.0
    first = data[at]
    if first == QUOTE:
        close, escaped = find_closing_quote(data, at + 1, end)
        return (close + 1 if close >= 0 else -1), (OTHER if escaped else TEXT), 0.0
    if first == _TRUE[0]:
        return _skip_literal(data, at, end, _TRUE), OTHER, 0.0
    if first == _FALSE[0]:
        return _skip_literal(data, at, end, _FALSE), OTHER, 0.0
    if first == _NULL[0]:
        return _skip_literal(data, at, end, _NULL), OTHER, 0.0
    after, found, number = read_numeral(data, at, end)
    if found == NUMERAL:
        return after, NUMBER, number
    if found == NO_NUMERAL:
        return -1, OTHER, 0.0
    return after, (LONG_NUMBER if found == LONG_NUMERAL else OTHER), 0.0


@njit(cache=True)
def _skip_container(data: Bytes, at: int, end: int) -> int:
    """Return the position after the list or object at ``at``; -1 if it is not valid JSON or nested too deep.

    This is a loop and not a recursion, because records come from outside and could exhaust the stack. ``is_object`` has
    one bit for each level, the innermost level in the lowest bit.
    """
    depth = 0
    is_object = 0
    # At the head of the loop a value begins at `at`, or `at` is -1 because the text before it was not JSON.
    while at >= 0:
        if at < end and (data[at] == OPEN_LIST or data[at] == OPEN_OBJECT):
            if depth == MAX_NESTING:
                return -1
            depth += 1
            is_object = (is_object << 1) | (1 if data[at] == OPEN_OBJECT else 0)
            at = skip_spaces(data, at + 1, end)
            if at >= end or data[at] != (CLOSE_OBJECT if is_object & 1 else _CLOSE_LIST):
                at = _skip_name(data, at, end) if is_object & 1 else at
                continue
        else:
            at, _, _ = _skip_scalar(data, at, end)
            if at < 0:
                return -1
            at = skip_spaces(data, at, end)
        while at < end and data[at] == (CLOSE_OBJECT if is_object & 1 else _CLOSE_LIST):
            at += 1
            depth -= 1
            is_object >>= 1
            if depth == 0:
                return at
            at = skip_spaces(data, at, end)
        if at >= end or data[at] != COMMA:
            return -1
        at = skip_spaces(data, at + 1, end)
        at = _skip_name(data, at, end) if is_object & 1 else at
    return -1


@njit(cache=True, forceinline=True)
def _skip_name(data: Bytes, at: int, end: int) -> int:
    """Return the position of the value after the ``"name":`` at ``at``, or -1 if there is no such name."""
    if at >= end or data[at] != QUOTE:
        return -1
    close, _ = find_closing_quote(data, at + 1, end)
    if close < 0:
        return -1
    at = skip_spaces(data, close + 1, end)
    if at >= end or data[at] != COLON:
        return -1
    return skip_spaces(data, at + 1, end)


@njit(cache=True, forceinline=True)
def find_closing_quote(data: Bytes, at: int, end: int) -> tuple[int, bool]:
    """Return (position of the quote that ends the string, whether the string has escapes).

    The string begins at ``at``, behind its opening quote. The position is -1 if it is not a valid JSON string.
    """
    escaped = False
    while True:
        while at < end and _ORDINARY[data[at]]:
            at += 1
        if at >= end:
            return -1, escaped
        if data[at] == QUOTE:
            return at, escaped
        if data[at] >= 0x80:
            at = after_character(data, at, end)
            if at < 0:
                return -1, escaped
        elif data[at] == _BACKSLASH:
            escaped = True
            if at + 1 >= end or not _ESCAPES[data[at + 1]]:
                return -1, escaped
            if data[at + 1] == _LOWER_U:
                if at + 6 > end:
                    return -1, escaped
                for digit in range(at + 2, at + 6):
                    if not _HEX[data[digit]]:
                        return -1, escaped
                at += 4
            at += 2
        else:
            return -1, escaped


@njit(cache=True, forceinline=True)
def _skip_literal(data: Bytes, at: int, end: int, literal: Bytes) -> int:
    """Return the position after ``literal`` at ``at``, or -1 if other bytes are there."""
    if at + literal.size > end:
        return -1
    for i in range(literal.size):
        if data[at + i] != literal[i]:
            return -1
    return at + literal.size


@njit(cache=True, forceinline=True)
def skip_spaces(data: Bytes, at: int, end: int) -> int:
    """Return the first position from ``at`` on that does not hold JSON whitespace, ``end`` at most."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at
