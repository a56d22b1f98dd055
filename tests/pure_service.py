"""The whole way of the bytes without Spark and Kafka: what the service does in one batch, as a loop.

The same decode tasks, frames, monitors, deltas and renderers as in the service, so that scenarios and random programs
meet all of it in milliseconds. What is left out is Spark's plan, which is two calls here, and the state store.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from bmq.job.frame_rows import FRAME_SCHEMA
from bmq.job.outcome import ShardResult, run_batch
from bmq.job.plan import Plan
from bmq.job.received import Frames, read_frames, rows_of
from bmq.job.rendering import render_events
from bmq.monitor.monitor import Monitor
from bmq.monitor.rescale import rescale
from bmq.monitor.widening import widen
from bmq.records import Feed, Installation
from bmq.wire.marks import render_mark
from bmq.wire.replies import render_replies
from bmq.wire.state_bytes import pack_delta, unpack_delta
from tests.blocks import decode_control, decode_readings

ControlRecord = tuple[str, bytes | None]
Values = Sequence[bytes | None]
Layout = Literal["crossing", "reading"]
RECORD_TIME = 1_700_000_000_000
CONTROL, CLOCK, EVENTS = "control", "clock", "events"


class PureService:
    """Monitors of all shards, each with a standby that follows it by deltas.

    What it writes is kept in ``replies``, ``events`` (both as JSON objects) and ``dead`` (topic, code).

    Parameters
    ----------
    feeds : feed name -> Feed; or an installation, if its rules matter.
    n_shards : into how many parts the streams are divided.
    silent_tombstones_before : where the control topic ended when the "checkpoint" was made.
    layout : of the events.
    record_time : the timestamp of every record, epoch ms; latency and `max_future` follow from it.
    """

    def __init__(
        self,
        feeds: Mapping[str, Feed] | Installation,
        n_shards: int = 2,
        silent_tombstones_before: int = 0,
        layout: Layout = "crossing",
        record_time: int = RECORD_TIME,
    ) -> None:
        self.replies: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.dead: list[tuple[str, str]] = []
        self.n_late = self.n_suppressed = 0
        self.next_offset = 0
        self._record_time = record_time
        installation = feeds if isinstance(feeds, Installation) else Installation(feeds, "bmq.")
        self._plan = _plan(installation, n_shards, silent_tombstones_before, layout)
        self._next_offsets: dict[tuple[str, int], int] = {}
        self._n_marks = 0
        self._monitors = [self._new_monitor(shard) for shard in range(n_shards)]
        self._standbys = [self._new_monitor(shard) for shard in range(n_shards)]

    def run_batch(
        self,
        commands: Sequence[ControlRecord],
        values: Mapping[str, Values | Mapping[int, Values]],
        marks: Iterable[tuple[str, int]] = (),
    ) -> None:
        """Process one batch.

        Parameters
        ----------
        commands : control records.
        values : feed -> the record values of its partition 0, or of each partition.
        marks : (feed, how far its clock has come without readings).
        """
        rows = [
            *decode_control(self._plan)(self._control_records(commands)),
            *decode_control(self._plan)(self._mark_records(marks)),
        ]
        for feed, of_feed in values.items():
            partitions = of_feed if isinstance(of_feed, Mapping) else {0: of_feed}
            for partition, of_partition in partitions.items():
                rows += decode_readings(self._plan)(self._feed_records(feed, partition, of_partition))
        # Spark promises no order between the rows that one shard gets.
        shuffled = pa.Table.from_batches(rows[::-1], FRAME_SCHEMA).to_pandas()
        replies = []
        for shard, monitor in enumerate(self._monitors):
            frames = read_frames(rows_of([shuffled[shuffled["shard"] == self._plan.shard_keys[shard]]]))
            result = run_batch(monitor, frames, self._plan.feeds)
            replies.append(result.replies)
            self._take(frames, result)
            delta = pack_delta(monitor.take_delta())
            self._standbys[shard].apply_delta(unpack_delta(delta))
        # Every shard has every command, so one may answer for all.
        assert all(sorted(map(repr, of_shard)) == sorted(map(repr, replies[0])) for of_shard in replies)
        self.replies += _json_values(render_replies(replies[0], topic="replies", batch=0, feed_offsets={}))

    def restart_from_snapshot(self) -> None:
        """Go on with monitors that were made from snapshots."""
        self._monitors = [self._copy(shard, monitor) for shard, monitor in enumerate(self._monitors)]

    def restart_from_deltas(self) -> None:
        """Go on with the standbys, as a worker whose replica caught up; the others follow from now on."""
        self._monitors, self._standbys = self._standbys, self._monitors

    def rescale(self, n_shards: int) -> None:
        """Go on with another number of shards."""
        self._take_over(replace(self._plan, shard_keys=_shard_keys(n_shards)), {})

    def upgrade(self) -> None:
        """Go on with one more attribute of every feed, which no record has."""
        installation = self._plan.installation
        feeds = {
            name: replace(feed, attributes=(*feed.attributes, f"added-{len(feed.attributes)}"))
            for name, feed in installation.feeds.items()
        }
        self._take_over(replace(self._plan, installation=replace(installation, feeds=feeds)), dict.fromkeys(feeds, 1))

    def _take_over(self, plan: Plan, n_new: Mapping[str, int]) -> None:
        """Go on by another plan, with the state as a new checkpoint would hold it."""
        snapshots = [monitor.snapshot() for monitor in self._monitors]
        self._plan = plan
        self._monitors = [self._new_monitor(shard) for shard in range(plan.n_shards)]
        self._standbys = [self._new_monitor(shard) for shard in range(plan.n_shards)]
        for shard, page in rescale(snapshots, plan.n_shards):
            packed = pack_delta(widen(page, n_new))
            self._monitors[shard].apply_delta(unpack_delta(packed))
            self._standbys[shard].apply_delta(unpack_delta(packed))

    def check(self) -> None:
        """Check the invariants of every monitor."""
        for monitor in self._monitors:
            monitor._check()

    def check_standbys(self) -> None:
        """Check the invariants of every standby."""
        for standby in self._standbys:
            standby._check()

    def _take(self, frames: Frames, result: ShardResult) -> None:
        self.n_late += sum(result.late.values())
        self.n_suppressed += sum(result.suppressed.values())
        for letters in frames.dead_letters:
            feeds, codes = letters["feed"].to_pylist(), letters["code"].to_pylist()
            self.dead += [(self._plan.feeds[feed].topic, code) for feed, code in zip(feeds, codes, strict=True)]
        for messages in render_events(self._plan, result):
            self.events += _json_values(messages)

    def _new_monitor(self, shard: int) -> Monitor:
        return Monitor(self._plan.installation, self._plan.silent_tombstones_before, shard, self._plan.n_shards)

    def _copy(self, shard: int, monitor: Monitor) -> Monitor:
        copy = self._new_monitor(shard)
        for page in monitor.snapshot():
            copy.apply_delta(unpack_delta(pack_delta(page)))
        return copy

    def _control_records(self, commands: Sequence[ControlRecord]) -> list[pa.RecordBatch]:
        first, self.next_offset = self.next_offset, self.next_offset + len(commands)
        keys = [query_id.encode() for query_id, _ in commands]
        return self._records(CONTROL, 0, first, keys, [value for _, value in commands])

    def _mark_records(self, marks: Iterable[tuple[str, int]]) -> list[pa.RecordBatch]:
        values = [render_mark(feed, event_time) for feed, event_time in marks]
        first, self._n_marks = self._n_marks, self._n_marks + len(values)
        return self._records(CLOCK, 0, first, [None] * len(values), values)

    def _feed_records(self, feed: str, partition: int, values: Values) -> list[pa.RecordBatch]:
        first = self._next_offsets.get((feed, partition), 0)
        self._next_offsets[feed, partition] = first + len(values)
        return self._records(self._plan.feeds[feed].topic, partition, first, [None] * len(values), values)

    def _records(self, topic: str, partition: int, first: int, keys: Values, values: Values) -> list[pa.RecordBatch]:
        """Return the columns of Kafka records, as at most one batch."""
        n = len(values)
        if not n:
            return []
        columns = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.repeat(topic, n),
            "partition": pa.array(np.full(n, partition, np.int32)),
            "offset": pa.array(np.arange(first, first + n)),
            "timestamp": pa.array(np.full(n, 1000 * self._record_time), pa.timestamp("us", "UTC")),
        }
        return [pa.RecordBatch.from_pydict(columns)]


def _plan(installation: Installation, n_shards: int, silent_tombstones_before: int, layout: Layout) -> Plan:
    return Plan(
        run_id="pure",
        installation=installation,
        shard_keys=_shard_keys(n_shards),
        start_offsets={},
        silent_tombstones_before=silent_tombstones_before,
        replies_topic="replies",
        events_topic=EVENTS,
        dead_letter_topic="dead-letter",
        clock_topic=CLOCK,
        membership_topic=None,
        events_key="stream_id",
        events_layout=layout,
        client_options={},
        delivery_id="bmq-test",
        markers_topic=None,
    )


def _shard_keys(n_shards: int) -> tuple[int, ...]:
    return tuple(range(70, 70 + n_shards))  # a key is no number of a shard


def _json_values(messages: pa.RecordBatch) -> list[dict[str, Any]]:
    return [json.loads(value) for value in messages.column("value").to_pylist()]
