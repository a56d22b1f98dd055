"""Event times of readings and definitions: numbers in a unit, and texts of RFC 3339, to epoch milliseconds.

Exact, one time at a time. `kernels.text.times` must agree with this module for every time that it reads. Knows the
value and its unit, not the feed or the definition.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Context
from typing import NoReturn

from bmq.errors import DeadLetterCode
from bmq.records import TimeUnit
from bmq.wire.fault_texts import refuse, shown
from bmq.wire.numeral import Numeral

# 0001-01-01 and the last millisecond of 9999: RFC 3339 can express these times, and every consumer can read them.
FIRST_EVENT_TIME_MS = -62_135_596_800_000
LAST_EVENT_TIME_MS = 253_402_300_799_999
# Where no unit is given: 1973 and 5138 in milliseconds. Seconds reach the first number in 5138, and microseconds passed
# the last one in 1973.
LEAST_MILLISECONDS = 10**11
MOST_MILLISECONDS = 10**14
_MOST_MICROSECONDS = 10**17

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?", re.ASCII
)
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_LEAP_SECOND = 60
# Rounds down twice, which is the same as once: to 60 digits, of which a time has at most 22 before the point, and then
# to whole milliseconds. Without traps, because an exponent may have any length.
_DOWN = Context(prec=60, rounding=ROUND_FLOOR, traps=[])


def range_of_numbers(unit: TimeUnit | None) -> tuple[int, int]:
    """Return the least and the greatest time, in epoch milliseconds, that a number may have; None: no unit is given."""
    return (LEAST_MILLISECONDS, MOST_MILLISECONDS) if unit is None else (FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS)


def read_event_time(name: str, value: object, unit: TimeUnit | None) -> int:
    """Return the epoch milliseconds, rounded down, of a `Numeral` in ``unit`` or of an RFC 3339 text.

    Parameters
    ----------
    name : what has the value, for messages.
    unit : None: milliseconds, and a number that is probably of another unit is refused.

    Raises
    ------
    ReadingError
        The value is absent, is no time, or is out of range.
    """
    if value is None:
        refuse_missing(name, "every reading has an event time")
    if isinstance(value, Numeral):
        return _read_number(name, value, unit)
    if not isinstance(value, str):
        refuse(
            DeadLetterCode.WRONG_TYPE,
            f"{name} is {shown(value)}: an event time is a number that counts from 1970, or RFC 3339 text",
        )
    milliseconds = _read_rfc3339(name, value)
    if not FIRST_EVENT_TIME_MS <= milliseconds <= LAST_EVENT_TIME_MS:
        _refuse_year(f"{name} is {shown(value)}")
    return milliseconds


def read_time_option(option: str, text: str) -> int:
    """Return the epoch milliseconds of an option of the command line: a whole number of them, or RFC 3339 text.

    Raises
    ------
    ReadingError
        As for `read_event_time`.
    """
    return read_event_time(option, Numeral(text) if _WHOLE.fullmatch(text) else text, TimeUnit.MS)


def finite(name: str, numeral: Numeral) -> float:
    """Return the double nearest to the number. Raises ReadingError, which has ``name``, if that is infinite or NaN."""
    number = float(numeral)
    if not math.isfinite(number):
        refuse(DeadLetterCode.NOT_FINITE, f"{name} is {shown(numeral)}: send a finite number, up to 1.79e308")
    return number


def refuse_missing(name: str, rule: str) -> NoReturn:
    """Raise the ReadingError for a field that is absent or null."""
    refuse(DeadLetterCode.MISSING_FIELD, f"{name} is absent or null: {rule}; send it, or correct the feed")


def _read_number(name: str, numeral: Numeral, unit: TimeUnit | None) -> int:
    finite(name, numeral)
    power = (unit or TimeUnit.MS).power
    exact = _DOWN.create_decimal(numeral).scaleb(power, _DOWN).to_integral_value(ROUND_FLOOR)
    first, last = range_of_numbers(unit)
    # Compared as decimals: the integer of a number like 1e308 would have hundreds of digits.
    if not first <= exact <= last:
        if unit is None:
            _refuse_unit(name, numeral, is_small=exact < first)
        _refuse_year(f"{name} is {shown(numeral)} {unit}")
    return int(exact)


def _refuse_unit(name: str, numeral: Numeral, is_small: bool) -> NoReturn:
    if is_small:
        border, likely = "below 10^11", ("seconds", TimeUnit.S)
    else:
        is_micro = float(numeral) < _MOST_MICROSECONDS
        border, likely = "above 10^14", ("microseconds", TimeUnit.US) if is_micro else ("nanoseconds", TimeUnit.NS)
    refuse(
        DeadLetterCode.OUT_OF_RANGE,
        f"{name} is {shown(numeral)}: a number is epoch milliseconds, and one {border} is probably {likely[0]}; set "
        f'event_time_unit = "{likely[1]}" for the feed, or "ms" if these are milliseconds',
    )


def _refuse_year(fault: str) -> NoReturn:
    refuse(DeadLetterCode.OUT_OF_RANGE, f"{fault}: years 1 to 9999 are read; correct the time, or its unit")


def _read_rfc3339(name: str, text: str) -> int:
    parts = _RFC3339.fullmatch(text)
    if parts is None:
        refuse(
            DeadLetterCode.WRONG_TYPE,
            f"{name} is {shown(text)}: write 2023-11-14T22:13:20.250Z, or a number without quotes",
        )
    if parts[8] is None and text[-1] not in "Zz":
        refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {shown(text)}, without an offset: append Z or +01:00")
    year, month, day, hour, minute, second = map(int, parts.group(1, 2, 3, 4, 5, 6))
    # Epoch milliseconds have no number for a leap second, so it is the second after it.
    leap = timedelta(seconds=second == _LEAP_SECOND)
    try:
        at = datetime(year, month, day, hour, minute, second - leap.seconds, tzinfo=UTC)
        offset = _read_offset(int(parts[9] or 0), int(parts[10] or 0))
    except ValueError as error:
        refuse(DeadLetterCode.WRONG_TYPE, f"{name} is {shown(text)}: {error}; send a time that exists")
    since = at - _EPOCH + leap + (offset if parts[8] == "-" else -offset)
    return since // _MILLISECOND + int((parts[7] or "0")[:3].ljust(3, "0"))


def _read_offset(hours: int, minutes: int) -> timedelta:
    offset = timedelta(hours=hours, minutes=minutes)
    if offset >= _DAY or timedelta(minutes=minutes) >= _HOUR:
        raise ValueError("the offset is a day or more, or has more than 59 minutes")
    return offset
