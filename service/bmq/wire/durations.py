"""Durations as texts, `"90s"`, in definitions and in the configuration. Knows no option, only the text."""

import re

# Every event time is in the years 1 to 9999, so nothing can be further apart; and an event time and a duration of
# this length have a sum that is far within 64 bits.
LONGEST_DAYS = 3_652_059
LONGEST_MS = LONGEST_DAYS * 86_400_000

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)", re.ASCII)
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def read_duration(value: object) -> int:
    """Return the milliseconds of a duration, 0 to `LONGEST_MS`.

    Raises
    ------
    ValueError
        No text, another form, or longer; the message says the rule and the way out. A bare number is refused, since
        nobody can know its unit.
    """
    parts = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        raise ValueError('a duration is a whole number with ms, s, m, h or d; write it like "90s" or "250ms"')
    # As a float, since Python refuses to make an int of some thousand digits; up to the limit a float is exact.
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
