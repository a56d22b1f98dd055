"""Durations as texts: which are taken, and how long they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.wire.durations import LONGEST_MS, read_duration, read_positive_duration
from bmq.wire.event_times import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS

MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@given(number=st.integers(0, 10**20), unit=st.sampled_from(list(MS)))
def test_a_duration_is_its_number_of_units_or_is_too_long(number: int, unit: str) -> None:
    if number * MS[unit] <= LONGEST_MS:
        assert read_duration(f"{number}{unit}") == number * MS[unit]
    else:
        with pytest.raises(ValueError, match="at most 3652059d"):
            read_duration(f"{number}{unit}")


def test_no_two_event_times_are_further_apart_than_the_longest_duration() -> None:
    assert LAST_EVENT_TIME_MS - FIRST_EVENT_TIME_MS < LONGEST_MS == read_duration("3652059d")


@pytest.mark.parametrize(
    "value",
    ["", "s", "5", "5 s", " 5s", "5s\n", "-5s", "+5s", "1.5h", "1h30m", "5S", "5sec", "٣s", 5, None, True, ["5s"]],
)
def test_what_is_no_whole_number_with_a_unit_is_refused_with_the_rule(value: object) -> None:
    with pytest.raises(ValueError, match="a whole number with ms, s, m, h or d; write it like"):
        read_duration(value)


@pytest.mark.parametrize("text", ["0ms", "0s", "000d"])
def test_where_zero_means_nothing_it_is_refused(text: str) -> None:
    assert read_duration(text) == 0
    with pytest.raises(ValueError, match="above zero"):
        read_positive_duration(text)
