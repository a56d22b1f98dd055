"""What a reading is, and what each bad record is called. That both paths agree is another test."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from bmq.errors import DeadLetterCode
from bmq.records import Feed, Format, TimeUnit
from bmq.wire.readings import MAX_RECORD_BYTES, BadRecord, Decoded, Decoder

LINE = Feed("line", "line", "id", ("x",), "ts")
PLANE = Feed("plane", "plane", "id", ("x", "y"), "ts")
BY_KEY = Feed("keyed", "keyed", "@key", ("x",), "ts")
BY_RECORD_TIME = Feed("timed", "timed", "id", ("x",))
LINES = Feed("lines", "lines", "id", ("x", "y"), "ts", Format.CSV, ("sector",))
BUSES = Feed("buses", "buses", "id", ("x",), "ts", attributes=("kind", "line"))
GLOBE = Feed("globe", "globe", "id", ("lon", "lat"), "ts", lonlat=True)

RECORD_TIME = 1_600_000_000_000


def decode(feed: Feed, *values: str | bytes | None, key: bytes | None = None) -> Decoded:
    column = pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())
    keys = pa.array([key] * len(values), pa.binary())
    return Decoder(feed).decode(keys, column, np.full(len(values), RECORD_TIME))


def reading(feed: Feed, value: str, key: bytes | None = None) -> tuple[str, int, list[float]]:
    decoded = decode(feed, value, key=key)
    assert not decoded.bad
    readings = decoded.readings
    return readings.ids.text(0), int(readings.event_times[0]), readings.values[:, 0].tolist()


def bad(feed: Feed, value: str | bytes | None, key: bytes | None = None) -> BadRecord:
    decoded = decode(feed, value, key=key)
    assert not len(decoded.readings)
    return decoded.bad[0]


def attributes(feed: Feed, *values: str) -> list[list[str]]:
    """Return the texts of the attributes of each reading."""
    decoded = decode(feed, *values)
    assert not decoded.bad
    found = decoded.readings.attributes
    assert found is not None
    return [found.texts[code].split("\x1f") for code in found.codes.tolist()]


def test_a_record_is_a_reading_with_its_fields_in_any_order() -> None:
    assert reading(PLANE, '{"y": 2, "x": 1.5, "ts": 1700000000000, "id": "v7"}') == (
        "v7",
        1700000000000,
        [1.5, 2],
    )


def test_fields_that_the_feed_does_not_name_are_ignored() -> None:
    assert reading(LINE, '{"id":"a","ts":1,"x":2,"note":{"x":[3,"é",null]},"X":4}') == ("a", 1, [2.0])


def test_of_a_field_that_occurs_twice_the_last_one_counts() -> None:
    assert reading(LINE, '{"id":"a","ts":1,"x":2,"id":"b","x":3}') == ("b", 1, [3.0])
    assert bad(LINE, '{"id":"a","ts":1,"x":2,"x":null}').code is DeadLetterCode.MISSING_FIELD


def test_an_escaped_field_name_is_the_same_name() -> None:
    assert reading(LINE, '{"\\u0069d":"a","ts":1,"x":2}') == ("a", 1, [2.0])


@pytest.mark.parametrize(
    ("text", "stream_id"),
    [
        ('"é"', "é"),
        ('"\\u00e9\\n"', "é\n"),
        ('" "', " "),
        ('"\\ufeffa"', "\ufeffa"),
        ("17", "17"),
        ("1.50", "1.50"),
        ("-0", "-0"),
        ("1e999", "1e999"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_a_stream_id_is_a_string_or_the_text_of_a_number(text: str, stream_id: str) -> None:
    assert reading(LINE, f'{{"id":{text},"ts":1,"x":2}}')[0] == stream_id


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("1.7e12", 1_700_000_000_000),
        ("1700000000000.9", 1_700_000_000_000),
        ("1700000000000.9999999", 1_700_000_000_000),  # the nearest double is the next millisecond
        ("-0.5", -1),
        ("-62135596800000", -62_135_596_800_000),
        ("253402300799999.5", 253_402_300_799_999),
        ('"1970-01-01T00:00:00Z"', 0),
        ('"2023-11-14T22:13:20.25Z"', 1_700_000_000_250),
        ('"2023-11-14t23:13:20.2509+01:00"', 1_700_000_000_250),
        ('"2023-11-14 22:13:19.999-00:00"', 1_699_999_999_999),
        ('"2023-11-14T22:13:20.25+0000"', 1_700_000_000_250),
        ('"2023-11-14T15:13:20.25-0700"', 1_700_000_000_250),
        ('"2023-11-15T03:43:20.25+0530"', 1_700_000_000_250),
        ('"2023-11-14T23:13:20+01"', 1_700_000_000_000),
        ('"1990-12-31T23:59:60Z"', 662_688_000_000),
        ('"1990-12-31t15:59:60.5-08:00"', 662_688_000_500),
        ('"2016-12-31T23:59:60+00"', 1_483_228_800_000),
        ('"2024-02-29T00:00:00Z"', 1_709_164_800_000),
        ('"0001-01-01T00:00:00Z"', -62_135_596_800_000),
    ],
)
def test_an_event_time_is_epoch_milliseconds_or_rfc_3339_rounded_down(text: str, milliseconds: int) -> None:
    assert reading(LINE, f'{{"id":"a","ts":{text},"x":2}}')[1] == milliseconds


def test_without_an_event_time_field_the_record_has_the_time() -> None:
    assert reading(BY_RECORD_TIME, '{"id":"a","ts":1,"x":2}') == ("a", RECORD_TIME, [2.0])


@pytest.mark.parametrize("record_time", [-1, 1_700_000_000_000_000])  # none, microseconds
def test_a_record_time_that_is_no_time_is_refused_where_it_is_the_event_time(record_time: int) -> None:
    values = pa.array([b'{"id":"a","x":2}'], pa.binary())

    for feed, codes in ((BY_RECORD_TIME, [DeadLetterCode.OUT_OF_RANGE]), (LINE, [DeadLetterCode.MISSING_FIELD])):
        decoded = Decoder(feed).decode(None, values, np.array([record_time]))
        assert [record.code for record in decoded.bad] == codes


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.1", 0.1),
        ("12345.678901234567", 12345.678901234567),
        ("9007199254740993", 9007199254740992.0),
        ("18446744073709551616", 2.0**64),
        ("123456789012345678901234567890", 123456789012345678901234567890.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("1e-999", 0.0),
    ],
)
def test_a_dimension_is_the_double_nearest_to_its_text(text: str, number: float) -> None:
    assert reading(LINE, f'{{"id":"a","ts":1,"x":{text}}}')[2] == [number]


def test_a_key_is_the_stream_id_where_the_feed_says_so() -> None:
    assert reading(BY_KEY, '{"id":"other","ts":1,"x":2}', key="é".encode()) == ("é", 1, [2.0])
    assert bad(BY_KEY, '{"id":"other","ts":1,"x":2}').code is DeadLetterCode.NO_STREAM_ID
    assert bad(BY_KEY, '{"ts":1,"x":2}', key=b"\xff").code is DeadLetterCode.WRONG_TYPE
    assert bad(BY_KEY, '{"ts":1,"x":2}', key=b"a" * 1025).code is DeadLetterCode.TOO_LARGE


def test_a_feed_by_key_without_a_key_column_has_no_stream_ids() -> None:
    values = pa.array([b'{"ts":1,"x":2}'], pa.binary())

    decoded = Decoder(BY_KEY).decode(None, values, np.zeros(1, np.int64))

    assert [record.code for record in decoded.bad] == [DeadLetterCode.NO_STREAM_ID]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "not_json"),
        ("", "not_json"),
        ("not json", "not_json"),
        ("[1,2]", "not_json"),
        ('"text"', "not_json"),
        ('{"id":"a","ts":1,"x":2', "not_json"),
        ('{"id":"a","ts":1,"x":2}{}', "not_json"),
        ('{"id":"a","ts":1,"x":2,}', "not_json"),
        ("{'id':'a','ts':1,'x':2}", "not_json"),
        ('{"id":"a","ts":1,"x":NaN}', "not_json"),
        ('{"id":"a","ts":1,"x":2,"other":-Infinity}', "not_json"),
        ('{"id":"a","ts":1,"x":02}', "not_json"),
        ('\ufeff\ufeff{"id":"a","ts":1,"x":2}', "not_json"),
        ("\ufeff", "not_json"),
        (b"\0\0\0\0\x81" + b'{"id":"a","ts":1,"x":2}', "not_json"),
        (b'{"id":"\xff","ts":1,"x":2}', "not_json"),
        (b'{"id":"\xed\xa0\x80","ts":1,"x":2}', "not_json"),
        ("{}", "missing_field"),
        ('{"id":"a","ts":1}', "missing_field"),
        ('{"id":"a","ts":1,"x":null}', "missing_field"),
        ('{"id":null,"ts":1,"x":2}', "missing_field"),
        ('{"id":"","ts":1,"x":2}', "missing_field"),
        ('{"\\u0069d":"","ts":1,"x":2}', "missing_field"),
        ('{"id":"a","x":2}', "missing_field"),
        ('{"id":"a","ts":1,"x":"2"}', "wrong_type"),
        ('{"id":"a","ts":1,"x":"NaN"}', "wrong_type"),
        ('{"id":"a","ts":1,"x":true}', "wrong_type"),
        ('{"id":"a","ts":1,"x":[2]}', "wrong_type"),
        ('{"id":true,"ts":1,"x":2}', "wrong_type"),
        ('{"id":{},"ts":1,"x":2}', "wrong_type"),
        ('{"id":"\\ud800","ts":1,"x":2}', "wrong_type"),
        ('{"id":"a","ts":false,"x":2}', "wrong_type"),
        ('{"id":"a","ts":"1700000000000","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-11-14T22:13:20","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-02-29T00:00:00Z","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2016-12-31T23:59:61Z","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-11-14T22:13:20+24:00","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-11-14T22:13:20+2400","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-11-14T22:13:20+00:60","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-11-14T22:13:20+1","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-11-14T22:13:20+010","x":2}', "wrong_type"),
        ('{"id":"a","ts":"2023-11-14T22:13:20Z00","x":2}', "wrong_type"),
        ('{"id":"a","ts":1,"x":1e999}', "not_finite"),
        ('{"id":"a","ts":1,"x":-1e999}', "not_finite"),
        ('{"id":"a","ts":1e999,"x":2}', "not_finite"),
        ('{"id":"a","ts":253402300800000,"x":2}', "out_of_range"),
        ('{"id":"a","ts":-62135596800000.1,"x":2}', "out_of_range"),
        ('{"id":"a","ts":9223372036854775808,"x":2}', "out_of_range"),
        ('{"id":"a","ts":"9999-12-31T23:59:59-00:01","x":2}', "out_of_range"),
        ('{"id":"a","ts":"9999-12-31T23:59:60Z","x":2}', "out_of_range"),
        ('{"id":"' + "a" * 1025 + '","ts":1,"x":2}', "too_large"),
        ('{"id":"a","ts":1,"x":2,"other":"' + "a" * MAX_RECORD_BYTES + '"}', "too_large"),
        ('{"id":"a","ts":1,"x":2,"other":' + "[" * 100 + "]" * 100 + "}", "too_large"),
        ('{"id":"a","ts":1,"x":2,"other":' + "[" * 100_000, "too_large"),
    ],
)
def test_a_bad_record_has_one_code(value: str | bytes | None, code: str) -> None:
    assert bad(LINE, value).code == code


def test_nesting_up_to_the_limit_is_read() -> None:
    assert reading(LINE, '{"id":"a","ts":1,"x":2,"other":' + "[" * 99 + "]" * 99 + "}") == ("a", 1, [2.0])
    assert reading(LINE, '{"id":"a","ts":1,"x":2,"other":"' + "[" * 1000 + '"}') == ("a", 1, [2.0])


@pytest.mark.timeout(30)
def test_a_record_of_many_quotes_without_an_end_is_refused_at_once() -> None:
    # A search for the end of the string from each of its quotes takes minutes.
    assert bad(LINE, "[" * 101 + '\\"' * 500_000).code == "too_large"


def test_of_several_faults_the_first_in_a_fixed_order_counts() -> None:
    assert bad(PLANE, '{"id":[],"ts":1e999,"y":null}').code is DeadLetterCode.WRONG_TYPE
    assert bad(PLANE, '{"id":"a","ts":1e999,"y":[]}').code is DeadLetterCode.NOT_FINITE
    assert bad(PLANE, '{"id":"a","ts":1,"y":[]}').message.startswith("x is absent")


def test_a_message_says_the_value_the_rule_and_the_way_out() -> None:
    assert bad(LINE, '{"id":"a","ts":1,"x":"2"}').message == 'x is "2": send a number, without quotes'
    assert "append Z or +01:00" in bad(LINE, '{"id":"a","ts":"2023-11-14T22:13:20","x":2}').message


def test_a_message_is_short_and_can_be_written_as_utf_8() -> None:
    message = bad(LINE, '{"id":"a","ts":1,"x":"\\ud800' + "y" * 10_000 + '"}').message

    assert len(message.encode()) < 200


def test_a_bad_record_takes_nothing_from_its_neighbours() -> None:
    decoded = decode(
        LINE, '{"id":"a","ts":1,"x":2}', "x", '{"id":"\\u00e9","ts":3,"x":4}', None, '{"id":"c","ts":5,"x":6}'
    )

    assert decoded.rows.tolist() == [0, 2, 4]
    assert [decoded.readings.ids.text(i) for i in range(3)] == ["a", "é", "c"]
    assert decoded.readings.values.tolist() == [[2.0, 4.0, 6.0]]
    assert [(record.row, record.code) for record in decoded.bad] == [(1, "not_json"), (3, "not_json")]


def test_no_records_are_no_readings() -> None:
    decoded = decode(PLANE)

    assert (len(decoded.readings), decoded.readings.values.shape, decoded.bad) == (0, (2, 0), [])


def test_a_null_record_is_bad_whatever_bytes_arrow_keeps_for_it() -> None:
    record = b'{"id":"a","ts":1,"x":2}'
    starts = pa.py_buffer(np.array([0, len(record)], np.int32))
    hidden = pa.Array.from_buffers(pa.binary(), 1, [pa.py_buffer(b"\x00"), starts, pa.py_buffer(record)])

    decoded = Decoder(LINE).decode(None, hidden, np.zeros(1, np.int64))

    assert [record.code for record in decoded.bad] == [DeadLetterCode.NOT_JSON]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a,1700000000000,1.5,2", ("a", 1_700_000_000_000, [1.5, 2.0])),
        ("a,1700000000000,1.5,2,tech\r\n", ("a", 1_700_000_000_000, [1.5, 2.0])),
        ('"a,b",1,2,3', ("a,b", 1, [2.0, 3.0])),
        ("17,2023-11-14T22:13:20Z, +.5 ,5.", ("17", 1_700_000_000_000, [0.5, 5.0])),
        (" a ,1,007,1E3,", (" a ", 1, [7.0, 1000.0])),
    ],
)
def test_a_line_is_a_reading_in_the_order_of_the_feeds_fields(
    line: str, expected: tuple[str, int, list[float]]
) -> None:
    assert reading(LINES, line) == expected


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("", "not_json"),
        ('"a,1,2,3', "not_json"),
        ("a,1,2,3\nb,1,2,3", "not_json"),
        ("a,1,2,3,tech,more", "not_json"),
        ("a,1,2", "missing_field"),
        ("a,1,,3", "missing_field"),
        (",1,2,3", "missing_field"),
        ("a,1,x,3", "wrong_type"),
        ("a,1,1_000,3", "wrong_type"),
        ("a,soon,2,3", "wrong_type"),
        ("a,1,NaN,3", "not_finite"),
        ("a,1,2,-inf", "not_finite"),
        ("a,1,1e999,3", "not_finite"),
        ("a,1e15,2,3", "out_of_range"),
        ("a" * 1025 + ",1,2,3", "too_large"),
    ],
)
def test_a_bad_line_has_one_code(line: str, code: str) -> None:
    assert bad(LINES, line).code == code


def test_a_long_cell_that_no_field_wants_is_no_reason_to_differ_from_the_csv_module() -> None:
    assert bad(LINES, "a,1,2,3," + "x" * 131_073).code is DeadLetterCode.NOT_JSON
    assert reading(LINES, "a,1,2,3," + "x" * 131_072)[0] == "a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"bus"', '"bus"'),
        ('"5"', '"5"'),
        ('"\\u00e9\\u002f"', '"é/"'),
        ('"a\\tb"', '"a\\tb"'),
        ("5", "5.0"),
        ("50e-1", "5.0"),
        ("-0", "0.0"),
        ("0.1", "0.1"),
        ("9007199254740993", "9007199254740992.0"),
        ("true", "true"),
        ("false", "false"),
        ("null", "null"),
        ("[1]", "-"),
        ('{"a":1}', "-"),
        ("1e400", "-"),
    ],
)
def test_an_attribute_is_a_text_that_equal_json_values_share(value: str, text: str) -> None:
    record = f'{{"id":"a","ts":1,"x":2,"line":1,"kind":{value}}}'

    assert attributes(BUSES, record) == [[text, "1.0"]]
    # The exact path: an escaped name alone takes a record there.
    assert attributes(BUSES, record.replace('"id"', '"\\u0069d"')) == [[text, "1.0"]]


def test_an_attribute_that_a_record_does_not_have_is_null() -> None:
    records = ['{"id":"a","ts":1,"x":2,"kind":"bus"}', '{"id":"a","ts":1,"x":2}', '{"line":7,"id":"a","ts":1,"x":2}']

    assert attributes(BUSES, *records) == [['"bus"', "null"], ["null", "null"], ["null", "7.0"]]


def test_a_text_of_attributes_is_there_once_however_it_was_written() -> None:
    decoded = decode(
        BUSES,
        '{"id":"a","ts":1,"x":2,"kind":"é","line":5}',
        "no reading",
        '{"id":"a","ts":1,"x":2,"kind":"\\u00e9","line":5.0}',
        '{"\\u0069d":"a","ts":1,"x":2,"kind":"é","line":5e0}',
    )

    found = decoded.readings.attributes
    assert found is not None
    assert [found.texts[code] for code in found.codes.tolist()] == ['"é"\x1f5.0'] * 3
    assert found.texts.count('"é"\x1f5.0') == 1


def test_an_attribute_that_is_half_a_surrogate_pair_can_be_written_as_utf_8() -> None:
    (texts,) = attributes(BUSES, '{"id":"a","ts":1,"x":2,"kind":"\\ud800"}')

    assert texts[0].encode()


@pytest.mark.parametrize(
    ("cell", "text"),
    [("tech", '"tech"'), (" tech ", '" tech "'), ("a\\b", '"a\\\\b"'), ("007", "7.0"), (" +5 ", "5.0"), ("", "null")],
)
def test_an_attribute_of_a_line_is_a_number_where_it_reads_as_one(cell: str, text: str) -> None:
    assert attributes(LINES, f"a,1,2,3,{cell}") == [[text]]
    assert attributes(LINES, f'"a",1,2,3,{cell}') == [[text]]


def test_a_line_may_end_before_its_attributes() -> None:
    assert attributes(LINES, "a,1,2,3", '"a",1,2,3') == [["null"], ["null"]]


def test_a_feed_without_attributes_has_no_column_of_them() -> None:
    assert decode(LINE, '{"id":"a","ts":1,"x":2}').readings.attributes is None


def test_the_antimeridian_has_one_longitude() -> None:
    for number in ("180", "180.0", "-180"):
        assert reading(GLOBE, f'{{"id":"a","ts":1,"lon":{number},"lat":-90}}')[2] == [-180.0, -90.0]
        assert reading(GLOBE, f'{{"\\u0069d":"a","ts":1,"lon":{number},"lat":-90}}')[2] == [-180.0, -90.0]


@pytest.mark.parametrize(("lon", "lat"), [("180.1", "0"), ("-181", "0"), ("0", "90.1"), ("0", "-91"), ("1e300", "0")])
def test_a_place_that_is_not_on_the_globe_is_out_of_range(lon: str, lat: str) -> None:
    assert bad(GLOBE, f'{{"id":"a","ts":1,"lon":{lon},"lat":{lat}}}').code is DeadLetterCode.OUT_OF_RANGE


def test_a_place_that_is_not_on_the_globe_is_named_with_its_limits() -> None:
    assert bad(GLOBE, '{"id":"a","ts":1,"lon":50,"lat":91}').message == (
        "lat is 91.0: the feed's space is lonlat, where it lies between -90 and 90 degrees; send degrees, and name the "
        "longitude first in dimensions"
    )


def test_a_reading_may_be_ahead_of_its_record_as_far_as_the_feed_allows() -> None:
    feed = Feed("f", "f", "id", ("x",), "ts", max_future_ms=1_000)

    assert reading(feed, f'{{"id":"a","ts":{RECORD_TIME + 1_000},"x":2}}')[1] == RECORD_TIME + 1_000
    letter = bad(feed, f'{{"id":"a","ts":{RECORD_TIME + 1_001},"x":2}}')
    assert letter.code is DeadLetterCode.OUT_OF_RANGE
    assert letter.message == (
        "ts is 1600000001001, 1001 ms ahead of the record's own timestamp 1600000000000; the feed's max_future allows "
        '1000 ms: correct the producer\'s clock or unit, allow more, or set max_future = "off"'
    )


def test_a_record_without_a_timestamp_has_nothing_to_be_ahead_of() -> None:
    feed = Feed("f", "f", "id", ("x",), "ts", max_future_ms=1_000)

    for value in (b'{"id":"a","ts":1700000000000,"x":2}', b'{"\\u0069d":"a","ts":1700000000000,"x":2}'):
        decoded = Decoder(feed).decode(None, pa.array([value], pa.binary()), np.array([-1]))
        assert (decoded.bad, decoded.readings.event_times.tolist()) == ([], [1_700_000_000_000])


UNITS = {unit: Feed("f", "f", "id", ("x",), "ts", event_time_unit=unit) for unit in (None, *TimeUnit)}


@pytest.mark.parametrize(
    ("unit", "text", "milliseconds"),
    [
        (TimeUnit.S, "1557989535", 1_557_989_535_000),
        (TimeUnit.S, "1557989535.123", 1_557_989_535_123),
        (TimeUnit.S, "1557989535.1239999999", 1_557_989_535_123),
        (TimeUnit.S, "1.557989535123e9", 1_557_989_535_123),
        (TimeUnit.S, "1557989535123e-3", 1_557_989_535_123),
        (TimeUnit.S, "-0.0001", -1),
        (TimeUnit.S, "-1e-30", -1),
        (TimeUnit.S, "-1.5", -1_500),
        (TimeUnit.S, "0", 0),
        (TimeUnit.S, "-62135596800", -62_135_596_800_000),
        (TimeUnit.S, "253402300799.9999999999999999999999999", 253_402_300_799_999),
        (TimeUnit.S, '"2023-11-14T22:13:20.25Z"', 1_700_000_000_250),
        (TimeUnit.MS, "1557989535", 1_557_989_535),
        (TimeUnit.US, "1557989535123999", 1_557_989_535_123),
        (TimeUnit.US, "-1", -1),
        (TimeUnit.NS, "1557989535123456789", 1_557_989_535_123),
        (TimeUnit.NS, "1557989535123999999.99", 1_557_989_535_123),
        (TimeUnit.NS, "-1557989535123000001", -1_557_989_535_124),
        (TimeUnit.NS, "1.557989535123456789e18", 1_557_989_535_123),
        (TimeUnit.NS, "253402300799999999999", 253_402_300_799_999),  # beyond an int64
        (None, "1557989535123", 1_557_989_535_123),
        (None, "1.557989535123e12", 1_557_989_535_123),
        (None, "100000000000", 100_000_000_000),
        (None, "100000000000000", 100_000_000_000_000),
        (None, '"1970-01-01T00:00:00Z"', 0),
        (None, '"0001-01-01T00:00:00Z"', -62_135_596_800_000),
        (None, '"9999-12-31T23:59:59.999Z"', 253_402_300_799_999),
    ],
)
def test_a_number_is_read_in_the_unit_of_the_feed(unit: TimeUnit | None, text: str, milliseconds: int) -> None:
    assert reading(UNITS[unit], f'{{"id":"a","ts":{text},"x":2}}')[1] == milliseconds
    assert reading(UNITS[unit], f'{{"\\u0069d":"a","ts":{text},"x":2}}')[1] == milliseconds


@pytest.mark.parametrize(
    ("unit", "text", "part"),
    [
        (None, "1557989535", 'below 10^11 is probably seconds; set event_time_unit = "s"'),
        (None, "99999999999.9", 'event_time_unit = "s"'),
        (None, "0", 'event_time_unit = "s"'),
        (None, "-1557989535123", 'or "ms" if these are milliseconds'),
        (None, "1557989535123456", 'above 10^14 is probably microseconds; set event_time_unit = "us"'),
        (None, "100000000000001", 'event_time_unit = "us"'),
        (None, "1557989535123456789", 'probably nanoseconds; set event_time_unit = "ns"'),
        (None, "1e300", 'event_time_unit = "ns"'),
        (TimeUnit.S, "253402300800", "ts is 253402300800 s: years 1 to 9999 are read"),
        (TimeUnit.S, "1557989535123", "years 1 to 9999"),
        (TimeUnit.S, "1e308", "years 1 to 9999"),
        (TimeUnit.NS, "-62135596800000000000.1", "years 1 to 9999"),
    ],
)
def test_a_number_that_is_probably_of_another_unit_is_out_of_range(unit: TimeUnit | None, text: str, part: str) -> None:
    letter = bad(UNITS[unit], f'{{"id":"a","ts":{text},"x":2}}')

    assert letter.code is DeadLetterCode.OUT_OF_RANGE
    assert part in letter.message


@pytest.mark.parametrize("exponent", ["-9999999999", "-" + "9" * 40])
def test_a_tiny_number_is_a_time_however_long_its_exponent_is(exponent: str) -> None:
    assert reading(UNITS[TimeUnit.S], f'{{"id":"a","ts":1e{exponent},"x":2}}')[1] == 0
    assert reading(UNITS[TimeUnit.S], f'{{"id":"a","ts":-1e{exponent},"x":2}}')[1] in (-1, 0)


def test_the_unit_holds_for_lines_and_not_for_the_time_of_the_record() -> None:
    seconds = replace(LINES, event_time_unit=TimeUnit.S)

    for cell in ("1557989535.25", " +1557989535.25 ", '"1557989535.25"', "2019-05-16T06:52:15.250Z"):
        assert reading(seconds, f"a,{cell},1,2")[1] == 1_557_989_535_250
    assert bad(replace(LINES, event_time_unit=None), "a,1557989535,1,2").code is DeadLetterCode.OUT_OF_RANGE
    assert reading(replace(BY_RECORD_TIME, event_time_unit=TimeUnit.S), '{"id":"a","x":2}')[1] == RECORD_TIME


def test_a_byte_order_mark_before_a_record_is_dropped_and_elsewhere_it_is_a_character() -> None:
    assert reading(LINE, '\ufeff{"id":"\ufeffa","ts":1,"x":2}') == ("\ufeffa", 1, [2.0])
    assert reading(LINE, '\ufeff {"\\u0069d":"a","ts":1,"x":2}') == ("a", 1, [2.0])
    assert reading(LINES, "\ufeffa,1,2,3") == ("a", 1, [2.0, 3.0])
    assert reading(LINES, '\ufeff"a,b",1,2,3') == ("a,b", 1, [2.0, 3.0])
    assert reading(LINES, "\ufeff\ufeffa,1,2,3,\ufeffx") == ("\ufeffa", 1, [2.0, 3.0])
    assert attributes(LINES, "\ufeffa,1,2,3,\ufeffx") == [['"\ufeffx"']]


@pytest.mark.parametrize("feed", [LINE, LINES])
@pytest.mark.parametrize("value", ["", " ", "\n", " \r\n\t", "\ufeff", "\ufeff \n"])
def test_a_record_without_content_is_said_to_be_empty(feed: Feed, value: str) -> None:
    letter = bad(feed, value)

    assert letter.code is DeadLetterCode.NOT_JSON
    assert "it is empty" in letter.message


@pytest.mark.parametrize("schema_id", [b"\0\0\0\x07", b"\0\0\x01\xff"])
def test_json_behind_the_bytes_of_a_schema_registry_is_named(schema_id: bytes) -> None:
    letter = bad(LINE, b"\0" + schema_id + b' {"id":"a","ts":1,"x":2}')

    assert letter.code is DeadLetterCode.NOT_JSON
    assert f"schema registry (0x00 and the schema id {int.from_bytes(schema_id)})" in letter.message


def test_an_id_without_characters_is_no_id() -> None:
    for letter in (bad(LINES, ",1,2,3"), bad(LINES, '"",1,2,3'), bad(BY_KEY, '{"ts":1,"x":2}', key=b"")):
        assert letter.code is DeadLetterCode.MISSING_FIELD
    assert 'id is "": a text of no characters' in bad(LINE, '{"id":"","ts":1,"x":2}').message
    assert reading(LINES, " ,1,2,3")[0] == " "
