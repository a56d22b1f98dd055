"""What need not wait for the first start: jars downloaded, kernels compiled. Run when an image is built.

numba compiles a kernel for the types that it is first called with and keeps it (`bmq.kernels` says where). So
readings go the whole way through decoder, frames, monitor and renderer, for each format and each number of
dimensions that leads to other kernels. No kernel is known here by name: a test finds one left cold.
"""

import json
import time
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from bmq.index.stream_table import INITIAL_STREAMS
from bmq.jars import spark_jars
from bmq.monitor.monitor import Monitor
from bmq.records import Clock, Crossings, Feed, Format, IndexKind
from bmq.records.joining import concat_readings
from bmq.wire.control import parse_command
from bmq.wire.events import render_crossings
from bmq.wire.frames import pack_readings, unpack_readings
from bmq.wire.lateness import LateReadings
from bmq.wire.readings import Decoder

_FEEDS = {
    feed.name: feed
    for feed in (
        Feed("line", "line", "id", ("x",), event_time="ts"),
        Feed("plane", "plane", "id", ("x", "y"), event_time="ts"),
        Feed("kinds", "kinds", "id", ("x", "y"), event_time="ts", attributes=("other",), stream_ttl_ms=1_000),
        Feed("held", "held", "id", ("x",), event_time="ts", max_lateness_ms=1_000),
        Feed("space", "space", "id", ("x", "y", "z")),
        Feed("sheet", "sheet", "@key", ("x",), event_time="ts", format=Format.CSV),
        # What `auto` may choose later.
        *(
            Feed(
                f"{kind}-{n_dims}", f"{kind}-{n_dims}", "id", ("x", "y", "z", "w")[:n_dims], event_time="ts", index=kind
            )
            for kind in IndexKind
            for n_dims in (1, 2, 3, 4)
            if kind.fits(n_dims)
        ),
    )
}
# Enough streams for a table to grow and hash anew; each has two readings. Once, since all tables are alike.
_N_GROWING = 6 * INITIAL_STREAMS
# By turns inside and outside the first region, and each way to write a time.
_POSITIONS = (5.0, 50.0, 5.0, 500.0)
_TIMES = (1_700_000_000_000, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5Z", "2026-01-01T01:00:02+01:00")


def main() -> None:
    """Download the jars that Spark needs and compile the kernels."""
    spark_jars(print)
    start = time.monotonic()
    n_events = warm_up()
    print(f"Compiled the kernels in {time.monotonic() - start:.0f} s ({n_events} events on the way).")


def warm_up() -> int:
    """Send readings through every format and engine, and return how many events came out."""
    monitor = Monitor(_FEEDS)
    n_events = 0
    for feed in _FEEDS.values():
        # The second round edits queries over streams that are inside, few of many, so that an index that has room
        # for a few takes them in place; the third deletes all.
        scopes = _scopes(feed)
        edited = dict(islice(scopes.items(), 2))
        for hi, commanded in ((10.0, scopes), (60.0, edited), (None, scopes)):
            for query_id, scope in commanded.items():
                definition = None if hi is None else _definition(feed, hi, scope)
                command = parse_command(query_id.encode(), definition, 0, _FEEDS, "")
                n_events += _render(monitor.apply([command]).crossings)
            n_events += _advance(monitor, feed, len(_POSITIONS))
    n_events += _advance(monitor, next(iter(_FEEDS.values())), _N_GROWING)
    n_events += _put_every_option(monitor)
    restored = Monitor(_FEEDS)
    for page in [*monitor.snapshot(), monitor.take_delta()]:
        restored.apply_delta(page)
    return n_events


def _put_every_option(monitor: Monitor) -> int:
    """Put queries of every sort over one feed, move many streams, edit the queries, delete them, and put them again."""
    feed = _FEEDS["kinds"]
    box = {"box": {"x": [0, 10], "y": [0, 10]}}
    sorts: dict[str, dict[str, Any]] = {
        "noise": {"stay_for": "1ms", "away_for": "1ms", "cooldown": "1ms", "max_events": 9, "region": box},
        "silent": {"cooldown": "1ms", "initial": "silent", "region": {"box": {"x": [0, None]}}},
        "exit": {"exit_region": {"box": {"x": [-1, 11], "y": [-1, 11]}}, "region": box},
        "pass": {"passes": True, "region": box},
        "where": {"where": {"other": None}, "region": box},
        "life": {"ttl": "1d", "stream_ttl": "500ms", "region": box},
        "polygon": {"passes": True, "region": {"polygon": [[0, 0], [10, 0], [0, 10]]}},
        "circle": {"passes": True, "region": {"circle": {"center": [5, 5], "radius": 2}}},
        **{
            pattern: {"kind": "transition", "pattern": pattern, "within": "1ms", "region": box}
            for pattern in ("in_then_out", "in_not_out")
        },
    }
    n_events = 0
    for edit in ({}, {"tags": {"edited": True}}, None, {}):
        commands = []
        for query_id, options in sorts.items():
            definition = {"kind": "border", "feed": feed.name, **options, **(edit or {})}
            value = None if edit is None else json.dumps(definition).encode()
            commands.append(parse_command(query_id.encode(), value, 0, _FEEDS, ""))
        n_events += _render(monitor.apply(commands).crossings)
        n_events += _advance(monitor, feed, _N_GROWING)
        monitor.take_delta()
    return n_events


def _scopes(feed: Feed) -> dict[str, list[str] | None]:
    return {f"{feed.name}-one": ["s0"], **{f"{feed.name}-{i}": None for i in range(24)}}


def _definition(feed: Feed, hi: float, streams: list[str] | None) -> bytes:
    box = {dimension: [0, hi] for dimension in feed.dimensions}
    scope = {} if streams is None else {"streams": streams}
    return json.dumps({"kind": "border", "feed": feed.name, "region": {"box": box}} | scope).encode()


def _advance(monitor: Monitor, feed: Feed, n: int) -> int:
    keys = pa.array([_stream_id(i).encode() for i in range(n)], pa.binary())
    values = pa.array([_record(feed, i) for i in range(n)], pa.binary())
    record_times = np.full(n, 1_700_000_000_000, dtype=np.int64)
    readings = Decoder(feed).decode(keys, values, record_times).readings
    if feed.max_lateness_ms:
        readings, _ = LateReadings(feed.max_lateness_ms).drop(readings, 0)
    frames = [unpack_readings(frame) for frame in pack_readings(readings, n_shards=2)]
    times = readings.event_times
    advanced = monitor.advance(feed.name, concat_readings(frames), Clock(int(times.max()), int(times.min())))
    return _render([] if advanced.crossings is None else [advanced.crossings])


def _stream_id(i: int) -> str:
    return f"s{i // 2}"


def _record(feed: Feed, i: int) -> bytes:
    time_text = _TIMES[i % len(_TIMES)]
    values = [_POSITIONS[i % len(_POSITIONS)]] * len(feed.dimensions)
    if feed.format is Format.CSV:
        return ",".join(map(str, [time_text, *values])).encode()
    fields = {"id": _stream_id(i), "ts": time_text, "other": [None, {"é": "\n"}]}
    return json.dumps(fields | dict(zip(feed.dimensions, values, strict=True))).encode()


def _render(of_feeds: list[Crossings]) -> int:
    for crossings in of_feeds:
        render_crossings(crossings, _FEEDS[crossings.feed], topic="events", layout="crossing")
        render_crossings(crossings, _FEEDS[crossings.feed], topic="events", layout="reading")
    return sum(len(crossings) for crossings in of_feeds)


if __name__ == "__main__":
    main()
