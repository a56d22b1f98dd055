"""Work that can be done before the first start: download the jars, compile the kernels, archive the JVM's classes.

Run it to build an image.

numba compiles a kernel for the types of its first call and caches the result (`bmq.kernels` describes where). So
readings go the whole way through decoder, frames, monitor and renderer, for each format and each number of dimensions
that needs other kernels. This module names no kernel; a test finds kernels that the warm-up does not compile.
"""

import gc
import json
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from itertools import islice, product
from typing import Any

import numpy as np
import pyarrow as pa

from bmq.broker.jars import spark_jars
from bmq.index.match.adaptive_match import make_kind
from bmq.index.match.match_costs import MatchKind
from bmq.index.stream_table import INITIAL_STREAMS
from bmq.job.decode import with_partition
from bmq.job.kernel_list import list_loaded, load_listed
from bmq.kafka_io.block_producer import produce_no_messages
from bmq.kafka_io.range_reader import read_no_messages
from bmq.monitor.monitor import Monitor
from bmq.records import Clock, Crossings, Feed, Format, IndexKind, Installation, JoinedPairs
from bmq.records.column_records import concat
from bmq.wire.control import parse_command
from bmq.wire.event_messages import render_crossings
from bmq.wire.frames import pack_readings, unpack_readings
from bmq.wire.join_event_messages import render_pairs
from bmq.wire.reading_lists import ListDecoder
from bmq.wire.readings import Decoder

_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "fields": [{"name": "id", "type": "string"}, {"name": "ts", "type": "string"}, {"name": "x", "type": "double"}],
    }
)
_FEEDS_BY_FORM = {
    feed.name: feed
    for feed in (
        Feed("line", "line", "id", ("x",), event_time="ts"),
        Feed("plane", "plane", "id", ("x", "y"), event_time="ts"),
        Feed("kinds", "kinds", "id", ("x", "y"), event_time="ts", attributes=("other",), stream_ttl_ms=1_000),
        Feed("held", "held", "id", ("x",), event_time="ts", max_lateness_ms=1_000),
        Feed("space", "space", "id", ("x", "y", "z")),
        Feed("sheet", "sheet", "@key", ("x",), event_time="ts", format=Format.CSV),
        Feed("lists", "lists", "id", ("points.x",), event_time="ts", readings="points"),
        Feed("container", "container", "id", ("x",), event_time="ts", format=Format.AVRO, schema=_SCHEMA),
        *(
            Feed(side, side, "id", ("x",), event_time="ts", attributes=("other",), stream_ttl_ms=1_000, join=True)
            for side in ("left", "right")
        ),
    )
}
# One for each structure, which `auto` may choose later. Their events are like those of the others, so nobody renders
# them: this runs at each start, too, only to load the kernels.
_FEEDS_BY_INDEX = {
    feed.name: feed
    for feed in (
        Feed(f"{kind}-{n_dims}", f"{kind}-{n_dims}", "id", ("x", "y", "z", "w")[:n_dims], event_time="ts", index=kind)
        for kind in IndexKind
        for n_dims in (1, 2, 3, 4)
        if kind.fits(n_dims)
    )
}
_FEEDS = _FEEDS_BY_FORM | _FEEDS_BY_INDEX
# Enough streams to make a table grow and rehash; each stream has two readings. One feed is enough, as tables are alike.
_N_GROWING = 6 * INITIAL_STREAMS
_N_LEVELS = 90  # several queries of each sort in each structure
_N_MANY = 200  # enough readings for a search of all together instead of one by one
# Alternately inside and outside the first region, with each way to write a time.
_POSITIONS = (5.0, 50.0, 5.0, 500.0)
_TIMES = (1_700_000_000_000, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5Z", "2026-01-01T01:00:02+01:00")


def main() -> None:
    """Download the jars that Spark needs, compile the kernels, and archive the classes of Spark's JVM."""
    spark_jars(print)
    start = time.monotonic()
    n_events = warm_up()
    print(f"Compiled the kernels in {time.monotonic() - start:.0f} s ({n_events} events on the way).", flush=True)
    # The list of what was compiled is written by a process that compiles nothing.
    subprocess.run([sys.executable, "-c", "from bmq.job.warmup import load_for_forks as load; load()"], check=True)
    # It may fail: it says why, and a start needs no archive.
    subprocess.run([sys.executable, "-m", "bmq.job.archiving"], check=False)


def load_for_forks() -> None:
    """Load all kernels, for processes that are forked from this one.

    Otherwise the first garbage collection in such a process would touch, and so copy, every object that was made here.
    """
    if not load_listed():
        warm_up()
        list_loaded()
    gc.collect()
    gc.freeze()


def warm_up() -> int:
    """Send readings through every format and engine, and return the number of events."""
    monitor = Monitor(Installation(_FEEDS))
    n_events = 0
    read_no_messages()
    produce_no_messages()
    for feed in _FEEDS.values():
        # The second round edits queries while streams are inside. It edits few of many queries, so that an index with
        # spare room accepts them in place. The third round deletes all, or a few where nobody sends readings later.
        scopes = _scopes(feed)
        some = dict(islice(scopes.items(), 2))
        for hi, commanded in ((10.0, scopes), (60.0, some), (None, scopes if feed.name in _FEEDS_BY_FORM else some)):
            n_events += _apply(
                monitor,
                {
                    query_id: None if hi is None else _definition(feed, hi, scope)
                    for query_id, scope in commanded.items()
                },
            )
            n_events += _advance(monitor, feed, len(_POSITIONS))
    n_events += _advance(monitor, next(iter(_FEEDS.values())), _N_GROWING)
    n_events += _put_every_option(monitor)
    for name in ("line", "kinds", "space"):
        n_events += _put_levels(monitor, _FEEDS[name])
    n_events += _search_every_way()
    n_events += _put_joins(monitor)
    restored = Monitor(Installation(_FEEDS))
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
        n_events += _apply(
            monitor,
            {
                query_id: None if edit is None else {"kind": "border", "feed": feed.name, **options, **edit}
                for query_id, options in sorts.items()
            },
        )
        n_events += _advance(monitor, feed, _N_GROWING)
        monitor.take_delta()
    return n_events


def _put_levels(monitor: Monitor, feed: Feed) -> int:
    """Put many match and select queries over one feed, send few readings and many, and delete the queries."""
    box = {dimension: [0, 60] for dimension in feed.dimensions}
    asked = {"x": [0, 60]} | {attribute: [0, None] for attribute in feed.attributes}
    definitions: list[dict[str, Any]] = [
        {"kind": "match", "region": {"box": box}},
        {"kind": "match", "region": {"box": {"x": [None, 10]}}},
        {"kind": "select", "any": [asked, {"x": [40, None]}]},
    ]
    queries = {f"level-{i}": {**definitions[i % 3], "feed": feed.name, "tags": {"n": i}} for i in range(_N_LEVELS)}
    n_events = _apply(monitor, queries)
    for n in (len(_POSITIONS), _N_MANY):
        n_events += _advance(monitor, feed, n)
    return n_events + _apply(monitor, dict.fromkeys(queries))


def _search_every_way() -> int:
    """Search every structure for match queries with one value and with many."""
    n_found = 0
    for n_dims, kind in product((1, 2, 3), MatchKind):
        if not kind.fits(n_dims):
            continue
        lo = np.random.default_rng(0).uniform(0, 1, (n_dims, _N_LEVELS))
        index = make_kind(n_dims, kind)
        index.register(np.arange(_N_LEVELS, dtype=np.int32), lo, lo + 0.5)
        index.deregister(np.zeros(1, dtype=np.int32))
        n_found += sum(index.stab(np.full((n_dims, n), 0.7)).rows.size for n in (1, _N_MANY))
    return n_found


def _put_joins(monitor: Monitor) -> int:
    """Put joins of every sort, send few readings and many to both feeds, edit the joins, and delete them."""
    band = {"kind": "band_join", "left": "left", "right": "right", "on": {"left": "x", "right": "x"}, "band": [-1, 1]}
    alike = {"equal": {"left": "id", "right": "id"}}
    windows: list[dict[str, Any]] = [
        {"left": {"feed": "left", "window": size}, "right": {"feed": "right", "window": size}} for size in ("10s", 9)
    ]
    conditions = [
        {"band": [["left.x", "right.x", -1, 1]]},
        {"left.x": [0, 60], "right.x": [0, 60]},
        {"band": [["left.x", "right.other", 0, None]], "left.other": [0, None]},
    ]
    sorts: dict[str, dict[str, Any]] = {
        "pairs": band,
        "queries": {**band, "report": "queries"},
        "equal": {**band, **alike},
        "where": {**band, "where": {"left.other": None}},
        "time": {"kind": "window_join", **windows[0], "any": conditions},
        "count": {"kind": "window_join", **windows[1], "any": conditions[:1], **alike},
        "box": {"kind": "window_join", **windows[1], "any": conditions[1:2]},
    }
    n_events = 0
    for edit in ({}, {"tags": {"edited": True}}, {"enabled": False}, {}):
        n_events += _apply(monitor, {query_id: {**sort, **edit} for query_id, sort in sorts.items()})
        for n in (len(_POSITIONS), _N_MANY):
            n_events += sum(_advance(monitor, _FEEDS[side], n) for side in ("left", "right"))
        monitor.take_delta()
    return n_events + _apply(monitor, dict.fromkeys(sorts))


def _apply(monitor: Monitor, definitions: Mapping[str, Mapping[str, Any] | None]) -> int:
    commands = [
        parse_command(query_id.encode(), None if one is None else json.dumps(one).encode(), 0, Installation(_FEEDS))
        for query_id, one in definitions.items()
    ]
    applied = monitor.apply(commands)
    return _render(applied.crossings) + _render_pairs(applied.pairs)


def _scopes(feed: Feed) -> dict[str, list[str] | None]:
    return {f"{feed.name}-one": ["s0"], **{f"{feed.name}-{i}": None for i in range(24)}}


def _definition(feed: Feed, hi: float, streams: list[str] | None) -> dict[str, Any]:
    box = {dimension: [0, hi] for dimension in feed.dimensions}
    scope = {} if streams is None else {"streams": streams}
    return {"kind": "border", "feed": feed.name, "region": {"box": box}} | scope


def _advance(monitor: Monitor, feed: Feed, n: int) -> int:
    keys, values = _records(feed, n)
    record_times = np.full(n, 1_700_000_000_000, dtype=np.int64)
    decoder = Decoder(feed) if feed.readings is None else ListDecoder(feed)
    readings = decoder.decode(keys, values, record_times).readings
    if feed.max_lateness_ms:
        readings = with_partition(readings, 0)
    frames = [unpack_readings(frame) for frame in pack_readings(readings, n_shards=2)]
    times = readings.event_times
    advanced = monitor.advance(feed.name, concat(frames), Clock(int(times.max()), int(times.min())))
    n_events = _render(advanced.crossings)
    if not feed.join:
        return n_events
    (frame,) = pack_readings(with_partition(readings, 0), n_shards=1)
    joined = monitor.join({feed.name: concat([unpack_readings(frame)])})
    return n_events + _render_pairs(joined.pairs)


@cache
def _records(feed: Feed, n: int) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return keys and values of n records; kept, because to make many takes longer than to decode them."""
    keys = pa.array([_stream_id(i).encode() for i in range(n)], pa.binary())
    return keys, pa.array([_record(feed, i) for i in range(n)], pa.binary())


def _stream_id(i: int) -> str:
    return f"s{i // 2}"


def _record(feed: Feed, i: int) -> bytes:
    time_text = _TIMES[i % len(_TIMES)]
    values = [_POSITIONS[i % len(_POSITIONS)]] * len(feed.dimensions)
    if feed.format is Format.CSV:
        return ",".join(map(str, [time_text, *values])).encode()
    if feed.format is Format.AVRO:
        texts = (text.encode() for text in (_stream_id(i), str(_TIMES[1 + i % 3])))  # the first one is no text
        # The length of a short text is one byte in Avro, twice the number.
        return b"".join(bytes([2 * len(text)]) + text for text in texts) + struct.pack("<d", *values)
    fields: dict[str, Any] = {"id": _stream_id(i), "ts": time_text, "other": [None, {"é": "\n"}]}
    if feed.readings is not None:
        return json.dumps(fields | {feed.readings: [{"x": values[0]}]}).encode()
    return json.dumps(fields | dict(zip(feed.dimensions, values, strict=True))).encode()


def _render(of_feeds: list[Crossings]) -> int:
    for crossings in of_feeds:
        if (feed := _FEEDS_BY_FORM.get(crossings.feed)) is not None:
            render_crossings(crossings, feed, topic="events", layout="crossing")
            render_crossings(crossings, feed, topic="events", layout="reading")
    return sum(len(crossings) for crossings in of_feeds)


def _render_pairs(of_feeds: list[JoinedPairs]) -> int:
    for pairs in of_feeds:
        render_pairs(pairs, _FEEDS, topic="events")
    return sum(len(pairs) for pairs in of_feeds)


if __name__ == "__main__":
    main()
