"""Durations as texts, `"90s"`, in definitions and in the configuration. Knows the text, not the options that use it."""

import re

# Event times lie in the years 1 to 9999, so no two of them are further apart. The sum of an event time and a duration
# of this length is far within 64 bits.
LONGEST_DAYS = 3_652_059
LONGEST_MS = LONGEST_DAYS * 86_400_000

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)", re.ASCII)
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def read_duration(value: object) -> int:
    """Return the milliseconds of a duration, 0 to `LONGEST_MS`.

    Raises
    ------
    ValueError
        The value is not a text, has another form, or is longer; the message has the rule and the way out. A bare
        number is refused, because its unit is unknown.
    """
    parts = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        raise ValueError('a duration is a whole number with ms, s, m, h or d; write it like "90s" or "250ms"')
    # A float, because Python refuses to make an int of some thousand digits; up to the limit a float is exact.
    milliseconds = float(parts[1]) * _MS[parts[2]]
    if milliseconds > LONGEST_MS:
        raise ValueError(f"a duration is at most {LONGEST_DAYS}d, about 9,999 years; write a shorter one, or none")
    return int(milliseconds)


def read_positive_duration(value: object) -> int:
    """Return the milliseconds of a duration above zero; raises as `read_duration`."""
    milliseconds = read_duration(value)
    if milliseconds == 0:
        raise ValueError("this duration must be above zero; write a longer one, or none")
    return milliseconds
