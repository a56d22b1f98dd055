"""Records that name their schemas give what the same records give a feed with each schema in a file."""

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bmq.errors import DeadLetterCode, ReadingError
from bmq.records import Feed, Format, TimeUnit
from bmq.wire.readings import BadRecord, Decoder
from bmq.wire.registry_records import ExactRegistryDecoder, RegistryDecoder
from tests.registry import framed

LIMIT = 200  # small, so that records meet it
RECORD_TIME = 1_700_000_000_000
OLD: dict[str, Any] = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "id", "type": "string"}, {"name": "ts", "type": "long"}, {"name": "x", "type": "double"}],
}
NEW: dict[str, Any] = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "x", "type": ["null", "double"]},
        {"name": "sector", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "id", "type": "string"},
    ],
}
NO_X = {**OLD, "fields": OLD["fields"][:2]}
SCHEMAS = {1: OLD, 256: NEW, 2**31 + 5: NO_X}
FEED = Feed("f", "f", "id", ("x",), "ts", Format.AVRO, ("sector",), event_time_unit=None, registry=True)

streams = st.sampled_from(["a", "b", "", "ü" * 600])
numbers = st.sampled_from([0.0, 1.5, float("inf")])
seconds = st.integers(0, 9)


def source(schema_id: int) -> str:
    if schema_id not in SCHEMAS:
        raise ValueError("the registry has none with this id")
    return json.dumps(SCHEMAS[schema_id])


def written(schema_id: int, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    plain = {
        **SCHEMAS[schema_id],
        "fields": [{**one, "type": _plain(one["type"])} for one in SCHEMAS[schema_id]["fields"]],
    }
    fastavro.schemaless_writer(out, fastavro.parse_schema(plain), value)
    return framed(schema_id, out.getvalue())


def _plain(schema: Any) -> Any:
    return schema["type"] if isinstance(schema, dict) else schema


old = st.builds(lambda id, s, x: written(1, {"id": id, "ts": RECORD_TIME + s, "x": x}), streams, seconds, numbers)
new = st.builds(
    lambda id, s, x, sector: written(256, {"id": id, "ts": (RECORD_TIME + s) * 1000, "x": x, "sector": sector}),
    streams,
    seconds,
    numbers | st.none(),
    st.sampled_from(["tech", "a" * 300]),
)
no_x = st.builds(lambda id: written(2**31 + 5, {"id": id, "ts": RECORD_TIME}), streams)
whole = st.one_of(old, old, new, new, no_x)
cut = st.builds(lambda record, n: record[:n], whole, st.integers(0, 8))
records = st.one_of(
    whole, whole, whole, cut, st.none(), st.sampled_from([b"\0", framed(9, b"x"), b"\1\0\0\0\1", b"{}"])
)


@given(batch=st.lists(records, max_size=8), n_hidden=st.integers(0, 2))
def test_a_batch_decodes_like_its_records_one_by_one(batch: list[bytes | None], n_hidden: int) -> None:
    times = np.arange(len(batch)) + RECORD_TIME
    values = pa.array([b"\0hidden"] * n_hidden + batch, pa.binary()).slice(n_hidden)

    decoded = RegistryDecoder(FEED, source, LIMIT).decode(None, values, times)

    exact = ExactRegistryDecoder(FEED, source, LIMIT)
    good, bad = [], []
    for row, record in enumerate(batch):
        try:
            found = exact.decode(None, record, int(times[row]))
        except ReadingError as error:
            bad.append(BadRecord(row, error.code, str(error)))
        else:
            good.append(
                (row, found.stream_id.decode(), found.event_time, list(found.values), found.attributes, times[row])
            )
    readings = decoded.readings
    assert readings.attributes is not None
    assert [
        (
            row,
            readings.ids.text(i),
            readings.event_times[i],
            readings.values[:, i].tolist(),
            readings.attributes.texts[readings.attributes.codes[i]],
            readings.record_times[i],
        )
        for i, row in enumerate(decoded.rows.tolist())
    ] == good
    assert decoded.bad == bad
    assert len(good) + len(bad) == len(batch)


@given(batch=st.lists(old, min_size=1, max_size=5))
def test_a_record_with_a_header_is_the_record_behind_it(batch: list[bytes]) -> None:
    times = np.full(len(batch), RECORD_TIME)
    of_file = replace(FEED, registry=False, schema=json.dumps(OLD), attributes=())

    framed_one = RegistryDecoder(replace(FEED, attributes=()), source).decode(None, pa.array(batch), times)
    plain = Decoder(of_file).decode(None, pa.array([record[5:] for record in batch]), times)

    assert framed_one.rows.tolist() == plain.rows.tolist()
    assert framed_one.readings.values.tolist() == plain.readings.values.tolist()
    assert framed_one.readings.ids.hashes.tolist() == plain.readings.ids.hashes.tolist()
    assert framed_one.bad == plain.bad


def test_a_schema_decides_the_unit_and_may_lack_attributes_and_nothing_else() -> None:
    batch = [
        written(1, {"id": "a", "ts": RECORD_TIME, "x": 1.5}),
        written(256, {"id": "b", "ts": RECORD_TIME * 1000, "x": 2.5, "sector": "tech"}),
        written(2**31 + 5, {"id": "c", "ts": RECORD_TIME}),
        framed(9, b"\2a"),
    ]

    decoded = RegistryDecoder(FEED, source).decode(None, pa.array(batch), np.full(4, RECORD_TIME))

    assert decoded.readings.event_times.tolist() == [RECORD_TIME] * 2
    assert decoded.readings.attributes is not None
    texts = [decoded.readings.attributes.texts[code] for code in decoded.readings.attributes.codes]
    assert texts == ["null", '"tech"']
    assert [bad.code for bad in decoded.bad] == [DeadLetterCode.WRONG_TYPE, DeadLetterCode.NOT_JSON]
    assert "no field x" in decoded.bad[0].message
    assert "schema 9, but the registry has none" in decoded.bad[1].message


def test_a_schema_in_conflict_with_the_configured_unit_makes_dead_letters() -> None:
    feed = replace(FEED, event_time_unit=TimeUnit.S)
    record = written(256, {"id": "b", "ts": RECORD_TIME * 1000, "x": 2.5, "sector": "tech"})

    (bad,) = RegistryDecoder(feed, source).decode(None, pa.array([record]), np.full(1, RECORD_TIME)).bad

    assert bad.code is DeadLetterCode.WRONG_TYPE
    assert "ts is in us there" in bad.message
