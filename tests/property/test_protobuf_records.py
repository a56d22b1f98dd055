"""A Protobuf record gives the reading that its fields give in JSON."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bmq.config.feed_section import FeedSection
from bmq.errors import DeadLetterCode
from bmq.records import Feed, Format
from bmq.wire.protobuf_records import protobuf_schema
from bmq.wire.readings import Decoded, Decoder
from tests.decoded_readings import shown
from tests.fleet_messages import DESCRIPTORS, reading_class

RECORD_TIME = 1_700_000_000_000


READING: Any = reading_class()
SCHEMA = protobuf_schema(DESCRIPTORS.SerializeToString(), "fleet.Reading")
FEED = Feed(
    "f", "f", "id", ("location.x", "y"), "ts", Format.PROTOBUF, ("colour", "flag"), event_time_unit=None, schema=SCHEMA
)


def decode(feed: Feed, records: list[bytes]) -> Decoded:
    return Decoder(feed).decode(None, pa.array(records, pa.binary()), np.full(len(records), RECORD_TIME))


fields = st.fixed_dictionaries(
    {"id": st.text(max_size=3), "ts": st.sampled_from([RECORD_TIME, 0, 2**62]), "y": st.integers(-(2**31), 2**31 - 1)},
    optional={
        "x": st.floats(allow_nan=False, allow_infinity=False),
        "colour": st.sampled_from(["RED", "GREEN"]),
        "flag": st.booleans(),
    },
)


@given(batch=st.lists(fields, min_size=1, max_size=4))
def test_a_protobuf_record_is_the_reading_that_its_fields_are_in_json(batch: list[dict[str, Any]]) -> None:
    records, texts = [], []
    for one in batch:
        x = {"location": {"x": one["x"]}} if "x" in one else {}
        message = READING(**{name: value for name, value in one.items() if name != "x"}, **x, tags=["a"], raw=b"1")
        records.append(message.SerializeToString())
        # What is not set has its default, unless it is a message.
        texts.append(json.dumps({"colour": "RED", "flag": False, **one, **x}).encode())
    in_json = Feed(**{name: getattr(FEED, name) for name in FEED.__slots__} | {"format": Format.JSON, "schema": ""})

    decoded, expected = decode(FEED, records), decode(in_json, texts)

    assert shown(decoded) == shown(expected)
    assert decoded.bad == expected.bad


def test_a_timestamp_is_an_event_time() -> None:
    feed = Feed("f", "f", "id", ("y",), "at", Format.PROTOBUF, ("flag",), schema=SCHEMA)
    message = READING(id="a", y=5)
    message.at.FromMilliseconds(RECORD_TIME + 250)

    decoded = decode(feed, [message.SerializeToString(), READING(id="a").SerializeToString()])

    assert decoded.readings.event_times.tolist() == [RECORD_TIME + 250]
    assert [bad.code for bad in decoded.bad] == [DeadLetterCode.MISSING_FIELD]


@pytest.mark.parametrize("record", [b"\xff", b"\x0a\x05ab", READING(id="a", ts=RECORD_TIME).SerializeToString()[:-1]])
def test_bytes_that_are_no_message_are_dead_letters(record: bytes) -> None:
    assert [bad.code for bad in decode(FEED, [record]).bad] == [DeadLetterCode.NOT_JSON]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"dimensions": ["location.z"]}, "no field location.z"),
        ({"dimensions": ["location"]}, "the message has a message as location; a dimension is a number"),
        ({"dimensions": ["tags"]}, "a list or a map as tags"),
        ({"stream_id": "raw"}, "bytes as raw; a stream id is"),
        ({"event_time": "location"}, "an event time is"),
        ({"message": "fleet.Readings"}, "no message fleet.Readings. Did you mean 'fleet.Reading'?"),
        ({"message": None}, "need each other"),
        ({"schema_file": None}, "needs schema_file"),
        ({"schema_file": __file__}, "no descriptor set"),
        ({"readings": "tags"}, 'is not built for "protobuf"'),
    ],
)
def test_a_descriptor_set_that_does_not_fit_the_feed_is_refused(
    tmp_path: Path, options: dict[str, Any], shown: str
) -> None:
    path = tmp_path / "fleet.desc"
    path.write_bytes(DESCRIPTORS.SerializeToString())
    own = {"topic": "t", "format": "protobuf", "schema_file": str(path), "message": "fleet.Reading"}
    good = {**own, "stream_id": "id", "event_time": "at", "dimensions": ["location.x"], "attributes": ["colour"]}

    assert FeedSection.model_validate(good).record("f").format is Format.PROTOBUF
    with pytest.raises(ValidationError, match=re.escape(shown)):
        FeedSection.model_validate({**good, **options})
