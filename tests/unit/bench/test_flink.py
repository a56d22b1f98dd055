"""The rate of the Flink job, from what it prints."""

import pytest

from bench.flink import peer_rate

OUTPUT = ["PROGRESS 1 0 0", "PROGRESS 900 10 4", "a line of its own", "PROGRESS 1000 30 6", "PROGRESS 1500 130 9"]


def test_the_rate_begins_with_the_first_line_after_the_readings_that_do_not_count() -> None:
    assert peer_rate(OUTPUT, 20) == pytest.approx(100 / 0.5)
    assert peer_rate(OUTPUT, 10) == pytest.approx(120 / 0.6)


def test_one_line_has_no_rate() -> None:
    with pytest.raises(ValueError, match="showed its progress 1 times after 31 readings"):
        peer_rate(OUTPUT, 31)
