"""What the doctor finds: a line of its report."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bmq.errors import ServiceError


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"  # the service will start, perhaps not as expected
    FAIL = "fail"  # the service will not start, or not work


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    level: Level
    what: str
    text: str


def attempt(what: str, look: Callable[[], str]) -> Finding:
    """Return the text of ``look`` as a finding, or the failure that it raises."""
    try:
        return Finding(Level.OK, what, look())
    except ServiceError as error:
        return Finding(Level.FAIL, what, str(error))
