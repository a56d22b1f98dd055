"""When queries end."""

import pytest

from bmq.engines.feed.dues import STALE_MOST, DueQueries
from bmq.records import NEVER

pytestmark = pytest.mark.unit


def test_what_has_passed_is_emitted_once_in_order_and_only_as_it_is_now() -> None:
    dues = DueQueries()
    for slot, due in ((0, 5), (1, 3), (2, 4), (1, 9), (3, 1), (3, NEVER), (0, 2), (0, 5)):
        dues.set(slot, due)

    assert not dues.any_passed(1)
    assert dues.passed(6) == [(4, 2), (5, 0)]
    assert dues.passed(6) == []
    assert dues.passed(10) == [(9, 1)]


def test_edits_take_no_more_memory_than_queries() -> None:
    dues = DueQueries()
    for due in range(10_000):
        for slot in range(3):
            dues.set(slot, due)

    assert len(dues._heap) <= 2 * 3 + STALE_MOST
    assert dues.passed(10_000) == [(9_999, 0), (9_999, 1), (9_999, 2)]
