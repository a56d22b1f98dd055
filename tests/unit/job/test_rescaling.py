"""What a rescale refuses before it reads any state."""

from pathlib import Path

import msgspec
import pytest

from bmq.errors import ConfigError, StateError
from bmq.job.checkpoint import FILE, NEW_FILE, Origin, bound_options
from bmq.job.rescaling import must_be_at_rest, must_be_free
from bmq.job.stored_state import StoredCheckpoint, feeds_of
from bmq.records import Feed, Format

FEED = Feed(
    "plane", "plane", "id", ("x", "y"), event_time="ts", attributes=("group",), max_lateness_ms=5_000, join=True
)
GLOBE = Feed("globe", "globe", "@key", ("lon", "lat"), format=Format.JSON, lonlat=True)


def checkpoint(folder: Path, *, planned: int, committed: int) -> Path:
    origin = Origin(shards=4, start_offsets={}, control_end=0, feeds=bound_options({"plane": FEED}))
    (folder / FILE).write_bytes(msgspec.json.encode(origin))
    for name, last in (("offsets", planned), ("commits", committed)):
        (folder / name).mkdir()
        for batch in range(last + 1):
            (folder / name / str(batch)).write_text("v1\n{}\n{}\n{}")
    return folder


def test_a_batch_that_has_not_ended_is_refused_with_the_way_out(tmp_path: Path) -> None:
    old = StoredCheckpoint(checkpoint(tmp_path, planned=3, committed=2))

    with pytest.raises(StateError, match=r"begun batch 3 and not ended it.*available_now"):
        must_be_at_rest(old)


def test_a_checkpoint_whose_last_batch_is_committed_is_at_rest(tmp_path: Path) -> None:
    must_be_at_rest(StoredCheckpoint(checkpoint(tmp_path, planned=3, committed=3)))


def test_a_folder_that_is_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there already"):
        must_be_free(tmp_path)
    must_be_free(tmp_path / "new")


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"has no bmq\.json"):
        StoredCheckpoint(tmp_path)


def test_what_a_crash_left_of_the_file_is_read_as_the_service_reads_it(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, planned=0, committed=0)
    (folder / FILE).rename(folder / NEW_FILE)

    assert StoredCheckpoint(folder).origin.shards == 4


def test_a_checkpoint_without_a_committed_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no committed batch"):
        StoredCheckpoint(checkpoint(tmp_path, planned=0, committed=-1))


def test_the_feeds_of_a_checkpoint_are_those_that_it_is_bound_to() -> None:
    bound = bound_options({"plane": FEED, "globe": GLOBE})
    origin = Origin(shards=1, start_offsets={}, control_end=0, feeds=bound)

    assert bound_options(feeds_of(origin)) == bound
