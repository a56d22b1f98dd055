"""Parts of messages about faults: values in readable form, and the known name that was probably meant."""

import json
import math
from collections.abc import Iterable
from typing import NoReturn

from bmq.errors import DeadLetterCode, ReadingError
from bmq.wire.numeral import Numeral

LONGEST_NAME = 64  # characters of a name that are compared
MOST_NAMES = 12  # in one message
LONGEST_TEXT = 60  # characters of a value: a message stays one line, and its beginning still identifies the value


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that ``name`` was probably meant to be; "" if none is near.

    A name is near if at most a third of the characters of the longer one were changed, added, left out, or swapped with
    their neighbour. Case does not count.
    """
    # Only the beginning is compared: the time is quadratic in the length, and clients choose the names.
    written = name[:LONGEST_NAME].casefold()
    found, fewest = "", math.inf
    for one in known:
        other = one[:LONGEST_NAME].casefold()
        allowed = max(len(written), len(other)) // 3
        if abs(len(written) - len(other)) <= allowed:
            edits = _edits(written, other)
            if edits <= allowed and edits < fewest:
                found, fewest = one, edits
    return found


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a sentence about a name that does not exist: the known name that was probably meant, or all of them."""
    names = sorted(known)
    near = nearest(name, names)
    if near:
        return f"Did you mean '{near}'?"
    listed = ", ".join(f"'{_cut(one)}'" for one in names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"Known here: {listed}{more}." if names else "None is known here."


def _edits(a: str, b: str) -> int:
    """Return the fewest changes that make ``b`` of ``a``: the optimal string alignment distance."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, of_a in enumerate(a):
        above, before, row = before, row, [i + 1]
        for j, of_b in enumerate(b):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (of_a != of_b)))
            if i and j and of_a == b[j - 1] and a[i - 1] == of_b:
                row[-1] = min(row[-1], above[j - 1] + 1)
    return row[-1]


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
