"""The parts of definitions as pydantic types: durations, windows, intervals, bands, and conjunctions of a join.

For a fault that pydantic has no name for, the validators raise an error of their own: its type is the control code,
its text is the rule and the way out. Knows single values; `definitions` makes the messages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from bmq.errors import ControlCode
from bmq.wire.durations import read_duration, read_positive_duration

Bounds = Literal["[)", "[]", "(]", "()"]
Interval = Annotated[list[float | None], Field(min_length=2, max_length=2)]
SIDES = ("left.", "right.")  # prefixes of names in a join
MOST_READINGS = 2**31 - 1  # in a counted window; the same limit as `max_events`


class Strict(BaseModel):
    """A part of a definition: values are not converted, and unknown fields are refused."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


def _fault(code: ControlCode, rule: str) -> PydanticCustomError:
    return PydanticCustomError(code.value, "{rule}", {"rule": rule})


# -- durations and windows --------------------------------------------------------------------------------------------


def _read_as_duration(read: Callable[[object], int], value: object) -> int:
    try:
        return read(value)
    except ValueError as error:
        raise _fault(ControlCode.BAD_DURATION, str(error)) from None


def _duration(read: Callable[[object], int]) -> BeforeValidator:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise PydanticCustomError("string_type", "")
        return _read_as_duration(read, value)

    return BeforeValidator(check)


# Milliseconds; the definition has a text such as "90s".
_DURATION_SCHEMA: dict[str, Any] = {"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$"}
_DURATION_TEXT = WithJsonSchema(_DURATION_SCHEMA)
Duration = Annotated[int, _duration(read_duration), _DURATION_TEXT, Field(json_schema_extra={"default": "0s"})]
PositiveDuration = Annotated[int, _duration(read_positive_duration), _DURATION_TEXT]


@dataclass(frozen=True, slots=True)
class WindowLength:
    """How long a reading stays in a window: for milliseconds, or until ``count`` others have followed. One is None."""

    ms: int | None = None
    count: int | None = None


def _read_window(value: object) -> WindowLength:
    if isinstance(value, str):
        return WindowLength(ms=_read_as_duration(read_duration, value))
    if isinstance(value, bool) or not isinstance(value, int):
        raise _fault(ControlCode.WRONG_TYPE, 'a window is a duration like "10s" or a number of readings; write one')
    if not 1 <= value <= MOST_READINGS:
        raise _fault(ControlCode.BAD_OPTION, f'a window holds 1 to {MOST_READINGS} readings, or a time like "10s"')
    return WindowLength(count=value)


_COUNT_SCHEMA = {"type": "integer", "minimum": 1, "maximum": MOST_READINGS}
Window = Annotated[
    WindowLength,
    PlainValidator(_read_window),
    WithJsonSchema({"anyOf": [_DURATION_SCHEMA, _COUNT_SCHEMA]}),
    Field(description="How long its readings are joined, or for how many readings of the feed that follow."),
]


# -- intervals and bands ----------------------------------------------------------------------------------------------


def _with_ends(n_names: int, usual: Bounds, rule: str) -> BeforeValidator:
    """Return a validator that turns a list into a tuple and adds the usual ends if the list has no ends."""

    def check(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise PydanticCustomError("list_type", "")
        match len(value) - n_names:
            case 2:
                return (*value, usual)
            case 3:
                return tuple(value)
        raise _fault(ControlCode.BAD_REGION, rule)

    return BeforeValidator(check)


def _list_schema(names: list[dict[str, Any]], usual: Bounds) -> WithJsonSchema:
    number = {"type": ["number", "null"]}
    ends = {"enum": ["[)", "[]", "(]", "()"], "default": usual}
    items = [*names, number, number, ends]
    return WithJsonSchema(
        {"type": "array", "prefixItems": items, "items": False, "minItems": len(items) - 1, "maxItems": len(items)}
    )


# [lo, hi], or [lo, hi, "(]"] to choose the ends; null: unbounded.
IntervalWithEnds = Annotated[
    tuple[float | None, float | None, Bounds],
    _with_ends(0, "[)", 'an interval is [lo, hi] or [lo, hi, "[]"]; write null for an end that is unbounded'),
    _list_schema([], "[)"),
]
# ["left.NAME", "right.NAME", lo, hi]: the left value minus the right value is in the interval.
BandWithEnds = Annotated[
    tuple[str, str, float | None, float | None, Bounds],
    _with_ends(
        2,
        "[]",
        'a band is ["left.NAME", "right.NAME", lo, hi], with "[)", "(]" or "()" behind it for other ends; '
        "write null for an end that is unbounded",
    ),
    _list_schema([{"type": "string", "pattern": rf"^{side[:-1]}\."} for side in SIDES], "[]"),
]


class JoinConjunction(BaseModel):
    """What must hold of a pair: bands, and intervals of single fields."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="allow",
        json_schema_extra={"minProperties": 1, "propertyNames": {"pattern": r"^(band$|left\.|right\.)"}},
    )
    __pydantic_extra__: dict[str, IntervalWithEnds] = Field(init=False)

    band: Annotated[list[BandWithEnds], Field(min_length=1)] | None = Field(
        default=None, description='["left.NAME", "right.NAME", lo, hi]: the left one less the right one is in it.'
    )

    @property
    def intervals(self) -> dict[str, tuple[float | None, float | None, Bounds]]:
        """The intervals by name, "left.NAME" or "right.NAME"."""
        return self.__pydantic_extra__

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        unknown = [name for name in value if name != "band" and not name.startswith(SIDES)]
        if unknown:
            fault = _fault(ControlCode.UNKNOWN_FIELD, "")
            # One error for each name, at its own place, as pydantic reports a field that is not in a model.
            raise ValidationError.from_exception_data(
                cls.__name__, [InitErrorDetails(type=fault, loc=(name,), input=value[name]) for name in unknown]
            )
        said = {name: part for name, part in value.items() if name != "band" or part is not None}
        if not said:
            raise _fault(ControlCode.BAD_REGION, "a conjunction asks something; name a band or an interval")
        return said
