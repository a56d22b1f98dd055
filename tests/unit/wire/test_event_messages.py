"""The events topic: what an event says, where it goes, and what its key and headers are."""

import json

import pyarrow as pa
import pytest

from bmq.records import Feed, Pattern, Reason, Sign
from bmq.wire.event_messages import render_crossings
from bmq.wire.outgoing import MESSAGE_SCHEMA, text_column
from tests.crossings import FEED, Row, make_crossings, make_ids, query, read_headers, read_values

MOVED = Row(
    query=query("q1", 18, tags='{"shop":"17"}'),
    sign=Sign.LEFT,
    value=(11.5, 5.0),
    previous=(1_699_999_970_000, (9.0, -0.25)),
)


def test_an_event_of_a_move_has_every_field_of_the_wire_format() -> None:
    messages = render_crossings(make_crossings([MOVED]), FEED, topic="bmq.events")
    (event,) = read_values(messages)
    assert event == {
        "event_id": event["event_id"],
        "kind": "border",
        "query_id": "q1",
        "query_version": 18,
        "feed": "vehicles",
        "stream_id": "v7",
        "sign": "-",
        "reason": "moved",
        "event_time": 1_700_000_000_000,
        "value": {"x": 11.5, "y": 5.0},
        "previous": {"event_time": 1_699_999_970_000, "value": {"x": 9.0, "y": -0.25}},
        "tags": {"shop": "17"},
    }
    assert messages.schema == MESSAGE_SCHEMA
    assert messages.column("topic").to_pylist() == ["bmq.events"]
    assert messages.column("key").to_pylist() == [b"v7"]
    assert read_headers(messages) == [{"event_id": event["event_id"].encode(), "kind": b"border", "query_id": b"q1"}]


def test_only_a_move_has_a_previous_reading() -> None:
    rows = [MOVED, Row(reason=Reason.FIRST_SEEN), Row(reason=Reason.QUERY_DELETED, sign=Sign.LEFT)]
    events = read_values(render_crossings(make_crossings(rows), FEED, topic="t"))
    assert ["previous" in event for event in events] == [True, False, False]


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("sign", [Sign.ENTERED, Sign.LEFT])
def test_every_sign_and_reason_is_written_as_the_wire_format_names_it(sign: Sign, reason: Reason) -> None:
    rows = [Row(sign=sign, reason=reason)]
    (event,) = read_values(render_crossings(make_crossings(rows), FEED, topic="t"))
    assert event["sign"] == {Sign.ENTERED: "+", Sign.LEFT: "-"}[sign]
    assert event["reason"] == reason.text


def test_a_pass_says_so_and_has_an_id_for_each_visit() -> None:
    before = (1_699_999_970_000, (-5.0, 5.0))
    signs = [Sign.ENTERED, Sign.LEFT, Sign.ENTERED, Sign.LEFT]
    rows = [Row(sign=sign, previous=before, visit=1 + i // 2) for i, sign in enumerate(signs)]
    events = read_values(render_crossings(make_crossings([*rows, MOVED]), FEED, topic="t"))
    assert [event.get("pass") for event in events] == [True, True, True, True, None]
    assert [event["sign"] for event in events] == ["+", "-", "+", "-", "-"]
    assert len({event["event_id"] for event in events}) == 5


def test_a_confirmed_event_has_the_time_of_both() -> None:
    rows = [Row(confirmed_time=1_700_000_010_000), Row(query=query("q2"))]
    events = read_values(render_crossings(make_crossings(rows), FEED, topic="t"))
    assert [event.get("confirmed_time") for event in events] == [1_700_000_010_000, None]
    assert events[0]["event_time"] == 1_700_000_000_000


def test_a_transition_event_has_a_pattern_and_no_sign() -> None:
    stay = query("garage", pattern=Pattern.IN_NOT_OUT, within_ms=60_000, tags='{"shop":"17"}')
    rows = [Row(), Row(query=stay, sign=Sign.NONE, began=1_699_999_940_000)]
    messages = render_crossings(make_crossings(rows), FEED, topic="t")
    border, transition = read_values(messages)
    assert "pattern" not in border
    assert transition == {
        "event_id": transition["event_id"],
        "kind": "transition",
        "query_id": "garage",
        "query_version": 18,
        "feed": "vehicles",
        "stream_id": "v7",
        "pattern": "in_not_out",
        "began": 1_699_999_940_000,
        "event_time": 1_700_000_000_000,
        "value": {"x": 5.0, "y": 5.0},
        "tags": {"shop": "17"},
    }
    assert [headers["kind"] for headers in read_headers(messages)] == [b"border", b"transition"]


def test_transitions_passes_and_expiries_stay_apart_under_layout_reading() -> None:
    stay = query("garage", pattern=Pattern.IN_NOT_OUT, within_ms=60_000)
    a, b = query("a"), query("b")
    rows = [
        Row(query=a, visit=1, previous=(1, (0.0, 0.0))),
        Row(query=a, sign=Sign.LEFT, visit=1, previous=(1, (0.0, 0.0))),
        Row(query=b, previous=(1, (0.0, 0.0))),
        Row(query=stay, sign=Sign.NONE, began=1_699_999_940_000),
        Row(query=a, sign=Sign.LEFT, reason=Reason.STREAM_EXPIRED),
        Row(query=b, sign=Sign.LEFT, reason=Reason.STREAM_EXPIRED),
        Row(query=a, sign=Sign.LEFT, reason=Reason.QUERY_EXPIRED),
        Row(query=b, sign=Sign.LEFT, reason=Reason.QUERY_EXPIRED),
    ]
    messages = render_crossings(make_crossings(rows), FEED, topic="t", layout="reading")
    events = read_values(messages)
    assert [(event.get("entered"), event.get("left"), event.get("pattern")) for event in events] == [
        (["a"], [], None),
        ([], ["a"], None),
        (["b"], [], None),
        (None, None, "in_not_out"),
        ([], ["a", "b"], None),
        ([], ["a"], None),
        ([], ["b"], None),
    ]
    assert [headers["kind"] for headers in read_headers(messages)] == [b"border"] * 3 + [b"transition"] + [
        b"border"
    ] * 3
    assert len({event["event_id"] for event in events}) == 7


def test_confirmations_of_one_crossing_are_one_event_a_query_under_layout_reading() -> None:
    rows = [Row(query=query("c"))]
    rows += [Row(query=query(name), confirmed_time=due) for name, due in (("a", 1), ("b", 1), ("d", 2))]
    events = read_values(render_crossings(make_crossings(rows), FEED, topic="t", layout="reading"))
    assert [event["entered"] for event in events] == [["c"], ["a"], ["b"], ["d"]]
    assert len({event["event_id"] for event in events}) == 4


def test_events_may_be_keyed_by_query() -> None:
    messages = render_crossings(make_crossings([MOVED]), FEED, topic="t", key="query_id")
    assert messages.column("key").to_pylist() == [b"q1"]


def test_a_query_may_have_its_own_topic() -> None:
    rows = [Row(), Row(query=query("q2", output_topic="bmq.mine"))]
    messages = render_crossings(make_crossings(rows), FEED, topic="bmq.events")
    assert messages.column("topic").to_pylist() == ["bmq.events", "bmq.mine"]


@pytest.mark.parametrize("layout", ["crossing", "reading"])
def test_no_crossings_give_no_messages(layout: str) -> None:
    messages = render_crossings(make_crossings([]), FEED, topic="t", layout=layout)  # type: ignore[arg-type]
    assert (messages.num_rows, messages.schema) == (0, MESSAGE_SCHEMA)


@pytest.mark.parametrize("strange", ['a"', "b\\", "c\n", "\x00d", "\x1f", "é\u2028\x7f"])
def test_ids_and_names_with_quotes_and_control_characters_stay_valid_json(strange: str) -> None:
    feed = Feed(strange, "t", "id", ("x", strange), "ts")
    rows = [Row(stream=strange, query=query(strange)), Row(stream="plain")]
    events = read_values(render_crossings(make_crossings(rows), feed, topic="t"))
    assert [event["stream_id"] for event in events] == [strange, "plain"]
    assert [event["query_id"] for event in events] == [strange, "q1"]
    assert [event["feed"] for event in events] == [strange, strange]
    assert [list(event["value"]) for event in events] == [["x", strange]] * 2


def test_one_reading_is_one_event_under_layout_reading() -> None:
    a, b, c = query("a"), query("b"), query("c")
    rows = [
        Row(query=a, sign=Sign.LEFT, previous=(1, (0.0, 0.0))),
        Row(query=b, previous=(1, (0.0, 0.0))),
        Row(query=c, previous=(1, (0.0, 0.0))),
        Row(query=a, ordinal=1, previous=(1_700_000_000_000, (5.0, 5.0))),
        Row(query=a, stream="v8", reason=Reason.FIRST_SEEN),
    ]
    messages = render_crossings(make_crossings(rows), FEED, topic="t", key="query_id", layout="reading")
    events = read_values(messages)
    assert [(event["entered"], event["left"]) for event in events] == [
        (["b", "c"], ["a"]),
        (["a"], []),
        (["a"], []),
    ]
    assert events[0] == {
        "event_id": events[0]["event_id"],
        "kind": "border",
        "feed": "vehicles",
        "stream_id": "v7",
        "entered": ["b", "c"],
        "left": ["a"],
        "reason": "moved",
        "event_time": 1_700_000_000_000,
        "value": {"x": 5.0, "y": 5.0},
        "previous": {"event_time": 1, "value": {"x": 0.0, "y": 0.0}},
    }
    assert messages.column("key").to_pylist() == [b"v7", b"v7", b"v8"]
    assert read_headers(messages)[0] == {"event_id": events[0]["event_id"].encode(), "kind": b"border"}
    assert len({event["event_id"] for event in events}) == 3


def test_two_commands_are_two_events_under_layout_reading() -> None:
    rows = [
        Row(query=query("a"), reason=Reason.QUERY_REGISTERED),
        Row(query=query("b"), reason=Reason.QUERY_REGISTERED),
    ]
    events = read_values(render_crossings(make_crossings(rows), FEED, topic="t", layout="reading"))
    assert [event["entered"] for event in events] == [["a"], ["b"]]
    assert events[0]["event_id"] != events[1]["event_id"]


def test_a_reading_gives_one_event_to_each_topic_under_layout_reading() -> None:
    mine = [query("b", output_topic="bmq.mine"), query("d", output_topic="bmq.mine")]
    rows = [Row(query=q) for q in (query("a"), mine[0], query("c", output_topic="bmq.events"), mine[1])]
    messages = render_crossings(make_crossings(rows), FEED, topic="bmq.events", layout="reading")
    events = read_values(messages)
    entered = dict(zip(messages.column("topic").to_pylist(), [e["entered"] for e in events], strict=True))
    assert entered == {"bmq.events": ["a", "c"], "bmq.mine": ["b", "d"]}
    assert events[0]["event_id"] != events[1]["event_id"]


def test_a_float_is_written_as_the_shortest_json_that_reads_back() -> None:
    value = (0.1 + 0.2, 1e300)
    messages = render_crossings(make_crossings([Row(value=value)]), FEED, topic="t")
    text = messages.column("value")[0].as_py()
    assert b'"x":0.30000000000000004,' in text
    assert json.loads(text)["value"] == {"x": value[0], "y": value[1]}


def test_texts_beyond_32_bit_offsets_are_refused() -> None:
    ids = make_ids(["a", "b"])
    ids.starts[-1] = 2**31
    with pytest.raises(pa.ArrowCapacityError, match="render fewer messages"):
        text_column(ids.starts, ids.bytes)


def test_a_cause_with_a_long_list_of_queries_has_several_events() -> None:
    queries = [query(f"q{i:02}") for i in range(20)]
    signs = [Sign.ENTERED, Sign.LEFT]
    rows = [Row("a", query=one, sign=signs[i % 2]) for i, one in enumerate(queries)] + [Row("b", query=queries[0])]

    messages = render_crossings(make_crossings(rows), FEED, topic="t", layout="reading", longest=30)

    events = read_values(messages)
    of_a = [event for event in events if event["stream_id"] == "a"]
    assert [len(event["entered"]) + len(event["left"]) for event in of_a] == [5, 5, 5, 5]
    for name, sign in (("entered", Sign.ENTERED), ("left", Sign.LEFT)):
        found = [query_id for event in of_a for query_id in event[name]]
        assert found == [row.query.query_id for row in rows[:-1] if row.sign is sign]
    assert len({event["event_id"] for event in events}) == 5


def test_the_first_part_of_a_cause_has_the_id_of_the_whole() -> None:
    crossings = make_crossings([Row(query=query(f"q{i}")) for i in range(9)])
    (whole,) = read_values(render_crossings(crossings, FEED, topic="t", layout="reading"))
    first, second, _ = read_values(render_crossings(crossings, FEED, topic="t", layout="reading", longest=15))
    assert first["event_id"] == whole["event_id"] != second["event_id"]
    assert first | {"entered": []} == whole | {"entered": []}
