"""The rows of Spark's plan: who gets a frame, where it comes from, and the frame itself.

The planner of the source imports this module, so it must not import a kernel.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bmq.records import NEVER


class Kind(IntEnum):
    """The contents of a frame. A shard reads the frames of a batch in this order."""

    COMMANDS = 0
    READINGS = 1
    DEAD_LETTERS = 2
    MARKS = 3  # an empty frame; the row's `latest` advances the feed's clock without readings
    JOIN_READINGS = 4  # the readings of all shards, for the joins; only for feeds that take part in joins


# The code of a dead letter that stands for lost records: the offsets of its row, which the broker no longer has. It is
# not one of `DeadLetterCode`, because no record has this fault.
DATA_LOSS = "data_loss"

FRAME_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),  # the shard's grouping key (job.shards), not its number
        pa.field("kind", pa.int32()),
        pa.field("feed", pa.string()),  # empty for commands
        pa.field("partition", pa.int32()),
        pa.field("first_offset", pa.int64()),
        pa.field("next_offset", pa.int64()),
        pa.field("frame", pa.binary()),
        # Event times over the readings of all shards in this Arrow batch; NEVER: no readings.
        pa.field("earliest", pa.int64()),
        pa.field("latest", pa.int64()),
        pa.field("place", pa.string()),  # of the frame, if it is in a file (job.frame_files); otherwise empty
    ]
)
FRAME_DDL = (
    "shard int, kind int, feed string, partition int, first_offset long, next_offset long, frame binary, "
    "earliest long, latest long, place string"
)


class FrameRow(NamedTuple):
    """One row of FRAME_SCHEMA."""

    shard: int
    kind: Kind
    feed: str
    partition: int
    first_offset: int
    next_offset: int
    frame: bytes
    earliest: int = NEVER
    latest: int = NEVER
    place: str = ""


def frame_rows(rows: list[FrameRow]) -> pa.RecordBatch:
    """Return the rows as one batch of FRAME_SCHEMA."""
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(np.array(column) if pa.types.is_integer(field.type) else column, field.type)
        for field, column in zip(FRAME_SCHEMA, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAME_SCHEMA)
