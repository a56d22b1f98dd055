"""How the operator counts events: by kind, sign and reason, of transitions by pattern."""

import dataclasses

import numpy as np

from bmq.job.stateful import count_events
from bmq.records import NEVER, Kind, Pattern, Reason, Sign
from tests.crossings import Row, make_crossings, query


def test_crossings_count_by_sign_and_reason() -> None:
    rows = [Row(), Row(stream="w"), Row(sign=Sign.LEFT), Row(sign=Sign.LEFT, reason=Reason.STREAM_EXPIRED)]

    assert count_events(make_crossings(rows)) == {
        ("border", "+", "moved"): 2,
        ("border", "-", "moved"): 1,
        ("border", "-", "stream_expired"): 1,
    }


def test_transitions_count_by_pattern_and_not_as_moves() -> None:
    queries = [
        query("a", kind=Kind.TRANSITION, pattern=Pattern.IN_NOT_OUT),
        query("b", kind=Kind.TRANSITION, pattern=Pattern.OUT_THEN_IN),
    ]
    rows = [Row(query=queries[0], sign=Sign.NONE), Row(query=queries[1], sign=Sign.NONE), Row()]
    began = np.array([5, 5, NEVER], dtype=np.int64)
    crossings = dataclasses.replace(make_crossings(rows), began=began)

    assert count_events(crossings) == {
        ("transition", "", "in_not_out"): 1,
        ("transition", "", "out_then_in"): 1,
        ("border", "+", "moved"): 1,
    }


def test_nothing_counts_nothing() -> None:
    assert not count_events(make_crossings([]))
