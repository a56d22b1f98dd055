"""Reads decimal numbers from bytes: grammar and value in one pass. Pure: bytes in, numbers out.

Knows one number. Which column it belongs to, and what a bad one means, is the caller's business.
"""

import numpy as np
from numba import njit

from bmq.records import Bytes

# What `read_numeral` found.
NO_NUMERAL = 0  # not a number by RFC 8259
NUMERAL = 1  # the value is exact: the double nearest to the decimal
LONG_NUMERAL = 2  # grammatical and far from overflow and underflow, but the value takes more care
ODD_NUMERAL = 3  # grammatical; may overflow

_POWERS_OF_TEN = np.array([float(10**e) for e in range(23)])
_EXACT_INTEGER = 1 << 53  # every integer up to here is a double
_MAX_DIGITS = 18  # one more may not fit into int64
_MAX_LONG_CHARACTERS = 60  # with _MAX_LONG_EXPONENT, keeps LONG_NUMERAL within 10^-160 .. 10^160
_MAX_LONG_EXPONENT = 100
_EXPONENT_CAP = 10_000  # far over any double's; more digits would wrap the sum

_ZERO = 48
_NINE = 57
_MINUS = 45
_PLUS = 43
_POINT = 46
_E_LOWER = 101
_E_UPPER = 69


@njit(cache=True, forceinline=True)
def read_numeral(data: Bytes, begin: int, end: int) -> tuple[int, int, float]:
    """Return (position after the number, what was found, value) for the number at ``begin``.

    The value is exact without big arithmetic when digits and power of ten are both exact doubles: one
    multiplication or division then rounds once, as IEEE 754 says. That holds for up to 15 digits with a
    small exponent, so for most readings; the rest is told apart and not guessed.

    Parameters
    ----------
    data : uint8[]
    begin, end : int
        The number starts at ``begin`` and is not read past ``end``. It ends at the first byte that cannot
        belong to it, which the caller must check.

    Notes
    -----
    Raises nothing. Source: Clinger, How to read floating point numbers accurately, PLDI 1990,
    doi:10.1145/93542.93557, the fast path.
    """
    at = begin
    negative = at < end and data[at] == _MINUS
    if negative:
        at += 1
    if at >= end or data[at] < _ZERO or data[at] > _NINE:
        return at, NO_NUMERAL, 0.0

    digits = np.int64(0)
    n_digits = 0
    if data[at] == _ZERO:
        at += 1
        if at < end and _ZERO <= data[at] <= _NINE:
            return at, NO_NUMERAL, 0.0
    else:
        while at < end and _ZERO <= data[at] <= _NINE:
            if n_digits < _MAX_DIGITS:
                digits = digits * 10 + (np.int64(data[at]) - _ZERO)
            n_digits += 1
            at += 1

    scale = 0
    if at < end and data[at] == _POINT:
        at += 1
        fraction = at
        while at < end and _ZERO <= data[at] <= _NINE:
            if n_digits < _MAX_DIGITS:
                digits = digits * 10 + (np.int64(data[at]) - _ZERO)
            if digits > 0:  # a leading zero is no digit of the value
                n_digits += 1
            at += 1
        if at == fraction:
            return at, NO_NUMERAL, 0.0
        scale = fraction - at

    exponent = np.int64(0)
    if at < end and (data[at] == _E_LOWER or data[at] == _E_UPPER):
        at += 1
        downward = at < end and data[at] == _MINUS
        if downward or (at < end and data[at] == _PLUS):
            at += 1
        if at >= end or data[at] < _ZERO or data[at] > _NINE:
            return at, NO_NUMERAL, 0.0
        while at < end and _ZERO <= data[at] <= _NINE:
            if exponent < _EXPONENT_CAP:
                exponent = exponent * 10 + (np.int64(data[at]) - _ZERO)
            at += 1
        if downward:
            exponent = -exponent

    power = exponent + scale
    if n_digits <= _MAX_DIGITS and digits <= _EXACT_INTEGER and -22 <= power <= 22:
        value = float(digits)
        value = value * _POWERS_OF_TEN[power] if power >= 0 else value / _POWERS_OF_TEN[-power]
        return at, NUMERAL, -value if negative else value
    if at - begin <= _MAX_LONG_CHARACTERS and -_MAX_LONG_EXPONENT <= exponent <= _MAX_LONG_EXPONENT:
        return at, LONG_NUMERAL, 0.0
    return at, ODD_NUMERAL, 0.0
