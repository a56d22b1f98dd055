"""The input of one shard in one batch: rows of `job.decode` to commands, readings and clocks.

Knows the rows' columns and the order in which a shard applies them, but not their effects.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa

from bmq.job.frame_files import FrameFiles
from bmq.job.frame_rows import DATA_LOSS, Kind
from bmq.records import NEVER, Clock, Command, Readings
from bmq.wire.frames import unpack_commands, unpack_dead_letters, unpack_readings


@dataclass(slots=True)
class Frames:
    """The input of one shard in one batch.

    Attributes
    ----------
    readings : feed -> its readings in this shard, ascending by (partition, offset).
    join_readings : feed that takes part in joins -> the readings of all shards, ascending by (partition, offset).
    clocks : feed -> the earliest and the latest event time of the batch over all shards; marks count for the latest.
    next_offsets : feed -> partition -> first offset after this batch.
    lost : feed -> number of offsets that the broker no longer had.
    after_marks : first offset of the clock topic after this batch; 0: the batch has no marks.
    """

    commands: list[Command] = field(default_factory=list)
    readings: dict[str, list[Readings]] = field(default_factory=dict)
    join_readings: dict[str, list[Readings]] = field(default_factory=dict)
    clocks: dict[str, Clock] = field(default_factory=dict)
    dead_letters: list[pa.RecordBatch] = field(default_factory=list)
    next_offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    after_marks: int = 0

    def digest(self) -> str:
        """Return a short digest of the offsets that were read: the same for the same records, in whatever blocks."""
        ends = sorted((feed, sorted(partitions.items())) for feed, partitions in self.next_offsets.items())
        last_commands = [command.offset for command in self.commands[-1:]]
        read = msgspec.json.encode((ends, last_commands, self.after_marks, sorted(self.lost.items())))
        return hashlib.blake2b(read, digest_size=8).hexdigest()


class Row(NamedTuple):
    """A row of `job.decode`, without the shard."""

    kind: int
    feed: str
    partition: int
    first_offset: int
    next_offset: int
    earliest: int
    latest: int
    frame: bytes | memoryview
    place: str = ""


def rows_of(frames: Iterable[pd.DataFrame]) -> list[Row]:
    """Return the rows of data frames of Spark, as they are."""
    # As tuples: a batch has some dozen rows, and sorting a data frame takes milliseconds at any length.
    return [row for frame in frames for row in map(Row, *(frame[name].tolist() for name in Row._fields))]


def with_frames(rows: Iterable[Row], folder: Path | None) -> Iterator[Row]:
    """Return the rows with the frames that are in files of the folder, without a copy."""
    files = FrameFiles(folder) if folder is not None else None
    for row in rows:
        if row.place:
            assert files is not None, "only a plan with a folder puts frames into files"
            yield row._replace(frame=files.frame(row.place), place="")
        else:
            yield row


def read_frames(rows: Iterable[Row]) -> Frames:
    """Return the frames of one shard in the order of (kind, feed, partition, offset)."""
    frames = Frames()
    for row in sorted(rows, key=_place):
        match row.kind:
            case Kind.COMMANDS:
                frames.commands.extend(unpack_commands(row.frame))
            case Kind.DEAD_LETTERS:
                dead = unpack_dead_letters(row.frame)
                frames.dead_letters.append(dead)
                if dead.column("code")[0].as_py() == DATA_LOSS:
                    frames.lost[row.feed] += max(0, int(row.next_offset) - int(row.first_offset))
            case Kind.MARKS:
                frames.after_marks = max(frames.after_marks, int(row.next_offset))
                _move_clock(frames, row.feed, NEVER, int(row.latest))
            case Kind.READINGS:
                frames.next_offsets.setdefault(row.feed, {})[int(row.partition)] = int(row.next_offset)
                _move_clock(frames, row.feed, int(row.earliest), int(row.latest))
                readings = unpack_readings(row.frame)
                if len(readings):
                    frames.readings.setdefault(row.feed, []).append(readings)
            case Kind.JOIN_READINGS:
                frames.join_readings.setdefault(row.feed, []).append(unpack_readings(row.frame))
    return frames


def _place(row: Row) -> tuple[int, str, int, int]:
    return row.kind, row.feed, row.partition, row.first_offset


def _move_clock(frames: Frames, feed: str, earliest: int, latest: int) -> None:
    clock = frames.clocks.get(feed, Clock())
    known = [time for time in (earliest, clock.earliest) if time != NEVER]
    frames.clocks[feed] = Clock(max(latest, clock.time), min(known, default=NEVER))
