"""The state of a checkpoint on this machine, read without its service: Spark's state reader, then monitors.

    <checkpoint>/commits, offsets ──► last_committed, documents
    <checkpoint>/state ── Spark's reader ──► StoredShard ── `job.replicas` ──► Monitor

Nothing here writes to the checkpoint.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bmq.errors import StateError
from bmq.job.checkpoint import FILE, NEW_FILE, Origin, batches_in, offset_documents, read_origin
from bmq.job.moved_checkpoint import readable
from bmq.job.replicas import Head, catch_up, read_head
from bmq.job.shards import shard_keys
from bmq.monitor.monitor import Monitor
from bmq.records import Feed, Format, Installation


@dataclass(slots=True)
class StoredShard:
    """The state of one shard in memory: a `job.replicas.Store` that is only read."""

    log: dict[str, bytes] = field(default_factory=dict)
    stored_head: bytes | None = None

    def head(self) -> bytes | None:
        """Return the head; None if the shard has no state."""
        return self.stored_head

    def get(self, key: str) -> bytes | None:
        """Return an entry or page; None if the key is absent."""
        return self.log.get(key)

    def set_head(self, head: bytes) -> None:
        """Refuse."""
        raise AssertionError("a stored checkpoint is only read")

    def put(self, key: str, value: bytes) -> None:
        """Refuse."""
        raise AssertionError("a stored checkpoint is only read")

    def remove(self, key: str) -> None:
        """Refuse."""
        raise AssertionError("a stored checkpoint is only read")


class StoredCheckpoint:
    """A checkpoint in a folder of this machine.

    Attributes
    ----------
    origin : its `bmq.json`.
    format : of that file.
    batch : the last committed batch.

    Raises
    ------
    StateError : it is not a checkpoint of the service, or it has no committed batch.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            file = folder / FILE
            text = (file if file.exists() else folder / NEW_FILE).read_bytes()
            self.origin: Origin = read_origin(text, str(folder))
            self.format: int = json.loads(text)["format"]
        except OSError as error:
            raise StateError(
                f"{folder} is not a checkpoint that can be read: it has no {FILE} ({error.strerror}). Name the folder "
                "that job.checkpoint names, on a file system of this machine."
            ) from error
        committed = batches_in(folder / "commits")
        if not committed:
            raise StateError(f"Checkpoint {folder} has no committed batch, so it has no state. Start its service once.")
        self.batch = max(committed)

    @property
    def planned(self) -> int:
        """The last batch that has offsets: the committed one, or the one that did not end."""
        return max(batches_in(self.folder / "offsets"), default=-1)

    def documents(self) -> list[dict[str, Any]]:
        """Return where the last committed batch ended in the topics of each source, as the offset log has it.

        Raises
        ------
        StateError : Spark's file is damaged.
        """
        return offset_documents(self.folder, self.batch)

    def shards(self, spark: SparkSession) -> Iterator[tuple[Head, Monitor]]:
        """Yield the head and the monitor of each shard, one after the other.

        Raises
        ------
        StateError : the state has another format, or is damaged.
        """
        with readable(self.folder) as folder:
            yield from self._shards(spark, folder)

    def _shards(self, spark: SparkSession, folder: Path) -> Iterator[tuple[Head, Monitor]]:
        origin = self.origin
        keys, feeds = shard_keys(origin.shards), feeds_of(origin)
        heads = {row.key[0]: bytes(row.value[0]) for row in self._read(spark, folder, "head").collect()}
        # Spark reads one partition after the other here, and a partition is a shard.
        rows = self._read(spark, folder, "log").toLocalIterator()
        following = next(rows, None)
        for shard, key in enumerate(keys):
            stored = StoredShard(stored_head=heads.get(key))
            while following is not None and following.key[0] == key:
                stored.log[following.user_map_key[0]] = bytes(following.user_map_value[0])
                following = next(rows, None)
            head = read_head(stored)
            new_monitor = partial(Monitor, Installation(feeds), origin.control_end, shard, origin.shards)
            yield head, catch_up(None, head, stored, new_monitor)[0].monitor
        assert following is None, "the state has a key of no shard"

    def _read(self, spark: SparkSession, folder: Path, variable: str) -> DataFrame:
        _ = spark.streams  # makes the coordinator of state stores, to which the reader's stores report
        reader = spark.read.format("statestore").option("stateVarName", variable).option("batchId", self.batch)
        return reader.load(address_of(folder))


def address_of(folder: Path) -> str:
    """Return the address of a folder for Spark, which escapes what a URI needs by itself."""
    return f"file://{folder.absolute()}"


def feeds_of(origin: Origin) -> dict[str, Feed]:
    """Return the feeds as far as the state depends on them; other options have their defaults."""
    return {name: _feed(name, options) for name, options in origin.feeds.items()}


def _feed(name: str, options: Mapping[str, Any]) -> Feed:
    return Feed(
        name,
        topic=options["topic"],
        stream_id=options["stream_id"],
        dimensions=tuple(options["dimensions"]),
        event_time=options["event_time"],
        attributes=tuple(options["attributes"]),
        lonlat=options["space"] == "lonlat",
        format=Format(options["format"]),
        max_lateness_ms=int(options["max_lateness"].removesuffix("ms")),
        join=options.get("join", False),
    )
