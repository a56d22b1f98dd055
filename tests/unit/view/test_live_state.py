"""What a browser gets: everything at first, then what it is missing, whatever it has missed."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.client.messages import Event, JoinedReading, JoinEvent, Member, ReplyMessage
from bmq.records import Feed
from bmq.view.live_state import LiveState, Seen
from bmq.view.query_members import QueryMembers
from bmq.view.shown_events import MOST_IN_UPDATE
from bmq.view.stream_positions import StreamPositions
from bmq.view.watched_queries import MOST_MEMBERS_SHOWN, WatchedQueries

FEED = Feed("plane", "plane", "id", ("x", "y"))
BOX = {"kind": "border", "feed": "plane", "region": {"box": {"x": [0, 1], "y": [0, 1]}}}


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make_state(clock: Callable[[], float] | None = None, *, members_of_events: bool = True) -> LiveState:
    return LiveState({"plane": FEED}, members_of_events=members_of_events, clock=clock or Clock())


def crossing(n: int, sign: str, query_id: str = "q", stream_id: str = "a", **more: Any) -> Event:
    fields = {"event_id": f"e{n}", "kind": "border", "feed": "plane", "stream_id": stream_id, "event_time": n}
    return Event(**{**fields, "value": {"x": 0.5, "y": 0.5}, "query_id": query_id, "sign": sign, **more})


def put(state: LiveState, query_id: str = "q", offset: int = 0, definition: object = BOX) -> None:
    state.put_query(query_id, json.dumps(definition).encode(), offset, 1700000000000)


def inside(state: LiveState) -> dict[str, int]:
    """Return how many queries each stream is inside of, as a new browser sees it."""
    shown = state.update_since(Seen(), with_counts=False)[0]["feeds"].get("plane", {})
    return dict(zip((shown["born"][slot] for slot in shown["slots"]), shown["inside"], strict=True)) if shown else {}


class Browser:
    """The positions that a page has after the updates that it asked for."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.ids: dict[int, str] = {}
        self.positions: dict[str, list[float]] = {}

    def ask(self, state: LiveState) -> None:
        update, self.seen = state.update_since(self.seen, with_counts=False)
        for feed in update["feeds"].values():
            self.ids |= feed["born"]
            for slot, *values in zip(feed["slots"], *feed["values"], strict=True):
                self.positions[self.ids[slot]] = values


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from("abcdef"), st.integers(0, 20), st.integers(-5, 5)),
            st.none(),  # the browser asks
        )
    )
)
def test_a_browser_that_asks_at_any_time_ends_with_the_last_reading_of_each_stream(
    steps: list[tuple[str, int, int] | None],
) -> None:
    state, browser = make_state(), Browser()
    newest: dict[str, tuple[int, list[float]]] = {}

    for step in steps:
        if step is None:
            browser.ask(state)
            continue
        stream_id, event_time, x = step
        state.apply_readings("plane", [(stream_id, event_time, (x, 0.0))], 0)
        if event_time >= newest.get(stream_id, (0, []))[0]:
            newest[stream_id] = event_time, [x, 0.0]
    browser.ask(state)

    assert browser.positions == {stream_id: values for stream_id, (_, values) in newest.items()}


def test_an_update_without_a_change_is_empty_and_the_next_change_comes_alone() -> None:
    state = make_state()
    state.apply_readings("plane", [("a", 1, (1.0, 2.0)), ("b", 1, (3.0, 4.0))], 0)
    _, seen = state.update_since(Seen(), with_counts=False)

    nothing, seen = state.update_since(seen, with_counts=False)
    state.apply_readings("plane", [("b", 2, (5.0, 6.0))], 0)
    one, _ = state.update_since(seen, with_counts=False)

    assert (nothing["feeds"], nothing["queries"], nothing["events"]) == ({}, [], [])
    assert one["feeds"]["plane"] == {"slots": [1], "values": [[5.0], [6.0]], "times": [2], "inside": [0], "born": {}}


def test_streams_beyond_the_most_are_counted_and_those_before_grow_the_table() -> None:
    positions = StreamPositions(1, most=3_000)

    for n in range(3_010):
        positions.apply(f"s{n}", 1, (float(n),), 1)

    assert positions.n_left_out == 10
    assert positions.since(0)["values"] == [[float(n) for n in range(3_000)]]


def test_a_browser_learns_which_feed_has_streams_that_are_not_shown() -> None:
    state = make_state()
    state._positions["plane"] = StreamPositions(2, most=2)
    readings = [(f"s{n}", 1, (0.0, 0.0)) for n in range(5)]

    state.apply_readings("plane", readings[:2], 0)
    fits, _ = state.update_since(Seen(), with_counts=True)
    state.apply_readings("plane", readings, 0)
    more, _ = state.update_since(Seen(), with_counts=True)

    assert fits["health"]["streams_left_out"] == {}
    assert more["health"]["streams_left_out"] == {"plane": 3}


def test_events_say_who_is_inside_and_a_repeated_event_changes_nothing() -> None:
    state = make_state()
    put(state)
    put(state, "r", 1)

    state.add_events([crossing(1, "+"), crossing(2, "+", "r"), crossing(1, "+"), crossing(3, "+", "q", "b")])
    before = inside(state)
    state.add_events([crossing(4, "-"), crossing(4, "-")])

    assert before == {"a": 2, "b": 1}
    assert inside(state) == {"a": 1, "b": 1}
    details = state.details("q")
    assert details is not None
    assert (details["members"], details["n_members"]) == ([("plane", "b")], 1)


def test_a_pass_is_an_event_and_no_membership_and_no_position() -> None:
    state = make_state()
    put(state)
    state.apply_readings("plane", [("a", 1, (9.0, 9.0))], 0)

    state.add_events([crossing(2, "+", is_pass=True)])

    assert inside(state) == {"a": 0}
    update, _ = state.update_since(Seen(), with_counts=True)
    assert update["feeds"]["plane"]["values"] == [[9.0], [9.0]]
    assert update["counts"] == [("q", 0, 1)]


def test_one_record_for_many_crossings_is_one_entry_for_each() -> None:
    state = make_state()
    put(state)
    put(state, "r", 1)
    state.add_events([crossing(1, "+")])

    both = msgspec.structs.replace(crossing(2, "+"), query_id=None, sign=None, entered=("r",), left=("q",))
    state.add_events([both])

    events = state.update_since(Seen(), with_counts=False)[0]["events"]
    assert [(one["n"], one["sign"], one["query"]) for one in events] == [(1, "+", "q"), (2, "-", "q"), (3, "+", "r")]
    assert inside(state) == {"a": 1}


def test_the_membership_topic_alone_says_who_is_inside_if_there_is_one() -> None:
    state = make_state(members_of_events=False)
    put(state)
    member = Member(query_id="q", query_version=1, feed="plane", stream_id="a", since=1, value={"x": 0.5, "y": 0.5})

    state.add_events([crossing(1, "+", stream_id="b")])
    state.set_member(("q", "plane", "a"), member)
    state.apply_readings("plane", [("a", 1, (0.5, 0.5))], 0)
    before = inside(state)
    state.set_member(("q", "plane", "a"), None)

    assert before == {"a": 1, "b": 0}
    assert inside(state) == {"a": 0, "b": 0}


def test_a_deleted_query_is_gone_and_its_members_are_outside_until_it_is_put_again() -> None:
    state = make_state()
    put(state)
    state.add_events([crossing(1, "+")])
    _, seen = state.update_since(Seen(), with_counts=False)

    state.delete_query("q", 3)
    gone, seen = state.update_since(seen, with_counts=False)
    put(state, "q", 5)
    again, _ = state.update_since(seen, with_counts=False)

    assert (gone["gone"], inside(state), gone["queries"]) == (["q"], {"a": 0}, [])
    assert ([one["id"] for one in again["queries"]], again["gone"]) == (["q"], [])


def test_a_reply_counts_for_the_definition_that_it_answers() -> None:
    state = make_state()
    put(state)
    state.add_reply(ReplyMessage(query_id="q", status="accepted", control_offset=0, version=1))
    accepted = state.update_since(Seen(), with_counts=False)[0]["queries"]
    put(state, "q", 3, {**BOX, "enabled": False})
    unanswered = state.update_since(Seen(), with_counts=False)[0]["queries"]

    assert [(one["status"], one["version"]) for one in accepted] == [("accepted", 1)]
    assert [(one["status"], one["version"]) for one in unanswered] == [("unanswered", 4)]
    details = state.details("q")
    assert details is not None
    assert [one["version"] for one in details["versions"]] == [4, 1]


def test_a_definition_that_is_read_again_is_no_new_version() -> None:
    state = make_state()

    for _ in range(2):
        put(state)

    details = state.details("q")
    assert details is not None
    assert len(details["versions"]) == 1


def test_a_definition_that_is_no_json_is_shown_as_its_text() -> None:
    state = make_state()

    state.put_query("q", b"\xff{nonsense", 0, 0)

    assert state.update_since(Seen(), with_counts=False)[0]["queries"][0]["definition"] == "\ufffd{nonsense"


def test_events_a_minute_are_forgotten_after_a_minute() -> None:
    clock = Clock()
    state = make_state(clock)
    put(state)
    state.add_events([crossing(n, "+" if n % 2 else "-") for n in range(1, 31)])
    _, seen = state.update_since(Seen(), with_counts=True)

    clock.now += 30
    later = state.update_since(seen, with_counts=True)[0]["counts"]
    clock.now += 36
    last = state.update_since(seen, with_counts=True)[0]["counts"]

    assert later == [("q", 0, 30)]
    assert last == [("q", 0, 0)]


def test_a_browser_that_falls_behind_gets_the_last_events_and_the_number_of_the_others() -> None:
    state = make_state()
    _, seen = state.update_since(Seen(), with_counts=False)

    state.add_events([crossing(n, "+" if n % 2 else "-") for n in range(1, MOST_IN_UPDATE + 51)])
    update, seen = state.update_since(seen, with_counts=False)

    assert len(update["events"]) == MOST_IN_UPDATE
    assert update["missed"] == 50
    assert update["events"][-1]["n"] == MOST_IN_UPDATE + 50
    assert state.update_since(seen, with_counts=False)[0]["events"] == []


def test_events_are_found_by_query_stream_and_kind() -> None:
    state = make_state()
    match = crossing(3, "", "forties", "b", kind="match")
    state.add_events([crossing(1, "+", "fifties", "a"), crossing(2, "+", "forties", "a")])
    state.add_events([msgspec.structs.replace(match, sign=None)])

    def found(query: str, stream: str, kind: str, feed: str = "") -> list[int]:
        return [one["n"] for one in state.matching_events(query, stream, kind, feed)]

    assert found("forties", "", "") == [2, 3]
    assert found("", "a", "border") == [1, 2]
    assert found("fort", "b", "border") == []
    assert (found("forties", "", "", "plane"), found("forties", "", "", "pla")) == ([2, 3], [])


def test_a_join_is_shown_with_both_streams() -> None:
    state = make_state()
    left, right = (JoinedReading(feed, stream, 1, {"x": 1.0}) for feed, stream in (("l", "a"), ("r", "z")))
    event = JoinEvent(
        event_id="j", kind="band_join", query_id="near", query_version=1, event_time=1, left=left, right=right, sign="+"
    )

    state.add_events([event])

    (shown,) = state.update_since(Seen(), with_counts=False)[0]["events"]
    assert (shown["stream"], shown["feed"], shown["deed"]) == ("a ~ z", "l ~ r", "came into")


def test_troubles_and_skipped_readings_are_in_the_health() -> None:
    state = make_state()
    state.set_trouble("plane", "No Kafka answers.")
    state.apply_readings("plane", [], 7)
    state.set_health({"service": "running"})

    health = state.update_since(Seen(), with_counts=True)[0]["health"]
    state.set_trouble("plane", None)

    assert (health["service"], health["skipped"], health["troubles"]) == ("running", 7, {"plane": "No Kafka answers."})
    assert state.update_since(Seen(), with_counts=True)[0]["health"]["troubles"] == {}


@pytest.mark.parametrize("query_id", ["", "../q", "<img src=x onerror=alert(1)>", "q\x00", "日本"])
def test_ids_are_texts_that_survive_json(query_id: str) -> None:
    state = make_state()
    put(state, query_id)

    (shown,) = json.loads(msgspec.json.encode(state.update_since(Seen(), with_counts=False)[0]))["queries"]

    assert shown["id"] == query_id


def member(query_id: str = "q", stream_id: str = "a") -> Member:
    return Member(query_id=query_id, query_version=1, feed="plane", stream_id=stream_id, since=1, value={"x": 0.5})


def counts(state: LiveState) -> dict[str, int]:
    return {query_id: n for query_id, n, _ in state.update_since(Seen(), with_counts=True)[0]["counts"]}


def test_members_and_replies_that_come_before_the_definition_wait_for_it() -> None:
    state = make_state(members_of_events=False)
    state.apply_readings("plane", [("a", 1, (0.5, 0.5))], 0)
    state.set_member(("q", "plane", "a"), member())
    state.add_reply(ReplyMessage(query_id="q", status="accepted", control_offset=7, version=8))
    before = inside(state)

    put(state, offset=7)

    (shown,) = state.update_since(Seen(), with_counts=False)[0]["queries"]
    assert (before, inside(state), counts(state), shown["status"]) == ({"a": 0}, {"a": 1}, {"q": 1}, "accepted")


def test_a_delete_that_is_read_late_takes_no_member_of_the_membership_topic() -> None:
    state = make_state(members_of_events=False)
    state.apply_readings("plane", [("a", 1, (0.5, 0.5))], 0)
    put(state)
    state.set_member(("q", "plane", "a"), member())

    state.delete_query("q", 1)
    between = inside(state)
    put(state, offset=2)

    assert (between, inside(state), counts(state)) == ({"a": 0}, {"a": 1}, {"q": 1})
    state.set_member(("q", "plane", "a"), None)
    assert (inside(state), counts(state)) == ({"a": 0}, {"q": 0})


def test_an_old_event_of_a_deleted_query_makes_no_member_of_the_next_one() -> None:
    state = make_state()
    put(state)
    state.delete_query("q", 1)
    state.add_events([crossing(1, "+", query_version=1)])

    put(state, offset=2)
    state.add_events([crossing(2, "+", stream_id="b", query_version=3)])

    assert inside(state) == {"a": 0, "b": 1}


def test_records_of_the_control_topic_that_are_read_again_change_nothing() -> None:
    state = make_state()
    put(state)
    state.delete_query("q", 1)
    put(state, "q", 2, {**BOX, "enabled": False})
    _, seen = state.update_since(Seen(), with_counts=False)

    put(state)
    state.delete_query("q", 1)
    put(state, "q", 2, {**BOX, "enabled": False})

    update, _ = state.update_since(seen, with_counts=False)
    assert (update["queries"], update["gone"]) == ([], [])
    details = state.details("q")
    assert details is not None
    assert [one["version"] for one in details["versions"]] == [3]


@pytest.mark.parametrize(
    "value",
    [
        b'"\\ud800"',
        b'{"kind": "\\udfff"}',
        b"[" * 5000 + b"]" * 5000,
        b'{"a":' * 1000 + b"1" + b"}" * 1000,
        b"9" * 9000,
    ],
    ids=["surrogate", "surrogate in a field", "deep list", "deep object", "long number"],
)
def test_every_record_of_the_control_topic_can_be_sent(value: bytes) -> None:
    state = make_state()

    state.put_query("q", value, 0, 0)

    update, _ = state.update_since(Seen(), with_counts=False)
    assert json.loads(msgspec.json.encode(update))["queries"][0]["id"] == "q"
    assert msgspec.json.encode(state.details("q"))


def test_a_definition_as_deep_as_can_be_kept_can_be_sent() -> None:
    state = make_state()
    n_lists = 0

    for depth in range(500, 1200, 10):
        kept = state.put_query(f"q{depth}", b"[" * depth + b"]" * depth, depth, 0)
        n_lists += isinstance(kept, list)

    def encoded(n_calls: int) -> bytes:
        """Return an update, made below so many calls, as the server's are."""
        if n_calls:
            return encoded(n_calls - 1)
        return msgspec.json.encode(state.update_since(Seen(), with_counts=False)[0])

    assert encoded(100)
    assert 0 < n_lists < 70


def test_a_stream_that_is_inside_before_its_first_reading_comes_with_its_id() -> None:
    state, browser = make_state(members_of_events=False), Browser()
    put(state)
    state.set_member(("q", "plane", "a"), member())
    browser.ask(state)

    state.apply_readings("plane", [("a", 1, (1.0, 2.0))], 0)
    browser.ask(state)

    assert browser.positions == {"a": [1.0, 2.0]}


def test_a_query_that_was_deleted_and_put_again_has_new_counts_in_the_next_update() -> None:
    clock = Clock()
    state = make_state(clock)
    put(state)
    state.add_events([crossing(1, "+")])
    clock.now += 100
    _, seen = state.update_since(Seen(), with_counts=True)

    state.delete_query("q", 1)
    put(state, offset=2)
    update, _ = state.update_since(seen, with_counts=True)

    assert update["counts"] == [("q", 0, 0)]


def test_a_browser_that_has_missed_too_many_deletes_needs_everything_anew() -> None:
    state = make_state()
    put(state, "first")
    _, seen = state.update_since(Seen(), with_counts=False)
    state.delete_query("first", 1)
    known = state.has_forgotten(seen)

    for n in range(10_000):
        put(state, f"q{n}", 2 * n + 2)
        state.delete_query(f"q{n}", 2 * n + 3)

    assert (known, state.has_forgotten(seen), state.has_forgotten(Seen())) == (False, True, False)
    assert not state.has_forgotten(state.update_since(seen, with_counts=False)[1])


def test_beyond_the_most_the_query_that_changed_least_recently_is_left_out_until_it_changes() -> None:
    changes: list[tuple[tuple[str, str], int]] = []
    queries = WatchedQueries(lambda *change: changes.append(change), members_of_events=False, most=2)
    queries.enter("a", ("plane", "s"), 0.0)

    for offset, query_id in enumerate("abc"):
        queries.put(query_id, b"{}", offset, 0, offset + 1, 0.0)
    left_out = ([one["id"] for one in queries.since(0)], queries.gone_since(2), queries.n_left_out)
    queries.put("a", b"{}", 3, 0, 4, 0.0)

    assert left_out == (["c", "b"], ["a"], 1)
    assert ([one["id"] for one in queries.since(0)], queries.gone_since(3), queries.n_left_out) == (
        ["a", "c"],
        ["b"],
        1,
    )
    assert changes == [(("plane", "s"), change) for change in (1, -1, 1)]
    queries.delete("b", 4, 5)
    assert queries.n_left_out == 0


def test_the_definitions_together_have_a_most_of_bytes() -> None:
    queries = WatchedQueries(lambda *_: None, members_of_events=False, most_text=100)
    for offset in range(4):
        queries.put("a", b'"%030d"' % offset, offset, 0, offset + 1, 0.0)
    found = queries.details("a")
    queries.put("b", b'"%060d"' % 0, 9, 0, 9, 0.0)

    assert found is not None
    assert [one["version"] for one in found[0]["versions"]] == [4, 3, 2]
    assert [one["id"] for one in queries.since(0)] == ["b"]


def test_members_beyond_the_most_are_not_kept_and_that_is_a_fact_until_they_leave() -> None:
    members = QueryMembers(most=2)

    added = [members.add("q", ("plane", stream)) for stream in "aabc"]
    full = members.is_full
    removed = [members.remove("q", ("plane", stream)) for stream in "cax"]

    assert (added, full, removed, members.is_full) == ([True, False, True, False], True, [False, True, False], False)
    assert members.of("q") == {("plane", "b")}
    members.clear("q")
    assert [members.add("r", ("plane", stream)) for stream in "de"] == [True, True]


def test_the_first_members_are_shown_in_their_order_with_the_number_of_all() -> None:
    state = make_state()
    put(state)
    state.add_events([crossing(n, "+", stream_id=f"s{n:04}") for n in range(1000, 0, -1)])

    details = state.details("q")

    assert details is not None
    assert (details["n_members"], len(details["members"])) == (1000, MOST_MEMBERS_SHOWN)
    assert details["members"] == [("plane", f"s{n:04}") for n in range(1, MOST_MEMBERS_SHOWN + 1)]


def test_a_stream_that_is_left_out_counts_once() -> None:
    positions = StreamPositions(1, most=1)

    for _ in range(3):
        for stream_id in "abc":
            positions.apply(stream_id, 1, (1.0,), 1)

    assert positions.n_left_out == 2
