"""Reads one query definition: its kind, the structure of its fields, and the code and message of each fault.

Knows one definition only. `region_queries`, `select_queries`, `join_queries` and `control` check the rules that
depend on the installation (feeds, dimensions, attributes, topics).
"""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bmq.errors import ControlCode, ControlError
from bmq.wire.condition_models import SIDES
from bmq.wire.definition_models import (
    BorderDefinition,
    Circle,
    Definition,
    Fields,
    Region,
    RegionDefinition,
    WindowSide,
)
from bmq.wire.fault_texts import shorten, suggestion
from bmq.wire.kinds import KINDS

_OPTIONS = frozenset(name for known in KINDS.values() for name in known.definition.model_fields)
_REGIONS = ("region", "exit_region")
_CONDITIONS = ("any", "band")
LONGEST_PATH = 60  # characters of a field's path in a message; a client chooses the names in it

# Of several faults the first in this order is reported. Types come first, because a value of a wrong type may be meant
# for another place, where its fields are known; then names, because a misspelt name makes the field that was meant
# "missing"; then options that do not apply or have a wrong value, missing fields, durations, and regions.
_REPORT_ORDER = (
    ControlCode.WRONG_TYPE,
    ControlCode.UNKNOWN_FIELD,
    ControlCode.BAD_OPTION,
    ControlCode.MISSING_FIELD,
    ControlCode.BAD_DURATION,
    ControlCode.BAD_REGION,
)

_EXPECTED_TYPE = {
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "a string",
    "literal_error": "a string",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
}
# Fields with several types: pydantic reports one error for each type and appends the type's name to the place.
_EXPECTED_OF_SEVERAL = {
    "tags": "a string, a number or a boolean",
    "where": "a string, a number, a boolean, null, or a list of these",
    "expires_at": "epoch milliseconds or a text like 2023-11-14T22:13:20.250Z",
}


def read_definition(definition: dict[str, Any]) -> Definition:
    """Return the definition after all checks that need no configuration.

    Null counts as absent, as in readings. An unknown name is refused even if its value is null.

    Raises
    ------
    ControlError
        With the first fault in this order: `missing_field`, `wrong_type` or `unknown_kind` for `kind`;
        `wrong_type`; `unknown_field`; `bad_option`; `missing_field`; `bad_duration`; `bad_region`. Then, for fields
        that contradict each other: `bad_region`, `bad_option`.
    """
    model = _model(definition.get("kind"))
    present = {name: value for name, value in definition.items() if value is not None or name not in _OPTIONS}
    try:
        read = model.model_validate(present)
    except ValidationError as error:
        details = _without_other_types(error.errors(include_url=False))
        first = min(details, key=lambda detail: _REPORT_ORDER.index(_code(detail)))
        raise ControlError(_code(first), _message(first, model)) from None
    _check_together(read)
    return read


def _model(kind: object) -> type[Definition]:
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind].definition
    if kind is None:
        code, fault = ControlCode.MISSING_FIELD, "Field 'kind' is missing, but every definition names its kind."
    elif not isinstance(kind, str):
        code, fault = ControlCode.WRONG_TYPE, f"Field 'kind' is {shorten(kind)}, but must be a string."
    else:
        code, fault = ControlCode.UNKNOWN_KIND, f"Kind {shorten(kind)} is not known."
    *kinds, last = KINDS
    raise ControlError(code, f'{fault} Write "kind": {", ".join(map(shorten, kinds))} or {shorten(last)}.')


def _without_other_types(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return the errors without those that a field of several types has only because another of its types is meant."""
    has_type = {_place(detail) for detail in details if _code(detail) is not ControlCode.WRONG_TYPE}
    return [
        detail for detail in details if _code(detail) is not ControlCode.WRONG_TYPE or _place(detail) not in has_type
    ]


def _place(detail: ErrorDetails) -> tuple[int | str, ...]:
    """Return the place of the error, without the type that pydantic appends for a field of several types."""
    place = detail["loc"]
    if place[0] in _EXPECTED_OF_SEVERAL:
        return place[: 1 if place[0] == "expires_at" else 2]
    return place


def _code(detail: ErrorDetails) -> ControlCode:
    """Return the control code (docs/wire-format.md) for one error of pydantic."""
    place = detail["loc"]
    match detail["type"]:
        case "extra_forbidden":
            is_option = len(place) == 1 and place[0] in _OPTIONS
            return ControlCode.BAD_OPTION if is_option else ControlCode.UNKNOWN_FIELD
        case "missing":
            return ControlCode.MISSING_FIELD
        case "too_short" | "too_long":
            is_region = place[0] in _REGIONS or place[0] in _CONDITIONS
            return ControlCode.BAD_REGION if is_region else ControlCode.BAD_OPTION
        case "string_pattern_mismatch" | "finite_number" | "greater_than_equal" | "less_than_equal":
            return ControlCode.BAD_OPTION
        case "literal_error" if isinstance(detail["input"], str):
            return ControlCode.BAD_OPTION
        case own if own in set(ControlCode):
            return ControlCode(own)
    return ControlCode.WRONG_TYPE


def _message(detail: ErrorDetails, model: type[Definition]) -> str:
    """Return the value, the rule and the way out for one error of pydantic."""
    place = _place(detail)
    path = _path(place)
    match detail["type"]:
        case "extra_forbidden" | ControlCode.UNKNOWN_FIELD:
            return _name_message(place, path, model)
        case "missing":
            needing = f"'{place[-2]}'" if len(place) > 1 else f"a {_kind(model)} query"
            return f"Field '{path}' is missing, but {needing} needs it. Add it."
    return f"Field '{path}' is {shorten(detail['input'])}, {_rule(detail, place)}"


def _rule(detail: ErrorDetails, place: tuple[int | str, ...]) -> str:
    """Return the rule that the value breaks, and the way out."""
    match detail["type"]:
        case "too_short" | "too_long":
            return _length_rule(detail["type"], place)
        case "string_pattern_mismatch":
            return "but a topic has 1 to 249 letters, digits, '.', '_' or '-'. Choose such a name."
        case "finite_number":
            return "but events and readings carry finite numbers only. Write it as a string."
        case "greater_than_equal" | "less_than_equal":
            return f"but must be 1 to {2**31 - 1}. Leave it out for no limit."
        case "literal_error" if isinstance(detail["input"], str):
            return f"but must be {detail['ctx']['expected']}. Use one of these."
        case own if own in set(ControlCode):
            return f"but {detail['msg']}."
    return f"but must be {_expected(place, detail['type'])}. Change it."


def _length_rule(error_type: str, place: tuple[int | str, ...]) -> str:
    match error_type, place:
        case "too_short", (*_, "box"):
            return 'but a box names at least one dimension. Add one, like "x": [0, 10].'
        case "too_short", ("streams",):
            return "which watches nothing. Name a stream, or leave it out to watch all."
        case "too_short", ("any",):
            return "but it holds at least one conjunction. Add one: names, and the interval of each."
        case "too_short", ("any", *_):
            return "but it asks nothing. Add what is asked, or leave it out."
        case "too_short", ("where", *_):
            return "which no reading fits. Name a value, or leave the attribute out."
    if "box" in place or place[0] == "band":
        return "but an interval is [lo, hi]. Write null for an end that is unbounded."
    return "but a point is [x, y]. Write these two numbers."


def _expected(place: tuple[int | str, ...], error_type: str) -> str:
    if place[0] == "expires_at" or (place[0] in _EXPECTED_OF_SEVERAL and len(place) > 1):
        return _EXPECTED_OF_SEVERAL[str(place[0])]
    expected = _EXPECTED_TYPE.get(error_type, "of another type")
    if error_type == "float_type" and ("box" in place[:-1] or place[0] in _CONDITIONS):
        return f"{expected}, or null where it is unbounded"
    return expected


def _name_message(place: tuple[int | str, ...], path: str, model: type[Definition]) -> str:
    *parents, name = map(str, place)
    if not parents and name in _OPTIONS:
        return f"Field '{path}' does not apply to kind '{_kind(model)}'. Leave it out."
    return f"Field '{path}' is not known. {suggestion(name, _known_names(parents, name, model))}"


def _known_names(parents: list[str], name: str, model: type[Definition]) -> Iterable[str]:
    """Return the field names that are allowed in place of ``name``."""
    match parents:
        case []:
            return model.model_fields
        case [*_, "circle"]:
            return Circle.model_fields
        case ["left" | "right"]:
            return WindowSide.model_fields
        case ["on" | "equal"]:
            return Fields.model_fields
        case ["any", _]:
            return ["band", *(side + name.split(".")[-1] for side in SIDES)]
    return Region.model_fields


def _kind(model: type[Definition]) -> str:
    return next(kind for kind, known in KINDS.items() if known.definition is model)


def _path(place: tuple[int | str, ...]) -> str:
    """Return ("region", "box", "x", 0) as "region.box.x[0]", cut to `LONGEST_PATH`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    return text if len(text) <= LONGEST_PATH else f"{text[: LONGEST_PATH - 3]}..."


def _check_together(definition: Definition) -> None:
    if isinstance(definition, RegionDefinition):
        _check_regions(definition)
    if len(set(definition.feeds)) < len(definition.feeds):
        raise _bad_option(
            f"Fields 'left' and 'right' are both feed {shorten(definition.feeds[0])}, but a join is of two feeds. "
            "Name another one."
        )
    if definition.ttl is not None and definition.expires_at is not None:
        raise _bad_option("Fields 'ttl' and 'expires_at' both say when the query ends. Leave one out.")
    if isinstance(definition, BorderDefinition) and definition.passes:
        for name in ("exit_region", "stay_for", "away_for"):
            if getattr(definition, name):
                raise _bad_option(
                    f"Field 'passes' is true, which does not go with '{name}': a pass is over before it could be "
                    "confirmed. Leave one out."
                )


def _check_regions(definition: RegionDefinition) -> None:
    exit_region = definition.exit_region if isinstance(definition, BorderDefinition) else None
    regions = {"region": definition.region} | ({} if exit_region is None else {"exit_region": exit_region})
    for name, region in regions.items():
        shapes = [shape for shape in Region.model_fields if getattr(region, shape) is not None]
        if len(shapes) != 1:
            raise ControlError(
                ControlCode.BAD_REGION,
                f"Field '{name}' has {' and '.join(shapes) or 'no shape'}, but a region is exactly one of "
                f"{', '.join(Region.model_fields)}. Write one; a query for each further one.",
            )
    if "bounds" in definition.model_fields_set and any(region.box is None for region in regions.values()):
        raise _bad_option(
            f"Field 'bounds' is '{definition.bounds}', but only a box has a choice of its borders. Leave it out."
        )


def _bad_option(message: str) -> ControlError:
    return ControlError(ControlCode.BAD_OPTION, message)
