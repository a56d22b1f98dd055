"""The file that binds a checkpoint to its configuration, written once beside Spark's own files.

    <checkpoint>/bmq.json   format, shards, feeds, start offsets, ends of the control and clock topics at that time

A restart compares it with the configuration and refuses changes that would silently give wrong results. With another
number of shards, a shard would look for streams in the wrong state. With another list of dimensions or attributes, it
would mistake one field's values for another's.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from bmq.errors import ConfigError, StateError
from bmq.job.checkpoint_place import file_system_of, out_of_reach
from bmq.job.source.offsets import Position
from bmq.records import Feed

FORMAT = 4
_READABLE = (3, FORMAT)  # 3 has no `delivery_id`
FILE = "bmq.json"
NEW_FILE = f"{FILE}.new"  # whole, if a crash left no FILE
SPARKS_FILES = ("commits", "metadata", "offsets", "state")  # beside it, as soon as the streaming query has begun
_WAY_OUT = "or set job.checkpoint to a new folder: the queries come back from the control topic."


class Origin(msgspec.Struct, frozen=True):
    """The offsets at which a checkpoint began, and the options that it is bound to.

    Attributes
    ----------
    start_offsets : feed -> partition of the feed -> offset of the first reading.
    control_end : end of the control topic when the checkpoint began; deletes before it get no reply.
    feeds : feed -> the options that must not change; see `bound_options`.
    clock_start : partition of the clock topic -> its end when the checkpoint began: earlier marks belong to another
        checkpoint.
    delivery_id : begins the transactional ids and groups of this checkpoint; empty: it is older than these.
    """

    shards: int
    start_offsets: dict[str, dict[int, int]]
    control_end: int
    feeds: dict[str, dict[str, Any]]
    clock_start: dict[int, int] = {}
    delivery_id: str = ""
    format: int = FORMAT


class _Format(msgspec.Struct):
    """What every format of the file has."""

    format: int


def read_origin(text: bytes, location: str) -> Origin:
    """Return the origin that the file of a checkpoint holds.

    Raises
    ------
    StateError : it is damaged, or has another format.
    """
    try:
        found = msgspec.json.decode(text, type=_Format).format
        if found in _READABLE:
            return msgspec.structs.replace(msgspec.json.decode(text, type=Origin), format=FORMAT)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateError(
            f"{FILE} in checkpoint {location} is damaged ({error}). Restore it from a copy, {_WAY_OUT}"
        ) from error
    raise StateError(
        f"Checkpoint {location} has format {found}, and this version reads {FORMAT}. Run the version that made it, "
        f"{_WAY_OUT}"
    )


def must_be_new(found: Sequence[str], location: str) -> None:
    """Raise StateError if the file is absent where Spark's own files are there: ``found`` names them.

    To bind them anew would give them other start offsets and transactional ids: events would be lost, or come twice.
    """
    if found:
        raise StateError(
            f"Checkpoint {location} has no {FILE}, but Spark's files are there ({', '.join(found)}): somebody has "
            f"deleted it. Restore it from a copy, {_WAY_OUT}"
        )


def new_delivery_id() -> str:
    """Return a beginning of transactional ids and groups that no checkpoint has yet."""
    return f"bmq-{uuid4().hex[:16]}"


def batches_in(folder: Path) -> list[int]:
    """Return the numbers of the batches that have a file in a folder of a checkpoint, in no order."""
    return [int(file.name) for file in folder.glob("*") if file.name.isdecimal()]


def offset_documents(folder: Path, batch: int) -> list[dict[str, Any]]:
    """Return where a batch of a checkpoint on this machine ended in the topics of each source.

    Raises
    ------
    StateError : Spark's file is damaged.
    """
    path = _offsets_file(folder, batch)
    try:
        # A line of version, a line of metadata, and one for each source.
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[2:]]
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _offsets_file(folder: Path, batch: int) -> Path:
    return folder / "offsets" / str(batch)


def _damaged(path: Path, error: Exception) -> StateError:
    return StateError(f"{path} cannot be read ({error}). Restore the checkpoint from a copy, {_WAY_OUT}")


def last_position(folder: Path) -> Position:
    """Return where the last whole batch of a checkpoint on this machine ended, in the topics of all sources.

    Raises
    ------
    StateError : Spark's file is damaged.
    """
    committed = batches_in(folder / "commits")
    if not committed:
        return Position({})
    batch = max(committed)
    try:
        positions = [Position.of(document) for document in offset_documents(folder, batch)]
    except AttributeError as error:
        raise _damaged(_offsets_file(folder, batch), error) from error
    offsets = {topic: partitions for position in positions for topic, partitions in position.offsets.items()}
    return Position(offsets, {topic: name for position in positions for topic, name in position.ids.items()})


class CheckpointFolder:
    """Reads and writes the file, on the file system that Hadoop finds for the checkpoint's address."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._location = location
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path(location, FILE)
        self._new_path = jvm.org.apache.hadoop.fs.Path(location, NEW_FILE)
        self._file_system = file_system_of(spark, location)

    def read(self) -> Origin | None:
        """Return the origin; None if the checkpoint is new.

        Raises
        ------
        ConfigError : the file system does not answer.
        StateError : the file is damaged, has another format, or is gone and Spark's files are there.
        """
        try:
            there = [path for path in (self._path, self._new_path) if self._file_system.exists(path)]
        except Py4JJavaError as error:
            raise out_of_reach(self._location, error) from error
        if not there:
            folder = self._path.getParent()
            must_be_new(
                [
                    name
                    for name in SPARKS_FILES
                    if self._file_system.exists(self._jvm.org.apache.hadoop.fs.Path(folder, name))
                ],
                self._location,
            )
            return None
        stream = self._file_system.open(there[0])
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return read_origin(text.encode(), self._location)

    def write(self, origin: Origin) -> None:
        """Write the origin to a second file first, so that after a crash at least one of the two files is whole.

        Raises
        ------
        ConfigError : the folder cannot be written.
        """
        try:
            stream = self._file_system.create(self._new_path, True)
            stream.write(msgspec.json.encode(origin))
            stream.close()
            self._file_system.delete(self._path, False)
            self._file_system.rename(self._new_path, self._path)
        except Py4JJavaError as error:
            raise ConfigError(
                f"Checkpoint {self._location!r} cannot be written ({error.java_exception.getMessage()}). Set "
                "job.checkpoint to a folder or URI that this user may write."
            ) from error


def bound_options(feeds: dict[str, Feed]) -> dict[str, dict[str, Any]]:
    """Return feed -> option -> value, for the options on which offsets or state depend."""
    return {
        name: {
            # Their order numbers the partitions.
            "topic": feed.topic if not feed.more_topics else list(feed.topics),
            "dimensions": list(feed.dimensions),
            "attributes": list(feed.attributes),
            "space": "lonlat" if feed.lonlat else "plane",
            # These decide how a `where` was read, which records are one stream, and what its event times are.
            "format": str(feed.format),
            "stream_id": feed.stream_id,
            "event_time": feed.event_time,
            # Timers have already fired, and readings are held, according to this option.
            "max_lateness": f"{feed.max_lateness_ms}ms",
            # Joins track the streams of a feed from its first reading on, and queries of joins require the option.
            "join": feed.join,
        }
        for name, feed in feeds.items()
    }


def changed_options(origin: Origin, feeds: dict[str, Feed]) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield feed, option, value of the checkpoint and value now, for each bound option that differs.

    Feeds that are not there any more are left out.
    """
    now = bound_options(feeds)
    for name, options in origin.feeds.items():
        for option, value in options.items():
            if name in now and now[name][option] != value:
                yield name, option, value, now[name][option]


def must_fit(origin: Origin, location: str, shards: int, feeds: dict[str, Feed]) -> None:
    """Raise ConfigError if the configuration does not fit the checkpoint."""
    if origin.shards != shards:
        raise ConfigError(
            f"job.shards is {shards}, but checkpoint {location!r} was made with {origin.shards}, and its streams are "
            f"divided that way. Set job.shards = {origin.shards}, or rescale the checkpoint (bmq checkpoint rescale), "
            "or set job.checkpoint to a new folder."
        )
    for name in origin.feeds:
        if name not in feeds:
            raise ConfigError(
                f"Checkpoint {location!r} has state of feed {name!r}, which the configuration no longer names. Put "
                f"[feeds.{name}] back, or set job.checkpoint to a new folder."
            )
    for name, option, value, now in changed_options(origin, feeds):
        way = "add new ones behind them (bmq checkpoint upgrade), " if option == "attributes" else ""
        raise ConfigError(
            f"feeds.{name}.{option} is {now!r}, but checkpoint {location!r} was made with {value!r}, and its state is "
            f"about that. Put it back, {way}or set job.checkpoint to a new folder."
        )
