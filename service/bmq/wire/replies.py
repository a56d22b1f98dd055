"""Replies to control commands: one for each command, key = query id."""

from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from bmq.errors import ControlCode
from bmq.records import Reply, Status
from bmq.wire.outgoing import MESSAGE_SCHEMA

FeedOffsets = Mapping[str, Mapping[str, int]]  # feed -> partition as text -> next offset


class Fault(BaseModel):
    """Why a command was refused, or why events go to another topic."""

    model_config = ConfigDict(frozen=True)

    code: ControlCode
    message: str


class EffectiveReply(BaseModel):
    """The command, or the end of the query, is in effect from the first reading at or behind `feed_offsets`."""

    model_config = ConfigDict(frozen=True)

    query_id: str
    status: Literal[Status.ACCEPTED, Status.UNCHANGED, Status.DELETED, Status.EXPIRED]
    version: int = Field(description="control_offset + 1")
    control_offset: int
    batch: int = Field(description="The micro-batch that read the command.")
    feed_offsets: FeedOffsets = Field(
        description="The next offset of each partition, by feed, when the command took effect."
    )


class DegradedReply(EffectiveReply):
    """The query is in effect, but its events go to the events topic, because its own topic cannot be used."""

    status: Literal[Status.DEGRADED]  # type: ignore[assignment]
    error: Fault


class RejectedReply(BaseModel):
    """The command changed nothing."""

    model_config = ConfigDict(frozen=True)

    query_id: str
    status: Literal[Status.REJECTED]
    control_offset: int
    batch: int = Field(description="The micro-batch that read the command.")
    error: Fault


def render_replies(replies: Sequence[Reply], *, topic: str, batch: int, feed_offsets: FeedOffsets) -> pa.RecordBatch:
    """Return the reply messages, in the order of ``replies``; they have no headers.

    Parameters
    ----------
    batch : number of the micro-batch that read the commands.
    feed_offsets : feed -> partition as text -> next offset at the start of the batch.

    Returns
    -------
    RecordBatch of `outgoing.MESSAGE_SCHEMA`

    Notes
    -----
    One Python object for each reply: commands are rare compared with readings.
    """
    columns = [
        [topic] * len(replies),
        [reply.query_id.encode() for reply in replies],
        [_message(reply, batch, feed_offsets).model_dump_json().encode() for reply in replies],
        [[]] * len(replies),
    ]
    return pa.RecordBatch.from_pydict(dict(zip(MESSAGE_SCHEMA.names, columns, strict=True)), schema=MESSAGE_SCHEMA)


def _message(reply: Reply, batch: int, feed_offsets: FeedOffsets) -> EffectiveReply | RejectedReply:
    fault = None if reply.code is None else Fault(code=reply.code, message=reply.message)
    if reply.status is not Status.REJECTED:
        of_query = {
            "query_id": reply.query_id,
            "status": reply.status,
            "version": reply.offset + 1,
            "control_offset": reply.offset,
            "batch": batch,
            "feed_offsets": feed_offsets,
        }
        return EffectiveReply(**of_query) if fault is None else DegradedReply(**of_query, error=fault)
    return RejectedReply(
        query_id=reply.query_id,
        status=reply.status,
        control_offset=reply.offset,
        batch=batch,
        error=fault,
    )
