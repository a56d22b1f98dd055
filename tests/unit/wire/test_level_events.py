"""Events of match and select queries: one for each reading inside, and nothing of a crossing in it."""

import dataclasses
from typing import Any

import pytest

from bmq.records import Kind, Pattern, Reason, Sign
from bmq.wire.event_messages import render_crossings
from tests.crossings import FEED, Row, make_crossings, query, read_headers, read_values

MATCH = query("m", kind=Kind.MATCH, tags='{"shop":"17"}')
SELECT = query("s", 3, kind=Kind.SELECT)
INSIDE = Row(query=MATCH, sign=Sign.NONE)
TRANSITION = query("t", kind=Kind.TRANSITION, pattern=Pattern.IN_THEN_OUT, within_ms=5)
LAYOUTS = pytest.mark.parametrize("layout", ["crossing", "reading"])


def events(rows: list[Row], layout: Any = "crossing") -> list[dict[str, Any]]:
    return read_values(render_crossings(make_crossings(rows), FEED, topic="t", layout=layout))


@LAYOUTS
def test_a_reading_inside_has_no_sign_no_reason_and_no_previous(layout: str) -> None:
    (event,) = events([dataclasses.replace(INSIDE, previous=(1, (0.0, 0.0)))], layout)

    assert event == {
        "event_id": event["event_id"],
        "kind": "match",
        "query_id": "m",
        "query_version": 18,
        "feed": "vehicles",
        "stream_id": "v7",
        "event_time": 1_700_000_000_000,
        "value": {"x": 5.0, "y": 5.0},
        "tags": {"shop": "17"},
    }


@LAYOUTS
def test_a_reading_inside_several_queries_is_an_event_each_in_both_layouts(layout: str) -> None:
    rows = [Row(query=query("b")), Row(query=query("c")), INSIDE, dataclasses.replace(INSIDE, query=SELECT)]
    rows.insert(2, Row(query=TRANSITION, sign=Sign.NONE, began=1_699_999_999_999))
    found = [(event["kind"], event.get("query_id")) for event in events(rows, layout)]

    of_crossings = [("border", "b"), ("border", "c")] if layout == "crossing" else [("border", None)]
    assert found == [*of_crossings, ("transition", "t"), ("match", "m"), ("select", "s")]


def test_only_what_the_header_sets_name_is_in_the_headers() -> None:
    rows = [Row(query=query("b")), INSIDE, dataclasses.replace(INSIDE, query=SELECT)]
    crossings = make_crossings(rows)

    by_crossing = render_crossings(crossings, FEED, topic="t")
    by_reading = render_crossings(crossings, FEED, topic="t", layout="reading")

    kinds = [b"border", b"match", b"select"]
    assert [(h["kind"], h["query_id"]) for h in read_headers(by_crossing)] == [
        (b"border", b"b"),
        (b"match", b"m"),
        (b"select", b"s"),
    ]
    assert [(h["kind"], len(h)) for h in read_headers(by_reading)] == [(kind, 2) for kind in kinds]
    for messages in (by_crossing, by_reading):
        ids = [event["event_id"].encode() for event in read_values(messages)]
        assert [h["event_id"] for h in read_headers(messages)] == ids


def test_what_an_edit_to_a_match_query_ends_is_the_membership_of_a_border_query() -> None:
    ended = dataclasses.replace(INSIDE, sign=Sign.LEFT, reason=Reason.QUERY_UPDATED)
    left, inside = events([ended, INSIDE])

    assert (left["kind"], left["sign"], left["reason"]) == ("border", "-", "query_updated")
    assert inside["kind"] == "match"
    assert left["event_id"] != inside["event_id"]


@LAYOUTS
def test_ids_differ_by_reading_query_version_and_kind(layout: str) -> None:
    rows = [
        INSIDE,
        dataclasses.replace(INSIDE, ordinal=1),
        dataclasses.replace(INSIDE, ordinal=2),
        dataclasses.replace(INSIDE, event_time=1_700_000_000_001),
        dataclasses.replace(INSIDE, stream="v8"),
        dataclasses.replace(INSIDE, query=dataclasses.replace(MATCH, version=19)),
        dataclasses.replace(INSIDE, query=dataclasses.replace(MATCH, query_id="n")),
        dataclasses.replace(INSIDE, query=dataclasses.replace(MATCH, kind=Kind.SELECT)),
        dataclasses.replace(INSIDE, sign=Sign.LEFT),
    ]

    assert len({event["event_id"] for event in events(rows, layout)}) == len(rows)


def test_an_id_is_the_same_in_any_batch_and_layout() -> None:
    alone = events([INSIDE])[0]["event_id"]
    among = [Row(query=query("b")), Row(visit=1, previous=(1, (0.0, 0.0))), INSIDE]

    assert events(among)[-1]["event_id"] == alone
    assert events(among, "reading")[-1]["event_id"] == alone


@LAYOUTS
def test_events_go_to_the_topic_of_their_query_with_the_key_that_is_asked(layout: Any) -> None:
    mine = dataclasses.replace(MATCH, output_topic="bmq.mine")
    crossings = make_crossings([INSIDE, dataclasses.replace(INSIDE, query=mine)])

    messages = render_crossings(crossings, FEED, topic="bmq.events", key="query_id", layout=layout)

    assert messages.column("topic").to_pylist() == ["bmq.events", "bmq.mine"]
    assert messages.column("key").to_pylist() == [b"m" if layout == "crossing" else b"v7"] * 2
