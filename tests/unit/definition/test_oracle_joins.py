"""What the definition says of joins and no scenario can: both feeds in one batch, reasons, versions, what is kept."""

from typing import Any

import pytest

from tests.oracle import Feed, Oracle, Reading, broken_answers

PRICE = Feed(("price",), join=True)
FEEDS = {"left": PRICE, "right": PRICE, "third": PRICE}

pytestmark = pytest.mark.unit


@pytest.fixture
def oracle() -> Oracle:
    return Oracle(FEEDS)


def band(lo: float = -1, hi: float = 1, **options: object) -> dict[str, Any]:
    on = {"left": "price", "right": "price"}
    return {"kind": "band_join", "left": "left", "right": "right", "on": on, "band": [lo, hi], **options}


def window(left: object, right: object, other: str = "right") -> dict[str, Any]:
    sides = {"left": {"feed": "left", "window": left}, "right": {"feed": other, "window": right}}
    return {"kind": "window_join", **sides, "any": [{"band": [["left.price", "right.price", -1, 1]]}]}


def batch(oracle: Oracle, **readings: list[tuple[str, int, float]]) -> None:
    """End a batch that brings (stream, event time, price) to some feeds."""
    for feed in FEEDS:
        of_feed = [Reading(stream, time, (price,)) for stream, time, price in readings.get(feed, [])]
        oracle.advance(feed, {0: of_feed})
    oracle.join()


def emitted(oracle: Oracle) -> list[str]:
    return [f"{event} {event.reason}".strip() for event in oracle.pair_events]


def test_both_feeds_of_a_batch_are_one_sequence_by_time_and_then_by_feed(oracle: Oracle) -> None:
    oracle.put(0, "q", band())
    batch(oracle, left=[("a", 1, 10), ("a", 4, 20)], right=[("z", 2, 10), ("z", 3, 50), ("z", 4, 20)])

    assert emitted(oracle) == ["+q a~z@2 first_seen", "-q a~z@3 moved", "+q a~z@4 moved"]


def test_at_one_time_the_feed_whose_name_is_first_moves_first(oracle: Oracle) -> None:
    oracle.put(0, "q", band())
    batch(oracle, left=[("a", 1, 10)], right=[("z", 1, 10)])
    batch(oracle, left=[("a", 2, 20)], right=[("z", 2, 20)])

    assert emitted(oracle) == ["+q a~z@1 first_seen", "-q a~z@2 moved", "+q a~z@2 moved"]


def test_a_pair_is_emitted_by_the_version_that_tells_it(oracle: Oracle) -> None:
    batch(oracle, left=[("a", 1, 10)], right=[("y", 1, 10), ("z", 1, 15)])
    oracle.put(0, "q", band())
    oracle.put(1, "q", band(-9, -4))
    oracle.put(2, "q", band(report="queries"))
    oracle.put(3, "q", band())
    oracle.delete(4, "q")

    assert [(str(event), event.reason, event.version) for event in oracle.pair_events] == [
        ("+q a~y@1", "query_registered", 1),
        ("-q a~y@1", "query_updated", 2),
        ("+q a~z@1", "query_updated", 2),
        ("-q a~z@1", "query_updated", 3),
        ("+q a~y@1", "query_updated", 4),
        ("-q a~y@1", "query_deleted", 4),
    ]


def test_pairs_of_one_reading_go_before_they_come_each_by_query_and_by_the_other_stream(oracle: Oracle) -> None:
    for offset, (query_id, lo) in enumerate([("é", 0), ("z", 0), ("b", 10), ("B", 10)]):
        oracle.put(offset, query_id, band(lo, lo + 9))
    batch(oracle, right=[("é", 1, 0), ("z", 1, 0)], left=[("a", 2, 5)])
    batch(oracle, left=[("a", 3, 15)])

    signs = [f"{event.sign}{event.query_id} {event.pair}" for event in oracle.pair_events]
    assert signs == [
        *("+z a~z", "+z a~é", "+é a~z", "+é a~é"),
        *("-z a~z", "-z a~é", "-é a~z", "-é a~é", "+B a~z", "+B a~é", "+b a~z", "+b a~é"),
    ]


def test_the_one_side_that_changed_an_answer_is_emitted(oracle: Oracle) -> None:
    oracle.put(0, "q", band(report="queries"))
    batch(oracle, left=[("a", 1, 10)], right=[("z", 2, 10)])
    batch(oracle, left=[("a", 3, 50)])

    first, second = oracle.pair_events
    assert (first.left, first.right) == (None, Reading("z", 2, (10,)))
    assert (second.left, second.right) == (Reading("a", 3, (50,)), None)
    assert [first.reason, second.reason] == ["first_seen", "moved"]


def test_a_counted_window_counts_what_was_applied_before(oracle: Oracle) -> None:
    oracle.put(0, "q", window(1, 2))
    batch(oracle, left=[("a", 1, 10), ("b", 2, 10)], right=[("x", 1, 10), ("y", 2, 10), ("z", 2, 10)])

    # In order: a, x, b, y, z. Of the left only the last one is in its window, of the right the last two.
    assert emitted(oracle) == [f"window_join q {pair}" for pair in ("a~x@1", "b~x@2", "b~y@2", "b~z@2")]


def test_a_reading_is_kept_while_any_window_join_of_its_feed_needs_it(oracle: Oracle) -> None:
    oracle.put(0, "q", window("2ms", "9ms"))
    oracle.put(1, "r", window("9ms", "9ms", other="third"))
    batch(oracle, left=[("a", 1, 10)])
    batch(oracle, right=[("y", 9, 99)])  # past what q holds; r still waits for the third feed
    batch(oracle, right=[("z", 2, 10)])
    assert emitted(oracle) == ["window_join q a~z@2"]

    batch(oracle, third=[("t", 20, 99)])  # past what r holds
    batch(oracle, right=[("x", 2, 10)])
    assert len(emitted(oracle)) == 1


def test_a_broken_answer_is_named(oracle: Oracle) -> None:
    oracle.put(0, "q", band())
    batch(oracle, left=[("a", 1, 10)], right=[("z", 2, 10)])
    batch(oracle, left=[("a", 3, 50)])
    comes, goes = oracle.pair_events

    assert broken_answers([comes, goes, comes]) == []
    assert len(broken_answers([goes])) == 1
    assert len(broken_answers([comes, comes])) == 1
