"""The program: feeds of every sort, and batches of commands, readings and clock marks.

Everything is fixed, so two runs give the same bytes. Add new batches at the end: what is recorded of the batches before
must stay as it is (`compare.refusal`).
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bmq.records import Feed, Format, IndexKind
from tests.golden.queries import EDITS, EVERY_QUERY, SILENT, WRONG_COMMANDS, as_command, at

Command = tuple[bytes | None, bytes | None]

_ATTRIBUTES = ("group", "size")
FEEDS = {
    feed.name: feed
    for feed in (
        Feed("line", "bmq.line", "id", ("x",), event_time="ts"),
        Feed("tagged", "tagged", "id", ("x",), event_time="ts", attributes=_ATTRIBUTES),
        Feed("plane", "plane", "id", ("x", "y"), event_time="ts", attributes=("group",)),
        Feed("cube", "cube", "id", ("x", "y", "z"), index=IndexKind.SCAN),
        Feed("globe", "globe", "id", ("lon", "lat"), event_time="ts", event_time_unit=None, lonlat=True),
        Feed("sheet", "sheet", "@key", ("x",), event_time="ts", format=Format.CSV),
        Feed("table", "table", "id", ("x",), event_time="ts", format=Format.CSV, attributes=("group",)),
        Feed("tardy", "tardy", "id", ("x",), event_time="ts", attributes=("group",), max_lateness_ms=5_000),
        Feed("short", "short", "id", ("x",), event_time="ts", stream_ttl_ms=6_000, max_future_ms=3_600_000),
        Feed("left", "left", "id", ("price",), event_time="ts", attributes=_ATTRIBUTES, join=True),
        Feed("right", "right", "id", ("price",), event_time="ts", attributes=_ATTRIBUTES, join=True),
        Feed("slow", "slow", "id", ("price",), event_time="ts", max_lateness_ms=5_000, join=True),
        Feed("brief", "brief", "id", ("price",), event_time="ts", stream_ttl_ms=8_000, join=True, idle_advance_ms=500),
    )
}
# The @key feed takes its stream from the record; others have a key that means nothing.
_GROUPS = ("g1", "g2", None)


class Record(NamedTuple):
    """One record of a feed; ``time`` is its own timestamp, epoch milliseconds."""

    key: bytes | None
    value: bytes | None
    time: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch brings.

    Attributes
    ----------
    readings : feed -> partition -> records.
    marks : feed -> how far its clock has come without readings, epoch milliseconds.
    """

    commands: Sequence[Command] = ()
    readings: Mapping[str, Mapping[int, Sequence[Record]]] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)


def record(
    feed: str, stream: str, seconds: float, values: Sequence[float], group: object = None, size: object = None
) -> Record:
    """Return a reading as the record that carries it."""
    of = FEEDS[feed]
    time = at(seconds)
    if of.format is Format.CSV:
        named = () if of.stream_id == "@key" else (stream,)
        cells = [*named, time, *values, *([] if group is None or not of.attributes else [17])]
        return Record(stream.encode(), ",".join(map(str, cells)).encode(), time)
    fields: dict[str, object] = {"id": stream, "ts": time, **dict(zip(of.dimensions, values, strict=False))}
    fields |= {name: value for name, value in (("group", group), ("size", size)) if name in of.attributes}
    return Record(None, json.dumps(fields, ensure_ascii=False).encode(), time)


def moves(feed: str, begin: float, n: int, step: int) -> dict[int, list[Record]]:
    """Return n readings of five streams in two partitions, one a second, that cross borders by ``step`` at a time."""
    records: dict[int, list[Record]] = {0: [], 1: []}
    for i in range(n):
        values = [float((step * (i + 3 * k)) % 23 - 4) for k in range(len(FEEDS[feed].dimensions))]
        if FEEDS[feed].lonlat:
            values = [178.5 + values[0] / 4, values[1] / 2]
            values[0] -= 360 if values[0] >= 180 else 0
        stream = f"s{i % 5}" if i % 5 != 4 else 'é"'
        size = [5, 7.5, "5", None][i % 4]
        one = record(feed, stream, begin + i // 2, values, _GROUPS[(i + i // 3) % 3], size)
        records[i % 2].append(one)
    return records


def every_feed(begin: float, n: int, step: int, *names: str) -> dict[str, dict[int, list[Record]]]:
    """Return readings of every feed, or of those named."""
    return {feed: moves(feed, begin, n, step + k) for k, feed in enumerate(names or FEEDS)}


def _raw(*values: bytes | None, key: bytes | None = b"k") -> dict[int, list[Record]]:
    return {1: [Record(key, value, at(30)) for value in values]}


_BAD_RECORDS = {
    "line": _raw(
        None,
        b"{",
        b"\xff",
        b'{"id":"a","ts":1700000000000}',
        b'{"ts":1700000000000,"x":1}',
        b'{"id":"a","ts":1700000000000,"x":"five"}',
        b'{"id":"a","ts":1700000000000,"x":NaN}',
        b'{"id":"a","ts":1700000000000,"x":1e999}',
        b'{"id":"a","ts":"yesterday","x":1}',
        b'{"id":"a","ts":1e300,"x":1}',
        b'{"id":"a","ts":1700000030000,"x":1' + b" " * 1_048_576 + b"}",
        b'{"id":"s1","ts":"2023-11-14T22:13:50.5Z","x":5.5e0}',  # a good one, by the exact decoder
        b'{"id":"","ts":1700000030000,"x":1}',
        b'{"id":7,"ts":1700000030000,"x":1}',
        b'{"id":"\\ud800","ts":1700000030000,"x":1}',
        b'{"id":"a","ts":true,"x":1}',
        b'{"id":"a","ts":"2023-11-14T22:13:50+25:00","x":1}',
        b'{"id":"a","x":1}',
        b"[1]",
    ),
    "globe": _raw(
        b'{"id":"a","ts":1700000030000,"lon":200,"lat":1}', b'{"id":"a","ts":1700000030000,"lon":1,"lat":91}'
    ),
    "sheet": _raw(b"1700000030000,1,2", b"1700000030000,inf", b'1700000030000,"1', key=b"\xfe")
    | {0: [Record(None, b"1700000030000,1", at(30))]},
    "short": _raw(b'{"id":"a","ts":1900000000000,"x":1}'),
    "tagged": _raw(
        b'{"id":"s0","ts":1700000030000,"x":1,"group":{"a":1},"size":1e999}',
        b'{"id":"s0","ts":1700000031000,"x":2,"group":"\\ud800","size":-0.0}',
    ),
}
_LATE = [record("tardy", f"s{i}", seconds, [5.0], "g1") for i, seconds in enumerate((40, 33, 36, 35, 45, 38, 44))]
_LATE_JOINED = [record("slow", f"s{i % 3}", seconds, [4.0 + i]) for i, seconds in enumerate((40, 36, 39, 30, 38))]
# Twice at one time, and there and back within it: ordinals tell them apart.
_AT_ONE_TIME = [record("line", "s1", 41, [x]) for x in (5.0, 20.0, 5.0, 20.0, 5.0, 40.0, -40.0)]
# Twice at one time in a window of a join; and behind the expiry of the stream.
_JOINED_AT_ONE_TIME = [record("left", "s1", 41, [x], "g1", 5) for x in (5.0, 6.0, 7.0)]
_BEHIND_EXPIRY = [record("brief", f"s{i % 2}", 25, [4.0 + i]) for i in range(4)]
_UNKNOWN_BEHIND = {
    feed: {0: [record(feed, f"b{i}", 60 + i, [5.0] * len(FEEDS[feed].dimensions), "g1", 5) for i in range(3)]}
    for feed in ("line", "plane", "tardy", "short", "left", "right", "slow", "brief")
}

BATCHES = (
    Batch([as_command(*query) for query in EVERY_QUERY.items()]),
    Batch((), every_feed(0, 7, 7)),
    Batch(
        [as_command(query_id, EVERY_QUERY[query_id]) for query_id in ("plain", "ttl", "select", "pairs", "windows")],
        every_feed(10, 5, 5),
    ),
    Batch([as_command(*query) for query in (SILENT | EDITS).items()]),
    Batch((), every_feed(18, 5, 11, "line", "tagged", "plane", "tardy", "left", "right", "slow", "brief")),
    Batch(WRONG_COMMANDS),
    Batch((), _BAD_RECORDS),
    Batch((), {}, {"line": at(39), "tardy": at(39), "short": at(39), "slow": at(39), "brief": at(39)}),
    Batch(
        [as_command("closed", None), as_command("equal", None), as_command("named", None)],
        {
            "tardy": {0: _LATE},
            "slow": {0: _LATE_JOINED},
            "line": {0: _AT_ONE_TIME},
            "left": {0: _JOINED_AT_ONE_TIME},
            "brief": {0: _BEHIND_EXPIRY},
        },
    ),
    Batch(
        [as_command(query_id, EVERY_QUERY[query_id]) for query_id in ("closed", "equal", "plain", "half", "off")],
        every_feed(42, 5, 9),
    ),
    Batch((), every_feed(50, 5, 3, "line", "globe", "sheet", "table", "left", "right", "slow", "brief")),
    Batch((), {}, {feed: at(90) for feed in FEEDS}),
    Batch([as_command(query_id, None) for query_id in ("plain", "away", "polygon", "pairs", "counted", "tardy")]),
    Batch((), every_feed(92, 4, 13)),
    # Behind the clock of their feeds: streams without a later reading have a lag.
    Batch([as_command("windows", EVERY_QUERY["windows"])], every_feed(70, 4, 9) | _UNKNOWN_BEHIND),
)


def input_digests() -> list[str]:
    """Return for each batch a digest of all that came in up to it; the feeds are a part of each."""
    digest = hashlib.sha256(repr([_said_options(feed) for feed in FEEDS.values()]).encode())
    digests = []
    for batch in BATCHES:
        digest.update(repr((batch.commands, batch.readings, batch.marks)).encode())
        digests.append(digest.hexdigest()[:16])
    return digests


def _said_options(feed: Feed) -> list[tuple[str, object]]:
    """Return the options that differ from their defaults, so that a new option of feeds leaves the digest alone."""
    options = [(option.name, getattr(feed, option.name), option.default) for option in dataclasses.fields(feed)]
    return [(name, value) for name, value, default in options if value != default]
