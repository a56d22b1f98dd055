"""When the clock of a silent feed goes on with wall time, and how far. Wall time is a number here."""

from bmq.job.idle import MARK_INTERVAL_MS, IdleFeeds
from bmq.metrics.counters import ShardCounters

IDLE_MS = 30_000
START = 5_000_000  # wall time, of a clock that has nothing to do with event time


def batch(readings: int = 0, clock: int | None = None, feed: str = "f") -> list[ShardCounters]:
    """Return the counters of two shards: the first had the readings, both know the clock."""
    clocks = {} if clock is None else {feed: clock}
    return [{"shard": 0, "readings": {feed: readings}, "clocks": clocks}, {"shard": 1, "clocks": clocks}]


def fed(clock: int = 1_000, feeds: tuple[str, ...] = ("f",)) -> IdleFeeds:
    """Return feeds that have just had a reading."""
    idle = IdleFeeds(dict.fromkeys(feeds, IDLE_MS))
    for feed in feeds:
        idle.note_batch(batch(3, clock, feed), START)
    return idle


def test_before_the_first_batch_every_feed_is_asked_for_its_clock_once_an_interval() -> None:
    idle = IdleFeeds({"f": IDLE_MS, "g": IDLE_MS})

    assert idle.take_due_marks(START) == {"f": None, "g": None}
    assert idle.take_due_marks(START + MARK_INTERVAL_MS - 1) == {}
    assert idle.take_due_marks(START + MARK_INTERVAL_MS) == {"f": None, "g": None}


def test_a_batch_without_counters_tells_no_clock() -> None:
    idle = IdleFeeds({"f": IDLE_MS})
    idle.note_batch([], START)

    assert idle.take_due_marks(START) == {"f": None}


def test_a_feed_that_never_had_a_reading_has_no_clock_to_move() -> None:
    idle = IdleFeeds({"f": IDLE_MS})
    idle.note_batch(batch(), START)

    assert idle.take_due_marks(START + 10 * IDLE_MS) == {}


def test_the_clock_goes_on_when_the_silence_has_lasted_and_by_as_much_as_it_lasts() -> None:
    idle = fed(clock=1_000)

    assert idle.take_due_marks(START + IDLE_MS - 1) == {}
    assert idle.take_due_marks(START + IDLE_MS) == {"f": 1_000 + IDLE_MS}
    assert idle.take_due_marks(START + IDLE_MS + 7_500) == {"f": 1_000 + IDLE_MS + 7_500}


def test_there_is_at_most_one_mark_an_interval() -> None:
    idle = fed()
    idle.take_due_marks(START + IDLE_MS)

    assert idle.take_due_marks(START + IDLE_MS + MARK_INTERVAL_MS - 1) == {}
    assert idle.take_due_marks(START + IDLE_MS + MARK_INTERVAL_MS) != {}


def test_the_batch_that_a_mark_causes_is_no_end_of_the_silence() -> None:
    idle = fed(clock=1_000)
    idle.take_due_marks(START + IDLE_MS)
    idle.note_batch(batch(0, clock=1_000 + IDLE_MS), START + IDLE_MS + 400)

    assert idle.take_due_marks(START + IDLE_MS + 1_000) == {"f": 1_000 + IDLE_MS + 1_000}


def test_readings_end_the_silence_at_once_and_it_begins_anew_from_their_clock() -> None:
    idle = fed(clock=1_000)
    idle.take_due_marks(START + IDLE_MS)
    back = START + IDLE_MS + 1_500
    idle.note_batch(batch(1, clock=90_000), back)

    assert idle.take_due_marks(back + IDLE_MS - 1) == {}
    assert idle.take_due_marks(back + IDLE_MS) == {"f": 90_000 + IDLE_MS}


def test_late_readings_end_the_silence_too_although_they_move_no_clock() -> None:
    idle = fed(clock=1_000)
    idle.note_batch(batch(2, clock=1_000), START + IDLE_MS - 1)

    assert idle.take_due_marks(START + IDLE_MS) == {}


def test_after_a_restart_the_silence_is_counted_from_the_first_batch() -> None:
    idle = IdleFeeds({"f": IDLE_MS})
    idle.take_due_marks(START)
    idle.note_batch(batch(0, clock=44_000), START + 9_000)

    assert idle.take_due_marks(START + 9_000 + IDLE_MS - 1) == {}
    assert idle.take_due_marks(START + 9_000 + IDLE_MS) == {"f": 44_000 + IDLE_MS}


def test_feeds_fall_silent_each_on_its_own() -> None:
    idle = fed(feeds=("f", "g"))
    idle.note_batch(batch(1, 2_000, "g"), START + IDLE_MS - 1)

    assert idle.take_due_marks(START + IDLE_MS) == {"f": 1_000 + IDLE_MS}


def test_the_clock_of_a_shard_that_had_no_work_is_behind_and_does_not_count() -> None:
    idle = IdleFeeds({"f": IDLE_MS})
    idle.note_batch([{"shard": 1, "clocks": {"f": 7}}, {"shard": 0, "readings": {"f": 1}, "clocks": {"f": 9}}], START)

    assert idle.take_due_marks(START + IDLE_MS) == {"f": 9 + IDLE_MS}
