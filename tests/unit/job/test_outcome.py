"""What a batch does to a shard: joins come last and once, and each engine answers for what it looked at."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bmq.job.outcome import ShardResult, run_batch
from bmq.job.received import Frames
from bmq.monitor.monitor import Monitor
from bmq.records import Clock, Feed, Installation, Readings
from bmq.wire.control import parse_command
from tests.crossings import make_ids
from tests.pure_service import PureService

PLAIN = {"line": Feed("line", "line", "id", ("x",), "ts")}
JOINED = {side: Feed(side, side, "id", ("x",), "ts", join=True) for side in ("left", "right")}
BAND = {"kind": "band_join", "left": "left", "right": "right", "on": {"left": "x", "right": "x"}, "band": [-1, 1]}
BORDER = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}


def readings(*values: float) -> list[Readings]:
    """Return readings of streams s0, s1, … at one time."""
    n = len(values)
    times = np.full(n, 7, dtype=np.int64)
    ids = make_ids(f"s{i}" for i in range(n))
    return [Readings(ids, times, times, np.array([values]), partitions=np.zeros(n, dtype=np.int32))]


def run(feeds: dict[str, Feed], queries: dict[str, dict[str, Any]], **values: tuple[float, ...]) -> ShardResult:
    """Return what a batch of commands and readings does to a shard that is the only one."""
    commands = [
        parse_command(query_id.encode(), json.dumps(query).encode(), offset, Installation(feeds))
        for offset, (query_id, query) in enumerate(queries.items())
    ]
    parts = {feed: readings(*of_feed) for feed, of_feed in values.items()}
    frames = Frames(
        commands=commands,
        readings=parts,
        join_readings={feed: part for feed, part in parts.items() if feeds[feed].join},
        clocks={feed: Clock(7, 7) for feed in values},
    )
    return run_batch(Monitor(Installation(feeds)), frames, feeds)


def test_feeds_that_are_not_joined_have_no_engine_of_joins() -> None:
    outcome = run(PLAIN, {"q": BORDER}, line=(5.0, 15.0))

    assert (outcome.useful["border"], outcome.pairs) == (1, [])
    assert "joins" not in outcome.visits


def test_readings_of_both_feeds_are_joined_once_all_are_there() -> None:
    outcome = run(JOINED, {"j": BAND}, left=(5.0, 9.0), right=(5.5, 6.5, 9.5))

    found = [(pairs.left.ids.text(i), pairs.right.ids.text(i)) for pairs in outcome.pairs for i in range(len(pairs))]
    assert sorted(found) == [("s0", "s0"), ("s1", "s2")]
    assert outcome.useful["joins"] == 2
    assert outcome.visits["joins"] >= 2
    assert outcome.useful["border"] == 0


@pytest.mark.parametrize("restart", [PureService.restart_from_snapshot, PureService.restart_from_deltas])
def test_a_pair_ends_behind_a_restart(restart: Callable[[PureService], None]) -> None:
    service = PureService(JOINED)
    service.run_batch([("j", json.dumps(BAND).encode())], {"left": [b'{"id":"l","ts":1,"x":5}']})
    service.run_batch([], {"right": [b'{"id":"r","ts":2,"x":6}']})
    restart(service)
    service.run_batch([], {"left": [b'{"id":"l","ts":3,"x":9}']})

    assert [(event["sign"], event["event_time"]) for event in service.events] == [("+", 2), ("-", 3)]


def test_what_a_reading_finds_in_a_window_comes_in_the_order_in_which_that_was_applied() -> None:
    window = {"kind": "window_join", "left": {"feed": "left", "window": 9}, "right": {"feed": "right", "window": 9}}
    service = PureService(JOINED)
    service.run_batch(
        [("w", json.dumps({**window, "any": [{"left.x": [0, 9]}]}).encode())],
        {"right": [b'{"id":"z","ts":1,"x":5}', b'{"id":"a","ts":2,"x":5}', b'{"id":"z","ts":3,"x":5}']},
    )
    service.run_batch([], {"left": [b'{"id":"l","ts":4,"x":5}']})

    assert [event["right"]["event_time"] for event in service.events] == [1, 2, 3]


def test_match_and_select_events_are_not_of_the_border_engine() -> None:
    level = {"kind": "match", "feed": "line", "region": BORDER["region"]}

    outcome = run(
        PLAIN,
        {"m": level, "q": BORDER, "s": {"kind": "select", "feed": "line", "any": [{"x": [5, 20]}]}},
        line=(5.0, 15.0),
    )

    assert outcome.useful == {"border": 1, "levels": 3}
    assert outcome.visits["levels"] >= 3
