"""A batch decoded at once and its records decoded one by one give the same readings and dead letters."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.errors import ReadingError
from bmq.kernels.tables.hashing import hash_ids
from bmq.records import Feed, Format, TimeUnit
from bmq.wire.readings import BadRecord, Decoder
from bmq.wire.readings_exact import ExactDecoder, ExactReading
from bmq.wire.readings_fast import BinaryColumn, FastDecoder

LIMIT = 400  # small, so that records meet it

FEEDS = {
    "line": Feed("f", "f", "id", ("x",), "ts"),
    "plane": Feed("f", "f", "id", ("x", "y"), "ts"),
    "cube, record time": Feed("f", "f", "id", ("x", "y", "z")),
    "by key": Feed("f", "f", "@key", ("x",), "ts"),
    "by key, record time": Feed("f", "f", "@key", ("x", "y")),
    "not ascii": Feed("f", "f", "ü", ("größe", "x"), "ts"),
    "lines": Feed("f", "f", "id", ("x", "y"), "ts", Format.CSV, ("sector", "note")),
    "lines by key": Feed("f", "f", "@key", ("x",), None, Format.CSV),
    "attributes": Feed("f", "f", "id", ("x",), "ts", attributes=("other", "idx")),
    "an attribute, by key": Feed("f", "f", "@key", ("x",), attributes=("größe",)),
    "globe": Feed("f", "f", "id", ("x", "y"), "ts", lonlat=True),
    "lines of the globe": Feed("f", "f", "id", ("x", "y"), "ts", Format.CSV, lonlat=True),
    # The record times are 1000 and up: the fourth record is the first one that may be of 1700000000000.
    "no unit": Feed("f", "f", "id", ("x",), "ts", event_time_unit=None),
    "seconds": Feed("f", "f", "id", ("x",), "ts", event_time_unit=TimeUnit.S),
    "microseconds": Feed("f", "f", "id", ("x",), "ts", event_time_unit=TimeUnit.US),
    "nanoseconds": Feed("f", "f", "id", ("x",), "ts", event_time_unit=TimeUnit.NS),
    "lines of no unit": Feed("f", "f", "id", ("x",), "ts", Format.CSV, event_time_unit=None),
    "lines of seconds": Feed("f", "f", "id", ("x",), "ts", Format.CSV, event_time_unit=TimeUnit.S),
    "lines of nanoseconds": Feed("f", "f", "@key", ("x",), "ts", Format.CSV, event_time_unit=TimeUnit.NS),
    "paths": Feed("f", "f", "other.id", ("x", "other.x"), "ts", attributes=("idx.i", "other.other.x", "other")),
    "a path with a time, by key": Feed("f", "f", "@key", ("x.x.x",), "other.ts", attributes=("x.",)),
    "no far future": Feed("f", "f", "id", ("x",), "ts", max_future_ms=1_700_000_000_000 - 1_003),
}
NAMES = ["id", "ts", "x", "y", "z", "ü", "größe", "other", "\\u0069d", "i", "", "idx", "other.x", "x.x"]

# fmt: off
ODD_NUMBERS = [
    "0", "-0", "-0.0", "00", "01", "-01", "1.", ".5", "+1", "-", "1e5", "1E5", "1e+5", "1e-5", "1e", "1e+",
    "1e308", "1.8e308", "1E999", "-1e999", "1e-999", "5e-324", "2.5e-324", "9007199254740992",
    "9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "123456789012345678901234567890", "0.1", "1.7976931348623157e308",
    "1.7976931348623159e308", "2.2250738585072011e-308", "8.41e21", "9.5367431640625e-7", "1e22", "1e23",
    "123456789012345678e-40", "0.000000000000000000000001", "1700000000000", "1700000000000.9",
    "180", "-180", "180.0", "180.00000000000003", "90", "90.00000000000001",
    "1700000000000.9999999", "-62135596800000", "-62135596800000.1", "-62135596800001", "253402300799999",
    "253402300799999.9", "253402300800000", "-0.5",
    "1700000000", "1700000000.123", "1700000000.1239999999", "1.7e9", "1700000000123e-3", "-1700000000.0001",
    "1700000000123456", "1700000000123456789", "-1700000000123456789", "1700000000123456789.5", "1.7e18",
    "99999999999", "99999999999.99999999", "100000000000", "100000000000000", "100000000000000.5", "100000000000001",
    "253402300799", "253402300799.999999999999999999999", "253402300800", "-62135596800", "-62135596800.0000001",
    "253402300799999999", "253402300799999999999", "253402300800000000000", "-62135596800000000000.0001",
    "1e-40", "-1e-40", "-1e-400", "0e40", "0e400", "-0e-400", "1e15", "1e11", "1e14", "1e21",
    "0.0000000000000000000000000001e28", "123456789012345678.9e-9", "1e99999999999999999999",
    "-1e-99999999999999999999", "NaN", "Infinity", "-Infinity", "nan", "0x10", "1_0",
]
ODD_SCALARS = [
    "true", "false", "null", "tru", "nullx", "True", "", '"a"', '""', '"é"', '"a', '"\\x"', '"\\u12"',
    '"\\u12g4"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\""', '"\\\\"', '"\\/"', '"\t"', '"\x1f"', '"\x7f"',
    "'a'", "[1,]", "[,1]", "[}", '{"a":1,}', '{"a"}', '{"a":}', "{1:2}", '{"a" 1}', '[1 2]', "[[1],{}]",
    '{"a":{"b":[]}}',
]
ODD_BYTES = [
    b"\x80", b"\xc0\x80", b"\xc2\x7f", b"\xdf\xbf", b"\xe0\x80\x80", b"\xe0\xa0\x80", b"\xed\x9f\xbf",
    b"\xed\xa0\x80", b"\xef\xbf\xbf", b"\xf0\x80\x80\x80", b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\xff", b"\x00",
]
# fmt: on
numbers = (
    st.sampled_from(ODD_NUMBERS)
    | st.floats(allow_nan=False).map(repr)
    | st.integers().map(str)
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.from_regex(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True, alphabet="-.eE+0123456789")
)
ODD_TIMES = [
    "2023-11-14T22:13:20Z",
    "2023-11-14t22:13:20.1z",
    "2023-11-14 22:13:20.12+00:00",
    "2023-11-14T22:13:20.1239-23:59",
    "2023-11-14T22:13:20.123456789Z",
    "2023-11-14T22:13:20.+01:00",
    "2023-11-14T22:13:20+24:00",
    "2023-11-14T22:13:20+00:60",
    "2023-11-14T22:13:20",
    "2023-11-14T22:13Z",
    "2023-11-14",
    "2023-W46-2T00:00:00Z",
    "20231114T221320Z",
    "２023-11-14T22:13:20Z",
    "2023-02-29T00:00:00Z",
    "2024-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2000-02-29T00:00:00Z",
    "2023-04-31T00:00:00Z",
    "2023-13-01T00:00:00Z",
    "2023-00-01T00:00:00Z",
    "2023-01-00T00:00:00Z",
    "2023-01-01T24:00:00Z",
    "2023-01-01T00:60:00Z",
    "2016-12-31T23:59:60Z",
    "2016-12-31T23:59:60.999-0800",
    "2016-12-31T12:34:60Z",
    "2016-12-31T23:59:61Z",
    "2016-12-31T23:60:60Z",
    "9999-12-31T23:59:60Z",
    "0001-01-01T00:00:60+00:01",
    "2023-11-14T22:13:20+0000",
    "2023-11-14T22:13:20.5-0700",
    "2023-11-14T22:13:20-0060",
    "2023-11-14T22:13:20+2400",
    "2023-11-14T22:13:20+00",
    "2023-11-14T22:13:20.25-07",
    "2023-11-14T22:13:20+24",
    "2023-11-14T22:13:20-00:00",
    "2023-11-14T22:13:20-00",
    "2023-11-14T22:13:20+1",
    "2023-11-14T22:13:20+010",
    "2023-11-14T22:13:20+01:0",
    "2023-11-14T22:13:20+01:",
    "2023-11-14T22:13:20+:100",
    "2023-11-14T22:13:20+01:000",
    "2023-11-14T22:13:20Z00",
    "2023-11-14T22:13:20 +01",
    "2023-11-14T22:13:20.+01",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59.999Z",
    "9999-12-31T23:59:59-00:01",
    "1700000000000",
]
times = st.sampled_from(ODD_TIMES) | st.datetimes(timezones=st.timezones()).map(
    lambda at: at.isoformat().replace("+00:00", "Z")
)
strings = (
    st.text(max_size=6).map(json.dumps)
    | st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False))
    | times.map(lambda text: f'"{text}"')
    | st.integers(1020, 1028).map(lambda n: '"' + "a" * n + '"')
)
scalars = numbers | strings | st.sampled_from(ODD_SCALARS)
spaces = st.sampled_from(["", "", "", " ", "\t", "\r\n", "  ", "\f", "\u00a0"])
junk = st.sampled_from(["", "", "", "", "", "", ",", "x", "}", "{}", "\ufeff", "\x00", "]", "//"])


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> str:
    members = draw(st.lists(st.tuples(names, spaces, spaces, values, spaces), max_size=6))
    inner = ",".join(f'{a}"{name}"{b}:{value}{a}' for name, a, b, value, _ in members)
    return draw(spaces) + "{" + inner + draw(junk) + "}" + draw(spaces)


nested = st.recursive(
    scalars,
    lambda inner: (
        objects(inner, st.sampled_from(NAMES)) | st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
    ),
    max_leaves=6,
) | st.sampled_from([58, 59, 60, 61, 62, 98, 99, 100, 101, 102]).map(lambda depth: "[" * depth + "]" * depth)
wild_objects = st.tuples(junk, objects(nested, st.sampled_from(NAMES)), junk).map("".join)


@st.composite
def likely_records(draw: st.DrawFn) -> str:
    """A record with every field of every feed, most of them right."""
    good = {
        name: st.sampled_from(["1", "-2.5", "1e3", "0.1234567890123456789", "7654.32"])
        for name in ("x", "y", "z", "größe")
    }
    good["ts"] = st.sampled_from(
        ["1700000000000", "1700000000000.5", "1700000000", "1700000000123456789", '"2023-11-14T22:13:20.5+0100"']
    )
    good["id"] = good["ü"] = st.sampled_from(['"a"', '"bc"', '"é"', "17", "1.50", "-0"])
    members = [
        (name, draw(draw(st.sampled_from([values, values, values, values, values, nested]))))
        for name, values in good.items()
    ]
    members += draw(st.lists(st.tuples(st.sampled_from(NAMES), nested), max_size=2))
    return "{" + ",".join(f'"{name}":{value}' for name, value in draw(st.permutations(members))) + "}"


ODD_CELLS = [
    "",
    "a",
    " a ",
    '"a"',
    '"a,b"',
    '"a\nb"',
    'a"b',
    '"a',
    '""',
    "+1",
    ".5",
    "5.",
    "007",
    " 5 ",
    "inf",
    "\t",
]
cells = numbers | times | st.text(max_size=4) | st.sampled_from(ODD_CELLS)
line_ends = st.sampled_from(["", "", "", "\n", "\r\n", "\r", "\n\n", ","])
lines = st.tuples(st.lists(cells, max_size=7).map(",".join), line_ends).map("".join)
likely_lines = st.tuples(
    st.sampled_from(["a", "é", "17"]),
    st.sampled_from(["1700000000000", "1700000000.25", "2023-11-14T22:13:20Z"]),
    st.sampled_from(["1", "-2.5", "0.12345678901234567"]),
    st.sampled_from(["1", "+2", ""]),
).map(",".join)


@st.composite
def damaged(draw: st.DrawFn, records: st.SearchStrategy[str]) -> bytes:
    """A record with a byte changed, put in or taken out."""
    record = draw(records).encode("utf-8", "surrogatepass")
    at = draw(st.integers(0, len(record)))
    return record[:at] + draw(st.binary(max_size=2)) + record[at + draw(st.integers(0, 2)) :]


marks = st.sampled_from(["", "", "", "\ufeff", "\ufeff\ufeff", "\ufeff\n", "\0\0\0\0\7"])
texts = st.tuples(marks, likely_records() | wild_objects | lines | likely_lines).map("".join)
records = (
    st.none() | st.binary(max_size=20) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")) | damaged(texts)
)
keys = st.none() | st.sampled_from([b"", b"a", "é".encode(), b"\xff", b"\xed\xa0\x80", b"a" * 1024, b"a" * 1025])


def one_by_one(
    feed: Feed, batch: list[tuple[bytes | None, bytes | None]], record_times: np.ndarray
) -> tuple[list[int], list[ExactReading], list[BadRecord]]:
    decoder = ExactDecoder(feed, LIMIT)
    rows, readings, bad = [], [], []
    for row, (key, value) in enumerate(batch):
        try:
            readings.append(decoder.decode(key, value, int(record_times[row])))
            rows.append(row)
        except ReadingError as error:
            bad.append(BadRecord(row, error.code, str(error)))
    return rows, readings, bad


@pytest.mark.parametrize("name", FEEDS)
@given(batch=st.lists(st.tuples(keys, records), max_size=8), n_hidden=st.integers(0, 3), large=st.booleans())
@example(
    # Where a parser of many records at once would differ from a parser of one.
    batch=[
        (b"a", b'{"id":"a","ts":1,"x":1,"x":null}'),
        (b"a", b'{"id":"a","ts":1,"x":null,"x":1}'),
        (b"a", b'{"id":"a","ts":1,"x":1,"other":NaN}'),
        (b"a", b'{"id":"a","ts":1,"x":1,"other":1e999}'),
        (b"a", b'{"id":"a","ts":1,"x":1}{"id":"a","ts":1,"x":1}'),
        (b"a", b'{"id":"a","ts":1,"x":1}\n{"id":"a","ts":1,"x":1}'),
        (b"a", b'{"id":"a"'),
        (b"a", b',"ts":1,"x":1}'),
        (b"a", b'{"id":"a","\\u0069d":"b","ts":1,"x":1}'),
        (b"a", b'{"id":1e999,"ts":1,"x":1}'),
        (b"a", b'{"id":"\xff","ts":1,"x":1}'),
    ],
    n_hidden=0,
    large=False,
)
def test_a_batch_decodes_like_its_records_one_by_one(
    name: str, batch: list[tuple[bytes | None, bytes | None]], n_hidden: int, large: bool
) -> None:
    feed = FEEDS[name]
    kind = pa.large_binary() if large else pa.binary()
    # Sliced, since the columns of a batch may begin anywhere in Arrow's buffers.
    key_column, value_column = (
        pa.array([b"hidden"] * n_hidden + [record[i] for record in batch], kind).slice(n_hidden) for i in (0, 1)
    )

    assert_decodes_like_one_by_one(feed, batch, key_column, value_column)


@pytest.mark.parametrize("name", [name for name, feed in FEEDS.items() if feed.format is Format.JSON])
def test_every_odd_value_in_every_field_decodes_alike(name: str) -> None:
    fields = [field for field in NAMES if "\\" not in field]  # an escaped name alone leaves the fast path
    good = {field: b"1" for field in fields}
    odd = [text.encode() for text in ODD_NUMBERS + ODD_SCALARS + [f'"{time}"' for time in ODD_TIMES]]
    odd += [b'"' + text + b'"' for text in ODD_BYTES] + ODD_BYTES
    records = [
        mark + b"{" + b",".join(b'"%b":%b' % (name.encode(), value) for name, value in members.items()) + b"}"
        for field in fields
        for value in odd
        for members in (good | {field: value}, {"other": value, **good, field: b"1"})
        for mark in (b"", b"\xef\xbb\xbf")
    ]
    assert_decodes_like_one_by_one(FEEDS[name], [(b"a", record) for record in records])


@pytest.mark.parametrize("name", [name for name, feed in FEEDS.items() if feed.format is Format.CSV])
def test_every_odd_cell_in_every_column_decodes_alike(name: str) -> None:
    odd = [text.encode() for text in ODD_NUMBERS + ODD_TIMES + ODD_CELLS] + ODD_BYTES
    lines = [
        mark + b",".join([b"1"] * before + [cell] + [b"1"] * after) + end
        for cell in odd
        for before in range(5)
        for after in range(5)
        for end in (b"", b"\n", b"\r\n", b"\r")
        for mark in (b"", b"\xef\xbb\xbf")
    ]
    assert_decodes_like_one_by_one(FEEDS[name], [(b"a", line) for line in lines])


def assert_decodes_like_one_by_one(
    feed: Feed,
    batch: list[tuple[bytes | None, bytes | None]],
    key_column: pa.Array | None = None,
    value_column: pa.Array | None = None,
) -> None:
    if key_column is None or value_column is None:
        key_column, value_column = (pa.array([record[i] for record in batch], pa.binary()) for i in (0, 1))
    record_times = np.arange(len(batch)) + 1_000

    decoded = Decoder(feed, LIMIT).decode(key_column, value_column, record_times)

    rows, expected, bad = one_by_one(feed, batch, record_times)
    readings = decoded.readings
    found = [
        ExactReading(
            readings.ids.text(i).encode(),
            int(readings.event_times[i]),
            tuple(readings.values[:, i].tolist()),
            None if readings.attributes is None else readings.attributes.texts[readings.attributes.codes[i]],
        )
        for i in range(len(readings))
    ]
    assert decoded.bad == bad
    assert decoded.rows.tolist() == rows
    # repr tells -0.0 from 0.0.
    assert repr(found) == repr(expected)
    assert readings.record_times.tolist() == record_times[rows].tolist()
    assert readings.values.shape == (len(feed.dimensions), len(rows))
    assert readings.values.flags.c_contiguous
    if readings.attributes is not None:
        assert readings.attributes.codes.dtype == np.int32
        assert len(set(readings.attributes.texts)) == len(readings.attributes.texts)
    assert readings.ids.hashes.tolist() == hash_ids(readings.ids.starts, readings.ids.bytes).tolist()


# What the fast path is for. Without this, a scan that knew nothing would pass the rule above.
@pytest.mark.parametrize(
    "record",
    [
        '{"id":"v1","ts":1700000000000,"x":1.25}',
        '{"id": "v1", "ts": 1700000000000, "x": 1.25}',
        '\n{"x":1e3,\t"ts":1700000000000.5,"id":"é"}\r\n',
        '{"id":17,"ts":1,"x":0.12345678901234567}',
        '{"id":"v1","ts":"2023-11-14T22:13:20.25+01:00","x":1}',
        '{"id":"v1","ts":"2023-11-14T22:13:60.25-0700","x":1}',
        '{"id":"v1","ts":1700000000000.123456,"x":1}',
        '\ufeff{"id":"v1","ts":1700000000000,"x":1}',
        '{"id":"v1","ts":1,"x":1,"note":"\\u00e9 \\"é\\" \\n","tags":[1,{"a":[]},null,true],"o":{}}',
        '{"id":"v1","ts":1,"x":1,"other":"bus","idx":5}',
        '{"id":"v1","ts":1,"x":1,"other":null,"idx":true}',
        '{"id":"v1","ts":1,"x":1,"other":"\\u00e9","idx":0.12345678901234567}',
        '{"id":"v1","ts":1,"x":1,"other":{"a":[]},"idx":1e999}',
    ],
)
@pytest.mark.parametrize("feed", ["line", "attributes"])
def test_ordinary_records_are_decoded_without_python(record: str, feed: str) -> None:
    values = pa.array([record.encode()], pa.binary())

    columns = FastDecoder(FEEDS[feed], LIMIT).decode(None, BinaryColumn.of(values), np.zeros(1, np.int64))

    assert columns.plain.all()


def test_an_odd_record_leaves_its_neighbours_on_the_fast_path() -> None:
    records = [b'{"id":"a","ts":1,"x":1}', b"x", None, b'{"id":"b","ts":2,"x":2}']

    columns = FastDecoder(FEEDS["line"], LIMIT).decode(
        None, BinaryColumn.of(pa.array(records, pa.binary())), np.zeros(4, np.int64)
    )

    assert columns.plain.tolist() == [True, False, False, True]


def test_ordinary_lines_are_decoded_without_python() -> None:
    lines = [
        "v1,1700000000000,1,2.5",
        "é,2023-11-14T22:13:20Z,1,2.5,tech,x\r\n",
        "17,1,0.12345678901234567,-1e-7,\n",
        "\ufeffv1,1700000000000,1,2.5",
    ]
    values = pa.array([line.encode() for line in lines], pa.binary())

    columns = FastDecoder(FEEDS["lines"], LIMIT).decode(None, BinaryColumn.of(values), np.zeros(4, np.int64))

    assert columns.plain.all()


@pytest.mark.parametrize(
    ("feed", "time"),
    [
        ("no unit", "1700000000000"),
        ("seconds", "1700000000"),
        ("seconds", "1700000000.123456"),
        ("seconds", "1.7e9"),
        ("microseconds", "1700000000123456"),
        ("nanoseconds", "1700000000123456789"),
    ],
)
def test_times_of_every_unit_are_decoded_without_python(feed: str, time: str) -> None:
    values = pa.array([f'{{"id":"a","ts":{time},"x":1}}'.encode()], pa.binary())

    columns = FastDecoder(FEEDS[feed], LIMIT).decode(None, BinaryColumn.of(values), np.zeros(1, np.int64))

    assert columns.plain.all()
