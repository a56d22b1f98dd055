"""Tables of readings: types, bad rows, and memory that is shared."""

from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import bmq
from bmq.library.reading_tables import TableReader
from bmq.records import Readings

FIRST = 1_700_000_000_000
LINE = bmq.Feed("line", ["x"])


def read(table: Any, feed: bmq.Feed = LINE) -> Readings:
    readings, n_bad = TableReader(feed.record, "refuse").read(table)
    assert readings is not None
    assert n_bad == 0
    return readings


def columns(**changed: Any) -> dict[str, Any]:
    return {"id": ["a", "é"], "ts": [FIRST, FIRST + 1], "x": [0.5, 1.5]} | changed


def texts(readings: Readings) -> list[str]:
    return [readings.ids.text(row) for row in range(len(readings))]


@pytest.mark.parametrize(
    "table",
    [
        columns(),
        pa.table(columns()),
        pa.table(columns()).to_batches()[0],
        pa.concat_tables([pa.table(columns()).slice(0, 1), pa.table(columns()).slice(1, 1)]),
        pa.table(columns(extra=[1, 2], id=["a", "é"])).slice(0, 2),
        pandas.DataFrame(columns()),
        pandas.DataFrame(columns(id=pandas.Categorical(["a", "é"]), shape=[object(), None])),
        polars.DataFrame(columns()),
        polars.DataFrame(columns()).with_columns(polars.col("id").cast(polars.Categorical)),
    ],
    ids=["dict", "arrow", "batch", "chunks", "extra", "pandas", "categorical", "polars", "polars-categorical"],
)
def test_every_form_of_a_table_is_read(table: Any) -> None:
    readings = read(table)

    assert texts(readings) == ["a", "é"]
    assert readings.event_times.tolist() == [FIRST, FIRST + 1]
    assert readings.values.tolist() == [[0.5, 1.5]]


@pytest.mark.parametrize(
    ("times", "unit"),
    [
        (np.array([1_700_000_000, -1]), "s"),
        (np.array([1_700_000_000_000, -1_000]), "ms"),
        (np.array([1_700_000_000_000_999, -999_001]), "us"),
        (np.array([1_700_000_000_000_999_999, -999_000_001]), "ns"),
        (np.array([1_700_000_000.0, -1.0]), "s"),
        (pandas.to_datetime([1_700_000_000, -1], unit="s"), None),
        (pandas.to_datetime([1_700_000_000, -1], unit="s", utc=True).tz_convert("Asia/Tokyo"), None),
        (pa.array([1_700_000_000_000_999_999, -999_000_001], pa.timestamp("ns")), None),
    ],
)
def test_event_times_are_rounded_down_to_milliseconds(times: Any, unit: Any) -> None:
    readings = read(columns(ts=times), bmq.Feed("line", ["x"], event_time_unit=unit))

    assert readings.event_times.tolist() == [1_700_000_000_000, -1_000]


def test_a_date_is_its_first_moment() -> None:
    assert read(columns(ts=pa.array([19_675, -1], pa.date32()))).event_times.tolist() == [
        19_675 * 86_400_000,
        -86_400_000,
    ]


def test_whole_numbers_name_streams() -> None:
    assert texts(read(columns(id=[7, 12]))) == ["7", "12"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["north", None], ['"north"', "null"]),
        ([5, 2], ["5.0", "2.0"]),
        ([True, False], ["true", "false"]),
        ([float("inf"), 0.5], ["-", "0.5"]),
        ([[1], None], ["-", "null"]),
        ([{"a": 1}, {"a": 2}], ["-", "-"]),
        ([None, None], ["null", "null"]),
        (pandas.Categorical(["a", None]), ['"a"', "null"]),
        (np.array([1.5, 2.5], np.float32), ["1.5", "2.5"]),
    ],
)
def test_an_attribute_is_the_text_of_its_json(values: Any, expected: list[str]) -> None:
    readings = read(pandas.DataFrame(columns(a=values)), bmq.Feed("line", ["x"], attributes=["a"]))

    assert readings.attributes is not None
    assert [readings.attributes.texts[code] for code in readings.attributes.codes] == expected


def test_several_attributes_are_one_text() -> None:
    readings = read(columns(a=["n", None], b=[1, 2]), bmq.Feed("line", ["x"], attributes=["a", "b"]))

    assert readings.attributes is not None
    assert [readings.attributes.texts[code] for code in readings.attributes.codes] == ['"n"\x1f1.0', "null\x1f2.0"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": ["a", None]}, r"row 1: 'id' is None, but every reading names its stream; name it"),
        ({"id": ["", "b"]}, r"row 0: 'id' is '', but every reading names its stream"),
        ({"id": ["a", "b" * 1025]}, r"row 1: 'id' is 'b+', but a stream id has at most 1024 bytes"),
        ({"ts": [FIRST, None]}, r"row 1: 'ts' is None, but every reading has an event time"),
        ({"ts": [FIRST, 1_700_000_000]}, r"row 1: 'ts' is 1700000000, but .* or declare event_time_unit"),
        ({"ts": pa.array([FIRST, 2**62])}, r"row 1: 'ts' is \d+, but event times lie between"),
        ({"ts": pa.array([FIRST, 2**64 - 1], pa.uint64())}, r"row 1: 'ts' is \d+, but event times lie between"),
        ({"ts": [float(FIRST), float("nan")]}, r"row 1: 'ts' is nan, but event times lie between"),
        ({"x": [None, 1.0]}, r"row 0: 'x' is None, but a reading has a number for every dimension"),
        ({"x": [1.0, float("nan")]}, r"row 1: 'x' is nan, but a dimension is a finite number"),
        ({"x": [float("-inf")] * 2}, r"row 0: 'x' is -inf, .* So it is in 2 rows\. Monitor\(bad_readings=\"drop\"\)"),
    ],
)
def test_a_bad_row_is_refused_with_its_value_its_rule_and_the_way_out(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(bmq.ReadingError, match=message):
        read(columns(**changed))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (columns(id=[0.5, 1.5]), r"column 'id' is of type double, but a stream id is text"),
        (columns(x=["1", "2"]), r"column 'x' is of type string, but a dimension is a number. Cast the column"),
        (columns(ts=["2026-05-09", "2026-05-10"]), r"'ts' is of type string, .* as with pandas.to_datetime"),
        (columns(ts=[0.25, 1.0]), r"'ts' holds .*0.25.*, but an event time that is a float is a whole number"),
        ({"id": ["a"], "ts": [FIRST]}, r"needs one column 'x', but the table has 0 of that name. Its columns: id, ts"),
        (pa.table([["a"], [FIRST], [1.0], [2.0]], ["id", "ts", "x", "x"]), r"the table has 2 of that name"),
        ([1, 2], r"are of type list, and cannot be read as a table: .* Pass a frame of pandas or Polars"),
        (columns(x=[1.0]), r"cannot be read as a table"),
    ],
)
def test_a_table_that_does_not_fit_the_feed_is_refused(table: Any, message: str) -> None:
    with pytest.raises(bmq.ReadingError, match=message):
        read(table)


def test_an_attribute_of_a_type_that_json_lacks_is_refused() -> None:
    feed = bmq.Feed("line", ["x"], attributes=["a"])

    with pytest.raises(bmq.ReadingError, match=r"Column 'a' is of type timestamp\[ns\], but an attribute is text"):
        read(pandas.DataFrame(columns(a=pandas.to_datetime([1, 2]))), feed)


def test_places_that_are_not_on_the_globe_are_refused_and_180_is_minus_180() -> None:
    globe = bmq.Feed("globe", ["lon", "lat"], space="lonlat")
    table = {"id": ["a", "b"], "ts": [FIRST, FIRST], "lon": [180.0, 5.0], "lat": [0.0, 90.0]}

    assert read(table, globe).values.tolist() == [[-180.0, 5.0], [0.0, 90.0]]
    assert table["lon"] == [180.0, 5.0]
    with pytest.raises(bmq.ReadingError, match=r"row 1: 'lat' is 91.0, but with space = 'lonlat' it lies between -90"):
        read(table | {"lat": [0.0, 91.0]}, globe)


def test_bad_rows_are_dropped_and_counted_if_asked() -> None:
    monitor = bmq.Monitor(LINE, bad_readings="drop")
    monitor.put("q", {"kind": "match", "feed": "line", "region": {"box": {"x": [0, 9]}}})
    table = {"id": ["a", None, "c", "d"], "ts": [FIRST] * 4, "x": [1.0, 2.0, float("nan"), 4.0], "other": [object()]}

    assert monitor.advance({"line": table}) == 2
    assert monitor.events()["stream_id"].to_pylist() == ["a", "d"]
    assert monitor.counts == bmq.Counts(readings=2, bad=2, events=2)
    assert monitor.advance({"line": {"id": [None], "ts": [FIRST], "x": [1.0]}}) == 0
    assert monitor.counts.bad == 3


def test_a_table_without_rows_has_no_readings() -> None:
    assert TableReader(LINE.record, "refuse").read(pa.table(columns()).slice(0, 0)) == (None, 0)


def test_columns_are_read_in_their_place_if_type_and_layout_allow_it() -> None:
    x, times = np.array([0.5, 1.5]), np.array([FIRST, FIRST + 1])
    table = pa.table({"id": pa.array(["a", "b"], pa.large_string()), "ts": times, "x": x})

    readings = read(table)

    assert np.shares_memory(readings.values, x)
    assert np.shares_memory(readings.event_times, times)
    assert np.shares_memory(readings.ids.bytes, np.frombuffer(table["id"].chunk(0).buffers()[2], np.uint8))
    # numba compiles kernels for writable arrays only.
    assert all(a.flags.writeable for a in (readings.values, readings.event_times, readings.ids.bytes))
    framed = pandas.DataFrame({"id": ["a", "b"], "ts": times, "x": x}, copy=False)
    assert np.shares_memory(read(framed).values, framed["x"].to_numpy())


@pytest.mark.parametrize("feed", [bmq.Feed("line", ["x"], max_lateness="1s"), bmq.Feed("line", ["x"], join=True)])
def test_what_may_be_held_is_a_copy(feed: bmq.Feed) -> None:
    x, times = np.array([0.5, 1.5]), np.array([FIRST, FIRST + 1])
    table = pa.table({"id": pa.array(["a", "b"], pa.large_string()), "ts": times, "x": x})

    readings = read(table, feed)

    assert not np.shares_memory(readings.values, x)
    assert not np.shares_memory(readings.event_times, times)
    assert not np.shares_memory(readings.ids.bytes, np.frombuffer(table["id"].chunk(0).buffers()[2], np.uint8))


def test_a_float_time_that_is_no_number_is_a_bad_reading_in_every_unit() -> None:
    monitor = bmq.Monitor(bmq.Feed("line", ["x"], event_time_unit="us"), bad_readings="drop")
    times = [float(FIRST) * 1000, float("nan"), float("inf")]

    monitor.advance({"line": {"id": ["a", "b", "c"], "ts": times, "x": [1.0] * 3}})
    assert monitor.counts == bmq.Counts(readings=1, bad=2)


@pytest.mark.parametrize("values", [[1.5, 2.5], [True, False]])
def test_a_dictionary_of_what_is_no_stream_id_is_refused(values: list[Any]) -> None:
    with pytest.raises(bmq.ReadingError, match=r"'id' is of type (double|bool), but a stream id is text"):
        read(columns(id=pa.array(values).dictionary_encode()))
