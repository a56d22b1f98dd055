"""The dead-letter topic: the record as it came, and why it is no reading."""

import pyarrow as pa

from bmq.wire.dead_letters import LEFT_OUT, LONGEST_BYTES, render_dead_letters
from bmq.wire.outgoing import MESSAGE_SCHEMA
from tests.crossings import read_headers

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("feed", pa.string()),
    ]
)


def test_a_dead_letter_is_the_record_unchanged_with_its_place_and_fault_in_headers() -> None:
    rows = [
        (b"\xff", b"{not json", "stocks", 3, 2**40, "not_json", "no 'é' here", "stocks"),
        (None, None, "stocks", 0, 7, "no_stream_id", "", "stocks"),
    ]
    dead = pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    messages = render_dead_letters(dead, topic="bmq.dead-letter")
    assert messages.schema == MESSAGE_SCHEMA
    assert messages.column("topic").to_pylist() == ["bmq.dead-letter"] * 2
    assert messages.column("key").to_pylist() == [b"\xff", None]
    assert messages.column("value").to_pylist() == [b"{not json", None]
    assert read_headers(messages) == [
        {
            "topic": b"stocks",
            "partition": b"3",
            "offset": b"1099511627776",
            "code": b"not_json",
            "message": "no 'é' here".encode(),
        },
        {"topic": b"stocks", "partition": b"0", "offset": b"7", "code": b"no_stream_id", "message": b""},
    ]


def test_no_dead_letters_give_no_messages() -> None:
    messages = render_dead_letters(pa.RecordBatch.from_pylist([], SCHEMA), topic="t")
    assert (messages.num_rows, messages.schema) == (0, MESSAGE_SCHEMA)


def test_a_record_too_long_for_a_topic_is_named_and_left_out() -> None:
    fields = dict(zip(SCHEMA.names, (b"k", b"y", "stocks", 0, 7, "too_large", "too long", "stocks"), strict=True))
    letters = pa.RecordBatch.from_pylist([fields | {"value": b"x" * (LONGEST_BYTES + 1)}, fields], SCHEMA)

    messages = render_dead_letters(letters, topic="dead")

    assert messages.column("value").to_pylist() == [None, b"y"]
    notes = [headers["message"].decode().endswith(LEFT_OUT) for headers in read_headers(messages)]
    assert notes == [True, False]
