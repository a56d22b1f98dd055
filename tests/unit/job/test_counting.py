"""How the operator counts events: by kind, sign and reason, of transitions by pattern; and who found them."""

import dataclasses

import numpy as np

from bmq.job.counting import count_events, count_pairs
from bmq.records import NEVER, Kind, Pattern, Reason, Sign
from tests.crossings import Row, make_crossings, query
from tests.joined_pairs import PairRow, join_query, make_pairs


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


def test_match_and_select_events_count_without_sign_and_reason() -> None:
    match, select = (query(kind.value, kind=kind) for kind in (Kind.MATCH, Kind.SELECT))
    rows = [Row(query=match, sign=Sign.NONE), Row(query=select, sign=Sign.NONE), Row(query=match, sign=Sign.NONE)]

    assert count_events(make_crossings([*rows, Row()])) == {
        ("match", "", ""): 2,
        ("select", "", ""): 1,
        ("border", "+", "moved"): 1,
    }


def test_what_leaves_a_border_query_that_became_a_match_query_is_a_crossing() -> None:
    rows = [Row(query=query(kind=Kind.MATCH), sign=Sign.LEFT, reason=Reason.QUERY_UPDATED)]

    assert count_events(make_crossings(rows)) == {("border", "-", "query_updated"): 1}


def test_pairs_of_band_joins_count_by_sign_and_reason_and_those_of_window_joins_as_one() -> None:
    band, window = join_query("b"), join_query("w", Kind.WINDOW_JOIN)
    rows = [
        PairRow(band),
        PairRow(band, right="s"),
        PairRow(band, sign=Sign.LEFT, reason=Reason.STREAM_EXPIRED),
        PairRow(window, sign=Sign.NONE),
        PairRow(join_query("q", reports_queries=True), sign=Sign.NONE, reason=Reason.FIRST_SEEN),
    ]

    assert count_pairs(make_pairs(rows)) == {
        ("band_join", "+", "moved"): 2,
        ("band_join", "-", "stream_expired"): 1,
        ("band_join", "", "first_seen"): 1,
        ("window_join", "", ""): 1,
    }


def test_nothing_counts_nothing() -> None:
    assert not count_events(make_crossings([]))
    assert not count_pairs(make_pairs([]))
