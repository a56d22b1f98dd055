"""JSON Schemas of the messages, generated from the models: `python -m bmq.wire.schemas [FOLDER]`.

Definitions and replies are read and written by their models. Events are written column by column, so their
models stand here, and a test holds what is rendered against them. Output schemas allow further fields: fields
are added over time, and a client must not break on one.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter
from pydantic.json_schema import SkipJsonSchema

from bmq.wire.definition_models import MODEL_OF_KIND
from bmq.wire.replies import EffectiveReply, RejectedReply

DIALECT = "https://json-schema.org/draft/2020-12/schema"


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

    query_id: str
    query_version: int
    sign: Literal["+", "-"] = Field(description="+ entered, - left")
    tags: Tags


class ReadingEvent(_BorderEvent):
    """Everything that one reading, one command or one expiry changed for one stream; under `layout = "reading"`."""

    entered: list[str] = Field(description="Query ids.")
    left: list[str] = Field(description="Query ids.")


class TransitionEvent(_Event):
    """Two crossings within a time, or one that no other followed in it; the same under both layouts."""

    kind: Literal["transition"]
    query_id: str
    query_version: int
    pattern: Literal["in_then_out", "out_then_in", "in_not_out", "out_not_in"]
    began: int = Field(description="Epoch milliseconds of the first crossing; `event_time` is that of the end.")
    tags: Tags


class LevelEvent(_Event):
    """One reading inside the region of a match query, or that satisfies a select query; the same under both layouts."""

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

    kind: Literal["window_join"]
    left: JoinedReading
    right: JoinedReading


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each message, by file name."""
    reply: TypeAdapter[EffectiveReply | RejectedReply] = TypeAdapter(EffectiveReply | RejectedReply)
    return {
        **{
            f"{kind.replace('_', '-')}-definition.json": _schema(f"A query of kind {kind}", TypeAdapter(model))
            for kind, model in MODEL_OF_KIND.items()
        },
        "reply.json": _schema("A reply to a control command", reply),
        "crossing-event.json": _schema("An event under layout crossing", TypeAdapter(CrossingEvent)),
        "reading-event.json": _schema("An event under layout reading", TypeAdapter(ReadingEvent)),
        "transition-event.json": _schema("An event of a transition query", TypeAdapter(TransitionEvent)),
        "level-event.json": _schema("An event of a match or select query", TypeAdapter(LevelEvent)),
        "band-join-event.json": _schema("An event of a band join", TypeAdapter(BandJoinEvent)),
        "window-join-event.json": _schema("An event of a window join", TypeAdapter(WindowJoinEvent)),
    }


def write_schemas(folder: Path) -> None:
    """Write every schema into ``folder``, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(file_text(schema), encoding="utf-8")


def file_text(schema: dict[str, Any]) -> str:
    """Return the schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema(title: str, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    # "default": null would name a value that the field itself does not allow.
    schema = _without_null_defaults(adapter.json_schema(mode="validation"))
    return {"$schema": DIALECT, **schema, "title": title}


def _without_null_defaults(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_null_defaults(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        name: _without_null_defaults(value) for name, value in node.items() if not (name == "default" and value is None)
    }


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schemas"))
