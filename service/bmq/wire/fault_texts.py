"""Parts of messages about faults: values in readable form, and the known name that was probably meant."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

from bmq.errors import DeadLetterCode, ReadingError
from bmq.wire.numeral import Numeral

LONGEST_TEXT = 60  # characters of a value: a message stays one line, and its beginning still identifies the value


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like ``name``; "" if there are no known names."""
    folded = {one.casefold(): one for one in known}
    # Only the beginning is compared: the time is quadratic in the length, and clients choose the names.
    found = get_close_matches(name[:64].casefold(), folded, n=1, cutoff=0.0)
    return folded[found[0]] if found else ""


def shorten(value: object) -> str:
    """Return ``value`` as JSON of at most 60 characters."""
    return _cut(json.dumps(value, ensure_ascii=False))


def shown(value: object) -> str:
    """Return a value of a record for a message: a number unchanged, a long value shortened, a container by its type."""
    if isinstance(value, Numeral):
        return _cut(value)
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return shorten(value)


def refuse(code: DeadLetterCode, message: str) -> NoReturn:
    """Raise the ReadingError for a record that is not a reading."""
    # JSON may name half of a surrogate pair, but the message goes to Kafka as UTF-8, which cannot write it.
    raise ReadingError(code, message.encode(errors="backslashreplace").decode())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
