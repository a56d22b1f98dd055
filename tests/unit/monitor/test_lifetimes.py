"""When queries end: by the later clock of the feeds that they read, and pending while no feed has a clock."""

from dataclasses import replace

import pytest

from bmq.monitor.clock import FeedClock
from bmq.monitor.lifetimes import Lifetimes
from bmq.records import NEVER, Clock, JoinQuery, JoinSide, Kind, Put, Region, RegionQuery

QUERY = RegionQuery("q", 5, "left", Region((0.0,), (1.0,)))
JOIN = JoinQuery("j", 5, Kind.BAND_JOIN, JoinSide("left"), JoinSide("right"), ())
BOTH = ("left", "right")


def clocks(lateness: int = 0, **times: int) -> dict[str, FeedClock]:
    """Return the clocks of both feeds; those named have had one reading, at that time."""
    made = {name: FeedClock(lateness) for name in BOTH}
    for name, time in times.items():
        made[name].move(Clock(time, time))
    return made


@pytest.mark.parametrize(("times", "due"), [({"left": 10}, 17), ({"left": 10, "right": 30}, 37), ({}, NEVER)])
def test_the_ttl_of_a_join_runs_from_the_later_clock(times: dict[str, int], due: int) -> None:
    assert Lifetimes[JoinQuery](clocks(**times)).due(replace(JOIN, ttl_ms=7)) == due


def test_the_ttl_of_a_query_over_one_feed_runs_from_the_clock_of_that_feed() -> None:
    lifetimes = Lifetimes[RegionQuery](clocks(left=10, right=30))

    assert lifetimes.due(replace(QUERY, ttl_ms=7)) == 17
    assert lifetimes.due(replace(QUERY, expires_at=3)) == 3
    assert lifetimes.due(QUERY) == NEVER


def test_a_query_is_over_once_the_later_clock_is_past_its_end() -> None:
    lifetimes = Lifetimes[JoinQuery](clocks(left=10, right=30))
    at_the_clock, over = replace(JOIN, expires_at=30), replace(JOIN, expires_at=29)

    assert lifetimes.unless_over(at_the_clock) == at_the_clock
    assert lifetimes.unless_over(over) == replace(over, enabled=False)


def test_a_query_that_was_over_when_it_was_put_is_in_force_until_its_due_has_fired() -> None:
    lifetimes = Lifetimes[RegionQuery](clocks(lateness=100, left=30))
    over = replace(QUERY, expires_at=29)

    assert lifetimes.settled(over.feeds) < 29
    assert lifetimes.is_in_force(replace(over, version=9), lifetimes.unless_over(over))
    assert not lifetimes.is_in_force(replace(over, tags='{"a":1}'), lifetimes.unless_over(over))


def test_pending_queries_start_at_the_earliest_first_reading_of_their_feeds_and_by_query_id() -> None:
    feeds = clocks()
    lifetimes = Lifetimes[JoinQuery](feeds)
    joins = [replace(JOIN, query_id=query_id, ttl_ms=7) for query_id in "ba"]
    for join in joins:
        lifetimes.register(join, lifetimes.due(join))

    assert lifetimes.start([BOTH]) == []
    assert lifetimes.pending(BOTH) == {"a", "b"}

    feeds["right"].move(Clock(30, 20))
    assert lifetimes.start([BOTH]) == [Put(4, joins[1], 27), Put(4, joins[0], 27)]
    assert lifetimes.pending(BOTH) == set()
    assert lifetimes.start([BOTH]) == []


def test_a_query_without_a_ttl_is_not_pending_and_an_edit_ends_the_waiting() -> None:
    lifetimes = Lifetimes[RegionQuery](clocks())
    pending = replace(QUERY, ttl_ms=7)

    lifetimes.register(QUERY, NEVER)
    assert lifetimes.pending(QUERY.feeds) == set()
    lifetimes.register(pending, NEVER)
    assert lifetimes.pending(QUERY.feeds) == {"q"}
    lifetimes.register(replace(QUERY, expires_at=9), 9)
    assert lifetimes.pending(QUERY.feeds) == set()


def test_a_query_that_is_gone_does_not_start() -> None:
    feeds = clocks()
    lifetimes = Lifetimes[RegionQuery](feeds)
    lifetimes.register(replace(QUERY, ttl_ms=7), NEVER)

    lifetimes.forget("q", QUERY.feeds)
    feeds["left"].move(Clock(10, 10))

    assert lifetimes.start([QUERY.feeds]) == []
