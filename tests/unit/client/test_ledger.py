"""What the ledger checker calls whole, and what it calls broken."""

import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.client.ledger import SHOWN_FAULTS, Ledger, Report

TOPIC = "bmq.events"


def crossing(sign: str, number: int, **fields: Any) -> dict[str, Any]:
    """Return an event whose id and time are ``number``."""
    usual = {"kind": "border", "feed": "f", "query_id": "q", "query_version": 1, "stream_id": "s", "reason": "moved"}
    return usual | {"event_id": f"{number:032x}", "sign": sign, "event_time": number, "value": {"x": 0.0}} | fields


def joined(sign: str | None, number: int, left: str = "a", right: str = "z", **fields: Any) -> dict[str, Any]:
    """Return an event of a band join whose id and time are ``number``; without a sign of a window join."""
    sides = {
        "left": {"feed": "f", "stream_id": left, "event_time": number, "value": {"x": 0.0}},
        "right": {"feed": "g", "stream_id": right, "event_time": number, "value": {"x": 0.0}},
    }
    usual = {"event_id": f"{number:032x}", "query_id": "j", "query_version": 1, "event_time": number, **sides}
    kind = {"kind": "window_join"} if sign is None else {"kind": "band_join", "sign": sign, "reason": "moved"}
    return usual | kind | fields


def check(*events: dict[str, Any] | bytes, from_beginning: bool = True, topic: str = TOPIC, **options: int) -> Report:
    ledger = Ledger(from_beginning=from_beginning, **options)
    for event in events:
        ledger.take(topic, event if isinstance(event, bytes) else json.dumps(event).encode())
    return ledger.finish()


def test_signs_that_alternate_are_whole() -> None:
    report = check(crossing("+", 1), crossing("-", 2), crossing("+", 3), crossing("+", 4, stream_id="t"))

    assert report.is_whole
    assert (report.n_events, report.n_pairs, report.n_faults, report.n_repeats, report.n_back) == (4, 2, 0, 0, 0)


@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_sign_behind_its_equal_is_a_fault_that_names_pair_and_time(sign: str) -> None:
    events = [crossing("+", 1), crossing("-", 2), crossing("+", 3)][: 2 if sign == "-" else 3]
    report = check(*events, crossing(sign, 7))

    assert not report.is_whole
    assert report.faults == [f"feed f, query q, stream s: {sign} behind {sign}, at event time 7"]


@pytest.mark.parametrize("other", [{"feed": "g"}, {"query_id": "r"}, {"stream_id": "t"}])
def test_each_feed_query_and_stream_alternates_on_its_own(other: dict[str, str]) -> None:
    assert check(crossing("+", 1), crossing("+", 2, **other), crossing("-", 3), crossing("-", 4, **other)).is_whole


def test_a_first_minus_is_a_fault_only_where_the_topic_holds_the_beginning() -> None:
    report = check(crossing("-", 1))

    assert report.faults == ["feed f, query q, stream s: begins with - (version 1)"]
    assert check(crossing("-", 1), from_beginning=False).is_whole


def test_an_event_that_comes_again_is_a_repeat_and_no_sign() -> None:
    events = [crossing("+", 1), crossing("-", 2), crossing("+", 3)]
    report = check(*events, *events[1:], crossing("-", 4))

    assert not report.is_whole
    assert (report.n_events, report.n_repeats, report.n_faults) == (4, 2, 0)
    assert report.repeats[0] == f"{TOPIC}: event {2:032x} of stream s at event time 2 came again"


def test_one_id_for_two_different_events_is_a_fault() -> None:
    report = check(crossing("+", 1), crossing("-", 1))

    assert (report.n_faults, report.n_repeats) == (1, 0)
    assert "has the id of another event" in report.faults[0]


def test_an_id_is_forgotten_behind_as_many_others_as_are_remembered() -> None:
    events = [crossing("+", n, stream_id=str(n)) for n in range(5)]

    assert check(*events, events[1], remembered_ids=4).n_repeats == 1
    assert check(*events, events[0], remembered_ids=4).n_repeats == 0


def test_the_next_version_of_a_query_goes_on_where_the_last_one_ended() -> None:
    plus, minus = crossing("+", 1), crossing("-", 2, query_version=5, reason="query_updated")

    assert check(plus, minus, crossing("+", 3, query_version=6)).is_whole
    report = check(plus, crossing("+", 2, query_version=5))
    assert report.faults == ["feed f, query q, stream s: version 5 begins with + behind +"]


def test_a_query_that_moved_to_another_topic_is_checked_over_both() -> None:
    here = [crossing("+", 1), crossing("-", 5, query_version=8)]
    there = [crossing("-", 2, query_version=4), crossing("+", 3, query_version=4)]
    for order in ([("a", here), ("b", there)], [("b", there), ("a", here)]):
        ledger = Ledger(from_beginning=True)
        for topic, events in order:
            for event in events:
                ledger.take(topic, json.dumps(event).encode())

        assert ledger.finish().is_whole


def test_events_of_one_reading_are_checked_query_by_query() -> None:
    def reading(number: int, entered: list[str], left: list[str]) -> dict[str, Any]:
        event = crossing("+", number, entered=entered, left=left)
        return {name: event[name] for name in event.keys() - {"query_id", "query_version", "sign"}}

    assert check(reading(1, ["a", "b"], []), reading(2, ["c"], ["a"]), reading(3, ["a"], ["b", "c"])).is_whole
    assert check(reading(1, ["a"], []), reading(2, ["a"], [])).faults == [
        "feed f, query a, stream s: + behind +, at event time 2"
    ]
    assert check(reading(1, [], ["a"])).faults == ["feed f, query a, stream s: begins with -"]


def test_transitions_have_ids_and_no_signs() -> None:
    transitions = [crossing("+", n, kind="transition", pattern="in_then_out", began=0) for n in (1, 2, 3)]
    for transition in transitions:
        del transition["sign"]

    assert check(*transitions).is_whole
    assert check(*transitions, transitions[2]).n_repeats == 1


def test_readings_inside_have_ids_and_no_signs() -> None:
    inside = [crossing("+", n, kind=kind) for n, kind in enumerate(["match", "match", "select", "select"])]
    for event in inside:
        del event["sign"], event["reason"]

    assert check(*inside).is_whole
    assert check(*inside, inside[3]).n_repeats == 1


def test_each_pair_of_a_band_join_alternates_on_its_own() -> None:
    others = [joined("+", 2, right="y"), joined("+", 3, left="b"), joined("+", 4, query_id="k"), crossing("+", 5)]
    report = check(joined("+", 1), *others, joined("-", 6), joined("+", 7), joined("-", 8, right="y"))

    assert report.is_whole
    assert (report.n_events, report.n_pairs, report.n_foreign) == (8, 5, 0)


def test_a_sign_of_a_band_join_behind_its_equal_is_a_fault_that_names_both_streams() -> None:
    report = check(joined("+", 1), joined("+", 7))

    assert report.faults == ["feeds f ~ g, query j, streams a ~ z: + behind +, at event time 7"]
    assert check(joined("-", 1)).faults == ["feeds f ~ g, query j, streams a ~ z: begins with - (version 1)"]
    assert check(joined("-", 1), from_beginning=False).is_whole


def test_an_edit_of_a_band_join_goes_on_where_the_last_version_ended() -> None:
    assert check(joined("+", 1), joined("-", 2, query_version=5), joined("+", 3, query_version=6)).is_whole
    assert not check(joined("+", 1), joined("+", 2, query_version=5)).is_whole


def test_events_of_joins_without_a_sign_have_ids_and_nothing_else_to_check() -> None:
    one_side = joined("+", 3)
    del one_side["sign"], one_side["left"]
    events = [joined(None, 1), joined(None, 2), one_side, one_side | {"event_id": "4"}]

    assert check(*events).is_whole
    report = check(*events, joined(None, 2))
    assert report.repeats == [f"{TOPIC}: event {2:032x} of streams a ~ z at event time 2 came again"]


def test_the_expiry_of_one_stream_may_be_older_than_the_reading_of_the_other() -> None:
    report = check(joined("+", 5), joined("-", 4))

    assert report.is_whole
    assert report.n_back == 0


def test_a_time_that_goes_back_is_a_warning() -> None:
    report = check(crossing("+", 5), crossing("-", 4))

    assert report.is_whole
    assert report.n_back == 1


def test_what_is_no_event_is_counted_and_passed_over() -> None:
    report = check(b"", b"{}", b"\xff", crossing("+", 1))

    assert report.is_whole
    assert (report.n_events, report.n_foreign) == (1, 3)


def test_all_faults_are_counted_and_the_first_ones_kept() -> None:
    report = check(*(crossing("+", n) for n in range(SHOWN_FAULTS + 3)))

    assert report.n_faults == SHOWN_FAULTS + 2
    assert len(report.faults) == SHOWN_FAULTS


pairs = st.tuples(st.sampled_from(["q", "r"]), st.sampled_from(["s", "t"]))


@given(order=st.lists(pairs, min_size=1, max_size=12), data=st.data())
def test_a_ledger_is_whole_until_one_event_is_taken_out_of_its_middle(
    order: list[tuple[str, str]], data: st.DataObject
) -> None:
    numbers: dict[tuple[str, str], int] = defaultdict(int)
    events = []
    for number, pair in enumerate(order):
        events.append(crossing("+-"[numbers[pair] % 2], number, query_id=pair[0], stream_id=pair[1]))
        numbers[pair] += 1
    assert check(*events).is_whole

    at = data.draw(st.integers(0, len(order) - 1))
    is_last = order[at] not in order[at + 1 :]
    assert check(*events[:at], *events[at + 1 :]).is_whole == is_last


@given(order=st.lists(pairs, min_size=1, max_size=12), data=st.data())
def test_a_batch_that_is_written_again_after_a_crash_gives_repeats_only(
    order: list[tuple[str, str]], data: st.DataObject
) -> None:
    numbers: dict[tuple[str, str], int] = defaultdict(int)
    events = []
    for number, pair in enumerate(order):
        events.append(crossing("+-"[numbers[pair] % 2], number, query_id=pair[0], stream_id=pair[1]))
        numbers[pair] += 1
    crash = data.draw(st.integers(1, len(order)))
    begin = data.draw(st.integers(0, crash))

    report = check(*events[:crash], *events[begin:])

    assert (report.n_faults, report.n_repeats) == (0, crash - begin)
