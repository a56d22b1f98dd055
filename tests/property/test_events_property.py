"""Rendered events, read back with an ordinary JSON parser, say what the crossings said."""

import math
from itertools import groupby
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from bmq.records import NEVER, Reason, RegionQuery, Sign
from bmq.wire.event_messages import render_crossings
from tests.crossings import FEED, Row, make_crossings, query, read_headers, read_values

texts = st.text(st.characters(codec="utf-8"), max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.tuples(numbers, numbers)
queries = st.builds(
    query,
    texts | st.sampled_from("ab"),
    st.integers(1, 2),
    tags=st.sampled_from(["{}", '{"é":"\\n"}']),
    output_topic=st.sampled_from([None, "bmq.mine", "bmq.events"]),
)
rows = st.builds(
    Row,
    stream=texts | st.sampled_from("ab"),
    query=queries,
    sign=st.sampled_from([Sign.ENTERED, Sign.LEFT]),
    reason=st.sampled_from(Reason),
    event_time=st.integers(-(2**62), 2**62) | st.integers(0, 1),
    ordinal=st.integers(0, 1),
    value=values,
    previous=st.none() | st.tuples(st.integers(-(2**62), 2**62), values),
    confirmed_time=st.sampled_from([NEVER, NEVER, 1, 2]),
)


@given(rows=st.lists(rows), key=st.sampled_from(["stream_id", "query_id"]))
def test_an_event_says_what_its_crossing_says(rows: list[Row], key: Literal["stream_id", "query_id"]) -> None:
    messages = render_crossings(make_crossings(rows), FEED, topic="bmq.events", key=key)
    events = read_values(messages)
    assert len(events) == len(rows)
    for row, event in zip(rows, events, strict=True):
        assert event["query_id"] == row.query.query_id
        assert event["query_version"] == row.query.version
        assert event["sign"] == ("+" if row.sign is Sign.ENTERED else "-")
        assert event["tags"] == ({"é": "\n"} if row.query.tags != "{}" else {})
        assert_says_the_reading(event, row)
    expected_keys = [row.stream if key == "stream_id" else row.query.query_id for row in rows]
    assert messages.column("key").to_pylist() == [text.encode() for text in expected_keys]
    assert messages.column("topic").to_pylist() == [topic_of(row.query) for row in rows]
    assert read_headers(messages) == [
        {"event_id": e["event_id"].encode(), "kind": b"border", "query_id": e["query_id"].encode()} for e in events
    ]


@given(rows=st.lists(rows))
def test_layout_reading_says_the_same_in_fewer_events(rows: list[Row]) -> None:
    messages = render_crossings(make_crossings(rows), FEED, topic="bmq.events", layout="reading")
    events = read_values(messages)
    by_topic: dict[str, list[list[Row]]] = {}
    for _, neighbours in groupby(rows, key=cause):
        of_topic: dict[str, list[Row]] = {}
        for row in neighbours:
            of_topic.setdefault(topic_of(row.query), []).append(row)
        for topic, group in of_topic.items():
            by_topic.setdefault(topic, []).append(group)

    written = messages.column("topic").to_pylist()
    assert len(written) == sum(len(groups) for groups in by_topic.values())
    for topic, groups in by_topic.items():
        of_this = [event for event, to in zip(events, written, strict=True) if to == topic]
        for event, group in zip(of_this, groups, strict=True):
            assert event["entered"] == [row.query.query_id for row in group if row.sign is Sign.ENTERED]
            assert event["left"] == [row.query.query_id for row in group if row.sign is Sign.LEFT]
            assert_says_the_reading(event, group[0])


def assert_says_the_reading(event: dict[str, Any], row: Row) -> None:
    assert event["feed"] == "vehicles"
    assert event["stream_id"] == row.stream
    assert event["reason"] == row.reason.text
    assert event["event_time"] == row.event_time
    assert event.get("confirmed_time", NEVER) == row.confirmed_time
    assert same_numbers(event["value"], row.value)
    if row.previous is None:
        assert "previous" not in event
    else:
        assert event["previous"]["event_time"] == row.previous[0]
        assert same_numbers(event["previous"]["value"], row.previous[1])


def same_numbers(written: dict[str, float], value: tuple[float, float]) -> bool:
    # JSON -0 reads back as an integer, which has no sign.
    return list(written) == ["x", "y"] and all(
        float(w) == v and math.isfinite(w) for w, v in zip(written.values(), value, strict=True)
    )


def cause(row: Row) -> tuple[Any, ...]:
    by_query = row.confirmed_time != NEVER
    by_query |= row.reason not in (Reason.MOVED, Reason.FIRST_SEEN, Reason.STREAM_EXPIRED)
    what = row.stream, row.event_time, row.ordinal, row.reason, row.confirmed_time
    return *what, row.query if by_query else None


def topic_of(query: RegionQuery) -> str:
    return query.output_topic or "bmq.events"
