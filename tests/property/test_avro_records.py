"""An Avro record gives the reading, or the dead letter, that its fields as fastavro reads them give in JSON."""

import io
import json
import math
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.errors import DeadLetterCode, ReadingError
from bmq.records import Feed, Format, TimeUnit
from bmq.wire.feed_fields import scanned_fields
from bmq.wire.readings import BadRecord, Decoded, Decoder
from bmq.wire.readings_exact import ExactDecoder
from bmq.wire.readings_fast import BinaryColumn, FastDecoder
from tests.decoded_readings import shown

LIMIT = 400  # small, so that records meet it
RECORD_TIME = 1_700_000_000_000
COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}

numbers = st.sampled_from(["int", "long", "float", "double"])
nullable = st.booleans()
fillers = st.recursive(
    st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string", "FIXED", "ENUM"]),
    lambda inner: st.one_of(
        inner.map(lambda t: {"type": "array", "items": "int" if t == "null" else t}),
        inner.map(lambda t: {"type": "map", "values": t}),
        inner.map(lambda t: ["null", t] if not isinstance(t, list) and t != "null" else t),
        st.lists(inner, min_size=1, max_size=3).map(lambda types: {"type": "record", "fields": types}),
    ),
    max_leaves=6,
)


class Namer:
    """Gives each record, enum and fixed a name, and each field."""

    def __init__(self) -> None:
        self.n = 0

    def next(self, prefix: str) -> str:
        self.n += 1
        return f"{prefix}{self.n}"

    def named(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self.named(branch) for branch in schema]
        if isinstance(schema, dict):
            if schema["type"] == "record":
                fields = [{"name": self.next("f"), "type": self.named(t)} for t in schema["fields"]]
                # A number first: an array of nothing but nulls is refused.
                fields.insert(0, {"name": self.next("f"), "type": "int"})
                return {"type": "record", "name": self.next("R"), "namespace": "n.s", "fields": fields}
            inner = "items" if schema["type"] == "array" else "values"
            return {**schema, inner: self.named(schema[inner])}
        if schema == "FIXED":
            return {"type": "fixed", "name": self.next("F"), "size": 1 + self.n % 3}
        if schema == "ENUM":
            return {"type": "enum", "name": self.next("E"), "symbols": ["A", "B", "C"]}
        return schema


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of the values of a type."""
    if isinstance(schema, list):
        return st.one_of([values_of(branch) for branch in schema])
    if isinstance(schema, dict):
        kind = schema["type"]
        if kind == "record":
            return st.fixed_dictionaries({f["name"]: values_of(f["type"]) for f in schema["fields"]})
        if kind == "array":
            return st.lists(values_of(schema["items"]), max_size=3)
        if kind == "map":
            return st.dictionaries(st.text(max_size=3), values_of(schema["values"]), max_size=3)
        if kind == "fixed":
            return st.binary(min_size=schema["size"], max_size=schema["size"])
        return st.sampled_from(schema["symbols"]) if kind == "enum" else values_of(kind)
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([RECORD_TIME, 2**53, 2**53 + 1, -(2**53)]),
        "float": st.floats(width=32) | st.sampled_from([180.0, -180.0, 90.0]),
        "double": st.floats() | st.sampled_from([180.0, -0.0, 1e22, RECORD_TIME + 0.9]),
        "bytes": st.binary(max_size=5),
        "string": st.text(max_size=5) | st.sampled_from(["2023-11-14T22:13:20.25+01:00", "a\x1fb", "a" * 1025, "ü"]),
    }[schema]


@st.composite
def batches(draw: st.DrawFn) -> tuple[Feed, Any, list[bytes]]:
    """Return a feed, its schema and records of it."""
    namer = Namer()

    def maybe(schema: Any) -> Any:
        return draw(st.sampled_from([schema, ["null", schema], [schema, "null"]]))

    def fields(types: dict[str, Any]) -> list[dict[str, Any]]:
        named = [{"name": name, "type": t} for name, t in types.items()]
        for _ in range(draw(st.integers(0, 2))):
            filler = {"name": namer.next("f"), "type": namer.named(draw(fillers))}
            named.insert(draw(st.integers(0, len(named))), filler)
        return named

    inner = {"type": "record", "name": "Location", "fields": fields({"lat": maybe(draw(numbers))})}
    outer = {
        "ts": maybe(draw(st.sampled_from(["long", "long", "int", "float", "double", "string"]))),
        "id": maybe(draw(st.sampled_from(["string", "string", "long", "double", COLOURS]))),
        "lon": maybe(draw(numbers)),
        "location": maybe(inner),
        "kind": maybe(draw(st.sampled_from(["string", "string", "boolean", "int", "double"]))),
    }
    order = draw(st.permutations(list(outer)))
    schema: dict[str, Any] = {
        "type": "record",
        "name": "Reading",
        "fields": fields({name: outer[name] for name in order}),
    }
    feed = Feed(
        "f",
        "f",
        draw(st.sampled_from(["id", "id", "@key"])),
        ("lon", "location.lat"),
        draw(st.sampled_from(["ts", "ts", None])),
        Format.AVRO,
        draw(st.sampled_from([(), ("kind",), ("kind", "other")])),
        lonlat=draw(st.booleans()),
        event_time_unit=draw(st.sampled_from([None, *TimeUnit])),
        max_future_ms=draw(st.sampled_from([None, 1000])),
        schema=json.dumps(schema),
    )
    if "other" in feed.attributes:
        schema["fields"].append({"name": "other", "type": "string"})
        feed = Feed(**{name: getattr(feed, name) for name in feed.__slots__} | {"schema": json.dumps(schema)})
    values = draw(st.lists(values_of(schema), min_size=1, max_size=5))
    return feed, schema, [written(schema, value) for value in values]


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read_by_fastavro(schema: Any, record: bytes) -> dict[str, Any]:
    stream = io.BytesIO(record)
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert stream.tell() == len(record)
    assert isinstance(found, dict)
    return found


def as_json(fields: dict[str, Any], feed: Feed) -> bytes:
    """Return the record as flat JSON, each field of the feed under its path."""
    flat: dict[str, Any] = {}
    for path in set(scanned_fields(feed)):
        value: Any = fields
        for name in path.split("."):
            value = None if value is None else value[name]
        flat[path] = value
    return json.dumps(flat).encode()


def decode(feed: Feed, records: list[bytes]) -> Decoded:
    keys = pa.array([b"key"] * len(records), pa.binary())
    times = np.full(len(records), RECORD_TIME)
    return Decoder(feed, LIMIT).decode(keys, pa.array(records, pa.binary()), times)


@given(batch=batches())
def test_an_avro_record_is_the_reading_that_its_fields_are_in_json(batch: tuple[Feed, Any, list[bytes]]) -> None:
    feed, schema, records = batch
    found = [read_by_fastavro(schema, record) for record in records]
    in_json = Feed(**{name: getattr(feed, name) for name in feed.__slots__} | {"format": Format.JSON, "schema": ""})
    texts = [as_json(fields, feed) for fields in found]
    # JSON has no NaN, and its own limit of bytes: such records have no counterpart there.
    comparable = [
        i
        for i, text in enumerate(texts)
        if b"NaN" not in text and b"Infinity" not in text and len(text) <= LIMIT and len(records[i]) <= LIMIT
    ]

    decoded = decode(feed, [records[i] for i in comparable])
    expected = decode(in_json, [texts[i] for i in comparable])

    assert shown(decoded) == shown(expected)
    assert decoded.bad == expected.bad


@given(batch=batches(), edit=st.tuples(st.integers(0, 500), st.integers(0, 8), st.binary(max_size=12)))
def test_wrong_bytes_are_dead_letters_on_both_paths(
    batch: tuple[Feed, Any, list[bytes]], edit: tuple[int, int, bytes]
) -> None:
    feed, schema, records = batch
    at, n_removed, added = edit
    broken = [
        record[: at % (len(record) + 1)] + added + record[at % (len(record) + 1) + n_removed :] for record in records
    ]

    assert_both_paths_agree(feed, schema, broken)


def assert_both_paths_agree(feed: Feed, schema: Any, broken: list[bytes]) -> None:
    decoded = decode(feed, broken)

    exact = ExactDecoder(feed, LIMIT)
    good, bad = [], []
    for row, record in enumerate(broken):
        try:
            reading = exact.decode(b"key", record, RECORD_TIME)
        except ReadingError as error:
            bad.append(BadRecord(row, error.code, str(error)))
        else:
            good.append(
                (row, reading.stream_id.decode(), reading.event_time, repr(list(reading.values)), reading.attributes)
            )
            read_by_fastavro(schema, record)  # what we accept, fastavro accepts, to its last byte
    assert shown(decoded) == good
    assert decoded.bad == bad


PLAIN: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "location",
            "type": ["null", {"type": "record", "name": "L", "fields": [{"name": "x", "type": ["null", "double"]}]}],
        },
        {"name": "sector", "type": ["null", "string"]},
    ],
}
PLAIN_VALUE = {
    "id": "v1",
    "tags": ["a", "b"],
    "ts": RECORD_TIME,
    "location": {"x": 1.5},
    "sector": "tech",
}
PLAIN_FEED = Feed("f", "f", "id", ("location.x",), "ts", Format.AVRO, ("sector",), schema=json.dumps(PLAIN))


# What the fast path is for. Without this, a scan that knew nothing would pass the rules above.
@pytest.mark.parametrize("unit", list(TimeUnit))
def test_ordinary_records_are_decoded_without_python(unit: TimeUnit) -> None:
    feed = Feed(**{name: getattr(PLAIN_FEED, name) for name in PLAIN_FEED.__slots__} | {"event_time_unit": unit})
    time = {TimeUnit.S: 1_700_000_000, TimeUnit.MS: RECORD_TIME, TimeUnit.US: RECORD_TIME * 1000 + 999}.get(
        unit, RECORD_TIME * 1_000_000 + 999_999
    )
    values = pa.array([written(PLAIN, PLAIN_VALUE | {"ts": time})], pa.binary())

    columns = FastDecoder(feed, LIMIT).decode(None, BinaryColumn.of(values), np.zeros(1, np.int64))

    assert columns.plain.all()
    assert columns.event_times.tolist() == [RECORD_TIME]
    assert columns.values.tolist() == [[1.5]]


def test_a_number_that_is_not_finite_is_a_dead_letter() -> None:
    decoded = decode(PLAIN_FEED, [written(PLAIN, PLAIN_VALUE | {"location": {"x": x}}) for x in (math.nan, math.inf)])

    assert [bad.code for bad in decoded.bad] == [DeadLetterCode.NOT_FINITE] * 2


def test_the_wire_format_of_a_registry_is_a_dead_letter() -> None:
    decoded = decode(PLAIN_FEED, [b"\x00\x00\x00\x00\x07" + written(PLAIN, PLAIN_VALUE)])

    assert [bad.code for bad in decoded.bad] == [DeadLetterCode.NOT_JSON]
    assert "schema registry" in decoded.bad[0].message


@pytest.mark.parametrize("record", [b"", b"\xff" * 20, b"\x01", b"\x04v1\x01\x01"])
def test_bytes_that_are_no_record_are_dead_letters(record: bytes) -> None:
    decoded = decode(PLAIN_FEED, [record])

    assert [bad.code for bad in decoded.bad] == [DeadLetterCode.NOT_JSON]


ODD = {
    "type": "record",
    "name": "Reading",
    "fields": [
        # fastavro would turn a logical time to a datetime, which has fewer years than 64 bits.
        *(field | {"type": "long"} if field["name"] == "ts" else field for field in PLAIN["fields"]),
        {"name": "flag", "type": "boolean"},
        {"name": "colour", "type": COLOURS},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "by_name", "type": {"type": "map", "values": "float"}},
        {"name": "y", "type": "float"},
    ],
}
ODD_VALUE = PLAIN_VALUE | {
    "flag": True, "colour": "GREEN", "raw": b"12", "four": b"1234", "by_name": {"ü": 1.0}, "y": 0.1,
}  # fmt: skip
ODD_FEED = Feed("f", "f", "id", ("location.x", "y"), "ts", Format.AVRO, ("sector",), schema=json.dumps(ODD))


def test_each_byte_of_a_record_may_be_changed_left_out_or_added() -> None:
    record = written(ODD, ODD_VALUE)
    broken = [record]
    for at in range(len(record) + 1):
        broken += [record[:at], record[:at] + record[at + 1 :]]
        for byte in (0, 1, 2, 3, 4, 31, 0x7F, 0x80, 0xC3, 0xFF):
            added = bytes([byte])
            broken += [record[:at] + added + record[at:], record[:at] + added + record[at + 1 :]]

    assert_both_paths_agree(ODD_FEED, ODD, broken)


@pytest.mark.parametrize("text", ["", "a\x1fb", "\x1f", "ü", '"', "\\", "null", "5"])
def test_an_attribute_may_be_any_text(text: str) -> None:
    assert_both_paths_agree(ODD_FEED, ODD, [written(ODD, ODD_VALUE | {"sector": text})])


@pytest.mark.parametrize("unit", list(TimeUnit))
@pytest.mark.parametrize("time", [0, -1, -999, -1000, -1001, -(10**9) - 1, 2**53, 2**63 - 1, -(2**63), 253402300799])
def test_times_of_every_unit_are_rounded_down_on_both_paths(time: int, unit: TimeUnit) -> None:
    feed = Feed(**{name: getattr(ODD_FEED, name) for name in ODD_FEED.__slots__} | {"event_time_unit": unit})

    assert_both_paths_agree(feed, ODD, [written(ODD, ODD_VALUE | {"ts": time})])


def test_a_boolean_that_is_neither_0_nor_1_is_a_dead_letter() -> None:
    false, true = (written(ODD, ODD_VALUE | {"flag": flag}) for flag in (False, True))
    (at,) = (i for i, (one, other) in enumerate(zip(false, true, strict=True)) if one != other)

    decoded = decode(ODD_FEED, [true, true[:at] + b"\x02" + true[at + 1 :]])

    assert decoded.rows.tolist() == [0]
    assert [(bad.row, bad.code) for bad in decoded.bad] == [(1, DeadLetterCode.NOT_JSON)]
