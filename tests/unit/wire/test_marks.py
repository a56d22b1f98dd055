"""Marks: what the service writes for a silent feed, and reads again."""

from hypothesis import given
from hypothesis import strategies as st

from bmq.wire.event_times import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS
from bmq.wire.marks import parse_mark, render_mark


@given(st.text(max_size=9), st.none() | st.integers(FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS))
def test_a_mark_says_feed_and_time_again(feed: str, event_time: int | None) -> None:
    assert parse_mark(render_mark(feed, event_time)) == (feed, event_time)


def test_a_mark_without_a_time_has_no_such_field() -> None:
    assert render_mark("vehicles", None) == b'{"feed":"vehicles"}'


def test_what_is_no_mark_is_passed_over() -> None:
    for value in (
        None,
        b"",
        b"\xff",
        b'{"feed": "\xff"}',
        b'{"else": ' + b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"feed": 1}',
        b'{"feed": "f", "event_time": "now"}',
        b'{"feed": "f", "event_time": 253402300800000}',
    ):
        assert parse_mark(value) is None


def test_a_field_of_a_later_version_is_passed_over() -> None:
    assert parse_mark(b'{"feed": "f", "event_time": 5, "why": "idle"}') == ("f", 5)
