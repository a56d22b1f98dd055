"""Frames bring back what was packed, and say so when they are of another build."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from bmq.errors import StateError
from bmq.kernels.tables.hashing import hash_ids, shards_of
from bmq.records import (
    NEVER,
    Attributes,
    Band,
    Command,
    Conjunction,
    Delete,
    Ids,
    Initial,
    JoinQuery,
    JoinSide,
    Kind,
    Pattern,
    Put,
    Readings,
    Refused,
    Region,
    RegionQuery,
    Shape,
    ShapeKind,
)
from bmq.records.column_records import concat
from bmq.wire.frames import (
    pack_commands,
    pack_dead_letters,
    pack_readings,
    unpack_commands,
    unpack_dead_letters,
    unpack_readings,
)

QUERY = RegionQuery(
    "q",
    version=18,
    feed="plane",
    region=Region((-math.inf, 0.1), (math.nextafter(10.0, math.inf), math.inf)),
    streams=("a", "é"),
    initial=Initial.SILENT,
    output_topic="bmq.out",
    tags='{"shop":"17"}',
)
RING = np.array([[0, 0], [4, 0], [0, math.pi], [0, 0]], "<f8").tobytes()
TRIANGLE = Region((0.0, 0.0), (4.0, math.inf), Shape(ShapeKind.POLYGON, RING, (0, 4), lonlat=True))
CIRCLE = Region((-1.0, -1.0), (1.0, 1.0), Shape(ShapeKind.CIRCLE, RING[:16], radius=0.1))


def make_readings(ids: list[str], n_dimensions: int = 2) -> Readings:
    encoded = [stream_id.encode() for stream_id in ids]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    id_bytes = np.frombuffer(b"".join(encoded), np.uint8)
    n = len(ids)
    values = np.arange(n_dimensions * n, dtype=np.float64).reshape(n_dimensions, n)
    return Readings(Ids(starts, id_bytes, hash_ids(starts, id_bytes)), np.arange(n) + 100, np.arange(n) + 200, values)


def with_attributes(readings: Readings, texts: list[str]) -> Readings:
    """Return the readings of partition 3 with an attribute each."""
    known = ("unused", *sorted(set(texts)))
    codes = np.array([known.index(text) for text in texts], np.int32)
    partitions = np.full(len(readings), 3, np.int32)
    return dataclasses.replace(readings, attributes=Attributes(codes, known), partitions=partitions)


def attributes_of(readings: Readings) -> list[str]:
    assert readings.attributes is not None
    return [readings.attributes.texts[code] for code in readings.attributes.codes.tolist()]


def test_every_shard_gets_its_streams_in_their_order() -> None:
    readings = make_readings(["a", "b", "c", "a", "é", "a"])

    parts = [unpack_readings(frame) for frame in pack_readings(readings, 3)]

    shards = shards_of(readings.ids.hashes, 3)
    for shard, part in enumerate(parts):
        rows = np.flatnonzero(shards == shard)
        assert part.event_times.tolist() == readings.event_times[rows].tolist()
        assert part.values.tolist() == readings.values[:, rows].tolist()
        assert [part.ids.text(i) for i in range(len(part))] == [readings.ids.text(row) for row in rows.tolist()]


def test_a_shard_without_readings_gets_an_empty_frame() -> None:
    parts = [unpack_readings(frame) for frame in pack_readings(make_readings([], n_dimensions=3), 2)]

    assert [len(part) for part in parts] == [0, 0]
    assert [part.values.shape for part in parts] == [(3, 0), (3, 0)]
    assert [len(part.ids) for part in parts] == [0, 0]


def test_a_shard_gets_the_attributes_of_its_readings_and_no_other_text() -> None:
    texts = ['"bus"', '"tram"', '"é"', '"bus"', "null", "5.0"]
    readings = with_attributes(make_readings(["a", "b", "c", "a", "é", "a"]), texts)

    parts = [unpack_readings(frame) for frame in pack_readings(readings, 3)]

    shards = shards_of(readings.ids.hashes, 3)
    for shard, part in enumerate(parts):
        rows = np.flatnonzero(shards == shard)
        assert attributes_of(part) == [texts[row] for row in rows]
        assert part.attributes is not None
        assert part.partitions is not None
        assert set(part.attributes.texts) == set(attributes_of(part))
        assert part.attributes.codes.dtype == part.partitions.dtype == np.int32
        assert part.partitions.tolist() == [3] * rows.size


def test_readings_of_several_frames_have_each_text_once() -> None:
    parts = [
        with_attributes(make_readings(["a"] * len(texts)), texts) for texts in (["1.0", "2.0"], [], ["3.0", "2.0"])
    ]

    joined = concat([unpack_readings(pack_readings(part, 1)[0]) for part in parts])

    assert attributes_of(joined) == ["1.0", "2.0", "3.0", "2.0"]
    assert joined.attributes is not None
    assert joined.partitions is not None
    assert sorted(joined.attributes.texts) == ["1.0", "2.0", "3.0"]
    assert joined.partitions.tolist() == [3] * 4


def test_readings_of_a_feed_without_attributes_have_none() -> None:
    joined = concat([unpack_readings(pack_readings(make_readings(["a"]), 1)[0])])

    assert (joined.attributes, joined.partitions) == (None, None)


def test_a_frame_may_lie_anywhere_in_memory() -> None:
    frame = pack_readings(make_readings(["a", "b"]), 1)[0]

    part = unpack_readings(memoryview(b"x" + frame)[1:])

    assert part.event_times.tolist() == [100, 101]
    assert part.event_times.flags.aligned


def test_readings_of_several_frames_become_one() -> None:
    parts = [make_readings(ids) for ids in (["a", "b"], [], ["é", "a"])]

    joined = concat(parts)

    assert [joined.ids.text(i) for i in range(4)] == ["a", "b", "é", "a"]
    assert joined.ids.hashes.tolist() == hash_ids(joined.ids.starts, joined.ids.bytes).tolist()
    assert joined.values.tolist() == [[0.0, 1.0, 0.0, 1.0], [2.0, 3.0, 2.0, 3.0]]
    assert joined.values.flags.c_contiguous


def test_joined_readings_are_writable_also_those_of_one_frame() -> None:
    readings = with_attributes(make_readings(["a"]), ["null"])

    joined = concat([unpack_readings(pack_readings(readings, 1)[0])])

    assert joined.attributes is not None
    assert joined.partitions is not None
    columns: list[npt.NDArray[Any]] = [
        joined.ids.starts,
        joined.ids.bytes,
        joined.event_times,
        joined.record_times,
        joined.values,
    ]
    columns += [joined.attributes.codes, joined.partitions]
    assert all(column.flags.writeable for column in columns)


def test_commands_come_back_in_their_order_with_exact_borders() -> None:
    commands: list[Command] = [
        Delete(3, "q"),
        Put(17, QUERY),
        Refused(18, "é", "bad_region", "lo is not below hi"),
        Put(19, RegionQuery("r", 20, "line", Region((-0.0,), (5e-324,)))),
    ]

    unpacked = unpack_commands(pack_commands(commands))

    assert unpacked == commands
    last = unpacked[3]
    assert isinstance(last, Put)
    assert isinstance(last.query, RegionQuery)
    assert math.copysign(1, last.query.region.lo[0]) == -1


def test_a_query_comes_back_with_every_option() -> None:
    tracked = dataclasses.replace(
        QUERY,
        region=CIRCLE,
        where=(("kind", ('"bus"', "5.0", "null")), ("größe", ('"\x1f"',))),
        enabled=False,
        ttl_ms=60_000,
        stream_ttl_ms=1,
        exit_region=TRIANGLE,
        stay_for_ms=2,
        away_for_ms=3,
        cooldown_ms=4,
        max_events=5,
    )
    transition = dataclasses.replace(
        QUERY,
        region=TRIANGLE,
        expires_at=NEVER + 1,
        passes=True,
        kind=Kind.TRANSITION,
        pattern=Pattern.OUT_NOT_IN,
        within_ms=2**62,
    )
    commands = [Put(17, tracked), Put(18, transition, due=2**63 - 1)]

    unpacked = unpack_commands(pack_commands(commands))

    assert unpacked == commands
    assert isinstance(unpacked[0], Put)
    assert unpacked[0].due == NEVER


def test_joins_come_back_with_every_option_among_other_commands() -> None:
    conjunctions = (
        Conjunction(
            Region((-math.inf, 0.0), (math.inf, 5e-324)), Region((1.0,), (2.0,)), (Band(1, 0, -math.inf, -0.0),)
        ),
        Conjunction(Region((0.0, 0.0), (1.0, 1.0)), Region((1.0,), (2.0,))),
    )
    window = JoinQuery(
        "j",
        18,
        Kind.WINDOW_JOIN,
        JoinSide("left", (("group", ('"a"', "null")),), "id", window_ms=10_000),
        JoinSide("right", (), "group", window_count=2**31 - 1),
        conjunctions,
        output_topic="bmq.mine",
        tags='{"größe":1}',
        enabled=False,
        ttl_ms=1,
    )
    band = JoinQuery(
        "k", 19, Kind.BAND_JOIN, JoinSide("a"), JoinSide("b"), conjunctions[:1], reports_queries=True, expires_at=-1
    )
    commands: list[Command] = [
        Put(17, window),
        Put(17, QUERY),
        Put(18, band, due=5),
        Delete(19, "j"),
        Refused(20, "", "a", "b"),
    ]

    assert unpack_commands(pack_commands(commands)) == commands


def test_a_put_has_a_place_for_each_class_of_its_query() -> None:
    join = JoinQuery("k", 19, Kind.BAND_JOIN, JoinSide("a"), JoinSide("b"), ())

    _, commands = msgspec.msgpack.decode(pack_commands([Put(17, QUERY), Put(18, join, due=5)]))

    (put, *none), (nothing, put_join, *nowhere) = commands
    assert (none, nothing, nowhere) == ([None] * 3, None, [None] * 2)
    assert (put["offset"], put["query"]["query_id"], put["due"]) == (17, QUERY.query_id, NEVER)
    assert (put_join["offset"], put_join["query"]["query_id"], put_join["due"]) == (18, "k", 5)


def test_a_select_query_comes_back_with_its_alternatives() -> None:
    boxes = (Region((-math.inf, 0.0), (math.inf, 1.0)), Region((0.0, -1.0), (1.0, math.inf)))
    commands = [Put(17, dataclasses.replace(QUERY, kind=Kind.SELECT, alternatives=boxes))]

    assert unpack_commands(pack_commands(commands)) == commands


def test_no_commands_are_a_frame_too() -> None:
    assert unpack_commands(pack_commands([])) == []


def test_dead_letters_keep_the_original_bytes_and_their_place() -> None:
    frame = pack_dead_letters(
        "line",
        pa.array([b"k", None], pa.binary()),
        pa.array([b"\xff", None], pa.binary()),
        pa.array(["t", "t"]),
        pa.array([1, 1], pa.int32()),
        pa.array([7, 9], pa.int64()),
        ["not_json", "not_json"],
        ["no UTF-8", "no value"],
    )

    assert unpack_dead_letters(frame).to_pylist() == [
        {
            "key": b"k",
            "value": b"\xff",
            "topic": "t",
            "partition": 1,
            "offset": 7,
            "code": "not_json",
            "message": "no UTF-8",
            "feed": "line",
        },
        {
            "key": None,
            "value": None,
            "topic": "t",
            "partition": 1,
            "offset": 9,
            "code": "not_json",
            "message": "no value",
            "feed": "line",
        },
    ]


def arrow_frame(metadata: dict[str, str]) -> bytes:
    schema = pa.schema([pa.field("x", pa.int64())], metadata=metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.record_batch([pa.array([1])], schema=schema))
    return bytes(sink.getvalue())


@pytest.mark.parametrize("unpack", [unpack_readings, unpack_dead_letters])
@pytest.mark.parametrize(
    "frame", [b"", b"no arrow at all", arrow_frame({}), arrow_frame({"bmq.frame": "999"})], ids=len
)
def test_a_frame_of_another_build_stops_the_job(unpack: Callable[[bytes], object], frame: bytes) -> None:
    with pytest.raises(StateError, match=r"this build reads format 5\. Stop every worker"):
        unpack(frame)


@pytest.mark.parametrize("frame", [b"", b"\xff", b"\x92\xcd\x03\xe7\x90"], ids=["empty", "broken", "format 999"])
def test_a_frame_of_commands_of_another_build_stops_the_job(frame: bytes) -> None:
    with pytest.raises(StateError, match=r"this build reads format 5\. Stop every worker"):
        unpack_commands(frame)
