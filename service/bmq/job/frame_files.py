"""Large frames in files, in the place of Spark's rows, if all of its processes are on one machine.

    decode task  ── frame ──►  file of the task  ── mapped ──►  home of the shard
                 ── row: where the frame is ──►  Spark  ──►

Spark copies a frame in a row several times: between processes, to Arrow and back, and into the files of the shuffle. A
file is written once, and its pages are shared. The files of a batch remain until a later batch begins, so a task that
runs again finds them. Knows frames as bytes, and rows as `job.frame_rows` has them.
"""

import mmap
import os
from io import BufferedWriter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

LARGE_BYTES = 32 * 1024  # a smaller frame travels in its row: to make and open a file takes longer
_ALIGNMENT = 64  # bytes; Arrow's


class FramePlace(NamedTuple):
    """Where a frame is: the bytes from ``start`` to ``end`` of a file."""

    file: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.start}:{self.end}"

    @classmethod
    def parse(cls, text: str) -> "FramePlace":
        """Return the place that `str` made this text of."""
        file, start, end = text.split(":")
        return cls(file, int(start), int(end))


class FrameFile:
    """The frames of one attempt at a task; the first large one makes the file.

    It also removes the files of earlier batches, which are committed.
    """

    def __init__(self, folder: Path, batch: int, attempt: int) -> None:
        self._folder, self._batch = folder, batch
        self._path = folder / f"{batch}-{attempt}"
        self._file: BufferedWriter | None = None
        self._end = 0

    def store(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the places of their large frames; these frames are in the file when it returns."""
        frames = rows.column("frame")
        if frames.nbytes < LARGE_BYTES:
            return rows
        places: list[str] = []
        kept: list[bytes] = []
        before, place = None, ""
        for frame in frames:
            content = frame.as_buffer()
            if content.size < LARGE_BYTES:
                places.append("")
                kept.append(frame.as_py())
                continue
            if before is None or not content.equals(before):  # one frame may be for all shards
                before, place = content, str(self._write(content))
            places.append(place)
            kept.append(b"")
        if self._file is not None:
            self._file.flush()
        columns = {"frame": pa.array(kept, pa.binary()), "place": pa.array(places, pa.string())}
        return pa.RecordBatch.from_arrays(
            [columns.get(field.name, rows.column(field.name)) for field in rows.schema], schema=rows.schema
        )

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, content: pa.Buffer) -> FramePlace:
        if self._file is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            _remove_before(self._folder, self._batch)
            self._file = self._path.open("xb")
        start, end = self._end, self._end + content.size
        padding = bytes(-end % _ALIGNMENT)
        self._file.write(content)
        self._file.write(padding)
        self._end = end + len(padding)
        return FramePlace(self._path.name, start, end)


class FrameFiles:
    """The files of a folder, for reading; each is mapped once, as long as something refers to it.

    Raises
    ------
    FileNotFoundError : `frame` found no such file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mapped: dict[str, memoryview] = {}

    def frame(self, place: str) -> memoryview:
        """Return the frame at a place, without a copy."""
        file, start, end = FramePlace.parse(place)
        if file not in self._mapped:
            self._mapped[file] = _mapped(self._folder / file)
        return self._mapped[file][start:end]


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _remove_before(folder: Path, batch: int) -> None:
    for name in os.listdir(folder):
        if int(name.partition("-")[0]) < batch:
            (folder / name).unlink(missing_ok=True)
