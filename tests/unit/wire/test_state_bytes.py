"""A delta comes back from its bytes as it was, and its arrays belong to whoever unpacks it."""

import dataclasses
import math

import numpy as np

from bmq.kernels.tables.hashing import hash_ids
from bmq.records import (
    NEVER,
    Attributes,
    Band,
    Clock,
    Conjunction,
    Delete,
    Delta,
    Ids,
    JoinQuery,
    JoinRows,
    JoinSide,
    Kind,
    Put,
    Readings,
    Region,
    RegionQuery,
    Shape,
    ShapeKind,
    StreamRows,
    TrackingRows,
    WindowRows,
)
from bmq.wire.state_bytes import pack_delta, unpack_delta

CIRCLE = Shape(ShapeKind.CIRCLE, np.array([1.5, -0.0], "<f8").tobytes(), radius=2.0)
QUERY = RegionQuery("q", 18, "plane", Region((-math.inf, 0.1), (math.inf, 5e-324), CIRCLE), where=(("k", ("5.0",)),))
BOX = Region((-math.inf, 0.1), (math.inf, 5e-324))
JOIN = JoinQuery(
    "j",
    22,
    Kind.WINDOW_JOIN,
    JoinSide("plane", where=(("k", ("5.0",)),), equal="id", window_ms=2**62),
    JoinSide("cars", window_count=1),
    (Conjunction(BOX, Region((0.0,), (1.0,)), (Band(0, 1, -math.inf, -0.0), Band(1, 0, 5e-324, math.inf))),),
)


def ids_of(*streams: str) -> Ids:
    encoded = [stream.encode() for stream in streams]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    utf8 = np.frombuffer(b"".join(encoded), np.uint8)
    return Ids(starts, utf8, hash_ids(starts, utf8))


STREAMS = StreamRows(
    ids_of("a", "", "é"),
    np.array([1, NEVER, 2**62]),
    np.array([0, 7, 1], np.int32),
    np.array([[1.0, -0.0, 5e-324], [2.0, 3.0, -4.0]]),
)
ATTRIBUTES = Attributes(np.array([2, 0, 2], np.int32), ('"bus"', "unused", "null\x1f5.0"))
HELD = Readings(
    ids_of("é", "é", "long enough to be no short one"),
    np.array([-5, 5, 6]),
    np.array([0, -1, 9]),
    np.array([[1.0, 2.0, 3.0]]),
    ATTRIBUTES,
    np.array([1, 0, 2**31 - 1], np.int32),
)
PAIRS = TrackingRows(
    ("q", "ü"),
    np.array([1, 0, 1], np.int32),
    ids_of("a", "b", "c"),
    np.array([0, 255, 3], np.uint8),
    np.array([-1, 0, 6], np.int8),
    np.array([0, 1, 2], np.int32),
    np.array([NEVER, 1, 2]),
    np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    np.array([NEVER, NEVER, 7]),
    np.array([0, 1, 2**31 - 1], np.int32),
)
DELTA = Delta(
    (Put(17, QUERY, due=2**62), Delete(19, "q"), Put(20, QUERY), Put(21, JOIN, due=2**62), Put(22, JOIN)),
    {"plane": STREAMS, "cars": dataclasses.replace(STREAMS, attributes=ATTRIBUTES)},
    {("q", "é"): True, ("q", "a"): False},
    {"plane": Clock(17, -3), "cars": Clock()},
    {"line": HELD, "plane": dataclasses.replace(HELD, attributes=None, partitions=None)},
    {"plane": PAIRS},
    {
        "plane": JoinRows(STREAMS, HELD, WindowRows(2**40, HELD, np.array([0, 7, 2**31 - 1], np.int32))),
        "cars": JoinRows(streams=dataclasses.replace(STREAMS, attributes=ATTRIBUTES)),
        "line": JoinRows(held=HELD),
    },
    {"j": (0, 2**40)},
    {"plane": 3},
)


def as_plain(record: object) -> object:
    """Return a record as values that compare with ==; attributes as their texts, since a table may be cut down."""
    if isinstance(record, np.ndarray):
        return record.dtype.str, record.tolist()
    if isinstance(record, Ids):
        return [record.text(i) for i in range(len(record))], record.hashes.tolist()
    if isinstance(record, Attributes):
        return [record.texts[code] for code in record.codes.tolist()]
    if dataclasses.is_dataclass(record):
        return {field.name: as_plain(getattr(record, field.name)) for field in dataclasses.fields(record)}
    if isinstance(record, dict):
        return {name: as_plain(value) for name, value in record.items()}
    return record


def arrays_in(record: object) -> list[np.ndarray]:
    if isinstance(record, np.ndarray):
        return [record]
    if isinstance(record, dict):
        return [array for value in record.values() for array in arrays_in(value)]
    if dataclasses.is_dataclass(record):
        return [array for field in dataclasses.fields(record) for array in arrays_in(getattr(record, field.name))]
    return []


def test_a_delta_comes_back_as_it_was() -> None:
    # repr tells -0.0 from 0.0.
    assert repr(as_plain(unpack_delta(pack_delta(DELTA)))) == repr(as_plain(DELTA))


def test_an_empty_delta_comes_back_empty() -> None:
    assert unpack_delta(pack_delta(Delta())) == Delta()


def test_rows_of_nothing_keep_their_dimensions() -> None:
    nothing = StreamRows(ids_of(), np.empty(0, np.int64), np.empty(0, np.int32), np.empty((3, 0)))

    rows = unpack_delta(pack_delta(Delta(streams={"cube": nothing}))).streams["cube"]

    assert (len(rows.ids), rows.values.shape) == (0, (3, 0))


def test_unpacked_arrays_may_be_written_and_lie_as_kernels_want_them() -> None:
    arrays = arrays_in(unpack_delta(pack_delta(DELTA)))

    assert len(arrays) == len(arrays_in(DELTA)) > 30
    assert all(array.flags.writeable and array.flags.aligned and array.flags.c_contiguous for array in arrays)


def test_a_delta_holds_no_text_that_no_row_means() -> None:
    assert b"unused" not in pack_delta(DELTA)
