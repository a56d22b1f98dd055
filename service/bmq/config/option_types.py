"""The types of options that several sections use, and the base of all sections."""

import math
import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from bmq.wire.durations import read_duration, read_positive_duration

# Kafka's own rule (org.apache.kafka.common.internals.Topic).
_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_OFF = "off"


def _topic(name: str) -> str:
    if not _TOPIC.fullmatch(name):
        raise ValueError("a topic has 1 to 249 of the characters a-z A-Z 0-9 . _ -; choose such a name")
    return name


def _whole(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a whole number is needed; write one")
    return value


def _text_of(read: Callable[[object], int | None]) -> BeforeValidator:
    """Return a validator that requires that ``read`` accepts the value; the value stays a text, as in the file."""

    def check(value: object) -> object:
        read(value)
        return value

    return BeforeValidator(check)


def read_future(value: object) -> int | None:
    """Return the milliseconds of a duration; None for "off"."""
    if value == _OFF:
        return None
    try:
        return read_duration(value)
    except ValueError as error:
        raise ValueError(f'{error}; "{_OFF}" sets no limit') from None


def _constant(value: object) -> object:
    if not isinstance(value, str | bool | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("a constant is a string, a finite number or a boolean; write one")
    return value


Topic = Annotated[str, AfterValidator(_topic)]
Constant = Annotated[str | bool | float, BeforeValidator(_constant)]
FieldName = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, BeforeValidator(_whole)]
_DURATION = WithJsonSchema({"type": "string", "format": "duration"})  # so that the reference shows this type
Duration = Annotated[str, _text_of(read_duration), _DURATION]
DurationOrOff = Annotated[str, _text_of(read_future), WithJsonSchema({"type": "string", "format": "duration or off"})]
PositiveDuration = Annotated[str, _text_of(read_positive_duration), _DURATION]


class Section(BaseModel):
    """One table of the file: frozen, and every name in it must be known."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
