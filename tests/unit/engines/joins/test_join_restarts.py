"""Joins whose state comes from deltas: what windows hold has the same numbers everywhere; edits to another kind."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bmq.records import Feed
from tests.pure_service import PureService

FEEDS = {name: Feed(name, name, "id", ("x",), "ts", join=True) for name in ("left", "right", "third")}
BAND = {"kind": "band_join", "left": "left", "right": "right", "on": {"left": "x", "right": "x"}, "band": [-1, 1]}


def window_join(n: int, right: str = "right") -> dict[str, Any]:
    sides = {side: {"feed": feed, "window": n} for side, feed in (("left", "left"), ("right", right))}
    return {"kind": "window_join", **sides, "any": [{"band": [["left.x", "right.x", -1, 1]]}]}


def put(query_id: str, definition: dict[str, Any]) -> tuple[str, bytes]:
    return query_id, json.dumps(definition).encode()


def reading(stream: str, time: int) -> bytes:
    return json.dumps({"id": stream, "ts": time, "x": 1.0}).encode()


def pairs(service: PureService) -> list[tuple[str, int, int]]:
    return [(one["query_id"], one["left"]["event_time"], one["right"]["event_time"]) for one in service.events]


@pytest.mark.parametrize("restart", [PureService.restart_from_deltas, PureService.restart_from_snapshot])
def test_a_window_join_counts_from_its_put_wherever_its_state_comes_from(
    restart: Callable[[PureService], None],
) -> None:
    service = PureService(FEEDS, n_shards=1)
    service.run_batch([put("old", window_join(2))], {"left": [reading("a", 1), reading("a", 2)]})
    # Most of this batch goes before any delta tells of it.
    service.run_batch([], {"left": [reading("a", time) for time in range(10, 17)]})
    restart(service)
    service.run_batch([put("new", window_join(2))], {})
    restart(service)
    service.run_batch([], {"left": [reading("a", 20)], "right": [reading("b", 21)]})

    assert sorted(pairs(service)) == [("new", 20, 21), ("old", 16, 21), ("old", 20, 21)]


@pytest.mark.parametrize("right", ["right", "third"])
def test_pairs_of_a_band_join_end_as_such_when_it_becomes_a_window_join(right: str) -> None:
    service = PureService(FEEDS)
    service.run_batch([put("q", BAND)], {"left": [reading("a", 1)], "right": [reading("b", 1)]})
    service.run_batch([put("q", window_join(2, right))], {})

    began, ended = service.events
    assert (ended["kind"], ended["sign"], ended["reason"]) == ("band_join", "-", "query_updated")
    assert (ended["query_version"], ended["right"]) == (2, began["right"])


def test_pairs_begin_when_a_window_join_becomes_a_band_join() -> None:
    service = PureService(FEEDS)
    readings = {"left": [reading("a", 1)], "right": [reading("b", 1)]}
    service.run_batch([put("q", window_join(2))], readings)
    service.run_batch([put("q", BAND)], {})

    _, began = service.events
    assert (began["kind"], began["sign"], began["reason"]) == ("band_join", "+", "query_updated")


def test_commands_of_one_batch_tell_in_their_order_as_those_of_several_do() -> None:
    commands = [put("q", BAND), put("p", BAND), put("q", BAND | {"band": [5, 6]}), put("q", BAND), ("p", None)]
    readings = {"left": [reading("a", 1), reading("é", 1)], "right": [reading("b", 1)]}
    emitted = []
    for batches in ([commands], [[command] for command in commands]):
        service = PureService(FEEDS)
        service.run_batch([], readings)
        for batch in batches:
            service.run_batch(batch, {})
        emitted.append([(one["left"]["stream_id"], one["event_id"], one["query_id"]) for one in service.events])

    assert len(emitted[0]) == 10
    for stream in ("a", "é"):
        assert [one for one in emitted[0] if one[0] == stream] == [one for one in emitted[1] if one[0] == stream]
