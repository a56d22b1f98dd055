"""Events of joins: what they say, where they go, and that ids tell apart what differs."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from bmq.records import NEVER, Feed, JoinSide, Kind, Reason, Sign
from bmq.wire.join_event_messages import render_pairs
from bmq.wire.outgoing import MESSAGE_SCHEMA
from tests.crossings import read_headers, read_values
from tests.joined_pairs import PairRow, join_query, make_pairs

FEEDS = {name: Feed(name, name, "id", ("price",), "ts", join=True) for name in ("left", "right")}
BAND = join_query("b", tags='{"shop":"17"}')
QUERIES = join_query("r", reports_queries=True)
WINDOW = join_query("w", Kind.WINDOW_JOIN, 3)
LEFT_ALONE = PairRow(QUERIES, sign=Sign.NONE, right_time=NEVER, event_time=1_700_000_000_000, values=(5.0, np.nan))
RIGHT_ALONE = PairRow(QUERIES, sign=Sign.NONE, left_time=NEVER, values=(np.nan, 5.5))


def events(*rows: PairRow) -> list[dict[str, Any]]:
    return read_values(render_pairs(make_pairs(rows), FEEDS, topic="t"))


def test_an_event_of_a_band_join_has_every_field_of_the_wire_format() -> None:
    messages = render_pairs(make_pairs([PairRow(BAND)]), FEEDS, topic="bmq.events")

    (event,) = read_values(messages)
    assert event == {
        "event_id": event["event_id"],
        "kind": "band_join",
        "query_id": "b",
        "query_version": 18,
        "sign": "+",
        "reason": "moved",
        "event_time": 1_700_000_000_001,
        "left": {"feed": "left", "stream_id": "l", "event_time": 1_700_000_000_000, "value": {"price": 5.0}},
        "right": {"feed": "right", "stream_id": "r", "event_time": 1_700_000_000_001, "value": {"price": 5.5}},
        "tags": {"shop": "17"},
    }
    assert messages.schema == MESSAGE_SCHEMA
    assert messages.column("topic").to_pylist() == ["bmq.events"]
    assert messages.column("key").to_pylist() == [b"l"]
    assert read_headers(messages) == [{"event_id": event["event_id"].encode(), "kind": b"band_join", "query_id": b"b"}]


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("sign", [Sign.ENTERED, Sign.LEFT])
def test_every_sign_and_reason_is_written_as_the_wire_format_names_it(sign: Sign, reason: Reason) -> None:
    (event,) = events(PairRow(sign=sign, reason=reason))

    assert (event["sign"], event["reason"]) == ({Sign.ENTERED: "+", Sign.LEFT: "-"}[sign], reason.text)


def test_an_event_of_a_window_join_has_neither_sign_nor_reason() -> None:
    (event,) = events(PairRow(WINDOW, sign=Sign.NONE, reason=Reason.FIRST_SEEN))

    assert (event["kind"], event["query_version"]) == ("window_join", 3)
    assert list(event) == ["event_id", "kind", "query_id", "query_version", "event_time", "left", "right", "tags"]


def test_a_band_join_that_reports_queries_has_a_reason_and_the_side_that_changed_its_answer() -> None:
    left, right = events(LEFT_ALONE, dataclasses.replace(RIGHT_ALONE, reason=Reason.STREAM_EXPIRED))

    assert ("sign" in left, left["reason"], left["left"]["value"], "right" in left) == (
        False,
        "moved",
        {"price": 5},
        False,
    )
    assert ("sign" in right, right["reason"], "left" in right) == (False, "stream_expired", False)
    assert right["right"]["stream_id"] == "r"


def test_the_key_is_the_left_stream_where_there_is_one_or_the_query() -> None:
    pairs = make_pairs([PairRow(), LEFT_ALONE, RIGHT_ALONE])

    assert render_pairs(pairs, FEEDS, topic="t").column("key").to_pylist() == [b"l", b"l", b"r"]
    by_query = render_pairs(pairs, FEEDS, topic="t", key="query_id")
    assert by_query.column("key").to_pylist() == [b"j", b"r", b"r"]


def test_a_join_may_have_its_own_topic() -> None:
    pairs = make_pairs([PairRow(), PairRow(join_query("mine", output_topic="bmq.mine"))])

    assert render_pairs(pairs, FEEDS, topic="bmq.events").column("topic").to_pylist() == ["bmq.events", "bmq.mine"]


def test_no_pairs_give_no_messages() -> None:
    messages = render_pairs(make_pairs([]), FEEDS, topic="t")

    assert (messages.num_rows, messages.schema) == (0, MESSAGE_SCHEMA)


@pytest.mark.parametrize("strange", ['a"', "b\\", "c\n", "\x00d", "\x1f", "é\u2028\x7f"])
def test_ids_and_names_with_quotes_and_control_characters_stay_valid_json(strange: str) -> None:
    pairs = make_pairs([PairRow(join_query(strange), left=strange, right=f"{strange}r"), PairRow()])
    sides = {side: dataclasses.replace(getattr(pairs, side), feed=f"{side}{strange}") for side in ("left", "right")}
    feeds = {side.feed: Feed(side.feed, "t", "id", (strange,), join=True) for side in sides.values()}

    first, second = read_values(render_pairs(dataclasses.replace(pairs, **sides), feeds, topic="t"))

    assert (first["query_id"], first["left"]["stream_id"], first["right"]["stream_id"]) == (
        strange,
        strange,
        f"{strange}r",
    )
    assert (first["left"]["feed"], first["right"]["feed"]) == (f"left{strange}", f"right{strange}")
    assert list(first["left"]["value"]) == [strange]
    assert (second["left"]["stream_id"], second["right"]["stream_id"]) == ("l", "r")


def test_a_float_is_written_as_the_shortest_json_that_reads_back() -> None:
    text = render_pairs(make_pairs([PairRow(values=(0.1 + 0.2, 1e300))]), FEEDS, topic="t").column("value")[0].as_py()

    assert b'{"price":0.30000000000000004}' in text
    assert json.loads(text)["right"]["value"] == {"price": 1e300}


def test_ids_tell_apart_queries_streams_readings_signs_and_expiries() -> None:
    usual = PairRow()
    rows = [
        usual,
        PairRow(join_query("k")),
        PairRow(join_query("j", version=19)),
        PairRow(join_query("j", Kind.WINDOW_JOIN)),
        PairRow(left="m"),
        PairRow(right="m"),
        PairRow(left="lr", right=""),
        PairRow(left="r", right="l"),
        PairRow(sign=Sign.LEFT),
        PairRow(sign=Sign.LEFT, reason=Reason.STREAM_EXPIRED),
        PairRow(sign=Sign.LEFT, reason=Reason.QUERY_EXPIRED),
        PairRow(left_time=1_700_000_000_001),
        PairRow(right_time=1_700_000_000_000),
        PairRow(ordinals=(1, 0)),
        PairRow(ordinals=(0, 1)),
        PairRow(ordinals=(1, 1)),
        PairRow(event_time=1_700_000_000_009),
        LEFT_ALONE,
        RIGHT_ALONE,
        dataclasses.replace(LEFT_ALONE, reason=Reason.STREAM_EXPIRED),
    ]

    assert len({event["event_id"] for event in events(*rows)}) == len(rows)


def test_an_id_depends_on_both_feeds() -> None:
    pairs = make_pairs([PairRow()])
    moved = dataclasses.replace(pairs, right=dataclasses.replace(pairs.right, feed="other"))
    feeds = FEEDS | {"other": dataclasses.replace(FEEDS["right"], name="other")}
    ids = [read_values(render_pairs(one, feeds, topic="t"))[0]["event_id"] for one in (pairs, moved)]

    assert ids[0] != ids[1]


def test_an_id_is_the_same_in_any_batch_whatever_stands_on_the_side_that_is_not_there() -> None:
    rows = [PairRow(), LEFT_ALONE, RIGHT_ALONE, PairRow(WINDOW, sign=Sign.NONE)]
    together = [event["event_id"] for event in events(*rows)]
    alone = [events(row)[0]["event_id"] for row in rows]
    other = [
        dataclasses.replace(LEFT_ALONE, right="anybody", ordinals=(0, 7), values=(5.0, 1.0)),
        dataclasses.replace(RIGHT_ALONE, left="anybody", ordinals=(7, 0)),
    ]

    assert together == alone
    assert [event["event_id"] for event in events(*other)] == alone[1:3]


def test_a_query_reads_the_dimensions_of_each_feed() -> None:
    pairs = make_pairs([PairRow()])
    wide = dataclasses.replace(pairs.left, feed="wide", values=np.array([[1.0], [2.0]]))
    feeds = FEEDS | {"wide": Feed("wide", "wide", "id", ("x", "y"), join=True)}
    query = dataclasses.replace(pairs.queries[0], left=JoinSide("wide"))

    (event,) = read_values(render_pairs(dataclasses.replace(pairs, left=wide, queries=(query,)), feeds, topic="t"))

    assert event["left"]["value"] == {"x": 1.0, "y": 2.0}
