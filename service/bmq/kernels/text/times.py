"""Reads times from bytes: texts of RFC 3339, and numbers that count from 1970. Pure: bytes in, numbers out.

    2023-11-14T22:13:20.250+01:00        1700000000.25
    0    5  8  11 14 17 19  offset

Knows one time at a time. Whether the time is in the allowed range of a feed is the caller's to check.
"""

import numpy as np
from numba import njit

from bmq.records import Bytes

_DAY_MS = 86_400_000
_DAYS_TO_1970 = 719_468  # from 0000-03-01, where `_days_from_1970` begins to count
_LENGTH_TO_SECONDS = 19
_MILLISECOND_DIGITS = 3

_POWERS_OF_TEN = np.array([10**e for e in range(19)], dtype=np.int64)
_LARGEST_POWER = 18
_MANY = 10**17  # a digit more, and an int64 still holds the number
_BEYOND = 10**15  # milliseconds; after the year 9999

_ZERO = 48
_POINT = 46
_MINUS = 45
_PLUS = 43
_COLON = 58
_SPACE = 32
_T = (84, 116)
_Z = (90, 122)
_E = (69, 101)


@njit(cache=True)
def read_rfc3339(data: Bytes, begin: int, end: int) -> tuple[bool, np.int64]:
    """Return (whether ``data[begin:end]`` is a time with an offset, its epoch milliseconds rounded down).

    Years are 0001 to 9999. A leap second (":60") is the second after it, because epoch milliseconds have no number for
    it. An offset may also have no colon, as in ISO 8601, or no minutes: +01:00, +0100, +01.

    Notes
    -----
    Raises nothing. Source of the day count: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms,
    days_from_civil: its years begin in March, so that the leap day is the last day of a year.
    """
    if end - begin < _LENGTH_TO_SECONDS + 1:
        return False, np.int64(0)
    if data[begin + 4] != _MINUS or data[begin + 7] != _MINUS:
        return False, np.int64(0)
    if data[begin + 13] != _COLON or data[begin + 16] != _COLON:
        return False, np.int64(0)
    separator = data[begin + 10]
    if separator != _T[0] and separator != _T[1] and separator != _SPACE:
        return False, np.int64(0)
    year = 100 * _two_digits(data, begin) + _two_digits(data, begin + 2)
    month = _two_digits(data, begin + 5)
    day = _two_digits(data, begin + 8)
    hour = _two_digits(data, begin + 11)
    minute = _two_digits(data, begin + 14)
    second = _two_digits(data, begin + 17)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _days_in_month(year, month):
        return False, np.int64(0)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 60:
        return False, np.int64(0)

    at = begin + _LENGTH_TO_SECONDS
    milliseconds = np.int64(0)
    if data[at] == _POINT:
        at += 1
        fraction = at
        while at < end and _ZERO <= data[at] <= _ZERO + 9:
            if at - fraction < _MILLISECOND_DIGITS:
                milliseconds = milliseconds * 10 + (np.int64(data[at]) - _ZERO)
            at += 1
        if at == fraction:
            return False, np.int64(0)
        for _ in range(at - fraction, _MILLISECOND_DIGITS):
            milliseconds *= 10

    is_offset, offset_minutes = _read_offset(data, at, end)
    if not is_offset:
        return False, np.int64(0)
    seconds = 60 * (60 * hour + minute - offset_minutes) + second
    return True, _days_from_1970(year, month, day) * _DAY_MS + seconds * 1000 + milliseconds


@njit(cache=True, forceinline=True)
def _read_offset(data: Bytes, at: int, end: int) -> tuple[bool, np.int64]:
    """Return (whether ``data[at:end]`` is Z, +01:00, +0100 or +01, the minutes east of Greenwich)."""
    if at + 1 == end and (data[at] == _Z[0] or data[at] == _Z[1]):
        return True, np.int64(0)
    length = end - at
    if length != 3 and length != 5 and not (length == 6 and data[at + 3] == _COLON):
        return False, np.int64(0)
    if data[at] != _PLUS and data[at] != _MINUS:
        return False, np.int64(0)
    hours = _two_digits(data, at + 1)
    minutes = np.int64(0) if length == 3 else _two_digits(data, end - 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return False, np.int64(0)
    return True, 60 * hours + minutes if data[at] == _PLUS else -(60 * hours + minutes)


@njit(cache=True)
def read_epoch(data: Bytes, begin: int, end: int, power: int) -> tuple[bool, np.int64]:
    """Return (whether the number was read, ``data[begin:end]`` times ``10**power`` rounded down).

    Exact, because it reads digits and no double: 1557989535.123 seconds are 123 milliseconds after a whole second.

    Parameters
    ----------
    data : uint8[]
    begin, end : int
        The text is a number by RFC 8259 of at most 100 characters.
    power : int
        -6 to 3.

    Notes
    -----
    Raises nothing. A number whose result is 10**15 or more is not read; no caller accepts such a time.
    """
    at = begin + 1 if data[begin] == _MINUS else begin
    scale = np.int64(power)
    digits = np.int64(0)
    in_fraction = False
    is_more = False  # whether the number has a part that neither the digits nor the result have
    while at < end and data[at] != _E[0] and data[at] != _E[1]:
        if data[at] == _POINT:
            in_fraction = True
        elif digits < _MANY:
            digits = digits * 10 + (np.int64(data[at]) - _ZERO)
            scale -= 1 if in_fraction else 0
        else:
            is_more = is_more or data[at] != _ZERO
            scale += 0 if in_fraction else 1
        at += 1
    if at < end:
        scale += _read_exponent(data, at + 1, end)

    if scale > _LARGEST_POWER or (scale > 0 and digits > _BEYOND // _POWERS_OF_TEN[scale]):
        return False, np.int64(0)
    if scale >= 0:
        whole = digits * _POWERS_OF_TEN[scale]
    elif scale >= -_LARGEST_POWER:
        whole = digits // _POWERS_OF_TEN[-scale]
        is_more = is_more or whole * _POWERS_OF_TEN[-scale] != digits
    else:
        whole = np.int64(0)
        is_more = is_more or digits != 0
    if whole > _BEYOND:
        return False, np.int64(0)
    if data[begin] == _MINUS:
        return True, -whole - (1 if is_more else 0)
    return True, whole


@njit(cache=True, forceinline=True)
def _read_exponent(data: Bytes, at: int, end: int) -> np.int64:
    """Return the number ``data[at:end]``: a sign or none, and so few digits that an int64 holds them."""
    first = at + 1 if data[at] == _PLUS or data[at] == _MINUS else at
    exponent = np.int64(0)
    for i in range(first, end):
        exponent = exponent * 10 + (np.int64(data[i]) - _ZERO)
    return -exponent if data[at] == _MINUS else exponent


@njit(cache=True, forceinline=True)
def _two_digits(data: Bytes, at: int) -> np.int64:
    """Return the number that the two digits at ``at`` spell, or a number below -99 if one of them is not a digit."""
    tens = np.int64(data[at]) - _ZERO
    units = np.int64(data[at + 1]) - _ZERO
    if tens < 0 or tens > 9 or units < 0 or units > 9:
        return np.int64(-10_000)
    return tens * 10 + units


@njit(cache=True)
def _days_in_month(year: np.int64, month: np.int64) -> int:
    """Return how many days a month of the Gregorian calendar has."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@njit(cache=True)
def _days_from_1970(year: np.int64, month: np.int64, day: np.int64) -> np.int64:
    """Return how many days a date from year 1 on is after 1970-01-01; negative if it is before."""
    march_year = year - 1 if month <= 2 else year
    era = march_year // 400
    year_of_era = march_year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - _DAYS_TO_1970
