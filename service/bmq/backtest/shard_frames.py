"""A history in parts that several processes read and apply: files to frames of shards, frames to events.

    unit: a row group, or a CSV file ─► pieces ─► a frame for each shard ─┐ (shuffle, in order of pieces)
                                                 the clock of the piece ──┴─► one shard ─► events of its streams

Every shard gets a row of each piece, also without readings: the clock of the feed is that of all shards. So the events
are those of one process that reads the same pieces. Knows frames; `job.spark_replay` knows Spark.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bmq.backtest.event_files import EventFile
from bmq.backtest.pieces import Piece
from bmq.backtest.reading_files import BAD_ROWS, ReadingFiles, files_of, is_csv
from bmq.backtest.replay import Moments, Outcome, Replay
from bmq.errors import ServiceError
from bmq.library.local_shard import LocalShard
from bmq.library.reading_tables import BadReadings
from bmq.records import NEVER, Clock, Feed, Installation
from bmq.records.column_records import concat
from bmq.wire.frames import pack_readings, unpack_readings

# unit, piece: the order of the history. frame: null without readings. n_bad: in the row of the first shard alone.
FRAME_SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("unit", pa.int64()),
        ("piece", pa.int64()),
        ("earliest", pa.int64()),
        ("latest", pa.int64()),
        ("n_bad", pa.int64()),
        ("frame", pa.binary()),
    ]
)
FRAME_DDL = "shard int, unit long, piece long, earliest long, latest long, n_bad long, frame binary"


@dataclass(frozen=True, slots=True)
class Unit:
    """What one task reads.

    Attributes
    ----------
    number : in the order of the history.
    row_group : of a Parquet file; None: the whole file.
    """

    number: int
    file: str
    row_group: int | None


def units_of(paths: Sequence[Path]) -> list[Unit]:
    """Return the units of files and folders, in the order in which `ReadingFiles` reads them.

    Raises
    ------
    ServiceError
        There is no such file, it is neither Parquet nor CSV, or it is damaged.
    """
    found: list[tuple[str, int | None]] = []
    for file in (file for path in paths for file in files_of(path)):
        if is_csv(file):
            found.append((str(file.resolve()), None))
            continue
        try:
            n_groups = pq.read_metadata(file).num_row_groups
        except (pa.ArrowException, OSError) as error:
            raise ServiceError(f"File {str(file)!r} cannot be read: {error}. Check that it is whole.") from None
        found += [(str(file.resolve()), group) for group in range(n_groups)]
    return [Unit(number, file, group) for number, (file, group) in enumerate(found)]


@dataclass(frozen=True, slots=True)
class FrameMaker:
    """Reads units; a copy of it goes to each task.

    Attributes
    ----------
    feed, bad_readings, texts : as of `ReadingFiles`.
    shard_keys : what stands in the column `shard`, by the number of the shard.
    """

    feed: Feed
    bad_readings: BadReadings
    texts: tuple[str, ...]
    shard_keys: tuple[int, ...]

    def frames(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each piece, of `FRAME_SCHEMA`. Raises as `ReadingFiles.pieces`."""
        source = ReadingFiles([Path(unit.file)], self.feed, self.bad_readings, self.texts, row_group=unit.row_group)
        n = len(self.shard_keys)
        for number, piece in enumerate(source.pieces()):
            frames: list[bytes | None] = [None] * n
            clock = Clock()
            if piece.readings is not None:
                times = piece.readings.event_times
                clock = Clock(int(times.max()), int(times.min()))
                frames = [*pack_readings(piece.readings, n)]
            columns: list[Sequence[object]] = [self.shard_keys]
            columns += [[value] * n for value in (unit.number, number, clock.earliest, clock.time)]
            columns += [[piece.bad.total()] + [0] * (n - 1), frames]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, FRAME_SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=FRAME_SCHEMA)


@dataclass(frozen=True, slots=True)
class ShardReplay:
    """Applies the frames of a shard; a copy of it goes to each task.

    Attributes
    ----------
    installation : of one feed.
    out : the folder of the events; None: they are only counted.
    """

    installation: Installation
    definitions: Mapping[str, bytes]
    clock_end: int | None
    out: str | None

    def run(self, shard: int, rows: Iterable[pa.RecordBatch]) -> Outcome:
        """Return what the replay of a shard counted; write its events to a file of the folder.

        Parameters
        ----------
        shard : its number.
        rows : of `FRAME_SCHEMA`, of this shard, in the order of unit and piece.

        Raises
        ------
        ServiceError
            The file cannot be written.
        """
        feeds = self.installation.feeds
        (feed,) = feeds
        # A task that failed may have left the file.
        sinks = (
            [] if self.out is None else [EventFile(Path(self.out, f"part-{shard:05}.parquet"), feeds, overwrite=True)]
        )
        try:
            replay = Replay(LocalShard(self.installation), feed, self.definitions, Moments(None, self.clock_end), sinks)
            outcome = replay.run(_pieces(rows), lambda done: None)
            for sink in sinks:
                sink.finish()
        except BaseException:
            for sink in sinks:
                sink.abandon()
            raise
        return outcome


def _pieces(rows: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    for batch in rows:
        for row in batch.to_pylist():
            bad = Counter({BAD_ROWS: row["n_bad"]} if row["n_bad"] else {})
            clock = Clock(row["latest"], row["earliest"])
            if clock.time == NEVER:
                yield Piece(None, 0, bad)
                continue
            readings = unpack_readings(row["frame"])
            # A copy: kernels are compiled for columns that can be written, and those of a frame cannot.
            yield Piece(concat([readings]) if len(readings) else None, 0, bad, clock)
