"""`bmq.monitor.clock`: where a clock starts."""

from bmq.monitor.clock import FeedClock
from bmq.records import NEVER, Clock


def clock(*batches: tuple[int, int], max_lateness_ms: int = 5) -> FeedClock:
    """A clock after batches of (earliest, latest) event time."""
    made = FeedClock(max_lateness_ms)
    for earliest, latest in batches:
        made.move(Clock(latest, earliest))
    return made


def test_the_start_is_known_when_the_settled_time_is_beyond_it() -> None:
    assert clock((100, 105)).start == NEVER
    assert clock((100, 105), (98, 106)).start == 100  # 98 is before the settled time, 100
    assert clock((100, 106)).start == 100
    assert clock((100, 101), (97, 101), (101, 120)).start == 97


def test_a_reading_that_is_behind_does_not_move_the_start_before_the_settled_time() -> None:
    assert clock((100, 100), (10, 103), (104, 120)).start == 95
    assert clock((100, 100), (10, 10), (104, 120)).start == 100


def test_without_lateness_the_first_batch_has_the_start() -> None:
    assert clock((100, 105), (10, 200), max_lateness_ms=0).start == 100


def test_a_mark_before_all_readings_is_the_start() -> None:
    assert clock((NEVER, 100), (103, 110)).start == 100
