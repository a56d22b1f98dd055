"""The whole way of the bytes without Spark and Kafka: what the service does in one batch, as a loop.

The same parsers, frames, monitors, deltas and renderers as in `bmq.job`, so that scenarios and random
programs meet all of it in milliseconds. What is left out is Spark's plan and the state store.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bmq.monitor.monitor import Monitor
from bmq.records import Crossings, Feed
from bmq.records.joining import concat_readings
from bmq.wire.control import parse_command
from bmq.wire.events import render_crossings
from bmq.wire.frames import pack_commands, pack_readings, unpack_commands, unpack_readings
from bmq.wire.readings import Decoder
from bmq.wire.replies import render_replies
from bmq.wire.state import pack_delta, unpack_delta

ControlRecord = tuple[str, bytes | None]
RECORD_TIME = 1_700_000_000_000  # of every record; nothing but latency follows from it


class PureService:
    """Monitors of all shards, each with a standby that follows it by deltas.

    What it writes is kept in ``replies``, ``events`` (both as JSON objects) and ``dead`` (topic, code).

    Parameters
    ----------
    feeds : feed name -> Feed.
    n_shards : into how many parts the streams are divided.
    silent_tombstones_before : where the control topic ended when the "checkpoint" was made.
    """

    def __init__(self, feeds: Mapping[str, Feed], n_shards: int = 2, silent_tombstones_before: int = 0) -> None:
        self.replies: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.dead: list[tuple[str, str]] = []
        self.n_late = 0
        self.next_offset = 0
        self._feeds = feeds
        self._decoders = {name: Decoder(feed) for name, feed in feeds.items()}
        self._silent_tombstones_before = silent_tombstones_before
        self._monitors = [self._new_monitor() for _ in range(n_shards)]
        self._standbys = [self._new_monitor() for _ in range(n_shards)]

    def run_batch(self, commands: Sequence[ControlRecord], values: Mapping[str, Sequence[bytes | None]]) -> None:
        """Process control records, then the record values of each feed, as one batch."""
        parsed = [
            parse_command(query_id.encode(), value, offset, self._feeds, "bmq.")
            for offset, (query_id, value) in enumerate(commands, start=self.next_offset)
        ]
        self.next_offset += len(commands)
        command_frame = pack_commands(parsed)
        reading_frames = {feed: self._decode(feed, of_feed) for feed, of_feed in values.items()}
        for shard, monitor in enumerate(self._monitors):
            applied = monitor.apply(unpack_commands(command_frame))
            self._tell(applied.crossings)
            if shard == 0:  # every shard has every command
                replies = render_replies(applied.replies, topic="replies", batch=0, feed_offsets={})
                self.replies += _json_values(replies)
            for feed, frames in reading_frames.items():
                readings = unpack_readings(frames[shard])
                if len(readings):
                    advanced = monitor.advance(feed, concat_readings([readings]))
                    self.n_late += advanced.n_late
                    self._tell([advanced.crossings])
            delta = pack_delta(monitor.take_delta())
            self._standbys[shard].apply_delta(unpack_delta(delta))

    def restart_from_snapshot(self) -> None:
        """Go on with monitors that were made from snapshots."""
        self._monitors = [self._copy(monitor) for monitor in self._monitors]

    def restart_from_deltas(self) -> None:
        """Go on with the standbys, as a worker whose replica caught up; the others follow from now on."""
        self._monitors, self._standbys = self._standbys, self._monitors

    def check(self) -> None:
        """Check the invariants of every monitor and standby."""
        for monitor in [*self._monitors, *self._standbys]:
            monitor._check()

    def _new_monitor(self) -> Monitor:
        return Monitor(self._feeds, self._silent_tombstones_before)

    def _copy(self, monitor: Monitor) -> Monitor:
        copy = self._new_monitor()
        for page in monitor.snapshot():
            copy.apply_delta(unpack_delta(pack_delta(page)))
        return copy

    def _decode(self, feed: str, values: Sequence[bytes | None]) -> list[bytes]:
        keys = pa.nulls(len(values), pa.binary())
        times = np.full(len(values), RECORD_TIME, dtype=np.int64)
        decoded = self._decoders[feed].decode(keys, pa.array(values, pa.binary()), times)
        self.dead += [(self._feeds[feed].topic, str(bad.code)) for bad in decoded.bad]
        return pack_readings(decoded.readings, len(self._monitors))

    def _tell(self, crossings: Sequence[Crossings]) -> None:
        for of_feed in crossings:
            if len(of_feed):
                batch = render_crossings(of_feed, self._feeds[of_feed.feed], topic="events")
                self.events += _json_values(batch)


def _json_values(messages: pa.RecordBatch) -> list[dict[str, Any]]:
    return [json.loads(value) for value in messages.column("value").to_pylist()]
