"""What costs too much once it meets the streams: pairs at a put, passes of one reading, queries of a tenant."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bmq.records import Feed, Installation, Limits, Tenant
from tests.pure_service import PureService

LINE = {"line": Feed("line", "line", "id", ("x",), "ts")}
SIDES = {side: Feed(side, side, "id", ("x",), "ts", join=True) for side in ("left", "right")}
BAND = {"kind": "band_join", "left": "left", "right": "right", "on": {"left": "x", "right": "x"}, "band": [-1, 1]}
RESTARTS = [PureService.restart_from_snapshot, PureService.restart_from_deltas]


def put(query_id: str, **definition: Any) -> tuple[str, bytes]:
    return query_id, json.dumps(definition).encode()


def at(x: float, time: int, *streams: str) -> list[bytes]:
    return [json.dumps({"id": stream, "ts": time, "x": x}).encode() for stream in streams]


def answers(service: PureService) -> list[str]:
    return [reply["error"]["code"] if "error" in reply else reply["status"] for reply in service.replies]


def test_a_band_join_with_more_pairs_than_allowed_is_refused_and_the_one_before_stays() -> None:
    service = PureService(Installation(SIDES, limits=Limits(pairs=11)), n_shards=3)
    service.run_batch([put("q", **BAND)], {"left": at(0, 1, *"abc"), "right": [*at(0.5, 1, *"defg"), *at(9, 1, "h")]})
    assert len(service.events) == 12  # no put wrote them

    service.run_batch([put("q", **BAND | {"band": [-1, 2]}), put("p", **BAND)], {})

    assert answers(service) == ["accepted", "over_limit", "over_limit"]
    assert "More than 11 pairs of streams are in the band now" in service.replies[-1]["error"]["message"]
    service.run_batch([], {"left": at(9, 2, "a")})
    assert [(one["query_id"], one["query_version"]) for one in service.events[12:]] == [("q", 1)] * 5
    service.run_batch([("q", None)], {})
    assert answers(service)[-1] == "deleted"


@pytest.mark.parametrize(
    "fewer", [{"enabled": False}, {"report": "queries"}, {"equal": {"left": "id", "right": "id"}}, {"band": [5, 10]}]
)
def test_a_band_join_without_so_many_events_is_accepted(fewer: dict[str, Any]) -> None:
    service = PureService(Installation(SIDES, limits=Limits(pairs=3)))
    service.run_batch([], {"left": at(0, 1, *"ab"), "right": [*at(0.5, 1, *"cd"), *at(9, 1, "h")]})
    service.run_batch([put("q", **BAND), put("p", **BAND | fewer)], {})

    assert answers(service) == ["over_limit", "accepted"]


def test_an_edit_that_only_narrows_the_band_is_accepted_whatever_its_pairs() -> None:
    service = PureService(Installation(SIDES, limits=Limits(pairs=3)))
    service.run_batch([put("q", **BAND)], {"left": at(0, 1, *"ab"), "right": at(0.5, 1, *"cd")})
    wider, narrower = BAND | {"band": [-2, 1]}, BAND | {"band": [-0.75, 1]}
    service.run_batch([put("q", **BAND | {"tags": {"a": 1}}), put("q", **narrower), put("q", **wider)], {})

    assert answers(service) == ["accepted", "accepted", "accepted", "over_limit"]


def test_passes_of_one_tenant_do_not_take_those_of_another() -> None:
    tenants = (Tenant("many", "many."), Tenant("one", ""))
    service = PureService(Installation(LINE, limits=Limits(passes=2), tenants=tenants))
    ids = ["many.1", "many.2", "many.3", "other"]
    box = {"box": {"x": [1, 2]}}
    puts = [put(query_id, kind="border", feed="line", region=box, passes=True) for query_id in ids]
    service.run_batch(puts, {"line": at(0, 1, "jumps")})
    service.run_batch([], {"line": at(9, 2, "jumps")})

    assert [(one["query_id"], one["sign"]) for one in service.events] == [("other", "+"), ("other", "-")]
    assert service.n_suppressed == 6


@pytest.mark.parametrize("restart", RESTARTS)
def test_the_queries_of_a_tenant_name_no_more_streams_than_allowed(restart: Callable[[PureService], None]) -> None:
    box = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}}
    tenants = (Tenant("few", "few.", streams=3), Tenant("any", ""))
    service = PureService(Installation(LINE | SIDES, tenants=tenants))
    named = {n: box | {"streams": list("abcdef")[:n]} for n in range(1, 7)}
    service.run_batch([put("few.1", **named[2]), put("few.2", **named[2]), put("other", **named[6])], {})
    assert answers(service) == ["accepted", "over_limit", "accepted"]
    assert service.replies[1]["error"]["message"].startswith(
        "The queries of tenant 'few' name 2 streams, with this one 4, and 3 are the most."
    )

    restart(service)
    service.run_batch([put("few.2", **named[1]), put("few.all", **box), put("few.1", **named[3])], {})
    assert answers(service)[3:] == ["accepted", "accepted", "over_limit"]

    restart(service)  # an edit that names fewer gives its place to others, and so do another kind and a delete
    service.run_batch([put("few.1", **named[1]), put("few.2", **named[2]), put("few.1", **BAND)], {})
    service.run_batch([put("few.2", **named[3]), ("few.2", None), put("few.3", **named[3])], {})
    assert answers(service)[6:] == ["accepted", "accepted", "accepted", "accepted", "deleted", "accepted"]


def test_what_a_new_checkpoint_finds_is_not_refused_for_its_tenant() -> None:
    box = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}}
    installation = Installation(LINE, tenants=(Tenant("one", "", queries=1),))
    service = PureService(installation, silent_tombstones_before=2)
    service.run_batch([put("a", **box), put("b", **box), put("c", **box)], {})

    assert answers(service) == ["accepted", "accepted", "over_limit"]


@pytest.mark.parametrize(("most", "n_events"), [(3, 6), (2, 0)])
def test_a_reading_with_too_many_passes_has_none(most: int, n_events: int) -> None:
    service = PureService(Installation(LINE, limits=Limits(passes=most)))
    boxes = {query_id: {"box": {"x": [x, x + 1]}} for query_id, x in (("a", 1), ("b", 3), ("c", 5), ("end", 9))}
    puts = [put(name, kind="border", feed="line", region=region, passes=True) for name, region in boxes.items()]
    service.run_batch(puts, {"line": at(0, 1, "jumps", "walks")})
    service.run_batch([], {"line": [*at(9, 2, "jumps"), *at(4, 2, "walks")]})

    events = [(one["stream_id"], one["query_id"], one["sign"]) for one in service.events]
    passed = [event for event in events if event[0] == "jumps" and event[1] != "end"]
    assert len(passed) == n_events
    assert service.n_suppressed == 6 - n_events
    assert ("jumps", "end", "+") in events  # what is no pass is not suppressed
    assert [event for event in events if event[0] == "walks"] == [
        ("walks", "a", "+"),
        ("walks", "a", "-"),
        ("walks", "b", "+"),
        ("walks", "b", "-"),
    ]


@pytest.mark.parametrize("restart", RESTARTS)
def test_a_tenant_has_no_more_queries_than_allowed(restart: Callable[[PureService], None]) -> None:
    box = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}}
    tenants = (Tenant("few", "few.", queries=2), Tenant("any", ""))
    service = PureService(Installation(LINE, tenants=tenants))
    service.run_batch([put("few.1", **box), put("few.2", **box), put("few.3", **box), put("other", **box)], {})
    assert answers(service) == ["accepted", "accepted", "over_limit", "accepted"]
    assert service.replies[2]["error"]["message"].startswith("Tenant 'few' has 2 queries, and 2 are the most.")

    restart(service)
    service.run_batch([put("few.3", **box), put("few.1", **box | {"tags": {"a": 1}}), ("few.2", None)], {})
    assert answers(service)[4:] == ["over_limit", "accepted", "deleted"]

    restart(service)
    service.run_batch([put("few.3", **box), put("few.2", **box)], {})
    assert answers(service)[7:] == ["accepted", "over_limit"]


def test_a_query_that_ends_counts_no_more() -> None:
    box = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}}
    service = PureService(Installation(LINE, tenants=(Tenant("one", "", queries=1),)))
    service.run_batch([put("ends", **box, ttl="1s")], {"line": at(0, 1_000, "s")})
    service.run_batch([put("next", **box)], {"line": at(0, 9_000, "s")})
    service.run_batch([put("next", **box)], {})

    assert answers(service) == ["accepted", "over_limit", "expired", "accepted"]
    service.check()
