"""Query definitions as pydantic models: the names of the fields, their types, and rules for single values.

`definitions` checks values against each other; `region_queries`, `select_queries` and `join_queries` check the rules
that depend on the installation. `condition_models` has durations, windows, and the parts of conditions. The docstrings
of the models are the descriptions in docs/schemas.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, FiniteFloat

from bmq.wire.condition_models import (
    Bounds,
    Duration,
    Interval,
    IntervalWithEnds,
    JoinConjunction,
    PositiveDuration,
    Strict,
    Window,
)

Point = Annotated[list[float], Field(min_length=2, max_length=2)]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
Scalar = str | bool | int | FiniteFloat | None
Where = dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]]


class Circle(Strict):
    """All points within a distance; its rim belongs to it."""

    center: Point = Field(description="[x, y], in the order of the feed's dimensions.")
    radius: float = Field(description='In the unit of the dimensions; in metres on a feed with space = "lonlat".')


class Region(Strict):
    """What a query watches: exactly one of the four."""

    # A JSON Schema cannot express that null counts as absent, so it requires exactly one name.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    box: Annotated[dict[str, Interval], Field(min_length=1)] | None = Field(
        default=None,
        description="[lo, hi] for each dimension named; null: unbounded; a dimension not named: unbounded. Longitudes "
        "with lo > hi go over the antimeridian.",
    )
    polygon: list[Point] | None = Field(default=None, description="One ring of [x, y], closed or not.")
    circle: Circle | None = None
    geojson: dict[str, Any] | None = Field(
        default=None, description="A Polygon or a MultiPolygon of RFC 7946, or a Feature of one."
    )


class _Definition(Strict):
    """What a query of any kind may say."""

    where: Where = Field(
        default={},
        description="Attributes of the feed and what a reading must have in each: a value, or any of a list. null: "
        'no such attribute. Of a join, "left.NAME" and "right.NAME".',
    )
    ttl: PositiveDuration | None = Field(
        default=None, description="The query ends so long after it was put or edited, by the feed's clock."
    )
    expires_at: int | FiniteFloat | str | None = Field(
        default=None,
        description="The event time at which the query ends: RFC 3339, or epoch milliseconds from 10^11 on.",
    )
    enabled: bool = Field(default=True, description="false: as if nothing fitted.")
    output_topic: TopicName | None = Field(
        default=None, description="The topic of this query's events; absent: the service's events topic."
    )
    tags: dict[str, str | bool | int | FiniteFloat] = Field(
        default={}, description="Copied into every event of the query."
    )


class _OfOneFeed(_Definition):
    feed: str

    @property
    def feeds(self) -> tuple[str, ...]:
        """The feeds that the definition names."""
        return (self.feed,)


class _RegionDefinition(_OfOneFeed):
    region: Region
    bounds: Bounds = Field(
        default="[)", description="Which borders belong to a box, in every dimension; other shapes have no choice."
    )
    streams: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="The only streams watched; absent: all."
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
    stay_for: Duration = Field(default=0, description="How long a stream must stay inside before its `+` is emitted.")
    away_for: Duration = Field(default=0, description="How long a stream must stay away before its `-` is emitted.")
    cooldown: Duration = Field(
        default=0, description="How long after a + of a stream no other visit of that stream is emitted."
    )
    max_events: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="After so many events of a stream, no more of that stream are emitted."
    )


class TransitionDefinition(_RegionDefinition):
    """A query of kind `transition`: an event where a stream went in and out of a region in one of four patterns."""

    kind: Literal["transition"]
    pattern: Literal["in_then_out", "out_then_in", "in_not_out", "out_not_in"] = Field(
        description="in_then_out: entered and left within the time. in_not_out: entered and stayed for the time. "
        "The other two begin outside."
    )
    within: PositiveDuration = Field(description="The time of the pattern.")


class MatchDefinition(_RegionDefinition):
    """A query of kind `match`: an event for every reading inside a region."""

    kind: Literal["match"]


class SelectDefinition(_OfOneFeed):
    """A query of kind `select`: an event for every reading that satisfies any of several conjunctions."""

    kind: Literal["select"]
    any: Annotated[
        list[Annotated[dict[str, IntervalWithEnds], Field(min_length=1)]],
        Field(
            min_length=1,
            description="Conjunctions, any of which is to hold: dimensions and attributes of the feed, each with the "
            "interval that it must be in. An attribute that is no number is in none.",
        ),
    ]


class Fields(Strict):
    """A field of each side of a join."""

    left: str
    right: str


class BandJoinDefinition(_Definition):
    """A query of kind `band_join`: an event where the answer changes, the pairs whose difference is in a band."""

    kind: Literal["band_join"]
    left: str = Field(description="A feed with join = true.")
    right: str = Field(description="Another feed with join = true.")
    on: Fields = Field(description="The dimension of each side.")
    band: Interval = Field(
        description="[lo, hi]: the left value less the right one is in it, ends included. null: unbounded."
    )
    equal: Fields | None = Field(
        default=None,
        description="A field of each side, with equal values: a dimension, an attribute, or what names the streams.",
    )
    report: Literal["pairs", "queries"] = Field(
        default="pairs", description="An event for each pair that comes or goes, or only that the answer changed."
    )

    @property
    def feeds(self) -> tuple[str, ...]:
        """The feeds that the definition names."""
        return (self.left, self.right)


class WindowSide(Strict):
    """One input of a window join."""

    feed: str = Field(description="A feed with join = true.")
    window: Window


class WindowJoinDefinition(_Definition):
    """A query of kind `window_join`: an event for each pair of readings in sliding windows that fits."""

    kind: Literal["window_join"]
    left: WindowSide
    right: WindowSide
    any: Annotated[
        list[JoinConjunction], Field(min_length=1, description="Conjunctions, any of which is to hold of a pair.")
    ]
    equal: Fields | None = Field(
        default=None,
        description="A field of each side, with equal values: a dimension, an attribute, or what names the streams.",
    )

    @property
    def feeds(self) -> tuple[str, ...]:
        """The feeds that the definition names."""
        return (self.left.feed, self.right.feed)


RegionDefinition = BorderDefinition | TransitionDefinition | MatchDefinition
JoinDefinition = BandJoinDefinition | WindowJoinDefinition
Definition = RegionDefinition | SelectDefinition | JoinDefinition
