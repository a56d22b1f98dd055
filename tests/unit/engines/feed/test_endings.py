"""Queries that end in the middle of a batch."""

import json

import pytest

from bmq.records import Feed
from tests.oracle_queries import time_text
from tests.pure_service import PureService

pytestmark = pytest.mark.unit

FEED = Feed("f", "f", "id", ("x",), "ts")
BOX = {"kind": "border", "feed": "f", "region": {"box": {"x": [0, 100]}}}


def reading(stream: str, time: int, x: float) -> bytes:
    return json.dumps({"id": stream, "ts": time, "x": x}).encode()


@pytest.mark.parametrize("option", [{}, {"cooldown": "1ms"}], ids=["plain", "tracked"])
def test_each_query_that_ends_in_a_batch_tells_the_values_of_its_own_end(option: dict[str, str]) -> None:
    service = PureService({"f": FEED}, 1)
    dues = {"early": 11, "at a reading": 12, "between": 14, "late": 19}
    commands = [
        (name, json.dumps(BOX | option | {"expires_at": time_text(due)}).encode()) for name, due in dues.items()
    ]
    service.run_batch(commands, {"f": [reading("a", 9, 9.0), reading("b", 9, 1.0)]})

    moves = [reading("a", 12, 12.0), reading("a", 12, 13.0), reading("a", 15, 15.0), reading("a", 30, 30.0)]
    service.run_batch([], {"f": moves})

    left = [event for event in service.events if event["sign"] == "-"]
    values = {(event["query_id"], event["stream_id"]): event["value"]["x"] for event in left}
    of_a = {"early": 9.0, "at a reading": 13.0, "between": 13.0, "late": 15.0}
    assert values == {(name, "a"): x for name, x in of_a.items()} | {(name, "b"): 1.0 for name in dues}
    assert {event["query_id"]: event["event_time"] for event in left} == dues


def test_a_query_that_ends_has_the_members_it_had_then() -> None:
    service = PureService({"f": FEED}, 1)
    definition = json.dumps(BOX | {"expires_at": time_text(12)}).encode()
    service.run_batch([("q", definition)], {"f": [reading("goes", 9, 1.0), reading("comes", 9, -1.0)]})

    moves = [("goes", 13, -1.0), ("comes", 13, 1.0), ("goes", 14, 1.0), ("comes", 14, -1.0), ("new", 14, 5.0)]
    service.run_batch([], {"f": [reading(*move) for move in moves]})

    assert [(event["sign"], event["stream_id"]) for event in service.events] == [("+", "goes"), ("-", "goes")]


@pytest.mark.parametrize("restart", [False, True])
def test_a_query_that_is_over_is_unchanged_by_the_same_definition_until_its_end_is_settled(*, restart: bool) -> None:
    service = PureService({"f": Feed("f", "f", "id", ("x",), "ts", max_lateness_ms=10)}, 1)
    definition = json.dumps(BOX | {"expires_at": time_text(15)}).encode()
    service.run_batch([], {"f": [reading("a", 10, 1.0), reading("a", 20, 1.0)]})

    for _ in range(2):
        service.run_batch([("q", definition)], {})
        if restart:
            service.restart_from_snapshot()
    service.run_batch([], {"f": [reading("a", 26, 1.0)]})
    service.run_batch([("q", definition)], {})

    assert [reply["status"] for reply in service.replies] == ["accepted", "unchanged", "expired", "accepted", "expired"]
    assert service.events == []
