"""Readings that come behind the expiry of their stream: events, and ids that say they are other events."""

import json
from typing import Any, Literal

import pytest

from bmq.records import Feed
from tests.pure_service import PureService

pytestmark = pytest.mark.unit

FEED = Feed("f", "f", "id", ("x",), "ts", stream_ttl_ms=3)
QUERY = {"kind": "border", "feed": "f", "region": {"box": {"x": [0, 10]}}}


def reading(stream: str, time: int, x: float = 5.0) -> bytes:
    return json.dumps({"id": stream, "ts": time, "x": x}).encode()


def emitted(service: PureService) -> list[tuple[Any, ...]]:
    return [(one["sign"], one["stream_id"], one["event_time"], one["reason"]) for one in service.events]


@pytest.mark.parametrize("restart", [None, "snapshot", "deltas"])
def test_the_same_visit_behind_an_expiry_has_event_ids_of_its_own(
    restart: Literal["snapshot", "deltas"] | None,
) -> None:
    service = PureService({"f": FEED}, 1)
    service.run_batch([("q", json.dumps(QUERY).encode())], {"f": [reading("a", 5), reading("clock", 50, -1.0)]})
    for clock in (60, 70, 80):
        if restart == "snapshot":
            service.restart_from_snapshot()
        elif restart == "deltas":
            service.restart_from_deltas()
        service.run_batch([], {"f": [reading("a", 5), reading("a", 5)]})
        service.run_batch([], {"f": [reading("clock", clock, -1.0)]})

    assert emitted(service) == 4 * [("+", "a", 5, "first_seen"), ("-", "a", 8, "stream_expired")]
    assert len({one["event_id"] for one in service.events}) == 8


def test_a_restart_changes_no_event_id_behind_an_expiry() -> None:
    services = [PureService({"f": FEED}, 1) for _ in range(2)]
    for service in services:
        service.run_batch([("q", json.dumps(QUERY).encode())], {"f": [reading("a", 5), reading("clock", 50, -1.0)]})
    for time in (5, 6, 5):
        services[1].restart_from_snapshot()
        for service in services:
            service.run_batch([], {"f": [reading("a", time)]})

    assert services[0].events == services[1].events
