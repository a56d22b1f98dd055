"""A checkpoint that was damaged, and a disk that is full: the service stops, and says what, where and the way out."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bmq.config import Config
from bmq.errors import ServiceError
from bmq.job.service import Service
from bmq.kafka_io.topics import Topics
from tests.disks import full
from tests.kafka_records import read_all

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

NAME = "damaged"
N_STREAMS = 20


class Played:
    """A checkpoint after two batches, and a third batch that waits in the topic."""

    def __init__(self, bootstrap_servers: str, folder: Path) -> None:
        self.servers = bootstrap_servers
        self.checkpoint = folder / "whole"
        self._producer = Producer({"bootstrap.servers": bootstrap_servers})
        Topics({"bootstrap.servers": bootstrap_servers}).create_missing(f"{NAME}.control", [NAME], 1)
        definition = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}
        self._producer.produce(f"{NAME}.control", json.dumps(definition), "q")
        for second in range(3):
            if second:
                self.run(self.checkpoint)
            self.send(second)
        assert self.n_events() == N_STREAMS // 2 + N_STREAMS

    def run(self, checkpoint: Path, delivery: str = "exactly_once") -> None:
        """Read everything that is there, by a service on this checkpoint."""
        feed = {"topic": NAME, "stream_id": "id", "event_time": "ts", "event_time_unit": "ms", "dimensions": ["x"]}
        job = {
            "checkpoint": str(checkpoint),
            "shards": 2,
            "starting_offsets": "earliest",
            "trigger": "available_now",
            "delivery": delivery,
        }
        topics = {name: f"{NAME}.{name}" for name in ("control", "events", "replies", "dead_letter", "markers")}
        service = Service(Config(feeds={"line": feed}, job=job, topics=topics, metrics={"port": 0}), self.servers)
        try:
            service.start()
            service.wait()
        finally:
            service.stop()

    def n_events(self) -> int:
        """Return how many events there are."""
        return sum(1 for _ in read_all(self.servers, f"{NAME}.events"))

    def send(self, second: int) -> None:
        """Send a reading of each stream, which crosses the border."""
        for stream in range(N_STREAMS):
            value = {"id": f"s{stream}", "ts": 1_000 * second, "x": 5.0 if (stream + second) % 2 else 50.0}
            self._producer.produce(NAME, json.dumps(value), f"s{stream}")
        self._producer.flush()


@pytest.fixture(scope="module")
def played(bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(bootstrap_servers, tmp_path_factory.mktemp(NAME))


def newest(folder: Path) -> Path:
    """Return the file with the highest number in its name."""
    return max((file for file in folder.iterdir() if file.stem.isdigit()), key=lambda file: int(file.stem))


def cut(file: Path) -> None:
    """Cut a file in half, as a machine does that loses power."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: cut(newest(folder / "state" / "0" / "0")), r"state/0/0/\d+\.changelog"),
        (lambda folder: newest(folder / "state" / "0" / "0").unlink(), r"state/0/0/\d+\.changelog"),
        (lambda folder: shutil.rmtree(folder / "state"), "state directory is empty or missing"),
        (lambda folder: newest(folder / "commits").write_bytes(b""), r"commits/\d+"),
        (lambda folder: (folder / "metadata").unlink(), "metadata file is missing"),
        (lambda folder: (folder / "metadata").write_bytes(b""), "metadata"),
    ],
    ids=["cut state", "lost state file", "no state", "empty commit", "no metadata", "empty metadata"],
)
def test_a_damaged_file_is_named_with_the_way_out(
    played: Played, tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    shutil.copytree(played.checkpoint, tmp_path, dirs_exist_ok=True)
    damage(tmp_path)

    with pytest.raises(ServiceError, match=f"missing or damaged: .*{said}.*Restore the whole checkpoint") as raised:
        played.run(tmp_path)

    assert "\n" not in str(raised.value)
    assert "Nothing is lost" not in str(raised.value)


def test_a_full_disk_is_named_and_the_service_goes_on_when_there_is_room(played: Played, small_disk: Path) -> None:
    shutil.copytree(played.checkpoint, small_disk, dirs_exist_ok=True)
    said = r"^A disk is full .*No space left on device.* Make room where"

    with full(small_disk), pytest.raises(ServiceError, match=said):
        played.run(small_disk)

    played.run(small_disk)
    # A shard that has written its part of the third batch by another copy does not write it again.
    assert played.n_events() == N_STREAMS // 2 + 2 * N_STREAMS


def from_elsewhere(folder: Path, made_at: Path) -> None:
    """Let a copy be one whose original is gone: its files name a folder that is not there."""
    (metadata,) = (folder / "state" / "0" / "_metadata" / "v2").glob("0")
    text = metadata.read_text(encoding="utf-8")
    assert str(made_at) in text
    metadata.write_text(text.replace(str(made_at), "/no/such/folder"), encoding="utf-8")
    metadata.with_name(".0.crc").unlink()


def test_a_copy_that_is_a_batch_behind_does_not_take_other_readings_for_written(played: Played, tmp_path: Path) -> None:
    before, behind = tmp_path / "before", tmp_path / "behind"
    shutil.copytree(played.checkpoint, before)
    shutil.copytree(played.checkpoint, behind)
    from_elsewhere(before, played.checkpoint)
    show = [sys.executable, "-m", "bmq.cli", "checkpoint", "show", str(before)]
    shown = subprocess.run(show, capture_output=True, text=True)
    assert f"streams: {N_STREAMS}" in shown.stdout, shown.stderr
    played.run(before)  # it goes on at its new place
    n_written = played.n_events()
    played.send(3)

    for _ in range(2):  # the second start finds the batch in Spark's log
        with pytest.raises(ServiceError, match=r"An earlier run wrote batch 2 .* Start with job.delivery"):
            played.run(behind)
    assert played.n_events() == n_written

    played.run(behind, "at_least_once")
    assert played.n_events() == n_written + 2 * N_STREAMS  # the third batch again, and what came after it
    played.run(behind)
    assert played.n_events() == n_written + 2 * N_STREAMS
