"""What a query definition may say: the pydantic models, the names known, and the code of each fault.

Knows the shape of a definition only. What depends on the installation (feeds, dimensions, topics) is checked
by `control`, and borders by `regions`.
"""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import ErrorDetails

from bmq.errors import ControlCode, ControlError

# Named by docs/wire-format.md and built later. Their presence alone refuses a definition: a definition that
# is half understood would answer another question than the one asked.
KINDS_NOT_BUILT = ("transition", "match", "select", "band_join", "window_join")
OPTIONS_NOT_BUILT = (
    "where",
    "passes",
    "ttl",
    "expires_at",
    "stream_ttl",
    "exit_region",
    "stay_for",
    "away_for",
    "cooldown",
    "max_events",
    "enabled",
)
SHAPES_NOT_BUILT = ("polygon", "circle", "geojson")

Bounds = Literal["[)", "[]", "(]", "()"]
Interval = Annotated[list[float | None], Field(min_length=2, max_length=2)]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Region(_Strict):
    """What a query watches."""

    box: dict[str, Interval] = Field(
        min_length=1,
        description="[lo, hi] for each dimension named; null: unbounded; a dimension not named: unbounded.",
    )


class BorderDefinition(_Strict):
    """A query of kind `border`: an event where a stream enters or leaves a region."""

    kind: Literal["border"]
    feed: str
    region: Region
    streams: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="The only streams watched; absent: all."
    )
    bounds: Bounds = Field(default="[)", description="Which borders belong to the region, in every dimension.")
    initial: Literal["emit", "silent"] = Field(
        default="emit",
        description="Whether streams already inside get an event when the query is put or edited.",
    )
    output_topic: TopicName | None = Field(
        default=None, description="The topic of this query's events; absent: the service's events topic."
    )
    tags: dict[str, str | bool | int | FiniteFloat] = Field(
        default={}, description="Copied into every event of the query."
    )


_KNOWN_FIELDS = {
    (): (*BorderDefinition.model_fields, *OPTIONS_NOT_BUILT),
    ("region",): (*Region.model_fields, *SHAPES_NOT_BUILT),
}

# Which fault is reported where a definition has several: names first, since a misspelt name makes its own
# field "missing"; then options that are not built or take no such value, what is missing, types, and the
# region.
_REPORT_ORDER = (
    ControlCode.UNKNOWN_FIELD,
    ControlCode.BAD_OPTION,
    ControlCode.MISSING_FIELD,
    ControlCode.WRONG_TYPE,
    ControlCode.BAD_REGION,
)

_EXPECTED_TYPE = {
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "a string",
    "literal_error": "a string",
    "float_type": "a number, or null where the region is unbounded",
}


def read_definition(definition: dict[str, Any]) -> BorderDefinition:
    """Return the definition, its shape checked.

    Null counts as absent, as it does in readings. An unknown name, or one that is not built yet, is refused
    even with null.

    Raises
    ------
    ControlError
        With the first fault in this order: `missing_field`, `wrong_type` or `unknown_kind` of `kind`;
        `unknown_field`; `bad_option`; `missing_field`; `wrong_type`; `bad_region`.
    """
    _check_kind(definition.get("kind"))
    fields = BorderDefinition.model_fields
    present = {name: value for name, value in definition.items() if value is not None or name not in fields}
    try:
        return BorderDefinition.model_validate(present)
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda detail: _REPORT_ORDER.index(_code(detail)))
        raise ControlError(_code(first), _message(first)) from None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like ``name``; "" where none is known."""
    folded = {one.casefold(): one for one in known}
    # Only the beginning is compared: the time is quadratic in the length, and names come from outside.
    found = get_close_matches(name[:64].casefold(), folded, n=1, cutoff=0.0)
    return folded[found[0]] if found else ""


def shorten(value: object) -> str:
    """Return ``value`` as JSON of at most 60 characters, for messages."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_kind(kind: object) -> None:
    if kind == "border":
        return
    if kind is None:
        code, fault = (
            ControlCode.MISSING_FIELD,
            "Field 'kind' is missing, but every definition names its kind.",
        )
    elif not isinstance(kind, str):
        code, fault = ControlCode.WRONG_TYPE, f"Field 'kind' is {shorten(kind)}, but must be a string."
    elif kind in KINDS_NOT_BUILT:
        code, fault = (
            ControlCode.UNKNOWN_KIND,
            f"Kind '{kind}' is not built yet; the only kind built is 'border'.",
        )
    else:
        code, fault = (
            ControlCode.UNKNOWN_KIND,
            f"Kind {shorten(kind)} is not known; the only kind built is 'border'.",
        )
    raise ControlError(code, f'{fault} Write "kind": "border".')


def _code(detail: ErrorDetails) -> ControlCode:
    """Return the code of docs/wire-format.md for one error of pydantic."""
    place = detail["loc"]
    match detail["type"]:
        case "extra_forbidden":
            not_built = SHAPES_NOT_BUILT if len(place) > 1 else OPTIONS_NOT_BUILT
            return ControlCode.BAD_OPTION if place[-1] in not_built else ControlCode.UNKNOWN_FIELD
        case "missing":
            return ControlCode.MISSING_FIELD
        case "too_short" | "too_long":
            return ControlCode.BAD_REGION if place[0] == "region" else ControlCode.BAD_OPTION
        case "string_pattern_mismatch" | "finite_number":
            return ControlCode.BAD_OPTION
        case "literal_error" if isinstance(detail["input"], str):
            return ControlCode.BAD_OPTION
    return ControlCode.WRONG_TYPE


def _message(detail: ErrorDetails) -> str:
    """Return the value, the rule and the way out for one error of pydantic."""
    # A tag that fits no type is reported once a type, with the type at the end of its place.
    place = detail["loc"][:2] if detail["loc"][0] == "tags" else detail["loc"]
    path = _path(place)
    value = f"Field '{path}' is {shorten(detail['input'])}"
    match detail["type"]:
        case "extra_forbidden":
            return _name_message(place, path)
        case "missing":
            return f"Field '{path}' is missing, but a border query needs it. Add it."
        case "too_short" if path == "region.box":
            return f'{value}, but a box names at least one dimension. Add one, like "x": [0, 10].'
        case "too_short" if path == "streams":
            return f"{value}, which watches nothing. Name a stream, or leave it out to watch all."
        case "too_short" | "too_long":
            return f"{value}, but an interval is [lo, hi]. Write null for an end that is unbounded."
        case "string_pattern_mismatch":
            return f"{value}, but a topic has 1 to 249 letters, digits, '.', '_' or '-'. Choose such a name."
        case "finite_number":
            return f"{value}, but events carry finite numbers only. Write it as a string."
        case "literal_error" if isinstance(detail["input"], str):
            return f"{value}, but must be {detail['ctx']['expected']}. Use one of these."
    is_tag = place[0] == "tags" and len(place) == 2
    expected = "a string, a number or a boolean" if is_tag else _EXPECTED_TYPE.get(detail["type"], "of another type")
    return f"{value}, but must be {expected}. Change it."


def _name_message(place: tuple[int | str, ...], path: str) -> str:
    *parents, name = map(str, place)
    if name in (SHAPES_NOT_BUILT if parents else OPTIONS_NOT_BUILT):
        return f"Field '{path}' is not built yet. {'Use region.box.' if parents else 'Leave it out.'}"
    known = nearest(name, _KNOWN_FIELDS[tuple(parents)])
    return f"Field '{path}' is not known; the nearest known field is '{known}'. Rename it."


def _path(place: tuple[int | str, ...]) -> str:
    """Return ("region", "box", "x", 0) as "region.box.x[0]", cut to 60 characters."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    return text if len(text) <= 60 else f"{text[:57]}..."
