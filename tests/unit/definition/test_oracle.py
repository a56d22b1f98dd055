"""The oracle judges everything else, so its own rules are written out by hand here."""

from typing import Any

import pytest

from tests.oracle import Event, Oracle, Reading, broken_ledgers

FEEDS = {"line": ("x",), "plane": ("x", "y")}


def border(lo: float | None, hi: float | None, **options: object) -> dict[str, Any]:
    return {"kind": "border", "feed": "line", "region": {"box": {"x": [lo, hi]}}, **options}


def readings(stream: str, *pairs: tuple[int, float]) -> list[Reading]:
    return [Reading(stream, event_time, (value,)) for event_time, value in pairs]


def emitted(oracle: Oracle) -> list[str]:
    return [f"{e.sign}{e.query_id} {e.stream}@{e.event_time} {e.reason}" for e in oracle.events]


@pytest.fixture
def oracle() -> Oracle:
    return Oracle(FEEDS)


def test_a_move_is_emitted_once_with_where_it_came_from(oracle: Oracle) -> None:
    oracle.put(0, "q", border(0, 10))
    oracle.read("line", readings("a", (1, 20.0), (2, 5.0), (3, 6.0), (4, 10.0)))

    assert oracle.events == [
        Event("+", "q", 1, "line", "a", 2, "moved", (5.0,), (1, (20.0,))),
        Event("-", "q", 1, "line", "a", 4, "moved", (10.0,), (3, (6.0,))),
    ]


@pytest.mark.parametrize(("bounds", "inside"), [("[)", {0, 5}), ("[]", {0, 5, 10}), ("(]", {5, 10}), ("()", {5})])
def test_bounds_say_which_ends_belong(oracle: Oracle, bounds: str, inside: set[int]) -> None:
    oracle.put(0, "q", border(0, 10, bounds=bounds))
    for value in (-1, 0, 5, 10, 11):
        oracle.read("line", readings(str(value), (1, float(value))))

    assert {int(event.stream) for event in oracle.events} == inside


def test_a_dimension_that_the_box_leaves_out_is_unbounded(oracle: Oracle) -> None:
    oracle.put(0, "q", {"kind": "border", "feed": "plane", "region": {"box": {"y": [None, 3]}}})
    oracle.read("plane", [Reading("a", 1, (1e300, -1e300)), Reading("b", 1, (0.0, 3.0))])

    assert emitted(oracle) == ["+q a@1 first_seen"]


def test_leaves_come_before_enters_and_each_by_the_bytes_of_the_query_id(oracle: Oracle) -> None:
    for offset, (query_id, lo) in enumerate([("é", 0), ("z", 0), ("b", 10), ("B", 10)]):
        oracle.put(offset, query_id, border(lo, lo + 10))
    oracle.read("line", readings("a", (1, 5.0), (2, 15.0)))

    assert [text.split()[0] for text in emitted(oracle)] == ["+z", "+é", "-z", "-é", "+B", "+b"]


def test_a_batch_is_sorted_by_event_time_and_equal_times_keep_their_order(oracle: Oracle) -> None:
    oracle.put(0, "q", border(0, 10))
    oracle.read("line", readings("a", (2, 5.0), (2, 20.0), (1, 20.0), (2, 5.0)))

    assert emitted(oracle) == ["+q a@2 moved", "-q a@2 moved", "+q a@2 moved"]


def test_a_late_reading_is_counted_and_changes_nothing(oracle: Oracle) -> None:
    oracle.put(0, "q", border(0, 10))
    oracle.read("line", readings("a", (3, 20.0)))
    oracle.read("line", readings("a", (2, 5.0)))

    assert oracle.events == []
    assert oracle.late["line"] == 1


def test_a_silent_member_leaves_silently_whatever_ends_it(oracle: Oracle) -> None:
    oracle.read("line", readings("a", (1, 5.0)) + readings("b", (1, 5.0)) + readings("c", (1, 5.0)))
    oracle.put(0, "moved", border(0, 10, initial="silent", streams=["a"]))
    oracle.put(1, "edited", border(0, 10, initial="silent", streams=["b"]))
    oracle.put(2, "deleted", border(0, 10, initial="silent", streams=["c"]))
    oracle.read("line", readings("a", (2, 20.0)))
    oracle.put(3, "edited", border(0, 3, streams=["b"]))
    oracle.delete(4, "deleted")

    assert oracle.events == []
    assert oracle.inside() == set()


def test_a_silent_edit_keeps_loud_members_loud(oracle: Oracle) -> None:
    oracle.read("line", readings("a", (1, 5.0)) + readings("b", (1, 15.0)))
    oracle.put(0, "q", border(0, 10))
    oracle.put(1, "q", border(0, 20, initial="silent"))
    oracle.delete(2, "q")

    assert emitted(oracle) == ["+q a@1 query_registered", "-q a@1 query_deleted"]


def test_an_edit_to_another_feed_leaves_the_old_one_and_enters_the_new(oracle: Oracle) -> None:
    oracle.read("line", readings("a", (1, 5.0)))
    oracle.read("plane", [Reading("b", 2, (5.0, 5.0))])
    oracle.put(0, "q", border(0, 10))
    oracle.put(1, "q", {"kind": "border", "feed": "plane", "region": {"box": {"x": [0, 10]}}})

    assert emitted(oracle) == ["+q a@1 query_registered", "-q a@1 query_updated", "+q b@2 query_updated"]


def test_the_same_definition_in_other_words_is_unchanged(oracle: Oracle) -> None:
    oracle.put(0, "q", border(0, 10, streams=["b", "a"]))
    oracle.put(1, "q", border(0, 10, streams=["a", "b", "a"], bounds="[)", initial="emit"))

    assert [answer.status for answer in oracle.answers] == ["accepted", "unchanged"]


def test_deletes_of_unknown_queries_are_silent_only_where_the_topic_is_read_anew() -> None:
    oracle = Oracle(FEEDS, silent_tombstones_before=1)
    oracle.delete(0, "ghost")
    oracle.delete(1, "ghost")

    assert [(answer.offset, answer.code) for answer in oracle.answers] == [(1, "unknown_query")]


def test_a_broken_ledger_is_named() -> None:
    def event(sign: str, event_time: int) -> Event:
        return Event(sign, "q", 1, "line", "a", event_time, "moved", (1.0,))

    assert broken_ledgers([event("+", 1), event("-", 2), event("+", 2)]) == []
    assert len(broken_ledgers([event("-", 1)])) == 1
    assert len(broken_ledgers([event("+", 1), event("+", 2)])) == 1
    assert len(broken_ledgers([event("+", 2), event("-", 1)])) == 1
