"""What a batch and a start cost with the checkpoint on this machine, on HDFS and on S3, with some options of Spark.

    make bench-storage

Claim: on S3, a batch takes less than half of the requests that Spark's own choice takes. One service after the other
runs in the same process, each kind on its own checkpoint and topics: `repeats` times all kinds in turn, so that a busy
machine slows all of them. A run starts on the checkpoint of the one before it, and plays `rounds` rounds: a reading of
each stream, each of which crosses a border. The first turn makes the checkpoints and is not counted. Before a number is
printed, the events of each kind are counted.

HDFS is Hadoop's mini cluster, S3 is moto's server, both on this machine: their answers take some milliseconds, where a
real S3 takes some tens. So compare the requests, too.
"""

import json
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from rich.console import Console

from bmq.broker.broker import Broker
from bmq.config import Config
from bmq.job.checkpoint_place import FILE_MANAGER, use_file_manager
from bmq.job.service import Service
from bmq.kafka_io.topics import Topics
from tests.kafka_records import read_all
from tests.storage.remote_service import write_defaults
from tests.storage.servers import S3, Hdfs

SHARDS = 2
LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.02
LEAN_BUCKET = "lean"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
BY_RENAME = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
STEPS = ("triggerExecution", "addBatch", "walCommit", "commitOffsets")

_console = Console(stderr=True)


@dataclass
class Kind:
    """A place of the checkpoint, the options of Spark, and what was measured.

    Attributes
    ----------
    starts : seconds from `Service.start` to the end of the first batch.
    batches : step -> milliseconds in each batch that read something.
    requests : to S3, in each run, for each batch.
    """

    name: str
    checkpoint: str
    settings: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    starts: list[float] = field(default_factory=list)
    batches: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})
    requests: list[float] = field(default_factory=list)

    @property
    def topic(self) -> str:
        """The topic of its readings; its other topics begin with this name."""
        return self.name.replace(" ", "-").replace(",", "")

    def line(self) -> str:
        """Return the medians."""
        steps = " ".join(f"{step}={statistics.median(times):.0f}" for step, times in self.batches.items())
        longest = max(self.batches["triggerExecution"])
        asked = f" requests_a_batch={statistics.median(self.requests):.0f}" if self.requests else ""
        return f"{self.name:<32} start_s={statistics.median(self.starts):.1f} {steps} longest={longest:.0f} ms{asked}"


def main(repeats: int = 3, rounds: int = 10, streams: int = 5_000, kinds: str = "", smoke: bool = False) -> None:
    """Measure, count the events, and print a line for each kind.

    Parameters
    ----------
    kinds : the names of some kinds, divided by semicolons; empty: all.
    """
    if smoke:
        repeats, rounds, streams = 1, 2, 200
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        hdfs, s3 = stack.enter_context(Hdfs(folder / "hdfs")), stack.enter_context(S3(folder / "s3"))
        s3.make_bucket(LEAN_BUCKET)
        lean = {f"spark.hadoop.fs.s3a.bucket.{LEAN_BUCKET}.performance.flags": "create,mkdir"}
        write_defaults(folder / "conf", s3.settings | lean)
        os.environ["SPARK_CONF_DIR"] = str(folder / "conf")
        broker = stack.enter_context(Broker(folder / "kafka"))
        all_kinds = [
            Kind("here", str(folder / "here")),
            Kind("hdfs", hdfs.uri("plain")),
            Kind("s3a by rename", s3.uri("rename"), {FILE_MANAGER: BY_RENAME}),
            Kind("s3a", s3.uri("plain")),
            Kind("s3a, flags", f"s3a://{LEAN_BUCKET}/plain"),
            Kind("s3a, no changelog", s3.uri("snapshots"), {CHANGELOG: "false"}),
        ]
        if kinds:
            all_kinds = [kind for kind in all_kinds if kind.name in kinds.split(";")]
        for repeat in range(repeats + 1):
            for kind in all_kinds:
                _run(kind, broker.bootstrap_servers, s3, rounds, streams, counted=repeat > 0)
        for kind in all_kinds:
            _check(kind, broker.bootstrap_servers, streams)
    print(f"load average {os.getloadavg()[1]:.1f}, {repeats} runs of {rounds} rounds, {streams} streams, medians:")
    for kind in all_kinds:
        print(kind.line())


def _run(kind: Kind, servers: str, s3: S3, rounds: int, streams: int, *, counted: bool) -> None:
    """Run the service once and note what it cost."""
    if kind.rounds == 0:
        _put_query(kind, servers)
    service = Service(_config(kind), servers)

    def use_settings(spark: SparkSession, manager: str | None) -> None:
        use_file_manager(spark, manager)
        for name, value in kind.settings.items():
            spark.conf.set(name, value)

    begin = time.monotonic()
    try:
        with patch("bmq.job.service.use_file_manager", use_settings):
            service.start()
        service.wait_until_running()
        seconds = time.monotonic() - begin
        asked = s3.requests()
        progress = [found for _ in range(rounds) for found in _play_round(kind, service, servers, streams)]
        asked = s3.requests() - asked
    finally:
        service.stop()
    _console.print(f"{kind.name}: start {seconds:.1f} s, {len(progress)} batches, {asked} requests")
    if counted:
        kind.starts.append(seconds)
        for step, times in kind.batches.items():
            times += [found["durationMs"].get(step, 0) for found in progress]
        if kind.checkpoint.startswith("s3a"):
            kind.requests.append(asked / len(progress))


def _play_round(kind: Kind, service: Service, servers: str, streams: int) -> list[dict[str, Any]]:
    """Send a reading of each stream; return the batches that read them, once the last one has ended."""
    assert service.streaming_query is not None
    seen = {found["batchId"] for found in _progress(service)}
    producer = Producer({"bootstrap.servers": servers})
    for stream in range(streams):
        x = 5.0 if (stream + kind.rounds) % 2 else 50.0
        producer.produce(kind.topic, json.dumps({"id": f"s{stream}", "ts": 1_000 * kind.rounds, "x": x}), partition=0)
    producer.flush()
    kind.rounds += 1
    deadline = time.monotonic() + LIMIT_SECONDS
    while not any(f'"{kind.topic}": {{"0": {kind.rounds * streams}}}' in text for text in _reached(service)):
        if time.monotonic() > deadline or not service.streaming_query.isActive:
            raise RuntimeError(f"{kind.name}: the readings were not read: {_reached(service)}")
        time.sleep(POLL_SECONDS)
    return [found for found in _progress(service) if found["batchId"] not in seen]


def _reached(service: Service) -> list[str]:
    """Return the offsets of each source after the newest batch, as texts of JSON."""
    newest = _progress(service)[-1:]
    return [json.dumps(source["endOffset"]) for found in newest for source in found["sources"]]


def _progress(service: Service) -> list[dict[str, Any]]:
    """Return the reports of the batches that read something."""
    assert service.streaming_query is not None
    found = [json.loads(progress.json) for progress in service.streaming_query.recentProgress]
    return [progress for progress in found if "addBatch" in progress["durationMs"]]


def _config(kind: Kind) -> Config:
    feed = {"topic": kind.topic, "stream_id": "id", "event_time": "ts", "event_time_unit": "ms", "dimensions": ["x"]}
    job = {"checkpoint": kind.checkpoint, "shards": SHARDS, "starting_offsets": "earliest"}
    topics = {name: f"{kind.topic}.{name}" for name in ("control", "events", "replies", "dead_letter", "markers")}
    return Config(feeds={"line": feed}, job=job, topics=topics, metrics={"port": 0})


def _put_query(kind: Kind, servers: str) -> None:
    Topics({"bootstrap.servers": servers}).create_missing(f"{kind.topic}.control", [kind.topic], 1)
    producer = Producer({"bootstrap.servers": servers})
    definition = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}
    producer.produce(f"{kind.topic}.control", json.dumps(definition), "q")
    producer.flush()


def _check(kind: Kind, servers: str, streams: int) -> None:
    """Raise unless each round but the first has an event of each stream, and the first one of each second stream."""
    expected = streams // 2 + streams * (kind.rounds - 1)
    found = sum(1 for _ in read_all(servers, f"{kind.topic}.events"))
    if found != expected:
        raise AssertionError(f"{kind.name}: {found} events, expected {expected}")


if __name__ == "__main__":
    typer.run(main)
