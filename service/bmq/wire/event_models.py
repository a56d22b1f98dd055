"""Events as pydantic models, for their JSON Schemas; the docstrings of the models are the descriptions there.

The service renders events column by column, without these models; a test checks the rendered events against them.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from pydantic.json_schema import SkipJsonSchema

BorderReason = Literal[
    "moved",
    "first_seen",
    "query_registered",
    "query_updated",
    "query_deleted",
    "query_expired",
    "stream_expired",
]
EventId = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="The same after a replay: drop repeats by it.")]
Tags = Annotated[dict[str, str | bool | int | FiniteFloat], Field(description="The tags of the query.")]


class Previous(BaseModel):
    """The reading from which the stream moved."""

    event_time: int = Field(description="Epoch milliseconds.")
    value: dict[str, FiniteFloat]


class _Event(BaseModel):
    event_id: EventId
    feed: str
    stream_id: str
    event_time: int = Field(
        description="Epoch milliseconds of the reading; of the stream's last one where a command caused the event; of "
        "the moment of expiry; or, of a pass, where the straight line between two readings meets the region."
    )
    value: dict[str, FiniteFloat] = Field(description="The stream's value in each dimension of the feed.")


class _BorderEvent(_Event):
    kind: Literal["border"]
    reason: BorderReason
    previous: Previous | SkipJsonSchema[None] = Field(default=None, description="Only with reason `moved`.")
    passed: Literal[True] | SkipJsonSchema[None] = Field(
        default=None, alias="pass", description="The region was entered and left between two readings."
    )
    confirmed_time: int | SkipJsonSchema[None] = Field(
        default=None, description="Epoch milliseconds at which `stay_for` or `away_for` was over."
    )


class CrossingEvent(_BorderEvent):
    """One stream entered or left the region of one query."""

    model_config = ConfigDict(title="An event under layout crossing")

    query_id: str
    query_version: int
    sign: Literal["+", "-"] = Field(description="+ entered, - left")
    tags: Tags


class ReadingEvent(_BorderEvent):
    """Everything that one reading, one command or one expiry changed for one stream; under `layout = "reading"`."""

    model_config = ConfigDict(title="An event under layout reading")

    entered: list[str] = Field(description="Query ids.")
    left: list[str] = Field(description="Query ids.")


class TransitionEvent(_Event):
    """Two crossings within a time, or one that no other followed in it; the same under both layouts."""

    model_config = ConfigDict(title="An event of a transition query")

    kind: Literal["transition"]
    query_id: str
    query_version: int
    pattern: Literal["in_then_out", "out_then_in", "in_not_out", "out_not_in"]
    began: int = Field(description="Epoch milliseconds of the first crossing; `event_time` is that of the end.")
    tags: Tags


class LevelEvent(_Event):
    """One reading inside the region of a match query, or that satisfies a select query; the same under both layouts."""

    model_config = ConfigDict(title="An event of a match or select query")

    kind: Literal["match", "select"]
    query_id: str
    query_version: int
    tags: Tags


class JoinedReading(BaseModel):
    """The reading of one side of a join."""

    feed: str
    stream_id: str
    event_time: int = Field(description="Epoch milliseconds.")
    value: dict[str, FiniteFloat] = Field(description="The stream's value in each dimension of the feed.")


class _JoinEvent(BaseModel):
    event_id: EventId
    query_id: str
    query_version: int
    event_time: int = Field(
        description="Epoch milliseconds: the later of the two readings, or the moment of an expiry."
    )
    tags: Tags


class BandJoinEvent(_JoinEvent):
    """A pair came into the answer of a band join or left it; or, without a sign, a reading changed the answer."""

    model_config = ConfigDict(title="An event of a band join")

    kind: Literal["band_join"]
    reason: BorderReason
    sign: Literal["+", "-"] | SkipJsonSchema[None] = Field(
        default=None, description='+ came, - left. Absent with `report = "queries"`.'
    )
    left: JoinedReading | SkipJsonSchema[None] = Field(
        default=None, description='Absent with `report = "queries"` where a reading of the right feed changed it.'
    )
    right: JoinedReading | SkipJsonSchema[None] = Field(
        default=None, description='Absent with `report = "queries"` where a reading of the left feed changed it.'
    )


class WindowJoinEvent(_JoinEvent):
    """Two readings within the windows of a window join that fit."""

    model_config = ConfigDict(title="An event of a window join")

    kind: Literal["window_join"]
    left: JoinedReading
    right: JoinedReading
