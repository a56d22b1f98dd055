"""What a decode task makes of Arrow batches of Kafka records: rows of frames, dead letters, marks."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.job.frame_rows import FRAME_SCHEMA, Kind
from bmq.job.plan import Plan
from bmq.records import NEVER, Delete, Feed, Installation, Readings
from bmq.records.column_records import concat
from bmq.wire.frames import unpack_commands, unpack_dead_letters, unpack_readings
from bmq.wire.marks import render_mark
from tests.blocks import decode_control, decode_readings

LATENESS = 10
FEEDS = {
    "held": Feed("held", "held-topic", "id", ("x",), "ts", attributes=("kind",), max_lateness_ms=LATENESS),
    "plain": Feed("plain", "plain-topic", "id", ("x",), "ts"),
    "joined": Feed("joined", "joined-topic", "id", ("x",), "ts", join=True),
    "several": Feed(
        "several",
        "north",
        "id",
        ("x",),
        "ts",
        attributes=("kind", "level", "source"),
        max_lateness_ms=LATENESS,
        more_topics=("south", "east"),
        constants=(("level", "5.0"),),
        topic_attribute="source",
    ),
    "fixed": Feed("fixed", "fixed-topic", "id", ("x",), "ts", attributes=("level",), constants=(("level", "true"),)),
}
KEYS = (70, 71, 72)
PLAN = Plan(
    run_id="run",
    installation=Installation(FEEDS, "bmq."),
    shard_keys=KEYS,
    start_offsets={},
    silent_tombstones_before=0,
    replies_topic="replies",
    events_topic="events",
    dead_letter_topic="dead",
    clock_topic="clock",
    membership_topic=None,
    events_key="stream_id",
    events_layout="crossing",
    client_options={},
    delivery_id="bmq-test",
    markers_topic=None,
)


def feed_records(
    feed: str, partition: int, first_offset: int, values: list[bytes], topic: str | None = None
) -> pa.RecordBatch:
    n = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(n, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": [topic or FEEDS[feed].topic] * n,
            "partition": pa.array([partition] * n, pa.int32()),
            "offset": np.arange(first_offset, first_offset + n),
            "timestamp": pa.array([1_700_000_000_000_000] * n, pa.timestamp("us", "UTC")),
        }
    )


def reading(event_time: int, stream: str = "a") -> bytes:
    return f'{{"id":"{stream}","ts":{event_time},"x":{event_time},"kind":"{event_time % 3}"}}'.encode()


def control_records(topic: str, values: Sequence[bytes | None]) -> pa.RecordBatch:
    n = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "topic": [topic] * n,
            "key": pa.array([b"q"] * n, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "offset": np.arange(40, 40 + n),
        }
    )


def run_readings(*batches: pa.RecordBatch) -> list[list[dict[str, Any]]]:
    """Return the rows of each batch, checked against what was promised to Spark."""
    found = list(decode_readings(PLAN)(batches))
    assert all(batch.schema == FRAME_SCHEMA for batch in found)
    return [batch.to_pylist() for batch in found]


def run_control(*batches: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for batch in decode_control(PLAN)(batches) for row in batch.to_pylist()]


def readings_of(rows: list[dict[str, Any]]) -> Readings:
    return concat([unpack_readings(row["frame"]) for row in rows if row["kind"] == Kind.READINGS])


def test_every_shard_gets_a_row_with_the_span_of_event_times_of_all() -> None:
    (rows,) = run_readings(feed_records("plain", 4, 17, [reading(5, "a"), reading(3, "b"), b"bad", reading(9, "c")]))

    assert [(row["shard"], row["kind"]) for row in rows] == [
        *((key, Kind.READINGS) for key in KEYS),
        (KEYS[4 % 3], Kind.DEAD_LETTERS),
    ]
    assert {(row["feed"], row["partition"], row["first_offset"], row["next_offset"]) for row in rows} == {
        ("plain", 4, 17, 21)
    }
    assert [(row["earliest"], row["latest"]) for row in rows] == [(3, 9)] * 3 + [(NEVER, NEVER)]
    assert unpack_dead_letters(rows[3]["frame"])["offset"].to_pylist() == [19]


def test_bad_records_move_no_clock() -> None:
    (rows,) = run_readings(feed_records("plain", 0, 0, [b"bad", b'{"id":"a","ts":9}']))

    assert {(row["earliest"], row["latest"]) for row in rows} == {(NEVER, NEVER)}


def test_a_feed_that_holds_nothing_back_has_no_partitions() -> None:
    (rows,) = run_readings(feed_records("plain", 0, 0, [reading(1000), reading(0)]))

    assert sorted(readings_of(rows).event_times.tolist()) == [0, 1000]
    assert readings_of(rows).partitions is None
    assert (rows[0]["earliest"], rows[0]["latest"]) == (0, 1000)


@given(batches=st.lists(st.lists(st.integers(-30, 30), max_size=8), max_size=4), partition=st.integers(0, 5))
@example(batches=[[100, 3]], partition=2)
def test_readings_of_a_feed_that_holds_them_back_have_their_partition_and_none_is_dropped_as_late(
    batches: list[list[int]], partition: int
) -> None:
    records, offset = [], 0
    for times in filter(None, batches):
        records.append(feed_records("held", partition, offset, [reading(time, f"s{time}") for time in times]))
        offset += len(times)

    found = run_readings(*records)

    assert len(found) == len(records)
    for rows, times in zip(found, filter(None, batches), strict=True):
        readings = readings_of(rows)
        attributes = readings.attributes
        assert attributes is not None
        assert readings.partitions is not None
        assert sorted(readings.event_times.tolist()) == sorted(times)
        assert {(row["earliest"], row["latest"]) for row in rows} == {(min(times), max(times))}
        assert [readings.ids.text(i) for i in range(len(readings))] == [f"s{time}" for time in readings.event_times]
        assert [attributes.texts[code] for code in attributes.codes] == [
            f'"{time % 3}"' for time in readings.event_times
        ]
        assert set(readings.partitions.tolist()) == {partition}


def test_a_feed_that_takes_part_in_joins_sends_all_its_readings_to_every_shard() -> None:
    (rows,) = run_readings(feed_records("joined", 2, 17, [reading(5, "a"), b"bad", reading(3, "b"), reading(9, "c")]))

    sent = [row for row in rows if row["kind"] == Kind.JOIN_READINGS]
    assert [(row["shard"], row["feed"], row["partition"], row["first_offset"], row["next_offset"]) for row in sent] == [
        (key, "joined", 2, 17, 21) for key in KEYS
    ]
    assert len({row["frame"] for row in sent}) == 1
    readings = unpack_readings(sent[0]["frame"])
    assert [readings.ids.text(i) for i in range(len(readings))] == ["a", "b", "c"]
    assert readings.event_times.tolist() == [5, 3, 9]
    assert readings.partitions is not None
    assert readings.partitions.tolist() == [2, 2, 2]
    # The clock is moved, and what was left out is counted, by the rows that every feed has.
    assert {(row["earliest"], row["latest"]) for row in sent} == {(NEVER, NEVER)}
    assert sorted(readings_of(rows).event_times.tolist()) == [3, 5, 9]
    assert readings_of(rows).partitions is None


@pytest.mark.parametrize(("feed", "values"), [("plain", [reading(5)]), ("joined", [b"bad"])])
def test_where_nothing_can_be_joined_nothing_is_sent_for_it(feed: str, values: list[bytes]) -> None:
    (rows,) = run_readings(feed_records(feed, 0, 0, values))

    assert Kind.JOIN_READINGS not in {row["kind"] for row in rows}


def test_commands_go_to_every_shard_with_their_offsets() -> None:
    rows = run_control(control_records("control", [None, None]))

    assert [(row["shard"], row["kind"], row["first_offset"], row["next_offset"]) for row in rows] == [
        (key, Kind.COMMANDS, 40, 42) for key in KEYS
    ]
    assert unpack_commands(rows[2]["frame"]) == [Delete(40, "q"), Delete(41, "q")]


def test_the_latest_mark_of_a_feed_goes_to_every_shard() -> None:
    marks = [render_mark("held", 7), render_mark("plain", 5), render_mark("held", 6)]

    rows = run_control(control_records("control", [None]), control_records("clock", marks))

    assert sorted((row["feed"], row["shard"], row["latest"]) for row in rows if row["kind"] == Kind.MARKS) == sorted(
        (feed, key, latest) for feed, latest in (("held", 7), ("plain", 5)) for key in KEYS
    )
    assert sum(row["kind"] == Kind.COMMANDS for row in rows) == len(KEYS)


def test_a_mark_without_a_time_moves_nothing_and_is_there() -> None:
    rows = run_control(control_records("clock", [render_mark("held", None)]))

    assert [(row["shard"], row["latest"]) for row in rows] == [(key, NEVER) for key in KEYS]


def test_what_is_no_mark_of_a_feed_is_passed_over_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    records = [b"no mark", None, render_mark("a feed that was removed", 9), render_mark("held", 7), b"{}"]

    with caplog.at_level(logging.WARNING):
        rows = run_control(control_records("clock", records))

    assert {(row["feed"], row["latest"]) for row in rows} == {("held", 7)}
    assert [record.getMessage() for record in caplog.records] == [
        "clock: 3 records of offsets 40 to 44 are no marks and were passed over. Nobody but the service writes to this "
        "topic: find out who does."
    ]


def attribute_texts(rows: list[dict[str, Any]]) -> set[str]:
    readings = readings_of(rows)
    assert readings.attributes is not None
    return {readings.attributes.texts[code] for code in readings.attributes.codes}


def test_each_topic_of_a_feed_has_partitions_and_a_text_of_its_own() -> None:
    of_topics = run_readings(
        *(feed_records("several", 3, 17, [reading(5), b"bad", reading(6)], topic) for topic in FEEDS["several"].topics)
    )

    for rows, topic, number in zip(of_topics, ("north", "south", "east"), (3, 100_003, 200_003), strict=True):
        assert {row["partition"] for row in rows} == {number}
        partitions = readings_of(rows).partitions
        assert partitions is not None
        assert partitions.tolist() == [number] * 2
        assert attribute_texts(rows) == {f'"{kind}"\x1f5.0\x1f"{topic}"' for kind in (0, 2)}
        (letters,) = (unpack_dead_letters(row["frame"]) for row in rows if row["kind"] == Kind.DEAD_LETTERS)
        assert (letters["topic"].to_pylist(), letters["partition"].to_pylist()) == ([topic], [3])


def test_a_constant_may_be_the_only_attribute() -> None:
    (rows,) = run_readings(feed_records("fixed", 0, 0, [reading(5), reading(6)]))

    assert attribute_texts(rows) == {"true"}


def test_offsets_of_a_feed_are_offsets_of_its_topics() -> None:
    feed = FEEDS["several"]
    by_topic = {"north": {0: 5, 12: 6}, "south": {}, "east": {1: 7}}
    numbered = {
        feed.partition_of(topic, p): at for topic, partitions in by_topic.items() for p, at in partitions.items()
    }

    assert numbered == {0: 5, 12: 6, 200_001: 7}
    assert feed.offsets_by_topic(numbered) == by_topic
