"""Match and select queries in the engine of a feed: what a reading tells, and what commands do."""

import json
from typing import Any

import numpy as np
import pytest

from bmq.engines.feed import crossing_records, feed_tables
from bmq.engines.feed.crossing_records import numbered
from bmq.engines.feed.level_queries import Levels
from bmq.engines.scope.conditions import Conditions
from bmq.records import Feed, Kind, Region, RegionQuery
from tests.oracle_queries import time_text
from tests.pure_service import PureService

pytestmark = pytest.mark.unit

FEED = Feed("f", "f", "id", ("x",), "ts", attributes=("group", "size"))
BOX = {"region": {"box": {"x": [0, 10]}}}
MATCH = {"kind": "match", **BOX}
BORDER = {"kind": "border", **BOX}


def select(*conjunctions: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "select", "any": list(conjunctions)}


def reading(time: int, x: float, stream: str = "a", **attributes: Any) -> bytes:
    return json.dumps({"id": stream, "ts": time, "x": x, **attributes}).encode()


def emitted(service: PureService) -> list[str]:
    """Take what was emitted since the last call: `q a@5` of a level query, `+q a@5` of another."""
    events = [f"{e.get('sign', '')}{e['query_id']} {e['stream_id']}@{e['event_time']}" for e in service.events]
    service.events.clear()
    return events


def put(service: PureService, **definitions: dict[str, Any] | None) -> list[str]:
    """Put or delete queries; return what that tells."""
    values = {name: one and json.dumps(one | {"feed": "f"}).encode() for name, one in definitions.items()}
    service.run_batch([(name, value or None) for name, value in values.items()], {})
    assert {reply["status"] for reply in service.replies} <= {"accepted", "deleted", "expired"}
    return emitted(service)


def read(service: PureService, *readings: bytes) -> list[str]:
    service.run_batch([], {"f": readings})
    service.check()
    return emitted(service)


def service_with(**definitions: dict[str, Any]) -> PureService:
    service = PureService({"f": FEED}, 1)
    assert put(service, **definitions) == []
    return service


def test_each_reading_inside_is_emitted_and_no_other() -> None:
    service = service_with(q=MATCH)

    assert read(service, reading(1, 5.0), reading(2, 5.0), reading(3, 10.0), reading(4, 0.0)) == [
        "q a@1",
        "q a@2",
        "q a@4",
    ]


def test_at_one_reading_crossings_come_first_then_transitions_then_readings_inside_by_query() -> None:
    transition = BORDER | {"kind": "transition", "pattern": "out_then_in", "within": "1m"}
    leaves = {"kind": "border", "region": {"box": {"x": [20, 30]}}}
    service = service_with(d=MATCH, z=leaves, y=BORDER, c=select({"x": [0, 10]}), x=transition, a=MATCH)

    read(service, reading(0, 5.0), reading(1, 25.0))
    assert read(service, reading(2, 5.0)) == ["-z a@2", "+y a@2", "x a@2", "a a@2", "c a@2", "d a@2"]


def test_a_reading_is_emitted_once_however_many_conjunctions_hold_it() -> None:
    service = service_with(q=select({"x": [0, 10]}, {"x": [5, 20]}, {"size": [1, 2]}))

    assert read(service, reading(1, 7.0, size=1), reading(2, 15.0), reading(3, 99.0, size=1)) == [
        "q a@1",
        "q a@2",
        "q a@3",
    ]


@pytest.mark.parametrize("size", ["1", True, None, [1], {"1": 1}])
def test_an_attribute_that_is_no_number_is_in_no_interval_and_where_none_is_asked_it_does_not_matter(size: Any) -> None:
    service = service_with(asked=select({"size": [None, None]}), open=select({"x": [0, 10]}))

    assert read(service, reading(1, 5.0, size=size), reading(2, 5.0)) == ["open a@1", "open a@2"]
    assert read(service, reading(3, 5.0, size=-1e308), reading(4, 5.0, size=0)) == [
        "asked a@3",
        "open a@3",
        "asked a@4",
        "open a@4",
    ]


def test_numbers_of_attributes_are_right_after_their_codes_stand_for_other_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_tables, "CODES_MIN", 0)
    service = service_with(q=select({"size": [10, None]}))

    for time in range(1, 50):
        assert read(service, reading(time, 0.0, size=time)) == ([f"q a@{time}"] if time >= 10 else [])


def test_commands_tell_nothing_of_level_queries_and_end_or_begin_what_border_queries_had() -> None:
    service = service_with(q=BORDER)
    read(service, reading(1, 5.0))

    assert put(service, q=MATCH) == ["-q a@1"]
    assert put(service, q=select({"x": [0, 10]})) == []
    assert read(service, reading(2, 6.0)) == ["q a@2"]
    assert put(service, q=BORDER) == ["+q a@2"]
    assert put(service, q=MATCH | {"enabled": False}) == ["-q a@2"]
    assert read(service, reading(3, 6.0)) == []
    assert put(service, q=MATCH) == []
    assert put(service, q=None) == []
    assert read(service, reading(4, 6.0)) == []


@pytest.mark.parametrize("definition", [MATCH, select({"x": [0, 10]}, {"x": [1, 9]})])
def test_a_reading_at_the_due_of_its_query_is_emitted_and_a_later_one_of_the_same_batch_is_not(
    definition: dict[str, Any],
) -> None:
    service = service_with(q=definition | {"expires_at": time_text(5)}, r=definition)

    assert read(service, reading(6, 1.0, "b"), reading(5, 1.0), reading(7, 1.0)) == [
        "q a@5",
        "r a@5",
        "r b@6",
        "r a@7",
    ]


def test_streams_and_where_limit_what_is_emitted() -> None:
    service = service_with(
        named=MATCH | {"streams": ["a"]},
        north=MATCH | {"where": {"group": "north"}},
        south=select({"x": [0, 10]}) | {"where": {"group": "south"}},
    )

    assert read(service, reading(1, 5.0, "a", group="south"), reading(1, 5.0, "b", group="north")) == [
        "named a@1",
        "south a@1",
        "north b@1",
    ]


def test_all_queries_of_a_feed_share_what_is_known_of_its_attributes() -> None:
    conditions = Conditions(FEED.attributes)
    levels = Levels(FEED, conditions)
    where = (("group", ('"g"',)),)
    inside, anything = Region((0.0,), (9.0,)), Region((-np.inf,) * 3, (np.inf,) * 3)
    levels.put(0, RegionQuery("m", 1, "f", inside, kind=Kind.MATCH, where=where), None)
    alternatives = (anything, anything)
    levels.put(1, RegionQuery("s", 1, "f", inside, kind=Kind.SELECT, where=where, alternatives=alternatives), None)
    codes = conditions.learn(['"g"\x1f1.0', '"h"\x1fnull'])

    found = levels.find(np.zeros(2, dtype=np.int32), np.array([[5.0, 5.0]]), codes)

    assert list(zip(found.rows.tolist(), found.queries.tolist(), strict=True)) == [(0, 0), (0, 1)]
    assert not found.signs.any()


@pytest.mark.parametrize("many", [0, 1_000])
def test_slots_are_numbered_alike_by_sorting_and_by_marking(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(crossing_records, "MANY", many)

    distinct, numbers = numbered(np.array([7, 2, 7, 900, 2], dtype=np.int32), 1_000)

    assert (distinct.tolist(), numbers.tolist()) == ([2, 7, 900], [1, 0, 1, 2, 0])
    assert numbered(np.empty(0, dtype=np.int32), 1_000)[0].size == 0
