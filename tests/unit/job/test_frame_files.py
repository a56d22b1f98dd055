"""Large frames travel in files, the others in their rows, and a shard gets both alike."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from bmq.job.frame_files import LARGE_BYTES, FrameFile
from bmq.job.frame_rows import FrameRow, Kind, frame_rows
from bmq.job.received import rows_of, with_frames

SMALL, LARGE, OTHER = b"small", b"a" * LARGE_BYTES, b"b" * (3 * LARGE_BYTES + 1)


def rows_with(*frames: bytes) -> pa.RecordBatch:
    return frame_rows([FrameRow(0, Kind.READINGS, "f", 0, i, i + 1, frame) for i, frame in enumerate(frames)])


def received(batches: Sequence[pa.RecordBatch], folder: Path) -> list[bytes]:
    rows = rows_of(batch.to_pandas() for batch in batches)
    return [bytes(row.frame) for row in with_frames(rows, folder)]


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "frames"


def test_each_frame_arrives_as_it_was(folder: Path) -> None:
    with closing(FrameFile(folder, batch=7, attempt=3)) as file:
        batches = [file.store(rows_with(*frames)) for frames in ((OTHER, SMALL, LARGE), (SMALL,), (b"", LARGE))]

        # A task yields its rows one batch after the other, and a shard may read them before the task has ended.
        assert received(batches, folder) == [OTHER, SMALL, LARGE, SMALL, b"", LARGE]

    assert received(batches, folder) == [OTHER, SMALL, LARGE, SMALL, b"", LARGE]
    assert [row.as_py() for batch in batches for row in batch.column("frame")] == [b"", SMALL, b"", SMALL, b"", b""]


def test_frames_in_files_are_aligned_as_kernels_expect_it(folder: Path) -> None:
    with closing(FrameFile(folder, batch=0, attempt=0)) as file:
        rows = rows_of([file.store(rows_with(OTHER, LARGE, OTHER)).to_pandas()])

    addresses = [pa.py_buffer(row.frame).address for row in with_frames(rows, folder)]
    assert [address % 64 for address in addresses] == [0, 0, 0]


def test_a_task_without_large_frames_makes_no_file(folder: Path) -> None:
    rows = rows_with(*[LARGE[:-1]] * 10)
    with closing(FrameFile(folder, batch=0, attempt=0)) as file:
        assert file.store(rows).equals(rows)

    assert not folder.exists()


def test_a_frame_for_all_shards_is_written_once(folder: Path) -> None:
    with closing(FrameFile(folder, batch=0, attempt=0)) as file:
        stored = file.store(rows_with(LARGE, LARGE, LARGE, OTHER))

    assert sizes(folder)["0-0"] < len(LARGE) + len(OTHER) + 128
    assert received([stored], folder) == [LARGE, LARGE, LARGE, OTHER]


def test_a_batch_removes_the_files_of_those_before_it_and_no_others(folder: Path) -> None:
    for batch, attempt in ((9, 40), (9, 41), (10, 42), (10, 43)):
        with closing(FrameFile(folder, batch, attempt)) as file:
            file.store(rows_with(LARGE))

    assert set(sizes(folder)) == {"10-42", "10-43"}


def test_a_mapped_frame_outlives_its_file(folder: Path) -> None:
    with closing(FrameFile(folder, batch=0, attempt=0)) as file:
        rows = rows_of([file.store(rows_with(LARGE)).to_pandas()])
    (row,) = with_frames(rows, folder)
    (folder / "0-0").unlink()

    assert bytes(row.frame) == LARGE
    with pytest.raises(FileNotFoundError, match="0-0"):
        list(with_frames(rows, folder))
