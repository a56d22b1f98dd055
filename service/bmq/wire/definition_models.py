"""What a query definition may say, as pydantic models: names, types, and the rule for one value alone.

What values together must fulfil is in `definitions`; what depends on the installation in `region_queries`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, WithJsonSchema
from pydantic_core import PydanticCustomError

from bmq.wire.durations import read_duration, read_positive_duration

Bounds = Literal["[)", "[]", "(]", "()"]
Interval = Annotated[list[float | None], Field(min_length=2, max_length=2)]
Point = Annotated[list[float], Field(min_length=2, max_length=2)]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
Scalar = str | bool | int | FiniteFloat | None
BAD_DURATION = "bad_duration"  # the type of the error of pydantic


def _duration(read: Callable[[object], int]) -> BeforeValidator:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise PydanticCustomError("string_type", "")
        try:
            return read(value)
        except ValueError as error:
            raise PydanticCustomError(BAD_DURATION, "{rule}", {"rule": str(error)}) from None

    return BeforeValidator(check)


# Milliseconds, read from texts such as "90s".
_DURATION_TEXT = WithJsonSchema({"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$"})
Duration = Annotated[int, _duration(read_duration), _DURATION_TEXT, Field(json_schema_extra={"default": "0s"})]
PositiveDuration = Annotated[int, _duration(read_positive_duration), _DURATION_TEXT]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Circle(_Strict):
    """All points within a distance; its rim belongs to it."""

    center: Point = Field(description="[x, y], in the order of the feed's dimensions.")
    radius: float = Field(description='In the unit of the dimensions; in metres on a feed with space = "lonlat".')


class Region(_Strict):
    """What a query watches: exactly one of the four."""

    # A schema cannot say that null counts as absent, so it asks for one name.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    box: Annotated[dict[str, Interval], Field(min_length=1)] | None = Field(
        default=None,
        description="[lo, hi] for each dimension named; null: unbounded; a dimension not named: unbounded. Longitudes "
        "with lo > hi go over the antimeridian.",
    )
    polygon: list[Point] | None = Field(default=None, description="One ring of [x, y], closed or not.")
    circle: Circle | None = None
    geojson: dict[str, Any] | None = Field(default=None, description="A Polygon or a MultiPolygon of RFC 7946.")


class _RegionDefinition(_Strict):
    feed: str
    region: Region
    bounds: Bounds = Field(
        default="[)", description="Which borders belong to a box, in every dimension; other shapes have no choice."
    )
    streams: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="The only streams watched; absent: all."
    )
    where: dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]] = Field(
        default={},
        description="Attributes of the feed and what a reading must have in each: a value, or any of a list. null: "
        "no such attribute.",
    )
    ttl: PositiveDuration | None = Field(
        default=None, description="The query ends so long after it was put or edited, by the feed's clock."
    )
    expires_at: int | FiniteFloat | str | None = Field(
        default=None, description="The event time at which the query ends: epoch milliseconds or RFC 3339."
    )
    enabled: bool = Field(default=True, description="false: as if the region were empty.")
    output_topic: TopicName | None = Field(
        default=None, description="The topic of this query's events; absent: the service's events topic."
    )
    tags: dict[str, str | bool | int | FiniteFloat] = Field(
        default={}, description="Copied into every event of the query."
    )


class BorderDefinition(_RegionDefinition):
    """A query of kind `border`: an event where a stream enters or leaves a region."""

    kind: Literal["border"]
    initial: Literal["emit", "silent"] = Field(
        default="emit",
        description="Whether streams already inside get an event when the query is put or edited.",
    )
    passes: bool = Field(
        default=False,
        description="Whether a region that a stream only jumped over gets a + and a -, with interpolated times.",
    )
    stream_ttl: PositiveDuration | None = Field(
        default=None, description="The silence of a stream that ends its membership."
    )
    exit_region: Region | None = Field(
        default=None, description="A region around `region` that must be left; absent: `region`."
    )
    stay_for: Duration = Field(default=0, description="How long a stream must stay inside before it is told.")
    away_for: Duration = Field(default=0, description="How long a stream must stay away before it is told.")
    cooldown: Duration = Field(
        default=0, description="How long after a + of a stream no other visit of that stream is told."
    )
    max_events: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="After so many events of a stream, no more of that stream are told."
    )


class TransitionDefinition(_RegionDefinition):
    """A query of kind `transition`: an event where a stream went in and out of a region in one of four patterns."""

    kind: Literal["transition"]
    pattern: Literal["in_then_out", "out_then_in", "in_not_out", "out_not_in"] = Field(
        description="in_then_out: entered and left within the time. in_not_out: entered and stayed for the time. "
        "The other two begin outside."
    )
    within: PositiveDuration = Field(description="The time of the pattern.")


Definition = BorderDefinition | TransitionDefinition
MODEL_OF_KIND: dict[str, type[Definition]] = {"border": BorderDefinition, "transition": TransitionDefinition}
