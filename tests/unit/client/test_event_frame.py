"""Events of every kind as rows of a frame."""

from datetime import UTC, datetime

import pandas
from msgspec import structs

from bmq.client.event_frame import FIRST, frame_of
from bmq.client.messages import Event, JoinedReading, JoinEvent

CROSSING = Event(
    event_id="a", kind="border", feed="stocks", stream_id="AAPL", event_time=1_500, value={"price": 45.0},
    reason="moved", query_id="forties", query_version=1, sign="+", tags={"desk": "north", "level": 3},
)  # fmt: skip
READING = Event(
    event_id="b", kind="border", feed="stocks", stream_id="IBM", event_time=2_000, value={"price": 50.0},
    reason="moved", left=("forties",), entered=("fifties", "evens"),
)  # fmt: skip
TRANSITION = Event(
    event_id="c", kind="transition", feed="plane", stream_id="t1", event_time=3_000, value={"x": 1.0, "y": 2.0},
    query_id="visit", query_version=1, pattern="in_then_out", began=2_500,
)  # fmt: skip
PAIR = JoinEvent(
    event_id="d", kind="band_join", query_id="near", query_version=1, event_time=4_000, sign="-", reason="moved",
    left=JoinedReading("stocks", "AAPL", 4_000, {"price": 1.0}),
    right=JoinedReading("quotes", "q", 3_900, {"bid": 2.0}),
)  # fmt: skip


def at(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def test_a_crossing_is_a_row_with_its_values_and_tags() -> None:
    (row,) = frame_of([CROSSING]).to_dict("records")

    assert row["event_time"] == at(1_500)
    assert (row["sign"], row["query_id"], row["stream_id"]) == ("+", "forties", "AAPL")
    assert (row["value.price"], row["tags.desk"], row["tags.level"]) == (45.0, "north", 3)


def test_an_event_of_a_reading_is_a_row_for_each_crossing() -> None:
    frame = frame_of([READING])

    found = list(zip(frame["event_id"], frame["sign"], frame["query_id"], strict=True))
    assert found == [("b", "-", "forties"), ("b", "+", "fifties"), ("b", "+", "evens")]


def test_rows_of_one_query_leave_out_the_other_crossings_of_its_events() -> None:
    frame = frame_of([READING, CROSSING], "forties")

    assert list(zip(frame["event_id"], frame["sign"], strict=True)) == [("b", "-"), ("a", "+")]


def test_every_time_that_the_service_knows_is_a_time() -> None:
    first, last = -62_135_596_800_000, 253_402_300_799_999  # years 1 and 9999

    frame = frame_of([structs.replace(CROSSING, event_time=time) for time in (first, last)])

    assert list(frame["event_time"].dt.year) == [1, 9999]


def test_kinds_in_one_frame_leave_out_what_they_do_not_have() -> None:
    frame = frame_of([CROSSING, TRANSITION, PAIR])

    assert list(frame["kind"]) == ["border", "transition", "band_join"]
    assert list(frame["value.x"].isna()) == [True, False, True]
    assert frame["began"][1] == at(2_500)
    assert pandas.isna(frame["began"][0])
    assert (frame["left.stream_id"][2], frame["right.value.bid"][2], frame["sign"][2]) == ("AAPL", 2.0, "-")
    assert pandas.isna(frame["stream_id"][2])


def test_a_frame_without_events_has_the_columns_of_every_event() -> None:
    frame = frame_of([])

    assert list(frame.columns) == list(FIRST)
    assert len(frame) == 0
