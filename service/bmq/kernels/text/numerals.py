"""Reads decimal numbers from bytes: grammar and value in one pass. Pure: bytes in, numbers out.

Knows one number at a time. It must not know to which column the number belongs, nor what a malformed one means; both
are the caller's.
"""

import numpy as np
from numba import njit

from bmq.records import Bytes

# The second result of `read_numeral`.
NO_NUMERAL = 0  # the text is not a number by RFC 8259
NUMERAL = 1  # the value is exact: the double nearest to the decimal
LONG_NUMERAL = 2  # valid, and far from overflow and underflow, but the exact value needs a slower parser
ODD_NUMERAL = 3  # valid, but may overflow or underflow

_POWERS_OF_TEN = np.array([float(10**e) for e in range(23)])
_EXACT_INTEGER = 1 << 53  # each integer from 0 up to this one is a double
_MAX_DIGITS = 18  # an int64 holds every number of 18 digits, and not every one of 19
_MAX_LONG_CHARACTERS = 60  # together with _MAX_LONG_EXPONENT, this keeps a LONG_NUMERAL within 10^-160 .. 10^160
_MAX_LONG_EXPONENT = 100
_EXPONENT_CAP = 10_000  # far above any exponent of a double; more digits would overflow the int64

_ZERO = 48
_NINE = 57
_MINUS = 45
_PLUS = 43
_POINT = 46
_E_LOWER = 101
_E_UPPER = 69


@njit(cache=True, forceinline=True)
def read_numeral(data: Bytes, begin: int, end: int) -> tuple[int, int, float]:
    """Return (position after the number, which of the four constants applies, value) for the number at ``begin``.

    The fast path is exact without arbitrary-precision arithmetic: if the digits and the power of ten are both exact
    doubles, one multiplication or division rounds only once, as IEEE 754 requires. That covers numbers of up to 15
    digits with a small exponent, so most readings. Every other number is reported as LONG_NUMERAL or ODD_NUMERAL with
    value 0.0 and is not approximated.

    Parameters
    ----------
    data : uint8[]
    begin, end : int
        The number begins at ``begin``; no byte from ``end`` on is read. The number ends at the first byte that cannot
        belong to it. The caller must check whether such a byte may follow a number.

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
            if digits > 0:  # a leading zero is not a significant digit
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
