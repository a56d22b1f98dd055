"""The program through the functions of the job, without Spark and Kafka; every byte that comes out is kept.

Shard after shard and batch after batch, as the stateful operator does it: decode, frames, monitor, commit, messages.
The tokens of the store are random, so the recording has the number of the version in their place.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa

from bmq.job import checkpoint, replicas
from bmq.job.frame_rows import FRAME_SCHEMA, Kind
from bmq.job.outcome import ShardResult, run_batch
from bmq.job.plan import Plan
from bmq.job.received import Frames, read_frames, rows_of
from bmq.job.rendering import Output, render_events
from bmq.kafka_io.output_topics import NO_FAULTS
from bmq.monitor.monitor import Monitor
from bmq.records import Installation, Tenant
from bmq.wire import frames as wire_frames
from bmq.wire.marks import render_mark
from bmq.wire.state_bytes import pack_delta
from tests.blocks import decode_control, decode_readings
from tests.golden.program import BATCHES, FEEDS, Batch, Record, input_digests
from tests.golden.recording import AS_ABOVE, Blob, Recording

N_SHARDS = 2
CONTROL, CLOCK = "control", "clock"
SNAPSHOTS_AFTER = (1, 4, 8, len(BATCHES) - 1)
PLAN = Plan(
    run_id="golden",
    installation=Installation(FEEDS, "bmq.", tenants=(Tenant("all", ""), Tenant("few", "few-", frozenset({"line"})))),
    shard_keys=(70, 71),  # a key is no number of a shard
    start_offsets={feed: {0: 3, 1: 0} for feed in FEEDS},
    silent_tombstones_before=0,
    replies_topic="replies",
    events_topic="events",
    dead_letter_topic="dead-letter",
    clock_topic=CLOCK,
    membership_topic="membership",
    events_key="stream_id",
    events_layout="crossing",
    client_options={},
    delivery_id="bmq-test",
    markers_topic=None,
)
BY_READING = replace(PLAN, events_layout="reading", events_key="query_id", membership_topic=None)
BY_QUERY = replace(PLAN, events_key="query_id", membership_topic=None)


class MemoryStore:
    """The state store of one shard."""

    def __init__(self) -> None:
        self._head: bytes | None = None
        self._log: dict[str, bytes] = {}

    def head(self) -> bytes | None:
        return self._head

    def set_head(self, head: bytes) -> None:
        self._head = head

    def get(self, key: str) -> bytes | None:
        return self._log.get(key)

    def put(self, key: str, value: bytes) -> None:
        self._log[key] = value

    def remove(self, key: str) -> None:
        del self._log[key]


@dataclass(slots=True)
class Shard:
    """One shard: its store, and the replica that a worker keeps; None: the worker is a new one."""

    number: int
    store: MemoryStore
    replica: replicas.Replica | None = None


def new_monitor(shard: int) -> Monitor:
    """Return a monitor without state."""
    return Monitor(PLAN.installation, PLAN.silent_tombstones_before, shard, N_SHARDS)


def play(before: Recording | None = None) -> Recording:
    """Run the program; return the formats and all bytes.

    Parameters
    ----------
    before : where each batch finds the state before it, as a new worker does that runs a batch again; None: each worker
        keeps its replica from batch to batch.
    """
    recording = Recording(formats(), {"pyarrow": pa.__version__}, input_digests(), [], {})
    origin = checkpoint.Origin(
        N_SHARDS, PLAN.start_offsets, 17, checkpoint.bound_options(FEEDS), {0: 5}, "bmq-golden", checkpoint.FORMAT
    )
    recording.blobs["00 origin"] = Blob("checkpoint", msgspec.json.encode(origin))
    shards = [Shard(number, MemoryStore()) for number in range(N_SHARDS)]
    sources = _Sources()
    for number, batch in enumerate(BATCHES):
        rows = pa.Table.from_batches(sources.rows(batch), FRAME_SCHEMA)
        _keep_frames(recording, number, rows)
        for shard in shards:
            if before is not None and number:
                shard.store, shard.replica = recorded_store(before, shard.number, number - 1), None
            _run(recording, number, shard, rows)
    return recording


def recorded_store(recording: Recording, shard: int, batch: int) -> MemoryStore:
    """Return the store of a shard after a batch: the last snapshot recorded until then, and the entries behind it."""
    store = MemoryStore()
    head = _recorded_head(recording, shard, batch)
    snapshot = max((after for after in SNAPSHOTS_AFTER if after <= batch), default=None)
    if snapshot is not None:
        pages = recorded_pages(recording, shard, snapshot)
        version = _recorded_head(recording, shard, snapshot).version
        for number, page in enumerate(pages):
            store.put(f"snapshot/{version}/{number}", page)
        head = msgspec.structs.replace(head, snapshot_version=version, snapshot_pages=len(pages))
    for number in range(batch + 1):
        entry = recording.blobs.get(f"{_place(number, shard)} entry")
        if entry is not None:
            store.put(f"entry/{_recorded_head(recording, shard, number).version}", entry.content)
    store.set_head(msgspec.msgpack.encode(head))
    return store


def recorded_pages(recording: Recording, shard: int, batch: int) -> list[bytes]:
    """Return the pages of the snapshot that was recorded of a shard after a batch."""
    page = f"{_place(batch, shard)} page "
    return [blob.content for name, blob in recording.blobs.items() if name.startswith(page)]


def all_recorded_pages(recording: Recording) -> list[bytes]:
    """Return the pages of every snapshot of every shard."""
    return [
        page
        for shard in range(N_SHARDS)
        for after in SNAPSHOTS_AFTER
        for page in recorded_pages(recording, shard, after)
    ]


def _recorded_head(recording: Recording, shard: int, batch: int) -> replicas.Head:
    return msgspec.msgpack.decode(recording.blobs[f"{_place(batch, shard)} head"].content, type=replicas.Head)


def _place(batch: int, shard: int) -> str:
    return f"{batch:02} shard {shard}"


def formats() -> dict[str, tuple[int, str]]:
    """Return what is written -> its FORMAT and the module that has it."""
    return {
        "state": (replicas.FORMAT, replicas.__name__),
        "checkpoint": (checkpoint.FORMAT, checkpoint.__name__),
        "frames": (wire_frames.FORMAT, wire_frames.__name__),
    }


def _run(recording: Recording, number: int, shard: Shard, rows: pa.Table) -> None:
    """Run one batch of one shard and keep what it writes."""
    table = rows.to_pandas()
    frames = read_frames(rows_of([table[table["shard"] == PLAN.shard_keys[shard.number]]]))
    head = replicas.read_head(shard.store)
    replica, _ = replicas.catch_up(shard.replica, head, shard.store, lambda: new_monitor(shard.number))
    result = run_batch(replica.monitor, frames, FEEDS)
    new_head = replicas.commit(replica, head, shard.store, frames.next_offsets)
    shard.replica = replica
    _keep_state(recording, number, shard, head, new_head)
    recording.messages.extend(_messages(number, shard.number, head, frames, result))
    if number in SNAPSHOTS_AFTER:
        for k, page in enumerate(replica.monitor.snapshot()):
            recording.blobs[f"{_place(number, shard.number)} page {k:02}"] = Blob("state", pack_delta(page))


def _keep_state(recording: Recording, number: int, shard: Shard, head: replicas.Head, new_head: replicas.Head) -> None:
    place = _place(number, shard.number)
    if new_head.version > head.version:
        stored = shard.store.get(f"entry/{new_head.version}")
        assert stored is not None
        entry = msgspec.msgpack.decode(stored, type=replicas.Entry)
        entry = msgspec.structs.replace(entry, parent=_token(head.version), token=_token(new_head.version))
        recording.blobs[f"{place} entry"] = Blob("state", msgspec.msgpack.encode(entry))
    written = msgspec.structs.replace(new_head, token=_token(new_head.version))
    recording.blobs[f"{place} head"] = Blob("state", msgspec.msgpack.encode(written))


def _token(version: int) -> bytes:
    return b"" if version == 0 else version.to_bytes(8, "big")


def _keep_frames(recording: Recording, number: int, rows: pa.Table) -> None:
    for row in rows.to_pylist():
        shard = PLAN.shard_keys.index(row.pop("shard"))
        kind, feed = Kind(row["kind"]).name.lower(), row["feed"] or "-"
        name = f"{_place(number, shard)} {kind} {feed} {row['partition']}"
        frame = row.pop("frame")
        recording.blobs[f"{name} row"] = Blob("frames", json.dumps(row).encode())
        recording.blobs[f"{name} frame"] = Blob("frames", frame)


def _messages(number: int, shard: int, head: replicas.Head, frames: Frames, result: ShardResult) -> Iterator[str]:
    place: dict[str, object] = {"batch": number, "shard": shard}
    values = set()
    for batch in Output(PLAN, shard, number, head, frames, result).render(NO_FAULTS):
        for message in batch.to_pylist():
            values.add(message["value"])
            yield _line(place | {"topic": message["topic"]}, message)
    for batch in render_events(BY_READING, result):
        for message in batch.to_pylist():
            # Only border events differ; of the others the value is one of those above.
            message["value"] = AS_ABOVE.encode() if message["value"] in values else message["value"]
            yield _line(place | {"topic": message["topic"], "layout": "reading"}, message)
    # Of the layout with query ids as keys only the keys are new.
    for batch in render_events(BY_QUERY, result):
        keys = [_text(key) for key in batch.column("key").to_pylist()]
        if keys:
            yield json.dumps(place | {"keys": keys}, ensure_ascii=False)


def _line(place: dict[str, object], message: dict[str, object]) -> str:
    headers = message["headers"]
    assert isinstance(headers, list)
    return json.dumps(
        place
        | {"key": _text(message["key"]), "value": _text(message["value"])}
        | {"headers": {header["key"]: _text(header["value"]) for header in headers}}
    )


def _text(value: object) -> str | None:
    """Return bytes as text from which they can be made again."""
    assert value is None or isinstance(value, bytes)
    return None if value is None else value.decode(errors="surrogateescape")


class _Sources:
    """The topics: gives records their offsets, and decodes them as the tasks of the job do."""

    def __init__(self) -> None:
        self._next_offsets: dict[tuple[str, int], int] = {(feed.topic, 0): 3 for feed in FEEDS.values()}

    def rows(self, batch: Batch) -> list[pa.RecordBatch]:
        """Return the rows of one batch, in no particular order."""
        commands = [Record(key, value, 0) for key, value in batch.commands]
        marks = [Record(None, render_mark(feed, time), 0) for feed, time in batch.marks.items()]
        rows = [
            *decode_control(PLAN)(self._records(CONTROL, 0, commands)),
            *decode_control(PLAN)(self._records(CLOCK, 0, marks)),
        ]
        for feed, partitions in batch.readings.items():
            for partition, records in partitions.items():
                rows += decode_readings(PLAN)(self._records(FEEDS[feed].topic, partition, records))
        return rows[::-1]

    def _records(self, topic: str, partition: int, records: Sequence[Record]) -> list[pa.RecordBatch]:
        """Return the columns of Kafka records, as at most one batch."""
        n = len(records)
        if not n:
            return []
        first = self._next_offsets.get((topic, partition), 0)
        self._next_offsets[topic, partition] = first + n
        times = np.array([1000 * one.time for one in records])
        columns = {
            "key": pa.array([one.key for one in records], pa.binary()),
            "value": pa.array([one.value for one in records], pa.binary()),
            "topic": pa.repeat(topic, n),
            "partition": pa.array(np.full(n, partition, np.int32)),
            "offset": pa.array(np.arange(first, first + n)),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
        }
        return [pa.RecordBatch.from_pydict(columns)]
